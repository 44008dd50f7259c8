package kudu_test

import (
	"maps"
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
)

// TestCorpusUnready: a tablet whose only replica is not ready, in whatever state it is, is missing, with or without a
// master: the rows of the other tablets are read, and its own are never left out without an error. A ready replica of
// another copy, or a ready tablet that has its range by now, takes its place.
func TestCorpusUnready(t *testing.T) {
	whole, _, tablets := archive(t, "fs_file")
	part := tablets["part"]
	super := func(files map[string][]byte, tb meta.Tablet, at string, state meta.TabletState) {
		tb.State, tb.RowSets = state, nil
		files[at] = pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", tb.Append(nil))
	}
	all := int64(len(expected(t, corpus(t), "part", "final")))
	for _, master := range []bool{true, false} {
		for _, state := range []meta.TabletState{meta.TabletCopying, meta.TabletDeleted, meta.TabletTombstoned, 7,
			meta.TabletUnknown} {
			files := maps.Clone(whole)
			if !master {
				maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "master/") })
			}
			stray := *part
			stray.ID = strings.Repeat("5", 32) // as of a range that was dropped and added again
			strayed := maps.Clone(files)
			super(strayed, stray, strings.Replace(part.Object, part.ID, stray.ID, 1), state)
			super(files, *part, part.Object, state)
			alone := store.NewMemory(files)
			rows, _, err := readAll(t, alone, "#part", nil, stoa.ScanSpec{})
			if err != nil || len(rows) == 0 || int64(len(rows)) >= all {
				t.Errorf("%v, master %v: %d rows, %v", state, master, len(rows), err)
			}
			if found := openedIn(t, alone, "#part", nil).Findings(); !reported(found, "kudu.tablet.missing", "") {
				t.Errorf("%v, master %v: nothing tells that the tablet is missing: %+v", state, master, found)
			}
			if bad, _ := findings(t, alone, "", "part"); !reported(bad, "kudu.tablet.missing", "") {
				t.Errorf("%v, master %v: verify reports %+v", state, master, bad)
			}
			if tb, err := stoa.Open(t.Context(), "#"+part.ID, stoa.OpenOptions{Tree: alone}); err == nil {
				if !reported(tb.Findings(), "kudu.tablet.missing", "") {
					t.Errorf("%v, master %v: the tablet on its own: %+v", state, master, tb.Findings())
				}
				tb.Close()
			}

			files = copied(files)
			files["twin/"+strings.TrimPrefix(part.Object, "tserver/")] = whole[part.Object]
			for what, files := range map[string]map[string][]byte{"a copy": files, "a range again": strayed} {
				got, err := scan(t, store.NewMemory(files), "#part", nil, stoa.ScanSpec{})
				if err != nil || codes(got.findings, region.Error) != "" || int64(len(got.cells)) != all {
					t.Errorf("%v, master %v, %s: %v, %d rows, %+v", state, master, what, err, len(got.cells),
						got.findings)
				}
			}
		}
	}
}
