package stoa_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/parquet"
	"stoa/pred"
)

// What is considered is read or passed over; what a scan does is no more than what metadata promised; and the reasons are those that each
// format has.
func TestExplain(t *testing.T) {
	formats := append(slices.Clone(stoa.Formats), parquet.Format)
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
			if l.Considered >= 0 && sum != l.Considered || p.Considered != l.Considered || l.Read > p.Read || l.Bytes > p.Bytes || l.Bytes > l.Total {
				t.Errorf("%s, %s %s: planned %+v, done %+v", place, l.Level, l.Column, p, l)
			}
			if l.Filter != (l.Column == "n" && l.Level == "pages") {
				t.Errorf("%s: is %s %s in the filter?", place, l.Level, l.Column)
			}
		}
		base := place[strings.LastIndexByte(place, '/')+1:]
		if want := reasons[base]; want != "" && !slices.Contains(why, want) {
			t.Errorf("%s: %q is not among the reasons %q", base, want, why)
		}
	}
}
