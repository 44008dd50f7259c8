package layout

import (
	"slices"

	"stoa/internal/thrift"
)

// Index pages. The document mentions them but does not define their contents, so the layout is ours. The header
// contains
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
//	     7 min binary, 8 max binary   as PLAIN stores a value, without a length; absent: unknown. NaN is ignored
//	     9 min_cut bool, 10 max_cut bool   the bound is a prefix of the smallest, of the largest value
//	    11 no_nan bool
//	}>
//
// One index page follows the data pages of a chunk, at a position that readers that count values never reach.
const indexLayout = 1

// LongestBound is the maximum length of a string's bound, in bytes.
const LongestBound = 64

// IndexEntry is the entry of a data page in the index page of its chunk.
type IndexEntry struct {
	Offset         int64 // of the page's header, in bytes from the first data page
	First          int64 // rows of the row group that begin before the page
	Size           int32 // bytes of the page with its header
	Values         int32 // entries, nulls and empty lists included
	Rows           int32 // rows that begin in the page
	Nulls          int32 // entries without a value
	Min, Max       []byte
	HasMin, HasMax bool
	MinCut, MaxCut bool // the bound is a prefix of the value
	NoNaN          bool
}

// parseIndexHeader returns the number of pages, -1 if the layout is not indexLayout.
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

// ParseIndex parses the body of an index page. Errors are those of r.
func ParseIndex(r *thrift.Reader, name string) (out []IndexEntry) {
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

func parseIndexEntry(r *thrift.Reader) (e IndexEntry) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			e.Offset = r.I64("offset")
		case 2:
			e.Size = r.I32("size")
		case 3:
			e.Values = r.I32("num_values")
		case 4:
			e.First = r.I64("first_row")
		case 5:
			e.Rows = r.I32("num_rows")
		case 6:
			e.Nulls = r.I32("nulls")
		case 7:
			e.Min, e.HasMin = slices.Clone(r.Bytes("min")), true
		case 8:
			e.Max, e.HasMax = slices.Clone(r.Bytes("max")), true
		case 9:
			e.MinCut = r.Bool("min_cut")
		case 10:
			e.MaxCut = r.Bool("max_cut")
		case 11:
			e.NoNaN = r.Bool("no_nan")
		}
	}
	return e
}

// WriteIndex writes the body of an index page.
func WriteIndex(w *thrift.Writer, entries []IndexEntry) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(entries))
	for i := range entries {
		e := &entries[i]
		w.Struct(thrift.Item)
		w.I64(1, e.Offset)
		w.I32(2, e.Size)
		w.I32(3, e.Values)
		w.I64(4, e.First)
		w.I32(5, e.Rows)
		w.I32(6, e.Nulls)
		if e.HasMin {
			w.Bytes(7, e.Min)
		}
		if e.HasMax {
			w.Bytes(8, e.Max)
		}
		if e.MinCut {
			w.Bool(9, true)
		}
		if e.MaxCut {
			w.Bool(10, true)
		}
		if e.NoNaN {
			w.Bool(11, true)
		}
		w.End()
	}
	w.End()
}

// SetBounds sets both bounds.
func (e *IndexEntry) SetBounds(min, max []byte) {
	e.Min, e.Max, e.HasMin, e.HasMax = min, max, true, true
}
