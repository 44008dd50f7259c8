package parquet_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/region"
	"stoa/store"
)

// TestFarTimestamps: an INT96 in the year 9999 is not damage: its column is refused by name, under a damage policy it
// costs the rows of its page only, and verify does not report the file as corrupt.
func TestFarTimestamps(t *testing.T) {
	// 20 rows in pages of five, that of row 12 in the year 9999
	b, err := os.ReadFile("testdata/refused/int96.far.parquet")
	if err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"t": b})
	for _, damaged := range []stoa.Damaged{stoa.Fail, stoa.SkipRows, stoa.NullCells} {
		tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{parquet.Format}})
		if err != nil {
			t.Fatal(err)
		}
		rows, nulls, lost := "", 0, ""
		spec := stoa.ScanSpec{Damaged: damaged,
			Lost: func(l region.Loss) { lost += fmt.Sprint(l.Rows, errors.Is(l.Err, fault.Unsupported), " ") }}
		for b, failed := range tab.Scan(t.Context(), spec) {
			if err = failed; err != nil {
				continue
			}
			for _, n := range b.Column(0).(*array.Int64).Int64Values() {
				rows += fmt.Sprint(n, " ")
			}
			nulls += b.Column(1).NullN()
		}
		tab.Close()
		want, wantNulls, wantLost := "0 1 2 3 4 5 6 7 8 9 15 16 17 18 19 ", 0, "[10 15] true "
		switch damaged {
		case stoa.Fail:
			if !errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Corrupt) {
				t.Errorf("read: %v", err)
			}
			continue
		case stoa.NullCells:
			want, wantNulls = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 ", 5
		}
		if err != nil || rows != want || nulls != wantNulls || lost != wantLost {
			t.Errorf("damaged=%v: got rows %q, %d nulls, lost %q, %v", damaged, rows, nulls, lost, err)
		}
	}
	opts := map[string]string{"int96": "us"}
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree, Formats: []format.Format{parquet.Format},
		Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if got := tab.Schema().Field(1).Type.String(); got != "timestamp[us]" {
		t.Errorf("int96=us: got %s", got)
	}
	rows, years := 0, ""
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			at := b.Column(1).(*array.Timestamp).Value(i).ToTime(arrow.Microsecond)
			if rows++; at.Year() > 2262 {
				years += fmt.Sprint(b.Column(0).(*array.Int64).Value(i), ":", at.Year(), " ")
			}
		}
	}
	if rows != 20 || years != "12:9999 " {
		t.Errorf("int96=us: got %d rows, far ones %q", rows, years)
	}
	for f := range parquet.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"},
		format.OpenOptions{Opts: opts}) {
		t.Errorf("int96=us: %+v", f)
	}
	found := 0
	for f := range parquet.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		if found++; f.Code != "parquet.unsupported" {
			t.Errorf("%+v", f)
		}
	}
	if found != 1 {
		t.Errorf("got %d findings", found)
	}
}
