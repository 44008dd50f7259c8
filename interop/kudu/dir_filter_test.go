package kudu

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/pred"
)

// A filter is a predicate as text, and as a function of a row in the notation of Drive.java.
type filter struct {
	text  string
	holds func(row []string) bool
}

// checkFilters filters by whole keys, by the first parts of keys, by ranges of them, and by other columns. stoa must
// not skip matching rows (by first and last keys, indexes, bloom filters, partitions). rows is the whole table, others
// are rows of other times. On damaged files filtering may fail, but must not return wrong rows.
func checkFilters(t *testing.T, place string, opts map[string]string, damaged bool, columns, rows,
	others []string) (asked int) {
	t.Helper()
	if len(rows) == 0 {
		return 0
	}
	tab, err := stoa.Open(context.Background(), place, stoa.OpenOptions{Opts: opts})
	if err != nil {
		if !damaged || !errors.Is(err, fault.Corrupt) {
			t.Error(err)
		}
		return 0
	}
	defer tab.Close()
	for _, f := range filters(columns, rows, others) {
		e, err := pred.Parse(f.text)
		if err != nil {
			t.Fatal(f.text, err)
		}
		var got, want []string
		refused := false
		for b, err := range tab.Scan(context.Background(), stoa.ScanSpec{Filter: e}) {
			if refused = err != nil; refused {
				if !damaged || !errors.Is(err, fault.Corrupt) {
					t.Errorf("where %.200s: %v", f.text, err)
				}
				break
			}
			for i := range int(b.NumRows()) {
				var line []byte
				for c, a := range b.Columns() {
					if c > 0 {
						line = append(line, '\t')
					}
					line = cellWord(line, a, i)
				}
				got = append(got, string(line))
			}
		}
		if refused {
			continue
		}
		for _, r := range rows {
			if f.holds(strings.Split(r, "\t")) {
				want = append(want, r)
			}
		}
		if d := difference(got, want); d != "" {
			t.Errorf("where %.300s: stoa reads %s", f.text, d)
			return asked
		}
		asked++
	}
	return asked
}

// filters makes filters from rows of the table, and from rows that are not in it.
func filters(columns, rows, others []string) (out []filter) {
	cols := make([][]string, len(columns)) // name, type, key, nullable, precision, scale
	keys := 0
	for i, c := range columns {
		if cols[i] = strings.Split(c, "\t"); cols[i][2] == "true" {
			keys++
		}
	}
	equal := func(c int, word string) filter {
		if word == "N" {
			return filter{quote(cols[c][0]) + " is null", func(r []string) bool { return r[c] == "N" }}
		}
		return filter{quote(cols[c][0]) + " = " + literal(cols[c], word), func(r []string) bool { return r[c] == word }}
	}
	and := func(fs ...filter) (f filter) {
		for i, x := range fs {
			if i > 0 {
				f.text += " and "
			}
			f.text += x.text
		}
		f.holds = func(r []string) bool {
			for _, x := range fs {
				if !x.holds(r) {
					return false
				}
			}
			return true
		}
		return f
	}
	some := append(every(rows, 12), every(others, 12)...)
	for i, line := range some {
		r := strings.Split(line, "\t")
		var whole []filter
		for c := range keys {
			whole = append(whole, equal(c, r[c]))
		}
		out = append(out, and(whole...), and(whole[:1+i%keys]...))
		to := strings.Split(some[(i*7+3)%len(some)], "\t")
		c := i % keys
		out = append(out, and(append(whole[:c:c], filter{
			fmt.Sprintf("%s >= %s and %[1]s < %[3]s", quote(cols[c][0]), literal(cols[c], r[c]),
				literal(cols[c], to[c])),
			func(x []string) bool {
				return compareWords(cols[c][1], x[c], r[c]) >= 0 && compareWords(cols[c][1], x[c], to[c]) < 0
			}})...))
		// floating-point columns have two zeros
		if c := keys + i%(len(cols)-keys); cols[c][1] != "FLOAT" && cols[c][1] != "DOUBLE" {
			out = append(out, equal(c, r[c]))
		}
	}
	return out
}

// every returns about n of rows, evenly spread.
func every(rows []string, n int) (out []string) {
	for i := 0; i < len(rows); i += max(1, len(rows)/n) {
		out = append(out, rows[i])
	}
	return out
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal returns a value in the notation of Drive.java as a literal of a filter.
func literal(col []string, word string) string {
	n, _ := strconv.ParseInt(word, 10, 64)
	switch col[1] {
	case "STRING", "BINARY", "VARCHAR":
		return "x'" + word[1:] + "'"
	case "DATE":
		return "date '" + calendar(time.Unix(n*86400, 0).UTC(), "-01-02") + "'"
	case "UNIXTIME_MICROS":
		return "timestamp '" + calendar(time.UnixMicro(n).UTC(), "-01-02T15:04:05.000000Z") + "'"
	case "DECIMAL":
		scale, _ := strconv.Atoi(col[5])
		sign := strings.HasPrefix(word, "-")
		digits := strings.TrimPrefix(word, "-")
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		text := digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
		if sign {
			text = "-" + text
		}
		return "decimal '" + strings.TrimSuffix(text, ".") + "'"
	}
	return word
}

// calendar formats times with years of any length.
func calendar(t time.Time, layout string) string {
	y := t.Year()
	if y < 0 || y > 9999 {
		return fmt.Sprintf("%+05d", y) + t.Format(layout)
	}
	return fmt.Sprintf("%04d", y) + t.Format(layout)
}

// compareWords compares two values that are not NULL, in the notation of Drive.java.
func compareWords(typ, a, b string) int {
	switch typ {
	case "STRING", "BINARY", "VARCHAR":
		x, _ := hex.DecodeString(a[1:])
		y, _ := hex.DecodeString(b[1:])
		return strings.Compare(string(x), string(y))
	}
	x, _ := new(big.Int).SetString(a, 10)
	y, _ := new(big.Int).SetString(b, 10)
	return x.Cmp(y)
}
