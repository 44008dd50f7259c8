package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/internal/describe"
	"stoa/region"
)

// outline emits nodes.
type outline struct {
	*describe.Outline
	s *source
}

func (o *outline) node(depth int, kind region.Kind, name, value string, off, n int64) {
	o.Node(depth, kind, name, value, o.s.span(off, n))
}

// anatomy describes the messages from the start of the file, and the footer, which is located from the end.
func anatomy(ctx context.Context, t format.Target, d format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, d.Pages, func(out *describe.Outline) error {
		s, err := openSource(ctx, t, d.Limits)
		if err != nil {
			return err
		}
		defer s.src.Close()
		return (&outline{out, s}).all(ctx)
	})
}

func (o *outline) all(ctx context.Context) error {
	size := o.s.size()
	var b [8]byte
	n, err := o.s.fill(ctx, b[:], o.s.base)
	if err != nil && err != errEnd {
		return err
	}
	if n < len(b) || string(b[:len(fileMagic)]) != fileMagic {
		o.node(0, region.Struct, "stream", "", o.s.base, size)
		at, err := o.messages(ctx, 0, o.s.base)
		o.rest(at, o.s.base+size)
		return err
	}
	o.node(0, region.Struct, "file", "", o.s.base, size)
	o.node(1, region.Data, "magic", fileMagic, o.s.base, 6)
	o.node(1, region.Pad, "padding", "", o.s.base+6, 2)
	f, raw, foot, footErr := o.s.readFooter(ctx)
	first := o.s.base + 8
	if raw != nil && footErr == nil {
		first = o.s.base + f.First(foot.Off-o.s.base)
	}
	at, err := o.fileMessages(ctx, first)
	if raw == nil {
		return errors.Join(err, footErr)
	}
	o.rest(at, foot.Off)
	o.footer(f, foot.Off, foot.Len)
	return errors.Join(err, footErr)
}

// fileMessages describes the messages of a file. If the schema at the beginning is damaged, it continues at first, the
// offset of the first message in the footer.
func (o *outline) fileMessages(ctx context.Context, first int64) (int64, error) {
	begin := o.s.base + 8
	m, end, err := o.s.leadingSchema(ctx)
	switch {
	case err == nil:
		o.message(0, m, begin, end)
		return o.messages(ctx, 1, end)
	case !isContentError(err) || first <= begin:
		return begin, err
	}
	o.node(1, region.Gap, "schema", err.Error(), begin, first-begin)
	return o.messages(ctx, 1, first)
}

// rest emits bytes that no message claims.
func (o *outline) rest(at, end int64) {
	if at < end {
		o.node(1, region.Gap, "unclaimed", "", at, end-at)
	}
}

// messages describes messages up to the end mark, numbered from i. It returns the offset after the mark.
func (o *outline) messages(ctx context.Context, i int, at int64) (int64, error) {
	for ; !o.Left(); i++ {
		m, end, err := o.s.next(ctx, at, 0)
		if err != nil {
			return at, err
		}
		if m == nil {
			if end > at {
				o.node(1, region.Data, "end of stream", "", at, end-at)
			}
			return end, nil
		}
		if err := o.s.exists(ctx, m.data, m.Body, "body"); err != nil {
			return at, err
		}
		o.message(i, m, at, end)
		at = end
	}
	return at, o.Ctx.Err()
}

func (o *outline) message(i int, m *message, at, end int64) {
	value := flat.KindName(m.Kind)
	switch m.Kind {
	case flat.RecordBatch:
		value += fmt.Sprintf(", %d rows, compression %s", m.Batch.Rows, flat.CodecNames[m.Batch.Codec])
	case flat.Dictionary:
		value += fmt.Sprintf(" %d, %d values", m.ID, m.Batch.Rows)
		if m.Delta {
			value += ", added to the earlier ones"
		}
	}
	o.node(1, region.Struct, fmt.Sprintf("message[%d]", i), value, at, end-at)
	if m.off > at {
		o.node(2, region.Data, "prefix", fmt.Sprintf("%d bytes of metadata", len(m.meta)), at, m.off-at)
	}
	o.node(2, region.Data, "metadata", "", m.off, m.data-m.off)
	if m.Body > 0 {
		o.node(2, region.Data, "body", fmt.Sprintf("%d buffers", len(m.Batch.Buffers)), m.data, m.Body)
	}
}

func (o *outline) footer(f flat.Footer, at, n int64) {
	value := fmt.Sprintf("%d dictionaries, %d record batches", len(f.Dictionaries), len(f.Batches))
	o.node(1, region.Struct, "footer", value, at, n+tail)
	o.node(2, region.Data, "metadata", "", at, n)
	o.node(2, region.Data, "length", fmt.Sprint(n), at+n, 4)
	o.node(2, region.Data, "magic", fileMagic, at+n+4, tail-4)
}
