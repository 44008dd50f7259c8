package kudu

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
)

// truths is what Kudu's client read from a server's tables.
type truths struct {
	At     []uint64 // hybrid times of the moments
	Whole  int      // the moment at which everything was flushed; later nothing was
	Tables map[string]truth
}

// truth is what it read from one table.
type truth struct {
	Columns []string // as `columns` of Drive.java prints them
	Tablets []string // as `tablets` does
	Latest  []string
	At      [][]string // at the moments
	Altered bool       // after the moment Whole: Kudu then flushes the rows in memory
}

// check compares what stoa and Kudu's client read from a table. It returns the number of rows.
func check(t *testing.T, place, what string, opts map[string]string, want []string) int {
	t.Helper()
	r, err := read(place, opts, stoa.ScanSpec{})
	if outside(err) { // refused, unless partial is set
		opts = maps.Clone(opts)
		opts["partial"] = "true"
		r, err = read(place, opts, stoa.ScanSpec{})
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return 0
	}
	if d := difference(r.rows, want); d != "" {
		t.Errorf("%s: stoa reads %s", what, d)
		return 0
	}
	return len(want)
}

// outside reports whether err says that a moment is before or after all changes that a table's files record. (The
// server knew that the table was empty before, or that nothing came after.)
func outside(err error) bool {
	return errors.Is(err, fault.Unsupported) && strings.Contains(err.Error(), "partial=true")
}

// checkAll compares every table at every moment, its columns, and the flushed rows alone, without the log.
func (l *truths) checkAll(t *testing.T, place string) {
	for _, name := range slices.Sorted(maps.Keys(l.Tables)) {
		t.Run(name, func(t *testing.T) {
			tr, at := l.Tables[name], place+"#"+name
			r, err := read(at, nil, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			var cols []string
			for _, c := range tr.Columns {
				cols = append(cols, clientColumn(c))
			}
			if !slices.Equal(r.columns, cols) {
				t.Errorf("the columns are\n%s\nKudu's\n%s", strings.Join(r.columns, "\n"), strings.Join(cols, "\n"))
			}
			if d := difference(r.rows, tr.Latest); d != "" {
				t.Errorf("stoa reads %s", d)
			}
			rows := len(tr.Latest)
			for i, when := range l.At {
				rows += check(t, at, fmt.Sprintf("at moment %d", i),
					map[string]string{"at": strconv.FormatUint(when, 10)}, tr.At[i])
			}
			if !tr.Altered {
				rows += check(t, at, "without its log", map[string]string{"wal": "false"}, tr.At[l.Whole])
			}
			asked := checkFilters(t, at, nil, false, tr.Columns, tr.Latest, tr.At[l.Whole])
			asked += checkFilters(t, at, map[string]string{"at": strconv.FormatUint(l.At[2], 10)}, false,
				tr.Columns, tr.At[2], tr.Latest)
			t.Logf("COUNT %s: rows compared %d, filters %d", t.Name(), rows, asked)
		})
	}
}

// TestDirKept compares with what an earlier run of TestDirLives kept (STOA_INTEROP_KEEP=DIR):
// STOA_INTEROP_KEPT=DIR/file or DIR/log.
func TestDirKept(t *testing.T) {
	dir := os.Getenv("STOA_INTEROP_KEPT")
	if dir == "" {
		t.Skip("STOA_INTEROP_KEPT is not set")
	}
	b, err := os.ReadFile(filepath.Join(dir, "copies", "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var l truths
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	l.checkAll(t, filepath.Join(dir, "copies", "stopped", "tserver"))
}
