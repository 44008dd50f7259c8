package redfile

import (
	"slices"
	"stoa/internal/thrift"
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
//	     7 min binary, 8 max binary   as PLAIN stores a value, without a length; absent: unknown. Of floats, what is not NaN
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

// set sets the bounds.
func (e *indexEntry) set(min, max []byte) { e.min, e.max, e.hasMin, e.hasMax = min, max, true, true }
