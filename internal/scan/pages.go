package scan

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
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

// Pages decodes every page of a column chunk and shows it to f, the dictionary first.
func Pages(ctx context.Context, src Source, g format.RowGroup, col int, f func(PageInfo) error) error {
	c := src.Reader.Columns()[col]
	rows := vec.Ranges{{From: 0, To: 1<<63 - 1}}
	chunk, err := src.Reader.Chunk(ctx, g, col, rows[0])
	if err != nil {
		return err
	}
	dict, err := src.Dicts.get(ctx, src, c, chunk)
	if err != nil {
		return err
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
	p := pager{src: src, chunk: chunk, rows: rows, ahead: defaultAhead}
	defer p.close()
	arena := &vec.Arena{}
	var last format.Page
	for {
		pb, err := p.peek(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if pb.page.Lost != nil {
			return pb.page.Lost
		}
		bytes, err := p.bytes(ctx)
		if err != nil {
			return err
		}
		v.Reset()
		arena.Reset()
		t := format.Task{Page: pb.page, N: pb.page.Entries, Bytes: bytes, Dict: dict, Scratch: arena, Limits: src.Limits, NoVerify: src.NoVerify}
		if err := decode(chunk, &t, v); err != nil {
			return err
		}
		same := len(last.Spans) > 0 && len(pb.page.Spans) > 0 && last.Spans[0] == pb.page.Spans[0]
		last = pb.page
		if err := f(PageInfo{Page: last, Same: same, Stored: stored(last), Raw: max(t.Raw, last.Raw), Vector: v}); err != nil {
			return err
		}
		p.drop()
	}
}

func stored(p format.Page) int64 {
	var n int64
	for _, s := range p.Spans {
		n += s.Len
	}
	return n
}
