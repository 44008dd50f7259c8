package ipc

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

func (r *reader) Batches(ctx context.Context, g format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		if rows == (vec.Range{}) {
			rows.To = math.MaxInt64
		}
		out := &output{cols: q.Cols, schema: projected(r.schema, q.Cols), rows: rows, yield: yield}
		var err error
		if r.file {
			if err = r.fileBatch(ctx, g, out, mem); errors.Is(err, fault.Corrupt) && g.Rows > 0 {
				err = &lostBatch{err, rows.Intersect(vec.Range{To: g.Rows})}
			}
		} else {
			err = r.streamBatches(ctx, out, mem)
		}
		if err != nil && err != errStop {
			yield(nil, err)
		}
	}
}

// fileBatch reads one record batch of a file.
func (r *reader) fileBatch(ctx context.Context, g format.RowGroup, out *output, mem memory.Allocator) error {
	if g.Index < 0 || g.Index >= len(r.foot.Batches) {
		return fault.Bugf("row group %d of %d", g.Index, len(r.foot.Batches))
	}
	dicts, err := r.dictionaries(ctx)
	if err != nil {
		return err
	}
	m, err := r.block(ctx, g.Index)
	if err != nil {
		return err
	}
	if err := r.checkMoved(ctx, r.foot.Batches[g.Index]); err != nil {
		return err
	}
	if err := r.load(ctx, m, mem); err != nil {
		return err
	}
	defer m.body.Release()
	d, err := newDecoder(&feed{queue: slices.Concat([]*message{r.first}, dicts, []*message{m}), more: eof,
		check: r.checkBatch}, mem)
	if err != nil {
		return err
	}
	defer d.release()
	b, err := d.next(out.cols)
	if err != nil {
		return err
	}
	if b == nil {
		return fault.Corruptf(m.at, "message", "the library returned no batch, with %d dictionaries", len(dicts))
	}
	return out.emit(b)
}

// streamBatches reads a stream from its start. After a damaged batch it continues with the next one that can be found.
func (r *reader) streamBatches(ctx context.Context, out *output, mem memory.Allocator) error {
	w := &walk{r: r, ctx: ctx, out: out, mem: mem, at: r.after}
	defer w.release()
	if err := w.loadDictionaries(); err != nil {
		return err
	}
	for {
		d, err := newDecoder(&feed{queue: slices.Concat([]*message{r.first}, w.dicts), more: w.next,
			check: r.checkBatch}, mem)
		if err != nil {
			return err
		}
		err = r.drain(d, out)
		d.release()
		if err == nil || err == errStop || !errors.Is(err, fault.Corrupt) || !w.skipDamaged(d.feed.err != nil) {
			return err
		}
		if !out.yield(nil, err) {
			return errStop
		}
	}
}

func (r *reader) drain(d *decoder, out *output) error {
	for {
		b, err := d.next(out.cols)
		if err != nil || b == nil {
			return err
		}
		if err := out.emit(b); err != nil {
			return err
		}
	}
}
