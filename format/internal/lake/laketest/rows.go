package laketest

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"stoa"
	"stoa/format"
)

// Views compares a table, at each of its versions, with the rows that another reader read from it. want is a JSON file
// with lists of rows by the value of option at; "now" is the current version.
func Views(t *testing.T, f format.Format, name, want string) {
	t.Helper()
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	views := map[string][]any{}
	if err := json.Unmarshal(b, &views); err != nil {
		t.Fatal(err)
	}
	if len(views) < 2 || len(views["now"]) == 0 {
		t.Fatalf("%s: %d views, %d rows now", want, len(views), len(views["now"]))
	}
	for at, rows := range views {
		opts := map[string]string{}
		if at != "now" {
			opts["at"] = at
		}
		got, expect := lines(t, Open(t, f, name, opts)), make([]string, len(rows))
		for i, r := range rows {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			expect[i] = string(line)
		}
		slices.Sort(expect)
		if !slices.Equal(got, expect) {
			t.Errorf("%s at %s: expected %d rows, %v\nfound %d, %v", name, at, len(expect), expect, len(got), got)
		}
	}
}

// lines returns the rows of a table as JSON, sorted.
func lines(t *testing.T, table *stoa.Table) (out []string) {
	t.Helper()
	for b, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := b.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var rows []any
		if err := json.Unmarshal(raw, &rows); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(line))
		}
	}
	slices.Sort(out)
	return out
}
