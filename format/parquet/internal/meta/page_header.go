package meta

import (
	"fmt"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Whole returns the span of a page including its header.
func (p *Page) Whole() fault.Span {
	at := p.Header
	at.Len += p.Body.Len
	return at
}

// Kinds of pages: parquet.thrift, PageType.
const (
	DataPage       = 0
	IndexPage      = 1
	DictionaryPage = 2
	DataPageV2     = 3
)

// Page is one page of a column chunk, as its header describes it.
type Page struct {
	Header fault.Span
	Body   fault.Span
	Kind   int32
	Values int64 // including nulls and empty lists
	Rows   int64 // of a data page v2; else -1
	Nulls  int64 // of a data page v2; else -1
	Raw    int64 // uncompressed bytes of the body
	CRC    uint32
	HasCRC bool

	Encoding int32
	Size     int64 // bytes of the body

	Levels       [2]int32 // of definition and repetition levels: encodings in a data page v1, sizes in bytes in one v2
	Uncompressed bool     // of a data page v2: its values are stored uncompressed
	Stats        *Stats   // nil if there are none
	MissingField string   // a required field that the header lacks; "" if none
}

// IsData reports whether p is a data page.
func (p *Page) IsData() bool { return p.Kind == DataPage || p.Kind == DataPageV2 }

func (p *Page) String() string {
	return fmt.Sprintf("%s, %s, %s, %d bytes uncompressed", EnumName(PageTypes, p.Kind), fault.Count(p.Values, "value"),
		EnumName(Encodings, p.Encoding), p.Raw)
}

// ParsePageHeader reads a PageHeader.
func ParsePageHeader(r *thrift.Reader) Page {
	p := Page{Kind: -1, Size: -1, Rows: -1, Nulls: -1}
	var seen uint16 // bit set by field number
	for r.Struct("header"); r.Next(); {
		seen |= 1 << (r.Field() & 15)
		switch r.Field() {
		case 1:
			p.Kind = r.Enum("type", func(v int32) string { return EnumName(PageTypes, v) })
		case 2:
			p.Raw = int64(r.I32("uncompressed_page_size"))
		case 3:
			p.Size = int64(r.I32("compressed_page_size"))
		case 4:
			p.CRC, p.HasCRC = uint32(r.Enum("crc", func(v int32) string { return fmt.Sprintf("%08x", uint32(v)) })),
				true
		case 5:
			p.dataHeader(r, "data_page_header", 2)
		case 7:
			p.dataHeader(r, "dictionary_page_header", 2)
		case 8:
			p.dataHeader(r, "data_page_header_v2", 4)
		}
	}
	if own, ok := ownHeader[p.Kind]; ok && seen&(1<<own.field) == 0 {
		p.MissingField = own.name
	}
	return p
}

// ownHeader is the header field that a PageHeader of each page type must have.
var ownHeader = map[int32]struct {
	field int
	name  string
}{DataPage: {5, "data_page_header"}, DictionaryPage: {7, "dictionary_page_header"},
	DataPageV2: {8, "data_page_header_v2"}}

// requiredFields are the required fields of DataPageHeader, DictionaryPageHeader and DataPageHeaderV2 by number.
var requiredFields = map[string][]string{
	"data_page_header": {1: "num_values", 2: "encoding", 3: "definition_level_encoding",
		4: "repetition_level_encoding"},
	"dictionary_page_header": {1: "num_values", 2: "encoding"},
	"data_page_header_v2": {1: "num_values", 2: "num_nulls", 3: "num_rows", 4: "encoding",
		5: "definition_levels_byte_length", 6: "repetition_levels_byte_length"},
}

// dataHeader reads a DataPageHeader, DictionaryPageHeader or DataPageHeaderV2, in which field enc is the encoding.
func (p *Page) dataHeader(r *thrift.Reader, name string, enc int) {
	v2 := enc == 4
	names := [...]string{3: "definition_level_encoding", 4: "repetition_level_encoding",
		5: "definition_levels_byte_length", 6: "repetition_levels_byte_length"}
	var seen uint16
	for r.Struct(name); r.Next(); {
		seen |= 1 << (r.Field() & 15)
		switch f := r.Field(); {
		case f == 1:
			p.Values = int64(r.I32("num_values"))
		case f == enc:
			p.Encoding = r.Enum("encoding", func(v int32) string { return EnumName(Encodings, v) })
		case v2 && f == 2:
			p.Nulls = int64(r.I32("num_nulls"))
		case v2 && f == 3:
			p.Rows = int64(r.I32("num_rows"))
		case r.Type() == thrift.Bool:
			on := r.Bool(map[bool]string{true: "is_compressed", false: "is_sorted"}[v2])
			p.Uncompressed = v2 && !on
		case v2 && r.Type() == thrift.I32 && f >= 5 && f < len(names):
			p.Levels[f-5] = r.I32(names[f])
		case !v2 && r.Type() == thrift.I32 && f >= 3 && f < 5:
			p.Levels[f-3] = r.Enum(names[f], func(v int32) string { return EnumName(Encodings, v) })
		case r.Type() == thrift.Struct:
			p.Stats = parseStatistics(r)
		}
	}
	for f, field := range requiredFields[name] {
		if field != "" && seen&(1<<f) == 0 && p.MissingField == "" {
			p.MissingField = name + "." + field
		}
	}
}

// Advance moves from page p to the page after it.
func (s *PageModule) Advance(p *Page) {
	s.First = false
	if p.IsData() {
		s.Ordinal++
	}
}

// MaxHeader is the size of the largest page header that is read; headers contain statistics, which can be long.
const MaxHeader = 16 << 20

// PageModule identifies a page among the modules of an encrypted chunk.
type PageModule struct {
	*Cipher      // nil if the chunk is not encrypted
	First   bool // the first page of the chunk, which may be a dictionary
	Ordinal int  // of data pages; -1 for a dictionary
}

// header decrypts the header of a page. used is the number of bytes of b that it occupies.
func (s *PageModule) header(b []byte) (plain []byte, used int, err error) {
	if s.First || s.Ordinal < 0 {
		if plain, used, err = s.Decrypt(b, DictionaryHeaderModule, 0, Alloc); err == nil || s.Ordinal < 0 {
			return plain, used, err
		}
	}
	return s.Decrypt(b, DataHeaderModule, s.Ordinal, Alloc)
}

// HeaderCursor returns a cursor over the page header at the start of b, which are the first bytes of at. used is the
// number of bytes of the file that the header occupies, -1 if only parsing can tell.
func HeaderCursor(b []byte, at fault.Span, path string, s PageModule) (c *wire.Cursor, used int, err error) {
	if s.Cipher == nil {
		return wire.NewCursor(b, at, path), -1, nil
	}
	plain, used, err := s.header(b)
	if err != nil {
		return nil, 0, fault.Locate(err, at, true, path)
	}
	return wire.NewInnerCursor(plain, at.Sub(0, int64(used)), path), used, nil
}

// Plausible reports whether a writer could have written this header.
func (p *Page) Plausible() bool {
	if p.MissingField != "" {
		return false
	}
	known := p.Encoding >= 0 && int(p.Encoding) < len(Encodings) && Encodings[p.Encoding] != ""
	switch p.Kind {
	case DictionaryPage:
		return known && (p.Encoding == PlainValues || p.Encoding == PlainDictionary) && p.Size >= 0
	case DataPage:
		return known && p.Size >= 0
	case DataPageV2:
		return known && p.Rows >= 0 && p.Nulls >= 0 && p.Nulls <= p.Values && p.Levels[0] >= 0 &&
			p.Levels[1] >= 0 && p.Size >= 0
	}
	return false
}
