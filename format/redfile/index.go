package redfile

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/vec"
	"stoa/wire"
)

// Index pages. The document has them and says nothing about what is in them, so the layout is ours. The header
// carries
//
//	6 index_page {1 layout i32 = 1, 2 num_pages i32}
//
// and the body, compressed as the chunk is, is a struct in the protocol of the header:
//
//	1 pages list<struct {
//	     1 offset      i64   of the page's header, from the chunk's first data page on
//	     2 size        i32   of the page with its header
//	     3 num_values  i32
//	     4 first_row   i64   rows of the row group that begin before the page
//	     5 num_rows    i32   rows that begin in it
//	     6 nulls       i32   entries without a value
//	     7 min binary, 8 max binary   as PLAIN stores a value, without a length; absent: unknown. Of floats, what is
//	                                  not NaN
//	     9 min_cut bool, 10 max_cut bool   the bound is only a beginning of the least, of the greatest value
//	    11 no_nan bool
//	}>
//
// One index page stands behind the data pages of a chunk, where readers that count values never come.
const indexLayout = 1

// longestBound is how many bytes of a string a bound keeps.
const longestBound = 64

// indexEntry is what the index says of a page.
type indexEntry struct {
	offset, first      int64
	size, values, rows int32
	nulls              int32
	min, max           []byte
	hasMin, hasMax     bool
	minCut, maxCut     bool
	noNaN              bool
}

// parseIndexHeader gives the number of pages, -1 if the layout is another.
func parseIndexHeader(r *thrift.Reader) (n int32) {
	layout := int32(0)
	for r.Struct("index_page"); r.Next(); {
		switch r.Field() {
		case 1:
			if r.Type() == thrift.I32 {
				layout = r.I32("layout")
			}
		case 2:
			if r.Type() == thrift.I32 {
				n = r.I32("num_pages")
			}
		}
	}
	if layout != indexLayout {
		return -1
	}
	return n
}

func writeIndexHeader(w *thrift.Writer, n int32) {
	w.Struct(6)
	w.I32(1, indexLayout)
	w.I32(2, n)
	w.End()
}

func parseIndex(r *thrift.Reader, name string) (out []indexEntry) {
	for r.Struct(name); r.Next(); {
		if r.Field() != 1 {
			continue
		}
		for range r.List("pages", thrift.Struct) {
			out = append(out, parseIndexEntry(r))
		}
	}
	return out
}

func parseIndexEntry(r *thrift.Reader) (e indexEntry) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			e.offset = r.I64("offset")
		case 2:
			e.size = r.I32("size")
		case 3:
			e.values = r.I32("num_values")
		case 4:
			e.first = r.I64("first_row")
		case 5:
			e.rows = r.I32("num_rows")
		case 6:
			e.nulls = r.I32("nulls")
		case 7:
			e.min, e.hasMin = slices.Clone(r.Bytes("min")), true
		case 8:
			e.max, e.hasMax = slices.Clone(r.Bytes("max")), true
		case 9:
			e.minCut = r.Bool("min_cut")
		case 10:
			e.maxCut = r.Bool("max_cut")
		case 11:
			e.noNaN = r.Bool("no_nan")
		}
	}
	return e
}

func writeIndex(w *thrift.Writer, entries []indexEntry) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(entries))
	for i := range entries {
		e := &entries[i]
		w.Struct(thrift.Item)
		w.I64(1, e.offset)
		w.I32(2, e.size)
		w.I32(3, e.values)
		w.I64(4, e.first)
		w.I32(5, e.rows)
		w.I32(6, e.nulls)
		if e.hasMin {
			w.Bytes(7, e.min)
		}
		if e.hasMax {
			w.Bytes(8, e.max)
		}
		if e.minCut {
			w.Bool(9, true)
		}
		if e.maxCut {
			w.Bool(10, true)
		}
		if e.noNaN {
			w.Bool(11, true)
		}
		w.End()
	}
	w.End()
}

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
		flat := t.f.leaves[t.col].maxRep == 0
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
	l := &t.f.leaves[t.col]
	t.pages = make([]page, len(entries))
	for i := range entries {
		e := &entries[i]
		t.pages[i] = page{off: t.next + e.offset, size: int64(e.size), values: int64(e.values), first: e.first,
			rows: int64(e.rows), bounds: e.bounds(l)}
	}
	t.values, t.indexed = t.meta.values, true
}

// bounds is what an entry says of its page's values, nil if nothing that could be used.
func (e *indexEntry) bounds(l *leaf) *pred.Bounds {
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

// Narrow leaves out the pages that cannot hold a row of which e is true. It is format.Narrower.
func (f *file) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	rows, err := f.rowsOf(ctx, g.Index)
	if err != nil || rows < 0 {
		return vec.Ranges{{From: 0, To: math.MaxInt64}}, err
	}
	out := vec.Ranges{{From: 0, To: rows}}
	for _, name := range e.Columns() {
		at, _, err := pred.Find(f.schema.Fields(), name)
		if err != nil {
			continue
		}
		col := slices.IndexFunc(f.leaves, func(l leaf) bool { return slices.Equal(l.column.Path, at) })
		if col < 0 || f.leaves[col].maxRep > 0 {
			continue
		}
		t, err := f.table(ctx, g.Index, col)
		if err != nil || !t.indexed {
			continue // if it is damage, reading will tell
		}
		var left vec.Ranges
		for i := range t.pages {
			p := &t.pages[i]
			known := func(path string) *pred.Bounds {
				if path == name {
					return p.bounds
				}
				return nil
			}
			if e.Prune(known) != pred.None {
				left = left.Add(vec.Range{From: p.first, To: p.first + p.rows})
			}
		}
		if left.Len() < rows {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "index page"})
		}
		out = out.Intersect(left)
	}
	return out, nil
}
