package kudu_test

import (
	"path/filepath"
	"slices"
	"testing"

	"stoa/format/kudu"
	"stoa/format/kudu/internal/meta"
	"stoa/store"
)

// TestStrayTablet: a tablet of which only the id and the blocks are left makes a table with gaps in its ranges doubtful
// only if its blocks can be of that table's columns. In either case it is listed, as a place of its own.
func TestStrayTablet(t *testing.T) {
	files := load(t, filepath.Join(corpus(t), "fs_log"))
	_, tablets := layout(t, store.NewMemory(files))
	part := tablets[slices.IndexFunc(tablets, func(tb *kudu.Tablet) bool { return tb.Table == "part" })]
	foreign, own, n := 0, 0, 0
	for _, tb := range tablets {
		if n++; len(tb.RowSets) == 0 || testing.Short() && n%4 > 0 {
			continue
		}
		fits := true // by the schemas of the intact place
		for _, c := range part.Schema.Columns {
			fits = fits && slices.ContainsFunc(tb.Schema.Columns, func(x meta.Column) bool {
				return x.Type == c.Type && x.Nullable == c.Nullable && x.Array == c.Array
			})
		}
		tree := with(files, tb.Object, nil)
		e, listed := entries(t, tree, "")[tb.ID]
		if tb.Table == "part" && fact(entries(t, tree, "")["part"], "missing_tablets") != "" {
			own++ // its range lies between those of others, so that it is certainly missing
			continue
		}
		said := reported(openedIn(t, tree, "#part", nil).Findings(), "kudu.tablet.missing", tb.ID)
		if said != fits {
			t.Errorf("tablet %s of table %s is gone: that it may be of part is said: %t, expected %t", tb.ID, tb.Table,
				said, fits)
		}
		if tb.Table == "part" {
			own++
			continue
		}
		foreign++
		alone := !slices.ContainsFunc(tablets, func(x *kudu.Tablet) bool { return x != tb && x.TableID == tb.TableID })
		if alone && (!listed || e.Kind != "lost tablet") {
			t.Errorf("tablet %s of table %s is gone, and not listed: %+v", tb.ID, tb.Table, e)
		}
	}
	t.Logf("%d tablets of other tables, %d of the table itself", foreign, own)
	if foreign < 5 || own == 0 && !testing.Short() {
		t.Errorf("%d tablets of other tables, %d of the table itself: too few", foreign, own)
	}
}
