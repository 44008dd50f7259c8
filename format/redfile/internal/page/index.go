package page

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/wire"
)

// ReadIndex reads the index page of a chunk, located by Meta.Index, and returns its span. Entries are nil without an
// error if it has another layout. Damage, and entries that contradict each other or the chunk, are Corrupt.
func (t *Table) ReadIndex(ctx context.Context) ([]layout.IndexEntry, fault.Span, error) {
	path := layout.ChunkPath(t.Group, t.Col) + ".index_page"
	off := t.Meta.Index
	if off < layout.MagicLen || off >= t.At.Len {
		return nil, t.File.MetaAt, fault.Corruptf(t.File.ChunkSpan(t.Group, t.Col), path,
			"it would be at %d, where no page can be", off)
	}
	h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(off, t.At.Len-off), path)
	if err != nil {
		return nil, t.At.Sub(off, head), err
	}
	at := t.At.Sub(off, head+int64(h.Stored))
	if h.Kind != layout.IndexPage {
		return nil, at, fault.Corruptf(at, path+".header.type", "a %s", layout.PageKind(h.Kind))
	}
	if h.Entries < 0 {
		return nil, at, nil
	}
	if int64(h.Stored) > t.File.Limits.Metadata {
		return nil, at, fault.Limitf(at, path, "%d bytes, and at most %d are read (metadata limit)", h.Stored,
			t.File.Limits.Metadata)
	}
	stored := make([]byte, h.Stored)
	if err := format.ReadFull(ctx, t.Src, at.Sub(head, int64(h.Stored)), path, stored); err != nil {
		return nil, at, err
	}
	if h.HasCRC && !t.File.NoVerify {
		if crc := layout.CRC(stored); crc != h.CRC {
			return nil, at, fault.Corruptf(at, path+".header.crc", "expected %#08x, computed %#08x", h.CRC, crc)
		}
	}
	body, exact, err := Inflate(stored, int64(h.Raw), t.Meta.Codec, t.File.Limits.Metadata, Alloc)
	if err != nil {
		return nil, at, fault.Locate(err, at.Sub(head, int64(h.Stored)), true, path)
	}
	c := wire.NewInnerCursor(body, at.Sub(head, int64(h.Stored)), path)
	if exact {
		c = wire.NewCursor(body, at.Sub(head, int64(h.Stored)), path)
	}
	entries := layout.ParseIndex(thrift.NewReader(c, t.File.Footer.Protocol), "")
	if c.Err() != nil {
		return nil, at, c.Err()
	}
	if reason := t.checkIndex(entries); reason != "" {
		return nil, at, fault.Corruptf(at, path, "%s", reason)
	}
	return entries, at, nil
}

// checkIndex compares the entries with each other and with the chunk. It returns the first contradiction, "" if there
// is none.
func (t *Table) checkIndex(entries []layout.IndexEntry) string {
	var values, rows, end int64
	for i := range entries {
		e := &entries[i]
		flat := t.Leaf.MaxRep == 0
		switch {
		case e.Size <= 0 || e.Values < 0 || e.Rows < 0 || e.Nulls < 0 || e.Nulls > e.Values || e.Rows > e.Values:
			return "an entry with impossible numbers"
		case e.Offset < end || e.Offset+int64(e.Size) > t.At.Len-t.next:
			return "pages that overlap or lie after the end"
		case e.First != rows:
			return "rows that do not follow each other"
		case flat && e.Rows != e.Values:
			return "a column that does not repeat has as many values as rows"
		}
		end = e.Offset + int64(e.Size)
		values += int64(e.Values)
		rows += int64(e.Rows)
	}
	if values != t.Meta.Values || t.rows >= 0 && rows != t.rows {
		return fmt.Sprintf("expected %s and %s, its pages have %d and %d", fault.Count(t.Meta.Values, "value"),
			fault.Count(t.rows, "row"), values,
			rows)
	}
	return ""
}

// useIndex adopts the pages in the index page if that can be read, and sets Indexed.
func (t *Table) useIndex(ctx context.Context) {
	entries, _, err := t.ReadIndex(ctx)
	if err != nil || entries == nil {
		return
	}
	t.Pages = make([]Page, len(entries))
	for i := range entries {
		e := &entries[i]
		t.Pages[i] = Page{Off: t.next + e.Offset, Size: int64(e.Size), Values: int64(e.Values), First: e.First,
			Rows: int64(e.Rows), Bounds: statedBounds(e, t.Leaf)}
	}
	t.values, t.Indexed = t.Meta.Values, true
}

// statedBounds returns the bounds in an index entry; nil if the column is repeated.
func statedBounds(e *layout.IndexEntry, l *schema.Leaf) *pred.Bounds {
	if l.MaxRep > 0 {
		return nil
	}
	b := &pred.Bounds{Nulls: int64(e.Nulls), Rows: int64(e.Rows), NoNaN: e.NoNaN, MinCut: e.MinCut, MaxCut: e.MaxCut}
	if e.HasMin && e.HasMax {
		lo, ok1 := boundOf(e.Min, l.Column.Type)
		hi, ok2 := boundOf(e.Max, l.Column.Type)
		if ok1 && ok2 {
			b.Min, b.Max = &lo, &hi
		}
	}
	return b
}

// boundOf returns a stored bound as a value of type t; ok is false if its length does not fit the type.
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

// Resume makes t continue after the damaged page i, at the offset in the index, which is relative to begin.
func (t *Table) Resume(index []layout.IndexEntry, i int, begin int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &index[i]
	t.Pages = append(t.Pages[:i], Page{Off: begin + e.Offset, Size: int64(e.Size), Values: int64(e.Values),
		First: e.First, Rows: int64(e.Rows)})
	t.values, t.err, t.next = 0, nil, begin+e.Offset+int64(e.Size)
	if i+1 < len(index) {
		t.next = begin + index[i+1].Offset
	}
	for _, p := range t.Pages {
		t.values += p.Values
	}
}
