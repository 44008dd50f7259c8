package carbon

import (
	"context"
	"iter"

	"stoa/format"
	"stoa/format/carbon/internal/table"
	"stoa/region"
)

// verify is format.Format.Verify. It reads everything (no pages with format.Quick) and reports damage and
// contradictions: damaged structures and pages, values outside of their bounds, indexes that contradict footers,
// deletes that contradict pages, files that contradict tablestatus, and bytes that no structure claims.
//
// A table that somebody changes meanwhile contradicts itself, as clean removes files of segments that were there at the
// beginning. So what is found in a table is held back until the end, and it is verified again if its tablestatus
// changed.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		for n := 1; ; n++ {
			before := statusStamp(ctx, tg)
			var held []region.Finding
			bad, going := false, true
			verifyOnce(ctx, tg, o, func(f region.Finding) bool {
				bad = bad || f.Severity > region.Note
				if held = append(held, f); len(held) < maxHeld && before != "" {
					return true
				}
				for _, f := range held {
					going = going && yield(f)
				}
				held, before = nil, ""
				return going
			})
			if before != "" && bad && n < maxVerified && ctx.Err() == nil && statusStamp(ctx, tg) != before {
				continue
			}
			for _, f := range held {
				if !yield(f) {
					return
				}
			}
			return
		}
	}
}

const (
	maxHeld     = 10_000 // findings that are held back
	maxVerified = 4      // times that a table is verified
)

// statusStamp returns the stamp of a table's tablestatus; "" if it is not known or the target is no table.
func statusStamp(ctx context.Context, tg format.Target) string {
	if k, _, err := table.Look(ctx, tg); err != nil || k != table.KindTable {
		return ""
	}
	name, _, err := table.CurrentStatus(ctx, tg.Tree, tg.Name)
	if err != nil {
		return ""
	}
	info, err := tg.Tree.Stat(ctx, name)
	if err != nil {
		return ""
	}
	return name + " " + info.Stamp
}
