package layout

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/wire"
)

// Values of PageHeader.type. Readers skip other pages.
const (
	DataPage  = 0
	IndexPage = 1
)

// PageKind returns the name of a page type for messages.
func PageKind(v int32) string {
	return nameOf([]string{"DATA_PAGE", "INDEX_PAGE"}, v, "page type ")
}

// PageHeader is PageHeader, including the header of the data or index page.
type PageHeader struct {
	Kind        int32
	Raw, Stored int32 // bytes of the body, before and after compression
	CRC         uint32
	HasCRC      bool // CRC is not 0; 0 stands for no checksum

	HasData  bool  // data_page is present
	Values   int32 // nulls and empty lists included
	Encoding Encoding
	Entries  int32 // pages of an index page; -1 if it is not an index page or has another layout
	Foreign  bool  // it has fields that no version of the format has
}

// ParsePageHeader reads the header of a page:
//
//	1 type i32   2 uncompressed_page_size i32   3 compressed_page_size i32   4 crc i32
//	5 data_page {1 num_values i32, 2 encoding i32}   6 index_page {…}
func ParsePageHeader(r *thrift.Reader, name string) (h PageHeader) {
	h.Kind, h.Raw, h.Stored, h.Entries = -1, -1, -1, -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.Kind = r.Enum("type", PageKind)
		case 2:
			h.Raw = r.I32("uncompressed_page_size")
		case 3:
			h.Stored = r.I32("compressed_page_size")
		case 4:
			h.CRC = uint32(r.I32("crc"))
			h.HasCRC = h.CRC != 0
		case 5:
			h.HasData, h.Values, h.Encoding = true, -1, -1
			for r.Struct("data_page"); r.Next(); {
				switch r.Field() {
				case 1:
					h.Values = r.I32("num_values")
				case 2:
					h.Encoding = Encoding(r.Enum("encoding", textOf(Encoding.String)))
				default:
					h.Foreign = true
				}
			}
		case 6:
			h.Entries = parseIndexHeader(r)
		default:
			h.Foreign = true
		}
	}
	return h
}

// ParseFast parses the header of a data page at the beginning of b, provided that it is in the compact protocol with
// all fields in order, as writers write it; n is its size in bytes. The result is that of ParsePageHeader
// [FuzzParseFast], in a tenth of the time. ok is false for every other header.
func (h *PageHeader) ParseFast(b []byte) (n int, ok bool) {
	// The field headers: a field-id delta of 1 and type i32 (0x15), or struct (0x1c) for field 5; and the two stops.
	const shape = "\x15\x15\x15\x15\x1c\x15\x15\x00\x00"
	var v [6]int32
	k := 0
	for i := range len(shape) {
		if n >= len(b) || b[n] != shape[i] {
			return 0, false
		}
		if n++; shape[i] != 0x15 {
			continue
		}
		x, used := binary.Uvarint(b[n:])
		if used <= 0 || x > math.MaxUint32 {
			return 0, false
		}
		v[k] = int32(uint32(x)>>1) ^ -int32(x&1) // zigzag
		k, n = k+1, n+used
	}
	if v[0] != DataPage {
		return 0, false
	}
	*h = PageHeader{Kind: DataPage, Raw: v[1], Stored: v[2], CRC: uint32(v[3]), HasCRC: v[3] != 0, HasData: true,
		Values: v[4], Encoding: Encoding(v[5]), Entries: -1}
	return n, true
}

// Problem returns the name of the first field that is missing or negative, and which of the two it is; "" if there is
// none.
func (h *PageHeader) Problem() (field, reason string) {
	switch {
	case h.Kind < 0:
		return "type", "it is missing or negative"
	case h.Raw < 0:
		return "uncompressed_page_size", "it is missing or negative"
	case h.Stored < 0:
		return "compressed_page_size", "it is missing or negative"
	case h.Kind == DataPage && !h.HasData:
		return "data_page", "it is missing"
	case h.Kind == DataPage && h.Values < 0:
		return "data_page.num_values", "it is missing or negative"
	case h.Kind == DataPage && h.Encoding < 0:
		return "data_page.encoding", "it is missing or negative"
	}
	return "", ""
}

// IsKnown reports whether the header has a type that some writer uses, and the fields that belong to that type. Readers
// skip other pages, but where only the position of a page shows that bytes are in order, an unknown header proves
// nothing.
func (h *PageHeader) IsKnown() bool {
	switch h.Kind {
	case DataPage:
		return h.HasData
	case IndexPage, SyncPage:
		return !h.HasData
	}
	return false
}

// Write writes the header of a data page, an index page, or another kind of page.
func (h *PageHeader) Write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, h.Kind)
	w.I32(2, h.Raw)
	w.I32(3, h.Stored)
	w.I32(4, int32(h.CRC))
	if h.Kind == DataPage {
		w.Struct(5)
		w.I32(1, h.Values)
		w.I32(2, int32(h.Encoding))
		w.End()
	}
	if h.Kind == IndexPage {
		writeIndexHeader(w, h.Entries)
	}
	w.End()
}

// maxHeader is the maximum size of a page header that is read, in bytes.
const maxHeader = 64 << 10

// ReadStruct reads a structure of unknown size at at.Off, which may be at most at.Len and at most limit bytes long, and
// returns its size. It reads first bytes, and eight times as many whenever they are too few. parse reports whether its
// input ended early; it is then called again from the beginning, if there is more input.
func ReadStruct(ctx context.Context, src store.Source, at fault.Span, first, limit int64, path string,
	parse func(c *wire.Cursor) (short bool)) (n int64, err error) {
	for size := first; ; size *= 8 {
		size = min(size, at.Len, limit)
		b := make([]byte, size)
		if err := format.ReadFull(ctx, src, at.Sub(0, size), path, b); err != nil {
			return 0, err
		}
		c := wire.NewCursor(b, at.Sub(0, size), path)
		if short := parse(c); short && c.Err() != nil && size < min(at.Len, limit) {
			continue
		}
		return int64(c.Pos()), c.Err()
	}
}

// PageAt reads the header of the page at at.Off and returns its size in bytes. If the header is incomplete, or header
// and body do not fit in at, the error is Corrupt.
func PageAt(ctx context.Context, src store.Source, at fault.Span, path string) (h PageHeader, head int64, err error) {
	head, err = ReadStruct(ctx, src, at, 96, maxHeader, path+".header", func(c *wire.Cursor) bool {
		r := thrift.NewReader(c, ProtocolOf(c.Rest()))
		h = ParsePageHeader(r, "")
		return r.Short()
	})
	if err != nil {
		return h, 0, err
	}
	return h, head, h.check(at, head, path)
}

// check returns an error if a header of head bytes is incomplete, or if its page extends beyond at.
func (h *PageHeader) check(at fault.Span, head int64, path string) error {
	if field, reason := h.Problem(); field != "" {
		return fault.Corruptf(at.Sub(0, head), path+".header."+field, "%s", reason)
	}
	if int64(h.Stored) > at.Len-head {
		return fault.Corruptf(at.Sub(0, head), path+".header.compressed_page_size",
			"%d bytes, but only %d are left", h.Stored, at.Len-head)
	}
	return nil
}

// PagePath returns the path of a data page for errors and nodes.
func PagePath(group, col, page int) string {
	return ChunkPath(group, col) + ".page[" + strconv.Itoa(page) + "]"
}

// MaxFoundHeader is the maximum size in bytes of a page header that recovery recognizes without the metadata. Headers
// have about 20 bytes.
const MaxFoundHeader = 1 << 10

// HeaderIn parses the page header at the beginning of b and returns its size in bytes; header and body must fit in at.
// Its errors are those of PageAt.
func HeaderIn(b []byte, at fault.Span) (PageHeader, int64, error) {
	c := wire.NewCursor(b, at.Sub(0, int64(len(b))), "")
	h := ParsePageHeader(thrift.NewReader(c, ProtocolOf(b)), "")
	if c.Err() != nil {
		return h, 0, c.Err()
	}
	return h, int64(c.Pos()), h.check(at, int64(c.Pos()), "")
}
