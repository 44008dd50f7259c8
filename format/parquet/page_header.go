package parquet

import (
	"fmt"
	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// whole is where a page lies with its header.
func (p *page) whole() fault.Span {
	at := p.header
	at.Len += p.body.Len
	return at
}

// Kinds of pages: parquet.thrift, PageType.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// page is one page of a column chunk, found by its header.
type page struct {
	header fault.Span
	body   fault.Span
	kind   int32
	values int64 // nulls and empty lists included
	rows   int64 // of a data page v2; else -1
	nulls  int64 // of a data page v2; else -1
	raw    int64 // bytes of the body uncompressed
	crc    uint32
	hasCRC bool

	encoding int32
	size     int64 // bytes of the body

	levels [2]int32 // of definition and repetition: encodings in a data page v1, bytes in one v2
	bare   bool     // of a data page v2: the body is not compressed
	stats  *said    // nil: none
}

func (p *page) isData() bool { return p.kind == dataPage || p.kind == dataPageV2 }

func (p *page) String() string {
	return fmt.Sprintf("%s, %d values, %s, %d bytes uncompressed", named(pageTypes, p.kind), p.values,
		named(encodings, p.encoding), p.raw)
}

// parsePageHeader reads a PageHeader.
func parsePageHeader(r *thrift.Reader) page {
	p := page{kind: -1, size: -1, rows: -1, nulls: -1}
	for r.Struct("header"); r.Next(); {
		switch r.Field() {
		case 1:
			p.kind = r.Enum("type", func(v int32) string { return named(pageTypes, v) })
		case 2:
			p.raw = int64(r.I32("uncompressed_page_size"))
		case 3:
			p.size = int64(r.I32("compressed_page_size"))
		case 4:
			p.crc, p.hasCRC = uint32(r.Enum("crc", func(v int32) string { return fmt.Sprintf("%08x", uint32(v)) })),
				true
		case 5:
			p.dataHeader(r, "data_page_header", 2)
		case 7:
			p.dataHeader(r, "dictionary_page_header", 2)
		case 8:
			p.dataHeader(r, "data_page_header_v2", 4)
		}
	}
	return p
}

// dataHeader reads a DataPageHeader, DictionaryPageHeader or DataPageHeaderV2, which has its encoding in field enc.
func (p *page) dataHeader(r *thrift.Reader, name string, enc int) {
	v2 := enc == 4
	names := [...]string{3: "definition_level_encoding", 4: "repetition_level_encoding",
		5: "definition_levels_byte_length", 6: "repetition_levels_byte_length"}
	for r.Struct(name); r.Next(); {
		switch f := r.Field(); {
		case f == 1:
			p.values = int64(r.I32("num_values"))
		case f == enc:
			p.encoding = r.Enum("encoding", func(v int32) string { return named(encodings, v) })
		case v2 && f == 2:
			p.nulls = int64(r.I32("num_nulls"))
		case v2 && f == 3:
			p.rows = int64(r.I32("num_rows"))
		case r.Type() == thrift.Bool:
			on := r.Bool(map[bool]string{true: "is_compressed", false: "is_sorted"}[v2])
			p.bare = v2 && !on
		case v2 && r.Type() == thrift.I32 && f >= 5 && f < len(names):
			p.levels[f-5] = r.I32(names[f])
		case !v2 && r.Type() == thrift.I32 && f >= 3 && f < 5:
			p.levels[f-3] = r.Enum(names[f], func(v int32) string { return named(encodings, v) })
		case r.Type() == thrift.Struct:
			p.stats = parseStatistics(r)
		}
	}
}

// after goes on to the page behind p.
func (s *sealedPage) after(p *page) {
	s.first = false
	if p.isData() {
		s.ordinal++
	}
}

// mostHeader is how long the header of a page may be: statistics may be long.
const mostHeader = 16 << 20

// sealedPage is which page of an encrypted chunk one is.
type sealedPage struct {
	*sealed      // nil: it is not encrypted
	first   bool // of the chunk: it may be a dictionary
	ordinal int  // of data pages; -1: it is a dictionary
}

// header gives the plain header of a page, and how many bytes it takes in the file.
func (s *sealedPage) header(b []byte) (plain []byte, used int, err error) {
	if s.first || s.ordinal < 0 {
		if plain, used, err = s.open(b, dictionaryHeaderModule, 0, room); err == nil || s.ordinal < 0 {
			return plain, used, err
		}
	}
	return s.open(b, dataHeaderModule, s.ordinal, room)
}

// headerOf is a cursor over the header at the beginning of b, which are the first bytes of at, and how many
// bytes it takes; -1: as many as are parsed.
func headerOf(b []byte, at fault.Span, path string, s sealedPage) (c *wire.Cursor, used int, err error) {
	if s.sealed == nil {
		return wire.NewCursor(b, at, path), -1, nil
	}
	plain, used, err := s.header(b)
	if err != nil {
		return nil, 0, fault.Locate(err, at, true, path)
	}
	return wire.NewInnerCursor(plain, at.Sub(0, int64(used)), path), used, nil
}

// sane reports whether a header is one as writers make them.
func (p *page) sane() bool {
	known := p.encoding >= 0 && int(p.encoding) < len(encodings) && encodings[p.encoding] != ""
	switch p.kind {
	case dictionaryPage:
		return known && (p.encoding == plainValues || p.encoding == plainDictionary) && p.size >= 0
	case dataPage:
		return known && p.size >= 0
	case dataPageV2:
		return known && p.rows >= 0 && p.nulls >= 0 && p.nulls <= p.values && p.levels[0] >= 0 &&
			p.levels[1] >= 0 && p.size >= 0
	}
	return false
}
