package redfile

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

// Kinds of pages. Others are passed over.
const (
	dataPage  = 0
	indexPage = 1
)

func pageKind(v int32) string {
	return nameOf([]string{"DATA_PAGE", "INDEX_PAGE"}, v, "page type ")
}

// pageHeader is PageHeader with what stands in it.
type pageHeader struct {
	kind        int32
	raw, stored int32 // bytes of the body
	crc         uint32
	hasCRC      bool // and it is not 0, which is written for none

	hasData  bool
	values   int32 // nulls and empty lists included
	encoding Encoding
	entries  int32 // of an index page: see index.go; -1: another layout
}

// parsePageHeader reads the header of a page:
//
//	1 type i32   2 uncompressed_page_size i32   3 compressed_page_size i32   4 crc i32
//	5 data_page {1 num_values i32, 2 encoding i32}   6 index_page {…}
func parsePageHeader(r *thrift.Reader, name string) (h pageHeader) {
	h.kind, h.raw, h.stored, h.entries = -1, -1, -1, -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.kind = r.Enum("type", pageKind)
		case 2:
			h.raw = r.I32("uncompressed_page_size")
		case 3:
			h.stored = r.I32("compressed_page_size")
		case 4:
			h.crc = uint32(r.I32("crc"))
			h.hasCRC = h.crc != 0
		case 5:
			h.hasData, h.values, h.encoding = true, -1, -1
			for r.Struct("data_page"); r.Next(); {
				switch r.Field() {
				case 1:
					h.values = r.I32("num_values")
				case 2:
					h.encoding = Encoding(r.Enum("encoding", textOf(Encoding.String)))
				}
			}
		case 6:
			h.entries = parseIndexHeader(r)
		}
	}
	return h
}

// usual reads the header of a data page that b begins with, if it is just as every writer writes it: in the
// compact protocol, with all its fields in order. It is what parsePageHeader gives [FuzzUsualHeader], in a
// tenth of the time; whatever is otherwise, that one reads.
func (h *pageHeader) usual(b []byte) (n int, ok bool) {
	// Before each number stands by how much its field's number is greater than the last one's, and that it is
	// an i32; field 5 is a struct.
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
	if v[0] != dataPage {
		return 0, false
	}
	*h = pageHeader{kind: dataPage, raw: v[1], stored: v[2], crc: uint32(v[3]), hasCRC: v[3] != 0, hasData: true,
		values: v[4], encoding: Encoding(v[5]), entries: -1}
	return n, true
}

// bad says what is wrong with a header; "" if nothing is.
func (h *pageHeader) bad() (field, reason string) {
	switch {
	case h.kind < 0:
		return "type", "it is missing or negative"
	case h.raw < 0:
		return "uncompressed_page_size", "it is missing or negative"
	case h.stored < 0:
		return "compressed_page_size", "it is missing or negative"
	case h.kind == dataPage && !h.hasData:
		return "data_page", "it is missing"
	case h.kind == dataPage && h.values < 0:
		return "data_page.num_values", "it is missing or negative"
	case h.kind == dataPage && h.encoding < 0:
		return "data_page.encoding", "it is missing or negative"
	}
	return "", ""
}

func (h *pageHeader) write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, h.kind)
	w.I32(2, h.raw)
	w.I32(3, h.stored)
	w.I32(4, int32(h.crc))
	if h.kind == dataPage {
		w.Struct(5)
		w.I32(1, h.values)
		w.I32(2, int32(h.encoding))
		w.End()
	}
	if h.kind == indexPage {
		writeIndexHeader(w, h.entries)
	}
	w.End()
}

// mostHeader is more than any header is long.
const mostHeader = 64 << 10

// readStruct reads a structure that begins at off and may reach up to end, of which nobody knows the length:
// some bytes first, more if they were too few. parse is given a cursor and says whether the bytes ended; it is
// then called again from the beginning, if there are more.
func readStruct(ctx context.Context, src store.Source, at fault.Span, first, most int64, path string,
	parse func(c *wire.Cursor) (short bool)) (n int64, err error) {
	for size := first; ; size *= 8 {
		size = min(size, at.Len, most)
		b := make([]byte, size)
		if err := format.ReadFull(ctx, src, at.Sub(0, size), path, b); err != nil {
			return 0, err
		}
		c := wire.NewCursor(b, at.Sub(0, size), path)
		if short := parse(c); short && c.Err() != nil && size < min(at.Len, most) {
			continue // perhaps it is only longer
		}
		return int64(c.Pos()), c.Err()
	}
}

// pageAt reads the header of the page at at.Off; at.Len is how far it may reach with its body.
func pageAt(ctx context.Context, src store.Source, at fault.Span, path string) (h pageHeader, head int64, err error) {
	head, err = readStruct(ctx, src, at, 96, mostHeader, path+".header", func(c *wire.Cursor) bool {
		r := thrift.NewReader(c, protocolOf(c.Rest()))
		h = parsePageHeader(r, "")
		return r.Short()
	})
	if err != nil {
		return h, 0, err
	}
	return h, head, h.fits(at, head, path)
}

// fits holds a header of head bytes against at, where the page may lie.
func (h *pageHeader) fits(at fault.Span, head int64, path string) error {
	if field, reason := h.bad(); field != "" {
		return fault.Corruptf(at.Sub(0, head), path+".header."+field, "%s", reason)
	}
	if int64(h.stored) > at.Len-head {
		return fault.Corruptf(at.Sub(0, head), path+".header.compressed_page_size",
			"%d bytes, but only %d are left", h.stored, at.Len-head)
	}
	return nil
}

func pagePath(group, col, page int) string {
	return chunkPath(group, col) + ".page[" + strconv.Itoa(page) + "]"
}

// mostFound is how long a page header may be that is met without knowing that one is there. They have some
// 20 bytes.
const mostFound = 1 << 10

// headerIn reads the header of a page that b begins with, or nothing; at is how far it may reach with its body.
func headerIn(b []byte, at fault.Span) (pageHeader, int64, error) {
	c := wire.NewCursor(b, at.Sub(0, int64(len(b))), "")
	h := parsePageHeader(thrift.NewReader(c, protocolOf(b)), "")
	if c.Err() != nil {
		return h, 0, c.Err()
	}
	return h, int64(c.Pos()), h.fits(at, int64(c.Pos()), "")
}
