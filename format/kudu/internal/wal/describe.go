package wal

import (
	"cmp"
	"context"
	"errors"
	"io"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// Describe reports the parts of a segment to o.Trace. Parts that cannot be read are gaps; the first damage is returned,
// at the end.
func Describe(ctx context.Context, tree store.Tree, name string, o pbc.Options) error {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return err
	}
	defer src.Close()
	quiet := o
	quiet.Trace = nil
	r, notes, err := Open(ctx, src, name, quiet, cfile.LZ4)
	if fault.OverBudget(err) {
		return err
	}
	if r == nil {
		traceUnread(o, fault.Span{Object: name, Len: src.Size()}, region.Gap, "damaged", err)
		return err
	}
	if err != nil {
		traceUnread(o, r.span(0, r.Start), region.Gap, "damaged", err)
	} else if _, _, err := Open(ctx, src, name, o, cfile.LZ4); err != nil {
		return err // once more, as only a header that is whole is reported, and a list of its parts takes memory
	}
	r.o = o
	r.o.Limits = o.Limits.WithDefaults()
	first := cmp.Or(err, errors.Join(notes...))
	end := r.Start
	for {
		b, err := r.Next(ctx)
		if err == io.EOF {
			break
		}
		var e *fault.Error
		switch {
		case err == nil:
			end = b.At.End()
			ParseBatch(b.cursor, true, func(Entry) {})
			err = b.cursor.Err()
		case !errors.As(err, &e) || e.Class != fault.Corrupt:
			return err
		case pbc.IsTorn(err):
			traceUnread(o, e.At, region.Dead, "torn", err)
			end, err = e.At.End(), nil
		default:
			traceUnread(o, e.At, region.Gap, "damaged", err)
			end = e.At.End()
		}
		first = cmp.Or(first, err)
	}
	if end < r.end {
		traceUnread(o, r.span(end, r.end-end), region.Pad, "unused", nil)
	}
	return cmp.Or(first, r.describeFooter(ctx))
}

// traceUnread reports a part that cannot be parsed, for the reason err, or has nothing to parse, if that is nil.
func traceUnread(o pbc.Options, at fault.Span, kind region.Kind, name string, err error) {
	n := region.Node{Depth: o.Depth, Kind: kind, Name: name, At: at, Inner: -1}
	if err != nil {
		n.Value = err.Error()
	}
	if at.Len > 0 {
		o.Trace(n)
	}
}

func (r *Reader) describeFooter(ctx context.Context) error {
	if r.end == r.size {
		return nil
	}
	b, err := r.bytes(ctx, r.end, r.size-r.end)
	if err != nil {
		return err
	}
	at := r.span(r.end, r.size-r.end)
	r.o.Trace(region.Node{Depth: r.o.Depth, Kind: region.Struct, Name: "footer", At: at, Inner: -1})
	c := wire.NewCursor(b, at, "footer").Trace(r.o.Trace, r.o.Depth+1)
	m := c.Section("", len(b)-len(EndMagic)-4)
	if r.Foot != nil {
		ParseFooter(m.Trace(r.o.Trace, r.o.Depth+1))
	}
	c.Bytes("magic", len(EndMagic))
	c.U32("length")
	return nil
}
