//go:build interop

package carbonspark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"
)

// cells is a row as JSON has it, without nulls.
type cells map[string]any

// columns are the first columns of every table, in Spark's SQL.
const columns = `id int
name string
amount decimal(10,2)
day date
at timestamp
ratio double
small smallint
big bigint
flag boolean
tags array<string>
`

// row returns row i. Every tenth name is null, and some values of other columns are.
func row(i int) cells {
	c := cells{
		"id":     i,
		"amount": fmt.Sprintf("%d.%02d", i*7%1000-500, i%100),
		"day":    time.Unix(0, 0).UTC().AddDate(0, 0, 18000+i%5).Format(time.DateOnly),
		"at":     time.UnixMilli(1_600_000_000_000 + int64(i)*1_234_567).UTC().Format("2006-01-02T15:04:05.000Z"),
		"ratio":  float64(i) / 8,
		"small":  i%60000 - 30000,
		"big":    int64(i) << 33,
		"flag":   i%3 == 0,
		"tags":   []any{},
	}
	for k := range i % 4 {
		c["tags"] = append(c["tags"].([]any), fmt.Sprint("tag ", i+k))
	}
	if i*7%1000 < 500 && i%100 != 0 { // so that values such as -0.07 keep their sign
		c["amount"] = fmt.Sprintf("-%d.%02d", 500-i*7%1000, i%100)
	}
	if i%10 != 0 {
		c["name"] = fmt.Sprint("n", i%7, "/é y")
	}
	if i%11 == 0 {
		delete(c, "ratio")
		delete(c, "at")
	}
	if i%13 == 0 {
		delete(c, "tags")
		delete(c, "amount")
	}
	return c
}

// table is the expected content of a table: rows by id.
type table map[int]cells

func (t table) add(from, to int) {
	for i := from; i < to; i++ {
		t[i] = row(i)
	}
}

// count returns the number of rows that pass.
func (t table) count(pass func(c cells) bool) (n int) {
	for _, c := range t {
		if pass(c) {
			n++
		}
	}
	return n
}

// lines returns the rows as canonical texts, sorted by id.
func (t table) lines() (out []string) {
	for _, id := range slices.Sorted(maps.Keys(t)) {
		out = append(out, canonical(t[id]))
	}
	return out
}

// jsonl returns the rows [from, to) as JSON lines, for stoa to load.
func jsonl(from, to int) []byte {
	var b bytes.Buffer
	for i := from; i < to; i++ {
		line, err := json.Marshal(row(i))
		if err != nil {
			panic(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// canonical returns a row as a text: members sorted, without nulls, numbers as fractions (so that 1.50, "1.5" and 1.5
// are equal), times as milliseconds.
func canonical(c cells) string {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if c[k] != nil {
			fmt.Fprintf(&b, "%s=%s ", k, value(c[k]))
		}
	}
	return b.String()
}

func value(v any) string {
	switch v := v.(type) {
	case []any:
		s := "["
		for _, x := range v {
			s += value(x) + ","
		}
		return s + "]"
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return fmt.Sprint(t.UnixMilli())
		}
		if r, ok := new(big.Rat).SetString(v); ok {
			return r.RatString()
		}
		return fmt.Sprintf("%q", v)
	case bool:
		return fmt.Sprint(v)
	case float64:
		return new(big.Rat).SetFloat64(v).RatString()
	}
	r, ok := new(big.Rat).SetString(fmt.Sprint(v))
	if !ok {
		return fmt.Sprintf("?%v", v)
	}
	return r.RatString()
}

// parse turns JSON lines into canonical texts.
func parse(lines []string) (out []string, err error) {
	for _, l := range lines {
		d := json.NewDecoder(bytes.NewReader([]byte(l)))
		d.UseNumber()
		var c cells
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("%s: %v", l, err)
		}
		out = append(out, canonical(c))
	}
	return out, nil
}

// differ describes the first difference between two lists of rows; "" = equal.
func differ(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("got %d rows, want %d; the first missing one is %s", len(got), len(want), want[i])
		case i >= len(want):
			return fmt.Sprintf("got %d rows, want %d; the first surplus one is %s", len(got), len(want), got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("row %d is\n%s, want\n%s", i, got[i], want[i])
		}
	}
	return ""
}
