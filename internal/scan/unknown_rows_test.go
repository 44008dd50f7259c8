package scan_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/internal/share"
	"stoa/store"
)

// uncounted are sorted groups of which some do not know their number of rows, as those of damaged files.
type uncounted struct {
	*sortedGroups
	of []bool
}

func (u *uncounted) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	out, err := u.sortedGroups.RowGroups(ctx, p, q)
	for i := range out {
		if out[i].Rows = int64(u.groups[i].rows); u.of[i] {
			out[i].Rows = -1
		}
	}
	return out, err
}

// TestPiecesLeaveOutNoGroup: the pieces of a scan name every row group that may have rows, once, whether or not the
// numbers of their rows are known, and whether or not their keys overlap.
func TestPiecesLeaveOutNoGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &uncounted{sortedGroups: drawSortedGroups(t)}
		var want []int
		for i, g := range u.groups {
			u.of = append(u.of, rapid.Bool().Draw(t, "unknown"))
			if u.of[i] || g.rows > 0 {
				want = append(want, i)
			}
		}
		spec := scan.Spec{Unordered: rapid.Bool().Draw(t, "unordered")}
		target := rapid.Int64Range(1, 1<<20).Draw(t, "target")
		src := scan.Source{Reader: u, Objects: scan.NewObjects(store.NewMemory(nil)), Dicts: scan.NewDicts(),
			Limits: format.Limits{}.WithDefaults()}
		var got []int
		for p, err := range scan.Cut(context.Background(), src, spec, target, share.Share{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range p.Groups {
				if u.groups[g].rows > 0 || u.of[g] {
					got = append(got, g)
				}
			}
			if unknown := slices.ContainsFunc(p.Groups, func(g int) bool { return u.of[g] }); unknown != (p.Count < 0) {
				t.Errorf("groups %v: %d rows", p.Groups, p.Count)
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) { // rows of one group may be in several pieces
			t.Errorf("the pieces have groups %v, want %v", got, want)
		}
	})
}
