package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
)

// tpchKeys are the primary keys of those whose key is not their first column alone.
var tpchKeys = map[string]string{"lineitem": "l_orderkey,l_linenumber", "partsupp": "ps_partkey,ps_suppkey"}

var tpchTables = []string{"customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"}

// TestTPCH: the 22 queries of TPC-H over tables in each format give what DuckDB gives of its own Parquet. STOA_TPCH is
// the folder that interop/sql/tpch.sh made.
func TestTPCH(t *testing.T) {
	source := os.Getenv("STOA_TPCH")
	if source == "" {
		t.Skip("the tables of TPC-H are made by interop/sql/run")
	}
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	text, err := os.ReadFile(filepath.Join(source, "queries.json"))
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	if err := json.Unmarshal(text, &queries); err != nil || len(queries) != 22 {
		t.Fatalf("expected 22 queries, found %d: %v", len(queries), err)
	}
	want := make([]string, len(queries))
	q.tpchViews(t, func(table string) string { return "read_parquet('" + source + "/" + table + ".parquet')" })
	for i, s := range queries {
		if want[i] = q.answer(t, s); strings.HasPrefix(want[i], "error") || want[i] == "" {
			t.Fatalf("query %d: %q", i+1, want[i])
		}
	}
	only := os.Getenv("STOA_TPCH_FORMAT") // one of formats, parquet, written or arrow; "": all
	if only == "" || only == "parquet" {  // DuckDB's own files, read by stoa
		q.tpchViews(t, func(table string) string { return quote(source + "/" + table + ".parquet") })
		t.Logf("COUNT TPC-H parquet: %d queries, %d wrong", len(queries), q.tpchWrong(t, "parquet", queries, want))
		q.forget()
	}
	for _, fm := range append(slices.Clone(formats), more...) {
		if only == "" || only == fm.name {
			q.tpchIn(t, fm, source, queries, want)
		}
	}
}

// more are formats besides those of the suite: Parquet by stoa's own writer, and Arrow's files.
var more = []stored{
	{"written", func(d, t string) string { return d + "/" + t + ".parquet" }, "parquet", true},
	{"arrow", func(d, t string) string { return d + "/" + t + ".arrow" }, "arrow", true},
}

// tpchIn writes the tables in a format and asks the queries of them.
func (q *asked) tpchIn(t *testing.T, fm stored, source string, queries, want []string) {
	t.Helper()
	dir := t.TempDir()
	for _, table := range tpchTables {
		if err := convert(source+"/"+table+".parquet", fm.place(dir, table), fm.to); err != nil {
			t.Fatalf("%s: %v", fm.name, err)
		}
	}
	q.tpchViews(t, func(table string) string { return sourceOf(fm.name, fm.place(dir, table), table) })
	t.Logf("COUNT TPC-H %s: %d queries, %d wrong", fm.name, len(queries), q.tpchWrong(t, fm.name, queries, want))
	q.forget()
	if err := os.RemoveAll(dir); err != nil { // before the next: they are large
		t.Error(err)
	}
}

// tpchWrong is how many queries give something else than what is wanted.
func (q *asked) tpchWrong(t *testing.T, format string, queries, want []string) (wrong int) {
	t.Helper()
	for i, s := range queries {
		if got := q.answer(t, s); got != want[i] {
			wrong++
			t.Errorf("%s: query %d\nfound    %.300s\nexpected %.300s", format, i+1, got, want[i])
		}
	}
	return wrong
}

func (q *asked) tpchViews(t *testing.T, of func(table string) string) {
	t.Helper()
	for _, table := range tpchTables {
		q.must(t, "CREATE OR REPLACE VIEW "+table+" AS FROM "+of(table))
	}
}
