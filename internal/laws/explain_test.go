package laws_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/pred"
)

// TestExplain: everything considered is either read or skipped, a scan reads no more than the metadata allows, and the
// reasons are those of each format.
func TestExplain(t *testing.T) {
	formats := stoa.Formats
	reasons := map[string]string{"a.parquet": "bounds of the row group", "set": "no row passes"}
	for _, place := range splitPlaces(t) {
		table, err := stoa.Open(context.Background(), place, stoa.OpenOptions{Formats: formats})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		spec := stoa.ScanSpec{Columns: []string{"t", "x"}}
		if spec.Filter, err = pred.Parse("n >= 4800"); err != nil {
			t.Fatal(err)
		}
		planned, err := table.Explain(context.Background(), spec, false)
		if err != nil {
			t.Fatal(err)
		}
		done, err := table.Explain(context.Background(), spec, true)
		if err != nil {
			t.Fatal(err)
		}
		if planned.Ran != nil || done.Ran == nil || done.Ran.Rows != 200 || done.Filter != "n >= 4800" {
			t.Errorf("%s: %+v, of filter %s", place, done.Ran, done.Filter)
		}
		var why []string
		for i, l := range done.Levels {
			p := planned.Levels[i]
			sum := l.Read
			for _, r := range l.Skipped {
				sum += r.N
				why = append(why, r.Why)
			}
			if l.Considered >= 0 && sum != l.Considered || p.Considered != l.Considered || l.Read > p.Read ||
				l.Bytes > p.Bytes || l.Bytes > l.Total {
				t.Errorf("%s, %s %s: planned %+v, done %+v", place, l.Level, l.Column, p, l)
			}
			if l.Filter != (l.Column == "n" && (l.Level == "pages" || l.Level == "dictionary")) {
				t.Errorf("%s: %s of column %s is wrong about being in the filter", place, l.Level, l.Column)
			}
		}
		base := place[strings.LastIndexByte(place, '/')+1:]
		if want := reasons[base]; want != "" && !slices.Contains(why, want) {
			t.Errorf("%s: %q is not among the reasons %q", base, want, why)
		}
	}
}

// level returns a line of an explanation.
func level(x *stoa.Explanation, name, column string) (l stoa.ExplainLevel) {
	for _, l := range x.Levels {
		if string(l.Level) == name && l.Column == column {
			return l
		}
	}
	return l
}

// TestExplainParts: parts without remaining row groups are skipped, for the reasons of their row groups.
func TestExplainParts(t *testing.T) {
	table, err := stoa.Open(context.Background(), "corpus/carbon/2.3.0/managed#managed_del", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for where, read := range map[string]int64{"id > 100000": 0, "id >= 0": 3} {
		e, err := pred.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		x, err := table.Explain(context.Background(), stoa.ScanSpec{Filter: e}, false)
		if err != nil {
			t.Fatal(err)
		}
		parts, groups := level(x, "parts", ""), level(x, "row groups", "")
		if parts.Considered != 3 || parts.Read != read || groups.Read != read ||
			!slices.Equal(parts.Skipped, groups.Skipped) || parts.Bytes > 0 != (read > 0) {
			t.Errorf("%s: %+v, %+v", where, parts, groups)
		}
	}
}

// TestExplainDictionaries: a dictionary has a line of its own, and is read if a page needs it or the filter is applied
// to it.
func TestExplainDictionaries(t *testing.T) {
	dir := t.TempDir() + "/d"
	rows := splitRows(20_000)
	w, err := stoa.Create(context.Background(), dir+"/", rows.Schema(),
		stoa.CreateOptions{To: "cfile", Opts: map[string]string{"encoding.t": "dict", "block-size": "4096"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(context.Background())
	if err := w.Write(context.Background(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for where, read := range map[string]int64{"t = 'text 7'": 1, "n = 77": 1, "n < 0": 0} {
		e, err := pred.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		table, err := stoa.Open(context.Background(), dir, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		x, err := table.Explain(context.Background(), stoa.ScanSpec{Columns: []string{"t"}, Filter: e}, true)
		if err != nil {
			t.Fatal(err)
		}
		dict, pages := level(x, "dictionary", "t"), level(x, "pages", "t")
		if dict.Considered != 1 || dict.Read != read || dict.Total <= 0 || dict.Bytes > 0 != (read > 0) ||
			read == 0 && dict.Skipped[0].Why != "no page needs it" || pages.Considered < 2 {
			t.Errorf("%s: %+v, %+v", where, dict, pages)
		}
		if strings.HasPrefix(where, "t") != dict.Filter {
			t.Errorf("%s: the dictionary's Filter is %v", where, dict.Filter)
		}
	}
}
