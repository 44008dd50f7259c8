package cluster

import (
	"cmp"
	"context"
	"slices"

	"stoa/format"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/sorted"
	"stoa/region"
)

// The health of a tablet in `stoa ls`. It is checked without reading rows: the blocks must exist, and the log must
// begin and end as it should and reach as far as the newest rowsets. Damage inside a block, or in the middle of a large
// log, is not found.

// quickSets is the number of newest rowsets that are compared with their superblock and the end of the log.
const quickSets = 16

// quickHealth returns the errors of a tablet's first replica that are visible without reading rows; none if any replica
// has no such errors.
func (s *Servers) quickHealth(ctx context.Context, tb *table.Tablet) (out []region.Finding, err error) {
	for i, r := range tb.Replicas() {
		if !r.HasData() {
			continue
		}
		found, err := s.quickHealthOf(ctx, &table.Tablet{Replica: r})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		if i == 0 {
			out = found
		}
	}
	return out, nil
}

// quickHealthOf returns the errors of one replica, which must be the only replica of tb.
func (s *Servers) quickHealthOf(ctx context.Context, tb *table.Tablet) (out []region.Finding, err error) {
	if x, err := tb.LostBlocks(ctx); err != nil {
		return nil, err
	} else if x != nil {
		out = append(out, *x)
	}
	newest := slices.Clone(tb.RowSets)
	sorted.By(newest, func(a, b meta.RowSet) int { return cmp.Compare(b.ID, a.ID) })
	newest = newest[:min(len(newest), quickSets)]
	t, err := table.New(tb.FS.Tree, []*table.Tablet{tb}, format.OpenOptions{Limits: tb.FS.Options.Limits,
		NoVerify: tb.FS.Options.NoVerify}, table.Options{At: table.Latest, Partial: true})
	if err != nil {
		return out, nil // reported when the table is opened
	}
	odd, err := t.QuickAgree(ctx, tb, newest)
	if out = append(out, odd...); err != nil || s.noWAL {
		return out, err
	}
	log, err := wal.QuickCheck(ctx, tb.FS, tb.Tablet)
	if err != nil {
		return nil, err
	}
	before := len(out)
	for _, x := range log.Findings {
		if x.Severity >= region.Error {
			out = append(out, x)
		}
	}
	if log.Missing || len(out) > before {
		return out, nil
	}
	flushed, err := t.Flushed(ctx, tb, newest)
	if err != nil {
		return out, err
	}
	if x := tb.Short(log, flushed); x != nil {
		out = append(out, *x)
	}
	return out, nil
}
