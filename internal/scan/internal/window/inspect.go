package window

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/region"
	"stoa/vec"
)

// PageInfo is one decoded page, for statistics and checks.
type PageInfo struct {
	Page   format.Page
	Dict   bool        // the chunk's dictionary
	Same   bool        // it lies in the same bytes as the previous page (a block divided into several pages)
	Stored int64       // bytes as stored
	Raw    int64       // bytes after decompression; 0: not known
	Vector *vec.Vector // valid during the call
}

// Pages decodes every page of a column chunk and passes it to f, the dictionary first. Damage, and pages that need an
// unknown encoding or codec, are reported to lost, which may return nil to continue.
func Pages(ctx context.Context, src fetch.Source, g format.RowGroup, col int, f func(PageInfo) error,
	lost func(region.Loss) error) error {
	c := src.Reader.Columns()[col]
	if c.Parent >= 0 {
		return childPages(ctx, src, g, col, f, lost)
	}
	rows := vec.Ranges{{From: 0, To: 1<<63 - 1}}
	all := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Rows: [2]int64{0, g.Rows}, Exact: g.Rows >= 0}
	chunk, err := src.Reader.Chunk(ctx, g, col, rows[0])
	if err != nil {
		return report(lost, all, err)
	}
	dict, err := src.Dicts.Get(ctx, src, c, chunk)
	if err != nil {
		return report(lost, all, err)
	}
	if dict != nil {
		page, _ := chunk.Dict()
		if err := f(PageInfo{Page: page, Dict: true, Stored: ownBytes(page), Raw: page.Raw,
			Vector: dict}); err != nil {
			return err
		}
	}
	v, err := vec.New(c.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer v.Release()
	w := pageWalk{src: src, chunk: chunk, dict: dict, vec: v,
		pager: fetch.Pager{Src: src, Chunk: chunk, Rows: rows, Ahead: plan.DefaultAhead}}
	defer w.pager.Close()
	for at := int64(0); ; {
		pb, err := w.pager.Peek(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			all.Rows[0] = at
			return report(lost, all, err)
		}
		info, err := w.decode(ctx, pb.Page)
		if err == nil {
			at += int64(v.Len())
			err = f(info)
		} else if at, err = w.passed(pb.Page, at, all, err, lost); at < 0 {
			return err
		}
		if err != nil {
			return err
		}
		w.pager.Drop()
	}
}

// Dict returns the dictionary of a column chunk, to be released; nil if it has none.
func Dict(ctx context.Context, src fetch.Source, g format.RowGroup, col int) (arrow.Array, error) {
	chunk, err := src.Reader.Chunk(ctx, g, col, vec.Range{From: 0, To: 1<<63 - 1})
	if err != nil {
		return nil, err
	}
	dict, err := src.Dicts.Get(ctx, src, src.Reader.Columns()[col], chunk)
	if err != nil || dict == nil {
		return nil, err
	}
	return dict.View(dict.Len())
}

// childPages is Pages for a column whose entries its parent counts: the parents' lengths are read alongside. Damage in
// the lengths ends the walk.
func childPages(ctx context.Context, src fetch.Source, g format.RowGroup, col int, f func(PageInfo) error,
	lost func(region.Loss) error) error {
	cols := src.Reader.Columns()
	chain := []int{col}
	for p := cols[col].Parent; p >= 0; p = cols[p].Parent {
		chain = append([]int{p}, chain...)
	}
	r := &Shared{Plan: &plan.Plan{Columns: cols}, Src: src}
	fd, err := r.openField(ctx, g, &plan.FieldPlan{Cols: chain, Name: cols[col].Name},
		vec.Ranges{{From: 0, To: 1<<63 - 1}}, plan.DefaultAhead)
	all := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Rows: [2]int64{0, g.Rows}, Exact: g.Rows >= 0}
	if err != nil {
		return report(lost, all, err)
	}
	defer fd.Close()
	l := fd.leaves[len(fd.leaves)-1]
	for last := (format.Page{}); ; {
		pb, err := l.pager.Peek(ctx)
		if err == io.EOF {
			return nil
		}
		of := l
		for p := l.due(ctx); p != l && err == nil; p = l.due(ctx) { // decode the lengths that count the entries
			of, err = p, p.page(ctx)
		}
		if err == nil {
			of, err = l, l.decode(ctx, pb.Page, l.end)
		}
		if err != nil {
			all.Rows[0] = l.end
			return report(lost, all, of.withColumn(err))
		}
		if err := f(PageInfo{Page: pb.Page, Same: sameBytes(last, pb.Page), Stored: ownBytes(pb.Page),
			Raw: pb.Page.Raw, Vector: l.vec}); err != nil {
			return err
		}
		last = pb.Page
		l.restart(l.end + pb.Page.Rows)
		l.pager.Drop()
		for p := l.parent; p != nil; p = p.parent {
			n, err := p.entries(l.row)
			if err != nil {
				return report(lost, all, p.withColumn(err))
			}
			p.vec.Skip(n)
			p.pass(l.row)
		}
	}
}

// ownBytes returns how many bytes of a page belong to this column alone.
func ownBytes(p format.Page) (n int64) {
	for _, s := range p.Spans[:len(p.Spans)-p.Lent] {
		n += s.Len
	}
	return n
}

// report passes damage, and pages that need an unknown encoding or codec, to lost; other errors end the walk.
func report(lost func(region.Loss) error, l region.Loss, err error) error {
	if !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
		return err
	}
	l.Err = err
	return lost(l)
}

type pageWalk struct {
	src   fetch.Source
	chunk format.Chunk
	dict  *vec.Vector
	vec   *vec.Vector
	pager fetch.Pager
	arena vec.Arena
	last  format.Page
}

// decode decodes the next page.
func (w *pageWalk) decode(ctx context.Context, p format.Page) (PageInfo, error) {
	if p.Lost != nil {
		return PageInfo{}, p.Lost
	}
	bytes, err := w.pager.Bytes(ctx)
	if err != nil {
		return PageInfo{}, err
	}
	w.vec.Reset()
	w.arena.Reset()
	t := format.Task{Page: p, N: p.Entries, Bytes: bytes, Dict: w.dict, Scratch: &w.arena, Limits: w.src.Limits,
		NoVerify: w.src.NoVerify}
	if err := w.pager.Decode(ctx, &t, w.vec); err != nil {
		return PageInfo{}, err
	}
	same := sameBytes(w.last, p)
	w.last = p
	return PageInfo{Page: p, Same: same, Stored: ownBytes(p), Raw: max(t.Raw, p.Raw), Vector: w.vec}, nil
}

// sameBytes reports whether two pages lie in the same bytes.
func sameBytes(a, b format.Page) bool {
	return len(a.Spans) > 0 && len(b.Spans) > 0 && a.Spans[0] == b.Spans[0]
}

// passed reports a page that cannot be decoded and returns the row after it; -1 if the rows that follow have no known
// position.
func (w *pageWalk) passed(p format.Page, at int64, all region.Loss, err error, lost func(region.Loss) error) (int64,
	error) {
	all.Rows[0] = at
	if p.Rows < 0 {
		return -1, report(lost, all, err)
	}
	all.Rows[1], all.Exact = at+p.Rows, true
	return at + p.Rows, report(lost, all, err)
}
