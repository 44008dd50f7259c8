package kudu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
)

func (x *replay) checkSegment(ctx context.Context, tg format.Target, o pbcOptions) error {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return err
	}
	defer src.Close()
	r, notes, err := openWAL(ctx, src, tg.Name, o, cfile.LZ4)
	for _, n := range notes {
		x.fault("kudu.wal.footer", n)
	}
	if err != nil {
		if !errors.As(err, new(*fault.Error)) {
			return err
		}
		x.fault("kudu.wal.header", err)
		if r == nil {
			return nil
		}
	}
	var entries int64
	whole := true
	for {
		b, err := r.next(ctx)
		switch {
		case err == io.EOF:
			if r.foot != nil && whole && r.foot.Entries != entries {
				x.note("kudu.wal.footer", r.span(r.end, r.size-r.end), "footer.num_entries", fmt.Sprintf("%d entries are declared, there are %d", r.foot.Entries, entries))
			}
			return nil
		case err == nil:
			entries += parseBatch(b.cursor, true, func(walEntry) {})
			if err := b.cursor.Err(); err != nil {
				x.fault("kudu.wal.op.bad", err)
				whole = false
			}
		case isTorn(err):
			x.fault("kudu.wal.torn", err)
			whole = false
		case errors.Is(err, fault.Corrupt):
			x.fault("kudu.wal.damaged", err)
			whole = false
		default:
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
