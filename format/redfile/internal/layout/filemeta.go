package layout

import (
	"stoa/internal/thrift"
	"stoa/wire"
)

// VersionField is the id of the version in the metadata of a file.
const VersionField = 1

// ParseFileMeta parses the metadata of a file. The types of its fields 2 and 3 determine the generation:
//
//	     A, B            C               D, E
//	2    i64 num_rows    i64 num_rows    list schema
//	3    i32 num_cols    string schema   i64 num_rows
//
// short reports whether the input ended within the struct. After an error, m has what could be read: elements, chunks
// and pairs that are whole, and a row group of which at least one chunk is.
func ParseFileMeta(c *wire.Cursor) (m FileMeta, short bool) { return parseFileMeta(c, false) }

// ParseCutMeta is ParseFileMeta for metadata of which the end may be missing.
func ParseCutMeta(c *wire.Cursor) (m FileMeta, short bool) { return parseFileMeta(c, true) }

func parseFileMeta(c *wire.Cursor, cut bool) (m FileMeta, short bool) {
	m.Gen, m.Rows, m.NumCols, m.Version, m.First = GenA, -1, -1, -1, -1
	m.Protocol = ProtocolOf(c.Rest())
	all, begin := c.Rest(), c.Pos()
	var crcAt, crcEnd int
	r := thrift.NewReader(c, m.Protocol)
	if cut {
		r.Cut()
	}
	for r.Struct(""); r.Next(); {
		if m.First < 0 {
			m.First = r.Field()
		}
		switch r.Field() {
		case 1:
			m.Version = r.I32("version")
		case 2:
			if r.Type() == thrift.List {
				m.Gen = GenE
				m.Schema = parseElements(r, &m.Gen)
				continue
			}
			m.Rows = count(r)
		case 3:
			switch r.Type() {
			case thrift.Bytes:
				m.Gen = GenC
				m.Text = r.String("schema")
			case thrift.I64:
				m.Rows = count(r)
			default:
				m.NumCols = r.I32("num_cols")
			}
		case 4:
			for range r.List("row_groups", thrift.Struct) {
				m.Declared = r.Len()
				if g := parseRowGroup(r); r.Err() == nil || len(g.Columns) > 0 {
					m.Groups = append(m.Groups, g)
				}
			}
		case 5:
			m.Pairs = parsePairs(r)
		case 6:
			if r.Type() == thrift.I32 {
				crcAt = c.Pos() - begin
				m.CRC, m.HasCRC = uint32(r.I32("meta_data_crc")), true
				crcEnd = c.Pos() - begin
			}
		}
	}
	if m.HasCRC && c.Err() == nil {
		m.Want = CRC(all[:crcAt], all[crcEnd:c.Pos()-begin])
	}
	if m.Gen == GenA && m.inline() {
		m.Gen = GenB
	}
	return m, r.Short()
}

func parseElements(r *thrift.Reader, g *Generation) (out []Element) {
	for range r.List("schema", thrift.Struct) {
		if e := parseElement(r, g); r.Err() == nil {
			out = append(out, e)
		}
	}
	return out
}

// count reads num_rows; -1 if it is cut.
func count(r *thrift.Reader) int64 {
	if n := r.I64("num_rows"); r.Err() == nil {
		return n
	}
	return -1
}

// inline reports whether the file's metadata contains a copy of any chunk's metadata.
func (m *FileMeta) inline() bool {
	for _, g := range m.Groups {
		for _, c := range g.Columns {
			if c.Meta != nil {
				return true
			}
		}
	}
	return false
}
