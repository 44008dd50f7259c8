package kudufs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu/kudufs"
)

// TestMastersOfTwoClusters: of three masters, each of another cluster, whatever the order of their names: every table
// that a catalogue lists is in the list, with the tablets that are not here, and no table is said to be in no
// catalogue unless it is.
func TestMastersOfTwoClusters(t *testing.T) {
	from := t.TempDir()
	for _, name := range []string{"here", "gone", "lost", "stray"} {
		if err := write(t, filepath.Join(from, name), kudufs.WriteOptions{Table: name, Key: []string{"k"}},
			[][2]any{{1, "x"}, {2, "y"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, order := range [][3]string{{"1", "2", "3"}, {"2", "3", "1"}, {"3", "1", "2"}, {"2", "1", "3"}} {
		for _, stray := range []bool{false, true} {
			dir := t.TempDir()
			put := func(what, as string) {
				if err := os.CopyFS(filepath.Join(dir, as), os.DirFS(filepath.Join(from, what))); err != nil {
					t.Fatal(err)
				}
			}
			put("here/tserver", "server")
			for i, name := range []string{"here", "gone", "lost"} {
				put(name+"/master", order[i])
			}
			if stray {
				put("stray/tserver", "other")
			}
			var tables, behind []string
			for e, err := range stoa.List(t.Context(), dir, stoa.OpenOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range e.Meta {
					if m.Key == "missing_tablets" {
						e.Table += " lacks " + m.Value
					}
				}
				tables = append(tables, e.Table)
			}
			for x, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				if x.Code == "kudu.catalog.behind" {
					behind = append(behind, x.Message)
				}
			}
			want := []string{"gone lacks 1", "here", "lost lacks 1"}
			if stray {
				want = append(want, "stray")
			}
			if slices.Sort(tables); !slices.Equal(tables, want) {
				t.Errorf("%v: %q, want %q", order, tables, want)
			}
			if stray != (len(behind) == 1 && strings.Contains(behind[0], "table stray")) || !stray && len(behind) > 0 {
				t.Errorf("%v, stray %v: %q", order, stray, behind)
			}
		}
	}
}
