package scan

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// PageInfo is one decoded page, for statistics and checks.
type PageInfo struct {
	Page   format.Page
	Dict   bool        // the chunk's dictionary
	Same   bool        // lies in the same bytes as the page before (a block cut into several pages)
	Stored int64       // bytes as stored
	Raw    int64       // bytes after decompression; 0 not known
	Vector *vec.Vector // good during the call
}

// Pages decodes every page of a column chunk and shows it to f, the dictionary first. Damage, and what needs an
// unknown encoding or codec, is told to lost, which may return nil to go on behind it.
func Pages(ctx context.Context, src Source, g format.RowGroup, col int, f func(PageInfo) error,
	lost func(region.Loss) error) error {
	c := src.Reader.Columns()[col]
	if c.Parent >= 0 {
		return childPages(ctx, src, g, col, f, lost)
	}
	rows := vec.Ranges{{From: 0, To: 1<<63 - 1}}
	all := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Rows: [2]int64{0, g.Rows}, Exact: g.Rows >= 0}
	chunk, err := src.Reader.Chunk(ctx, g, col, rows[0])
	if err != nil {
		return tell(lost, all, err)
	}
	dict, err := src.Dicts.get(ctx, src, c, chunk)
	if err != nil {
		return tell(lost, all, err)
	}
	if dict != nil {
		page, _ := chunk.Dict()
		if err := f(PageInfo{Page: page, Dict: true, Stored: stored(page), Raw: page.Raw, Vector: dict}); err != nil {
			return err
		}
	}
	v, err := vec.New(c.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer v.Release()
	w := pageWalk{src: src, chunk: chunk, dict: dict, vec: v,
		pager: pager{src: src, chunk: chunk, rows: rows, ahead: defaultAhead}}
	defer w.pager.close()
	for at := int64(0); ; {
		pb, err := w.pager.peek(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			all.Rows[0] = at
			return tell(lost, all, err)
		}
		info, err := w.decode(ctx, pb.page)
		if err == nil {
			at += int64(v.Len())
			err = f(info)
		} else if at, err = w.passed(pb.page, at, all, err, lost); at < 0 {
			return err
		}
		if err != nil {
			return err
		}
		w.pager.drop()
	}
}

// childPages is Pages for a column whose entries its parent counts: the parents' lengths are read beside it. Damage in
// them ends the walk.
func childPages(ctx context.Context, src Source, g format.RowGroup, col int, f func(PageInfo) error,
	lost func(region.Loss) error) error {
	cols := src.Reader.Columns()
	chain := []int{col}
	for p := cols[col].Parent; p >= 0; p = cols[p].Parent {
		chain = append([]int{p}, chain...)
	}
	r := &reading{plan: &plan{columns: cols}, src: src}
	fd, err := r.openField(ctx, g, &fieldPlan{cols: chain, name: cols[col].Name},
		vec.Ranges{{From: 0, To: 1<<63 - 1}}, defaultAhead)
	all := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Rows: [2]int64{0, g.Rows}, Exact: g.Rows >= 0}
	if err != nil {
		return tell(lost, all, err)
	}
	defer fd.close()
	l := fd.leaves[len(fd.leaves)-1]
	for {
		pb, err := l.pager.peek(ctx)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = l.decode(ctx, pb.page, l.end)
		}
		if err != nil {
			all.Rows[0] = l.end
			return tell(lost, all, l.blame(err))
		}
		if err := f(PageInfo{Page: pb.page, Stored: stored(pb.page), Raw: pb.page.Raw, Vector: l.vec}); err != nil {
			return err
		}
		l.restart(l.end + pb.page.Rows)
		l.pager.drop()
		for p := l.parent; p != nil; p = p.parent {
			n, err := p.entries(l.row)
			if err != nil {
				return tell(lost, all, p.blame(err))
			}
			p.vec.Skip(n)
			p.pass(l.row)
		}
	}
}

// tell gives damage, and what needs something unknown, to lost; other errors end the walk.
func tell(lost func(region.Loss) error, l region.Loss, err error) error {
	if !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
		return err
	}
	l.Err = err
	return lost(l)
}

type pageWalk struct {
	src   Source
	chunk format.Chunk
	dict  *vec.Vector
	vec   *vec.Vector
	pager pager
	arena vec.Arena
	last  format.Page
}

// decode decodes the next page.
func (w *pageWalk) decode(ctx context.Context, p format.Page) (PageInfo, error) {
	if p.Lost != nil {
		return PageInfo{}, p.Lost
	}
	bytes, err := w.pager.bytes(ctx)
	if err != nil {
		return PageInfo{}, err
	}
	w.vec.Reset()
	w.arena.Reset()
	t := format.Task{Page: p, N: p.Entries, Bytes: bytes, Dict: w.dict, Scratch: &w.arena, Limits: w.src.Limits,
		NoVerify: w.src.NoVerify}
	if err := decode(w.chunk, &t, w.vec); err != nil {
		return PageInfo{}, err
	}
	same := len(w.last.Spans) > 0 && len(p.Spans) > 0 && w.last.Spans[0] == p.Spans[0]
	w.last = p
	return PageInfo{Page: p, Same: same, Stored: stored(p), Raw: max(t.Raw, p.Raw), Vector: w.vec}, nil
}

// passed tells of a page that cannot be decoded and gives the row behind it; -1 if what follows cannot be placed.
func (w *pageWalk) passed(p format.Page, at int64, all region.Loss, err error, lost func(region.Loss) error) (int64,
	error) {
	all.Rows[0] = at
	if p.Rows < 0 {
		return -1, tell(lost, all, err)
	}
	all.Rows[1], all.Exact = at+p.Rows, true
	return at + p.Rows, tell(lost, all, err)
}
