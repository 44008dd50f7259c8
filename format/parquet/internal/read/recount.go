package read

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/page"
	"stoa/vec"
)

// contradicted is called when headers contradict the chunk. It locates the pages by the offset index, or else by
// decoding them; if neither determines their rows, there are no pages and cause is returned.
func (t *pageTable) contradicted(ctx context.Context, cause error) error {
	t.pages = nil // any of them may have the wrong number of values
	if err := t.fallBackToIndex(ctx, cause); err != cause {
		return err
	}
	pages, err := t.recount(ctx)
	switch {
	case errors.Is(err, fault.Corrupt), fault.OverBudget(err), errors.Is(err, fault.Unsupported),
		err == nil && pages == nil:
		return cause
	case err != nil:
		return err
	}
	t.pages, t.left = pages, t.left.Sub(t.left.Len, 0)
	return io.EOF
}

// hides returns an error if pages with values follow those whose headers already account for all values of the chunk:
// then some header states too many.
func (t *pageTable) hides(ctx context.Context) error {
	end := t.r.ChunkSpan(t.group, t.leaf).End()
	for at := t.left; at.Off < end; {
		module := meta.PageModule{Cipher: t.cipher(), Ordinal: len(t.pages)}
		h, err := t.r.PageHeader(ctx, at, t.path(t.seen), module, nil)
		switch {
		case errors.Is(err, fault.Corrupt): // not a page; some writers leave other bytes there
			return nil
		case err != nil:
			return err
		case h.IsData() && h.Values > 0:
			return fault.Corruptf(h.Header, t.path(t.seen), "%s, but the chunk has %d, and %d came before",
				fault.Count(h.Values, "value"), t.values, t.values)
		}
		at = at.Sub(h.Body.End()-at.Off, at.End()-h.Body.End())
	}
	return nil
}

// recount finds the only page of a flat chunk whose number of values differs from its header but equals the number that
// the other pages leave over; nil if there is no such page, or several, since then the rows of a page are unknown. That
// page is still lost because its header is damaged, but no other page is.
func (t *pageTable) recount(ctx context.Context) ([]page.PageRef, error) {
	if t.r.Leaves[t.leaf].MaxRep > 0 || t.cipher() != nil { // list rows are unknown; ciphers authenticate
		return nil, nil
	}
	var headers []meta.Page
	left := t.r.Footer.RowGroups[t.group].Columns[t.leaf].MetaData.NumValues
	for h, err := range t.r.Pages(ctx, t.group, t.leaf) {
		if err != nil {
			return nil, err
		}
		if h.IsData() {
			headers = append(headers, h)
			left -= h.Values
		}
	}
	wrong, err := t.wrong(ctx, headers, left)
	if err != nil || wrong < 0 {
		return nil, err
	}
	headers[wrong].Values += left
	headers[wrong].Stats = nil
	t.seen, t.values, t.pages = 0, 0, nil
	for i := range headers {
		t.addPage(&headers[i])
	}
	pages := t.pages
	t.pages = nil
	return pages, nil
}

// wrong returns the number of the only page that does not decode with the number of values in its header, provided that
// it decodes with left more; -1 if there is no such page.
func (t *pageTable) wrong(ctx context.Context, headers []meta.Page, left int64) (int, error) {
	p := &pageReader{c: &chunk{t: t, as: t.r.Leaves[t.leaf]}, typ: t.r.Leaves[t.leaf].Column.Type}
	if t.dict != nil {
		if err := p.useDict(ctx, t.dictPage()); err != nil {
			return -1, err
		}
		defer p.dict.Release()
	}
	v, err := vec.New(p.typ, memory.DefaultAllocator)
	if err != nil {
		return -1, err
	}
	defer v.Release()
	has := func(h *meta.Page, n int64) (bool, error) {
		v.Reset()
		ref := page.PageRef{At: h.Whole(), Values: h.Values, First: -1, Rows: -1, Count: n}
		err := p.decode(ctx, format.Page{Entries: n, Spans: []fault.Span{ref.At}, Own: &ref}, v)
		if errors.Is(err, fault.Corrupt) {
			return false, nil
		}
		return err == nil, err
	}
	wrong := -1
	for i := range headers {
		ok, err := has(&headers[i], headers[i].Values)
		if err != nil || !ok && wrong >= 0 {
			return -1, err
		}
		if !ok {
			wrong = i
		}
	}
	if wrong < 0 || headers[wrong].Values+left < 0 {
		return -1, nil
	}
	ok, err := has(&headers[wrong], headers[wrong].Values+left)
	if err != nil || !ok {
		return -1, err
	}
	return wrong, nil
}
