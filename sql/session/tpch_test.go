package session

import (
	"context"
	"os"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
)

var tpchTables = []string{"customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"}

// TestTPCH: the 22 queries of TPC-H over tables in each format give what DuckDB gives of its own Parquet. STOA_TPCH is
// the scale (0.01).
func TestTPCH(t *testing.T) {
	scale := os.Getenv("STOA_TPCH")
	if scale == "" {
		scale = "0.01"
	}
	if testing.Short() && os.Getenv("STOA_TPCH") == "" {
		t.Skip("TestSuite asks for more with fewer rows")
	}
	dir := t.TempDir()
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	q.must(t, "CALL dbgen(sf = "+scale+")")
	for _, table := range tpchTables {
		q.must(t, "COPY "+table+" TO '"+dir+"/"+table+".parquet' (FORMAT parquet)")
		q.must(t, "DROP TABLE "+table)
	}
	queries := q.tpchQueries(t)
	want := make([]string, len(queries))
	q.tpchViews(t, func(table string) string { return "read_parquet('" + dir + "/" + table + ".parquet')" })
	for i, s := range queries {
		if want[i] = q.answer(t, s); strings.HasPrefix(want[i], "error") || want[i] == "" {
			t.Fatalf("query %d: %q", i+1, want[i])
		}
	}
	only := os.Getenv("STOA_TPCH_FORMAT") // one of formats; "": all
	for _, fm := range formats {
		if fm.to == "kudu-fs" || only != "" && only != fm.name { // a key of several columns each: the suite has it
			continue
		}
		for _, table := range tpchTables {
			if err := convert(dir+"/"+table+".parquet", fm.place(dir, table), fm.to); err != nil {
				t.Fatalf("%s: %v", fm.name, err)
			}
		}
		q.tpchViews(t, func(table string) string { return source(fm.name, fm.place(dir, table), table) })
		wrong := 0
		for i, s := range queries {
			if got := q.answer(t, s); got != want[i] {
				wrong++
				t.Errorf("%s: query %d\nfound    %.300s\nexpected %.300s", fm.name, i+1, got, want[i])
			}
		}
		t.Logf("COUNT TPC-H %s, scale %s: %d queries, %d wrong", fm.name, scale, len(queries), wrong)
		q.forget()
		for _, table := range tpchTables {
			if err := os.RemoveAll(strings.TrimSuffix(fm.place(dir, table), "/")); err != nil {
				t.Error(err)
			}
		}
	}
}

func (q *asked) tpchViews(t *testing.T, of func(table string) string) {
	t.Helper()
	for _, table := range tpchTables {
		q.must(t, "CREATE OR REPLACE VIEW "+table+" AS FROM "+of(table))
	}
}

// tpchQueries are the texts of the queries, as DuckDB has them.
func (q *asked) tpchQueries(t *testing.T) []string {
	t.Helper()
	out, err := q.Texts(context.Background(), "SELECT query FROM tpch_queries() ORDER BY query_nr")
	if err != nil || len(out) != 22 {
		t.Fatalf("expected 22 queries, found %d: %v", len(out), err)
	}
	for i, s := range out {
		out[i] = strings.TrimRight(strings.TrimSpace(s), ";")
	}
	return out
}
