package redfile

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/wire"
)

// readIndex reads the index page of a chunk. nil without an error: it has another layout.
func (t *pageTable) readIndex(ctx context.Context) ([]indexEntry, fault.Span, error) {
	path := chunkPath(t.group, t.col) + ".index_page"
	off := t.meta.index
	if off < magicLen || off >= t.at.Len {
		return nil, t.f.metaAt, fault.Corruptf(t.f.chunkSpan(t.group, t.col), path,
			"it would be at %d, where no page can be", off)
	}
	h, head, err := pageAt(ctx, t.src, t.at.Sub(off, t.at.Len-off), path)
	if err != nil {
		return nil, t.at.Sub(off, head), err
	}
	at := t.at.Sub(off, head+int64(h.stored))
	if h.kind != indexPage {
		return nil, at, fault.Corruptf(at, path+".header.type", "a %s", pageKind(h.kind))
	}
	if h.entries < 0 {
		return nil, at, nil
	}
	if int64(h.stored) > t.f.limits.Metadata {
		return nil, at, fault.Limitf(at, path, "%d bytes are more than metadata may have (%d)", h.stored,
			t.f.limits.Metadata)
	}
	stored := make([]byte, h.stored)
	if err := format.ReadFull(ctx, t.src, at.Sub(head, int64(h.stored)), path, stored); err != nil {
		return nil, at, err
	}
	if crc := crcOf(stored); h.hasCRC && !t.f.noVerify && crc != h.crc {
		return nil, at, fault.Corruptf(at, path+".header.crc", "%#08x is stored, %#08x is right", h.crc, crc)
	}
	body, exact, err := inflate(stored, int64(h.raw), t.meta.codec, t.f.limits.Metadata, fresh)
	if err != nil {
		return nil, at, fault.Locate(err, at.Sub(head, int64(h.stored)), true, path)
	}
	c := wire.NewInnerCursor(body, at.Sub(head, int64(h.stored)), path)
	if exact {
		c = wire.NewCursor(body, at.Sub(head, int64(h.stored)), path)
	}
	entries := parseIndex(thrift.NewReader(c, t.f.meta.protocol), "")
	if c.Err() != nil {
		return nil, at, c.Err()
	}
	if reason := t.checkIndex(entries); reason != "" {
		return nil, at, fault.Corruptf(at, path, "%s", reason)
	}
	return entries, at, nil
}

// checkIndex holds the entries against each other and the chunk; "" if they fit.
func (t *pageTable) checkIndex(entries []indexEntry) string {
	var values, rows, end int64
	for i := range entries {
		e := &entries[i]
		flat := t.l.maxRep == 0
		switch {
		case e.size <= 0 || e.values < 0 || e.rows < 0 || e.nulls < 0 || e.nulls > e.values || e.rows > e.values:
			return "an entry with impossible numbers"
		case e.offset < end || e.offset+int64(e.size) > t.at.Len-t.next:
			return "pages that overlap or lie behind the end"
		case e.first != rows:
			return "rows that do not follow each other"
		case flat && e.rows != e.values:
			return "a column that does not repeat has as many values as rows"
		}
		end = e.offset + int64(e.size)
		values += int64(e.values)
		rows += int64(e.rows)
	}
	if values != t.meta.values || t.rows >= 0 && rows != t.rows {
		return "its pages do not have all values and rows of the chunk"
	}
	return ""
}

// useIndex takes the pages from the index page; if it cannot be read, they are found by their headers.
func (t *pageTable) useIndex(ctx context.Context) {
	entries, _, err := t.readIndex(ctx)
	if err != nil || entries == nil {
		return
	}
	t.pages = make([]page, len(entries))
	for i := range entries {
		e := &entries[i]
		t.pages[i] = page{off: t.next + e.offset, size: int64(e.size), values: int64(e.values), first: e.first,
			rows: int64(e.rows), bounds: statedBounds(e, t.l)}
	}
	t.values, t.indexed = t.meta.values, true
}

// statedBounds is what an entry says of its page's values, nil if nothing that could be used.
func statedBounds(e *indexEntry, l *leaf) *pred.Bounds {
	if l.maxRep > 0 {
		return nil
	}
	b := &pred.Bounds{Nulls: int64(e.nulls), Rows: int64(e.rows), NoNaN: e.noNaN, MinCut: e.minCut, MaxCut: e.maxCut}
	if e.hasMin && e.hasMax {
		lo, ok1 := boundOf(e.min, l.column.Type)
		hi, ok2 := boundOf(e.max, l.column.Type)
		if ok1 && ok2 {
			b.Min, b.Max = &lo, &hi
		}
	}
	return b
}

// boundOf is a stored bound as a value of type t.
func boundOf(b []byte, t arrow.DataType) (pred.Value, bool) {
	switch t.ID() {
	case arrow.STRING:
		return pred.String(string(b)), true
	case arrow.BINARY:
		return pred.Bytes(b), true
	case arrow.BOOL:
		return pred.Bool(len(b) == 1 && b[0] == 1), len(b) == 1
	case arrow.FLOAT32:
		if len(b) != 4 {
			return pred.Null(), false
		}
		return pred.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), true
	case arrow.FLOAT64:
		if len(b) != 8 {
			return pred.Null(), false
		}
		return pred.Float(math.Float64frombits(binary.LittleEndian.Uint64(b))), true
	}
	var v int64
	switch len(b) {
	case 4:
		v = int64(int32(binary.LittleEndian.Uint32(b)))
	case 8:
		v = int64(binary.LittleEndian.Uint64(b))
	default:
		return pred.Null(), false
	}
	switch t.ID() {
	case arrow.UINT32:
		return pred.Uint(uint64(uint32(v))), true
	case arrow.UINT64:
		return pred.Uint(uint64(v)), true
	}
	x := pred.Typed(t, v)
	return x, x.Kind != pred.KindNull
}

// resume goes on behind page i, which is damaged, where the index says, as reading does.
func (t *pageTable) resume(index []indexEntry, i int, begin int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &index[i]
	t.pages = append(t.pages[:i], page{off: begin + e.offset, size: int64(e.size), values: int64(e.values),
		first: e.first, rows: int64(e.rows)})
	t.values, t.err, t.next = 0, nil, begin+e.offset+int64(e.size)
	if i+1 < len(index) {
		t.next = begin + index[i+1].offset
	}
	for _, p := range t.pages {
		t.values += p.values
	}
}
