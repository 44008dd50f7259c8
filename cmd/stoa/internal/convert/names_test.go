package convert

import (
	"io"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/report"
	"stoa/cmd/stoa/internal/rerun"
)

// TestAnnouncedTablesKeepTheirNames: a table that was about to appear when its run was killed is looked for, and
// written, under the name that it had then, whatever tables of the same name there are now.
func TestAnnouncedTablesKeepTheirNames(t *testing.T) {
	dir := t.TempDir()
	quiet := func() *cli.App { return cli.NewApp(strings.NewReader(""), io.Discard, io.Discard) }
	st, err := rerun.OpenState(t.Context(), quiet(), dir, false, []string{"to=jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	done := rerun.Table{Source: "place#000000", Output: "000000.jsonl"}
	if err := st.Record(t.Context(), quiet(), dir, done); err != nil {
		t.Fatal(err)
	}
	for _, d := range []rerun.Table{{Source: "b/t.csv", Output: "t"}, {Source: "c/t.csv", Output: "t-2"}} {
		if err := st.Announce(t.Context(), quiet(), dir, d); err != nil {
			t.Fatal(err)
		}
	}
	st, err = rerun.OpenState(t.Context(), quiet(), dir, true, []string{"to=jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	tables := []oneTable{{source: "a/t.csv", output: "t"}, {source: "b/t.csv", output: "t-2"},
		{source: "c/t.csv", output: "t-3"}, {source: "place#000000", output: "000000-2"}}
	keepNames(st, tables, "")
	for i, want := range []string{"t-3", "t", "t-2", "000000.jsonl"} {
		if got := tables[i].output; got != want {
			t.Errorf("%s: got %s, want %s", tables[i].source, got, want)
		}
	}
}

// TestReportsKeepTheirNames: no table gets the name of a report, in whatever case, or a name that another table has.
func TestReportsKeepTheirNames(t *testing.T) {
	tables := []oneTable{{output: "report.json"}, {output: "Report.TXT"}, {output: "report.html"},
		{output: "report.json-2"}, {output: "report"}, {output: "report.json.parquet"}}
	keepFree(tables, nil, report.Names...)
	seen := map[string]bool{}
	for i, want := range []string{"report.json-2", "Report.TXT-2", "report.html-2", "report.json-2-2", "report",
		"report.json.parquet"} {
		got := tables[i]
		if got.output != want || seen[got.output] {
			t.Errorf("got %s, want %s", got.output, want)
		}
		seen[got.output] = true
		if wanted := tables[i].wanted; (wanted != "") != (i < 4) {
			t.Errorf("%s: the name that it is told to have wanted is %q", want, wanted)
		}
	}
}
