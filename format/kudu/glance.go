package kudu

import (
	"cmp"
	"context"
	"slices"

	"stoa/region"
)

// What `stoa ls` tells of a tablet's health. It reads no rows: it looks whether the blocks are there, and whether the log begins and ends as
// it must, and reaches as far as the newest rowsets do. Damage within a block, or within a log that is not small, is found by those who read it.

// glanceSets is how many rowsets, the newest, are held against the end of the log.
const glanceSets = 16

// glance are the errors that can be told of a tablet at a glance; none if one of its replicas is without.
func (s *servers) glance(ctx context.Context, tb *tablet) (out []region.Finding, err error) {
	for i, r := range append([]replica{tb.replica}, tb.others...) {
		if !r.HasData() {
			continue
		}
		found, err := s.glanceAt(ctx, &tablet{replica: r})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		if i == 0 {
			out = found
		}
	}
	return out, nil
}

// glanceAt is glance of a replica.
func (s *servers) glanceAt(ctx context.Context, tb *tablet) (out []region.Finding, err error) {
	if x, err := tb.lostBlocks(ctx); err != nil {
		return nil, err
	} else if x != nil {
		out = append(out, *x)
	}
	if s.noWAL {
		return out, nil
	}
	log, err := glanceLog(ctx, tb.fs, tb.Tablet)
	if err != nil {
		return nil, err
	}
	told := len(out)
	for _, x := range log.Findings {
		if x.Severity >= region.Error {
			out = append(out, x)
		}
	}
	if log.Missing || len(out) > told {
		return out, nil
	}
	t := &table{tree: tb.fs.tree, limits: tb.fs.o.Limits.WithDefaults(), noVerify: tb.fs.o.NoVerify}
	newest := slices.Clone(tb.RowSets)
	slices.SortFunc(newest, func(a, b RowSet) int { return cmp.Compare(b.ID, a.ID) })
	flushed, err := t.flushed(ctx, tb, newest[:min(len(newest), glanceSets)])
	if err != nil {
		return out, err
	}
	if x := tb.short(log, flushed); x != nil {
		out = append(out, *x)
	}
	return out, nil
}
