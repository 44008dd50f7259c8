package kudu_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
)

// TestCorpusNoStaleRows: a bit of a tablet's log is flipped, in segments with operations that have not been flushed.
// Without a damage policy no row comes out that the whole tablet does not have, not even before the error; and if there
// is no error, all rows do.
func TestCorpusNoStaleRows(t *testing.T) {
	dir := corpus(t)
	files, _, tablets := archive(t, "fs_file")
	flips, refused := 40, 0
	if testing.Short() {
		flips = 3
	}
	for _, table := range []string{"d_wal", "d_major"} {
		want := expected(t, dir, table, "final")
		segments := 0
		for _, name := range slices.Sorted(maps.Keys(files)) {
			base := filepath.Base(name)
			if !strings.Contains(name, "/wals/"+tablets[table].ID) || !strings.HasPrefix(base, "wal-") {
				continue
			}
			segments++
			end := len(strings.TrimRight(string(files[name]), "\x00"))
			for k := range flips {
				at := int64(end * (2*k + 1) / (2 * flips))
				tree := with(files, name, flipped(files[name], at))
				got, err := scan(t, tree, "#"+table, nil, stoa.ScanSpec{})
				if err != nil {
					refused++
				}
				if gone := missing(t, got.lines(), want); err == nil && len(gone) > 0 {
					t.Errorf("%s, byte %d: no error, and %d rows are missing", name, at, len(gone))
				}
			}
		}
		if segments == 0 {
			t.Errorf("%s has no log", table)
		}
	}
	if refused == 0 {
		t.Error("no flipped bit was noticed")
	}
}
