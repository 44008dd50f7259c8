package kudu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestHistoryOfDamagedUndo: if an UNDO file is damaged, whatever is damaged in it, the history does not call snapshots
// exact that need it: the damage is an error, and a snapshot at the time from which it calls them exact has the rows of
// the intact tablet.
func TestHistoryOfDamagedUndo(t *testing.T) {
	whole := load(t, "testdata/history")
	_, tablets := layout(t, store.NewMemory(whole))
	r, damages := rand.New(rand.NewPCG(17, 3)), 6
	if testing.Short() {
		damages = 2
	}
	begin := exactFrom(t, whole, false)
	for _, s := range tablets[0].RowSets {
		for _, undo := range s.Undo {
			name := blockFile(t, whole, fmt.Sprint(undo.ID))
			for k := range damages {
				b := slices.Clone(whole[name])
				if at := r.IntN(len(b)); k%2 == 0 {
					b[at] ^= 1 << r.IntN(8)
				} else {
					b = b[:at]
				}
				files := map[string][]byte{}
				for n, x := range whole {
					files[n] = x
				}
				files[name] = b
				exact := exactFrom(t, files, true)
				if exact <= begin {
					t.Errorf("UNDO file %d of rowset %d, damage %d: snapshots are called exact from %d on", undo.ID,
						s.ID, k, exact)
				}
				if k%2 == 1 { // its footer is cut off, and with it the time of its last change
					exact = math.MaxUint64
				}
				want := rowsAt(t, whole, exact)
				slices.Sort(want)
				compare(t, rowsAt(t, files, exact), want)
			}
		}
	}
}

// exactFrom returns the time from which on snapshots of d_major are exact by the list history, which must, or must not,
// report damage.
func exactFrom(t *testing.T, files map[string][]byte, damaged bool) (exact uint64) {
	t.Helper()
	lister, err := stoa.Listing("history", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := lister.List(t.Context(), format.Target{Tree: store.NewMemory(files)}, format.OpenOptions{},
		func(v []string) {
			if v[5] == "exact" {
				exact, _ = strconv.ParseUint(v[6], 10, 64)
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.ContainsFunc(found,
		func(f region.Finding) bool { return f.Severity == region.Error }); got != damaged {
		t.Errorf("damage is reported: %t, expected %t: %+v", got, damaged, found)
	}
	return exact
}

// rowsAt returns the rows of d_major at a time.
func rowsAt(t *testing.T, files map[string][]byte, at uint64) []string {
	t.Helper()
	opts := map[string]string{"partial": "true"}
	if at != math.MaxUint64 {
		opts["at"] = strconv.FormatUint(at, 10)
	}
	tab, err := stoa.Open(t.Context(), "#d_major", stoa.OpenOptions{Tree: store.NewMemory(files),
		Formats: []format.Format{kudu.Format}, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	return rowsOf(t, tab, stoa.ScanSpec{})
}
