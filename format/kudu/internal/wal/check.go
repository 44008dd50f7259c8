package wal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/pbc"
)

// CheckSegment checks one segment by itself: all batches and entries, and the footer's count of entries. Damage becomes
// findings.
func (x *Replayer) CheckSegment(ctx context.Context, tg format.Target, o pbc.Options) error {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return err
	}
	defer src.Close()
	r, notes, err := Open(ctx, src, tg.Name, o, cfile.LZ4)
	for _, n := range notes {
		x.Fault("kudu.wal.footer", n)
	}
	if err != nil {
		if !errors.As(err, new(*fault.Error)) {
			return err
		}
		x.Fault("kudu.wal.header", err)
		if r == nil {
			return nil
		}
	}
	var entries int64
	whole := true
	for {
		b, err := r.Next(ctx)
		switch {
		case err == io.EOF:
			if r.Foot != nil && whole && r.Foot.Entries != entries {
				x.note("kudu.wal.footer", r.span(r.end, r.size-r.end), "footer.num_entries",
					fmt.Sprintf("expected %d entries, found %d", r.Foot.Entries, entries))
			}
			return nil
		case err == nil:
			entries += ParseBatch(b.cursor, true, func(Entry) {})
			if err := b.cursor.Err(); err != nil {
				x.Fault("kudu.wal.op.bad", err)
				whole = false
			}
		case pbc.IsTorn(err):
			x.Fault("kudu.wal.torn", err)
			whole = false
		case errors.Is(err, fault.Corrupt):
			x.Fault("kudu.wal.damaged", err)
			whole = false
		default:
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
