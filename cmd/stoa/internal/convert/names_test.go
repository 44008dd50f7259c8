package convert

import (
	"io"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
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
