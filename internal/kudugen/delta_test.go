package kudugen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDeltasMakeHistory: the base data with all REDO entries applied are the rows at p4, and with all UNDO entries
// applied, the newest first, there are no rows, as before the first operation. The entries are those that Kudu printed.
func TestDeltasMakeHistory(t *testing.T) {
	dir := corpus(t)
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	if err := json.Unmarshal(b, &entries); err != nil {
		t.Fatal(err)
	}
	type set struct {
		table string
		index int
	}
	redo, undo := map[set][]Delta{}, map[set][]Delta{}
	n := 0
	for _, e := range entries {
		if e.Dump == "" || !strings.HasPrefix(e.Table, "d_") || e.Table == "d_alter" || e.Kind != "redo" &&
			e.Kind != "undo" {
			continue
		}
		d, err := ParseDump(gunzip(t, filepath.Join(dir, e.Dump)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Lines {
			v, _, err := d.Value(i, Column{Type: "binary"})
			if err != nil {
				t.Fatal(err)
			}
			x, err := DecodeDelta(v)
			if err != nil {
				t.Fatal(e.Dump, i, err)
			}
			k := set{e.Table, e.Rowset}
			if e.Kind == "redo" {
				redo[k] = append(redo[k], x)
			} else {
				undo[k] = append(undo[k], x)
			}
			n++
		}
	}
	for _, tab := range Tables() {
		if !strings.HasPrefix(tab.Name, "d_") || tab.Name == "d_alter" {
			continue
		}
		var after [][]Cell
		for _, rs := range tab.Sets {
			k := set{tab.Name, rs.Index}
			slices.SortStableFunc(redo[k], func(a, b Delta) int { return cmp.Compare(a.Time, b.Time) })
			slices.SortStableFunc(undo[k], func(a, b Delta) int { return cmp.Compare(b.Time, a.Time) })
			rows, live := clone(rs.Rows)
			for _, x := range redo[k] {
				if live[x.Row], err = x.Apply(rs.Columns, rows[x.Row]); err != nil {
					t.Fatal(err)
				}
			}
			for i, row := range rows {
				if live[i] {
					after = append(after, row)
				}
			}
			rows, live = clone(rs.Rows)
			for _, x := range undo[k] {
				if live[x.Row], err = x.Apply(rs.Columns, rows[x.Row]); err != nil {
					t.Fatal(err)
				}
			}
			if i := slices.Index(live, true); i >= 0 {
				t.Errorf("%s rowset %d: row %d exists before its insertion", tab.Name, rs.Index, i)
			}
		}
		SortByKey(tab.Columns, after)
		want := tab.Rows["p4"]
		if len(after) != len(want) {
			t.Errorf("%s: %d rows after all deltas, want %d", tab.Name, len(after), len(want))
			continue
		}
		for i := range want {
			if !slices.EqualFunc(after[i], want[i],
				func(a, b Cell) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }) {
				t.Errorf("%s: row %d is %x after all deltas, want %x", tab.Name, i, after[i], want[i])
				break
			}
		}
	}
	t.Log(n, "deltas")
	if n < 10000 {
		t.Error("too few deltas: " + strconv.Itoa(n))
	}
}

func clone(rows [][]Cell) ([][]Cell, []bool) {
	out, live := make([][]Cell, len(rows)), make([]bool, len(rows))
	for i := range rows {
		out[i], live[i] = slices.Clone(rows[i]), true
	}
	return out, live
}
