package laws_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/region"
)

// TestManyMalformedRows: rows keep their numbers even if so many do not fit the schema that losses are reported before
// preceding rows are returned. This holds in the losses, after the last of them, and in the next file.
func TestManyMalformedRows(t *testing.T) {
	t.Chdir(t.TempDir())
	const good, pairs = 1001, 300 // the first thousand rows determine the type
	var text strings.Builder
	text.WriteString("i\n")
	for k := range good {
		fmt.Fprintln(&text, k)
	}
	for k := range pairs {
		fmt.Fprintf(&text, "%d\nx\n", k)
	}
	if err := os.WriteFile("a.csv", []byte(text.String()+"7\n\"zz"), 0o644); err != nil { // row 1602 has no end
		t.Fatal(err)
	}
	if err := os.WriteFile("b.csv", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	scan := func(uri string, spec stoa.ScanSpec) (rows int64, lost []region.Loss) {
		tab, err := stoa.Open(context.Background(), uri, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		spec.Damaged, spec.Lost = stoa.SkipRows, func(l region.Loss) { lost = append(lost, l) }
		for b, err := range tab.Scan(context.Background(), spec) {
			if err != nil {
				t.Fatal(err)
			}
			rows += b.NumRows()
		}
		return rows, lost
	}
	rows, lost := scan("a.csv", stoa.ScanSpec{})
	if rows != good+pairs+1 || len(lost) != pairs+1 {
		t.Fatalf("%d rows, %d losses", rows, len(lost))
	}
	for k, l := range lost[:pairs] {
		if at := int64(good + 2*k + 1); l.Rows != [2]int64{at, at + 1} || !l.Exact {
			t.Fatalf("loss %d: %+v", k, l)
		}
	}
	if l := lost[pairs]; l.Rows != [2]int64{good + 2*pairs + 1, -1} || l.Exact {
		t.Errorf("%+v", l)
	}
	// b has the rows of both from 1601 on: those from 1601+1001 on are pairs
	if err := os.Remove("a.csv"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("a.csv", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := stoa.ScanSpec{}
	spec.Rows.From, spec.Rows.To = 2*good+2*pairs, 2*good+2*pairs+10
	if rows, lost := scan("*.csv", spec); rows != 5 || len(lost) != 5 ||
		lost[0].Rows != [2]int64{good + 1, good + 2} || lost[0].Part != "b.csv" {
		t.Errorf("%d rows, %+v", rows, lost)
	}
}

// TestRowsOfTheNextFile: row numbers of a range continue through files that do not declare their number of rows,
// including files that end before the range.
func TestRowsOfTheNextFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.csv": "i\n0\n1\n2,2\n3\n4\n", "b.csv": "i\n",
		"c.csv": "i\n5\n6\n7\n", "d.csv": "i\n8\n9\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tab, err := stoa.Open(context.Background(), "*.csv",
		stoa.OpenOptions{Opts: map[string]string{"schema": "i: int64"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for from := int64(3); from < 10; from++ {
		for to := from + 1; to <= 11; to++ {
			spec := stoa.ScanSpec{}
			spec.Rows.From, spec.Rows.To = from, to
			var got, want []int64
			for b, err := range tab.Scan(context.Background(), spec) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range int(b.NumRows()) {
					got = append(got, b.Column(0).(*array.Int64).Value(i))
				}
			}
			for v := from; v < min(to, 10); v++ {
				want = append(want, v)
			}
			if !slices.Equal(got, want) {
				t.Errorf("rows %d:%d: got %v, want %v", from, to, got, want)
			}
		}
	}
}
