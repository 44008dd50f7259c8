package layout

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/internal/thrift"
)

// Generation is one of the five forms of metadata in files with the magic RED1.
type Generation uint8

const (
	GenA Generation = 'A' // January 10, 2013: column metadata after each chunk only
	GenB Generation = 'B' // January 12: the chunk may have a copy
	GenC Generation = 'C' // January 16: the schema as text; sizes in place of levels
	GenD Generation = 'D' // January 22: the schema as elements that list their children
	GenE Generation = 'E' // February 8: as elements in depth-first order; the form that programs wrote
)

func (g Generation) String() string { return string(rune(g)) }

// Physical is the type of stored values.
type Physical int32

const (
	Boolean Physical = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
)

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY"}

// Encoding is the encoding of the values of a page.
type Encoding int32

const (
	Plain       Encoding = 0
	GroupVarInt Encoding = 1
)

var encodingNames = [...]string{"PLAIN", "GROUP_VAR_INT"}

// Compression is the codec of the pages of a chunk.
type Compression int32

const (
	Uncompressed Compression = iota
	Snappy
	Gzip
	LZO
)

var compressionNames = [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO"}

func (p Physical) String() string    { return nameOf(physicalNames[:], int32(p), "type ") }
func (e Encoding) String() string    { return nameOf(encodingNames[:], int32(e), "encoding ") }
func (c Compression) String() string { return nameOf(compressionNames[:], int32(c), "codec ") }

func nameOf(names []string, v int32, what string) string {
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return what + strconv.Itoa(int(v))
}

func textOf[T ~int32](f func(T) string) func(int32) string {
	return func(v int32) string { return f(T(v)) }
}

// Repetition is how often a field may occur in its parent.
type Repetition int32

const (
	Required Repetition = iota
	Optional
	Repeated
)

func (r Repetition) String() string {
	return nameOf([]string{"REQUIRED", "OPTIONAL", "REPEATED"}, int32(r), "repetition ")
}

// Converted types state the type of a field before it was converted to one of RedFile's own types; -1 is none.
type Converted int32

const (
	ConvNone Converted = iota - 1
	ConvUTF8
	ConvMap
	ConvMapKeyValue
	ConvList
)

func (c Converted) String() string {
	return nameOf([]string{"UTF8", "MAP", "MAP_KEY_VALUE", "LIST"}, int32(c), "converted type ")
}

// KeyValue is a pair in the metadata.
type KeyValue struct{ Key, Value string }

func parsePair(r *thrift.Reader) (kv KeyValue) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			kv.Key = r.String("key")
		case 2:
			kv.Value = r.String("value")
		}
	}
	return kv
}

func parsePairs(r *thrift.Reader) (out []KeyValue) {
	for range r.List("key_value_metadata", thrift.Struct) {
		if kv := parsePair(r); r.Err() == nil {
			out = append(out, kv)
		}
	}
	return out
}

// Element is SchemaElement of generations D and E.
type Element struct {
	Type       Physical // -1 for a group
	Repetition Repetition
	Name       string
	Children   int     // generation E: number of children, which follow depth first
	Indices    []int32 // generation D: indices of the children among all elements
	Converted  Converted
}

func parseElement(r *thrift.Reader, g *Generation) (e Element) {
	e.Type, e.Converted = -1, ConvNone
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			e.Type = Physical(r.Enum("type", textOf(Physical.String)))
		case 2:
			e.Repetition = Repetition(r.Enum("repetition_type", textOf(Repetition.String)))
		case 3:
			e.Name = r.String("name")
		case 4:
			if r.Type() == thrift.List {
				*g = GenD
				for range r.List("children_indices", thrift.I32) {
					e.Indices = append(e.Indices, r.I32(""))
				}
				continue
			}
			e.Children = int(r.I32("num_children"))
		case 5:
			e.Converted = Converted(r.Enum("converted_type", textOf(Converted.String)))
		}
	}
	return e
}

// ColumnMeta is ColumnMetaData of every generation.
type ColumnMeta struct {
	Type      Physical
	Encodings []Encoding
	Path      []string
	Codec     Compression
	Values    int64 // nulls and empty lists included

	HasLevels      bool // A and B: MaxDef and MaxRep are set
	MaxDef, MaxRep int32
	Raw, Stored    int64 // C, D and E: bytes of the pages without their headers; -1 in A and B

	Data, Index int64 // offsets of the first data page and of the index page in the object; -1: absent
	Pairs       []KeyValue
}

// ParseColumnMeta parses the metadata of a chunk. Fields 6 and 7 were levels at first and sizes later; their types
// distinguish the two.
func ParseColumnMeta(r *thrift.Reader, name string) (m ColumnMeta) {
	m.Type, m.Raw, m.Stored, m.Data, m.Index, m.Values = -1, -1, -1, -1, -1, -1
	for r.Struct(name); r.Next(); {
		levels := r.Type() == thrift.I32
		switch r.Field() {
		case 1:
			m.Type = Physical(r.Enum("type", textOf(Physical.String)))
		case 2:
			for range r.List("encodings", thrift.I32) {
				m.Encodings = append(m.Encodings, Encoding(r.Enum("", textOf(Encoding.String))))
			}
		case 3:
			for range r.List("path_in_schema", thrift.Bytes) {
				m.Path = append(m.Path, r.String(""))
			}
		case 4:
			m.Codec = Compression(r.Enum("codec", textOf(Compression.String)))
		case 5:
			m.Values = r.I64("num_values")
		case 6:
			if m.HasLevels = levels; levels {
				m.MaxDef = r.I32("max_definition_level")
			} else {
				m.Raw = r.I64("total_uncompressed_size")
			}
		case 7:
			if levels {
				m.MaxRep = r.I32("max_repetition_level")
			} else {
				m.Stored = r.I64("total_compressed_size")
			}
		case 8:
			m.Data = r.I64("data_page_offset")
		case 9:
			m.Index = r.I64("index_page_offset")
		case 10:
			m.Pairs = parsePairs(r)
		}
	}
	return m
}

// Write writes m as field id of a struct, or as an item of a list, in the form of generation A or, if g is not A, of E.
func (m *ColumnMeta) Write(w *thrift.Writer, id int16, g Generation) {
	w.Struct(id)
	w.I32(1, int32(m.Type))
	w.List(2, thrift.I32, len(m.Encodings))
	for _, e := range m.Encodings {
		w.I32(thrift.Item, int32(e))
	}
	w.List(3, thrift.Bytes, len(m.Path))
	for _, p := range m.Path {
		w.String(thrift.Item, p)
	}
	w.I32(4, int32(m.Codec))
	w.I64(5, m.Values)
	if g == GenA {
		w.I32(6, m.MaxDef)
		w.I32(7, m.MaxRep)
	} else {
		w.I64(6, m.Raw)
		w.I64(7, m.Stored)
	}
	w.I64(8, m.Data)
	if m.Index >= 0 {
		w.I64(9, m.Index)
	}
	writePairs(w, 10, m.Pairs)
	w.End()
}

// writePairs writes the list even if it is empty, as the C++ code generated in 2013 did.
func writePairs(w *thrift.Writer, id int16, pairs []KeyValue) {
	w.List(id, thrift.Struct, len(pairs))
	for _, kv := range pairs {
		w.Struct(thrift.Item)
		w.String(1, kv.Key)
		w.String(2, kv.Value)
		w.End()
	}
}

// ColumnChunk is ColumnStart (A) and ColumnChunk (B to E).
type ColumnChunk struct {
	File   string      // object that contains the chunk, relative to that of the metadata; "" if the same
	Offset int64       // of the column metadata after the pages; -1: absent
	Meta   *ColumnMeta // copy of the column metadata; nil if it is only at Offset
}

func parseChunk(r *thrift.Reader) (c ColumnChunk) {
	c.Offset = -1
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			c.File = r.String("file_path")
		case 2:
			c.Offset = r.I64("file_offset")
		case 3:
			if m := ParseColumnMeta(r, "meta_data"); r.Err() == nil {
				c.Meta = &m
			}
		}
	}
	return c
}

// RowGroup is RowGroup of every generation.
type RowGroup struct {
	Columns []ColumnChunk
	Bytes   int64 // total_byte_size: raw bytes of the pages, without headers
	Rows    int64 // -1: absent (A and B)
}

func parseRowGroup(r *thrift.Reader) (g RowGroup) {
	g.Rows = -1
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("columns", thrift.Struct) {
				if c := parseChunk(r); r.Err() == nil || c.Meta != nil {
					g.Columns = append(g.Columns, c)
				}
			}
		case 2:
			g.Bytes = r.I64("total_byte_size")
		case 3:
			g.Rows = count(r)
		}
	}
	return g
}

// FileMeta is FileMetaData of every generation.
type FileMeta struct {
	Gen      Generation
	Protocol thrift.Protocol
	Version  int32
	Rows     int64
	NumCols  int32  // A and B; -1: absent
	Text     string // C: the schema
	Schema   []Element
	Groups   []RowGroup
	Pairs    []KeyValue
	Declared int // row groups, by the head of their list

	First     int // id of the first field, VersionField in all known files; -1 if there is no field
	HasCRC    bool
	CRC, Want uint32 // stored, and computed
}

// Check returns an error of class Corrupt if a required field is missing or row groups differ in their number of
// columns, and Unsupported if the version is not 1. at is the span of the metadata.
func (m *FileMeta) Check(at fault.Span) error {
	switch {
	case m.Version < 0:
		return fault.Corruptf(at, "file_metadata.version", "it is missing")
	case m.Version != 1:
		return fault.Unsupportedf(at, "file_metadata.version", "expected version 1 of RED1, found %d", m.Version)
	case m.Rows < 0:
		return fault.Corruptf(at, "file_metadata.num_rows", "it is missing or negative")
	case m.Gen >= GenD && len(m.Schema) == 0:
		return fault.Corruptf(at, "file_metadata.schema", "it has no root")
	}
	for i, g := range m.Groups {
		if n := len(m.Groups[0].Columns); len(g.Columns) != n {
			return fault.Corruptf(at, RowGroupPath(i)+".columns", "expected %d column chunks, as in the first row "+
				"group, found %d", n, len(g.Columns))
		}
		if m.NumCols >= 0 && len(g.Columns) != int(m.NumCols) {
			return fault.Corruptf(at, RowGroupPath(i)+".columns", "expected %d column chunks by num_cols, found %d",
				m.NumCols, len(g.Columns))
		}
	}
	return nil
}

// Agree returns an error of class Corrupt unless num_rows equals total, the sum over the row groups.
func (m *FileMeta) Agree(total int64, at fault.Span) error {
	if total == m.Rows {
		return nil
	}
	return fault.Corruptf(at, "file_metadata.num_rows", "expected %d, the rows of the row groups, found %d", total,
		m.Rows)
}

// CountsAgree reports whether the rows of the row groups add up to num_rows, or a row group does not state its rows.
func (m *FileMeta) CountsAgree() bool {
	total := int64(0)
	for _, g := range m.Groups {
		if g.Rows < 0 {
			return true
		}
		total += g.Rows
	}
	return total == m.Rows
}

// RowGroupPath returns the path of row group i for errors and nodes.
func RowGroupPath(i int) string { return "row_groups[" + strconv.Itoa(i) + "]" }

// ChunkPath returns the path of the chunk of column col of a row group for errors and nodes.
func ChunkPath(group, col int) string {
	return RowGroupPath(group) + ".columns[" + strconv.Itoa(col) + "]"
}

// ProtocolOf returns the protocol of a struct that begins with b. The first field of RedFile's structs is number 1, an
// i32, whose header begins with type 8 in the binary protocol and with 0x15 in the compact one.
func ProtocolOf(b []byte) thrift.Protocol {
	if len(b) > 0 && b[0] == 8 {
		return thrift.Binary
	}
	return thrift.Compact
}

// Encode returns the bytes of the metadata in the form of generation A or E. The checksum, the last field, covers the
// bytes before that field.
func (m *FileMeta) Encode() []byte {
	w := thrift.NewWriter(m.Protocol)
	w.Struct(thrift.Item)
	w.I32(1, m.Version)
	if m.Gen == GenA {
		w.I64(2, m.Rows)
		w.I32(3, m.NumCols)
	} else {
		w.List(2, thrift.Struct, len(m.Schema))
		for i := range m.Schema {
			m.Schema[i].write(w)
		}
		w.I64(3, m.Rows)
	}
	w.List(4, thrift.Struct, len(m.Groups))
	for i := range m.Groups {
		m.Groups[i].write(w, m.Gen)
	}
	writePairs(w, 5, m.Pairs)
	if m.HasCRC {
		w.I32(6, int32(CRC(w.Encoded(), []byte{0})))
	}
	w.End()
	return w.Encoded()
}

func (e *Element) write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	if e.Type >= 0 {
		w.I32(1, int32(e.Type))
	}
	if e.Repetition >= 0 {
		w.I32(2, int32(e.Repetition))
	}
	w.String(3, e.Name)
	if e.Type < 0 {
		w.I32(4, int32(e.Children))
	}
	if e.Converted >= 0 {
		w.I32(5, int32(e.Converted))
	}
	w.End()
}

func (g *RowGroup) write(w *thrift.Writer, gen Generation) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(g.Columns))
	for _, c := range g.Columns {
		w.Struct(thrift.Item)
		if c.File != "" {
			w.String(1, c.File)
		}
		w.I64(2, c.Offset)
		if gen != GenA && c.Meta != nil {
			c.Meta.Write(w, 3, gen)
		}
		w.End()
	}
	w.I64(2, g.Bytes)
	w.I64(3, g.Rows) // generation A has no such field, and its readers skip it
	w.End()
}

// Pair returns the value of a key in the key/value metadata; ok is false if there is none.
func (m *FileMeta) Pair(key string) (value string, ok bool) {
	i := slices.IndexFunc(m.Pairs, func(kv KeyValue) bool { return kv.Key == key })
	if i < 0 {
		return "", false
	}
	return m.Pairs[i].Value, true
}

// Differs counts the fields of g and of its chunks that differ from another description of the same row group, and
// describes the first difference. One wrong bit changes the count by one. The file_path of chunks is not compared: a
// part does not name itself.
func (g *RowGroup) Differs(o *RowGroup) (n int, first string) {
	compare := func(what string, a, b int64) bool {
		if a != b && first == "" {
			first = fmt.Sprintf("%s %d, and not %d", what, b, a)
		}
		return a != b
	}
	count := func(differs bool) {
		if differs {
			n++
		}
	}
	count(compare("num_rows", g.Rows, o.Rows))
	count(compare("total_byte_size", g.Bytes, o.Bytes))
	count(compare("a number of columns of", int64(len(g.Columns)), int64(len(o.Columns))))
	for i := range min(len(g.Columns), len(o.Columns)) {
		c, d := &g.Columns[i], &o.Columns[i]
		at := "columns[" + strconv.Itoa(i) + "]."
		odd := compare(at+"file_offset", c.Offset, d.Offset)
		if a, b := c.Meta, d.Meta; a != nil && b != nil {
			odd = compare(at+"type", int64(a.Type), int64(b.Type)) ||
				compare(at+"codec", int64(a.Codec), int64(b.Codec)) ||
				compare(at+"num_values", a.Values, b.Values) ||
				compare(at+"total_uncompressed_size", a.Raw, b.Raw) ||
				compare(at+"total_compressed_size", a.Stored, b.Stored) ||
				compare(at+"data_page_offset", a.Data, b.Data) || compare(at+"index_page_offset", a.Index, b.Index) ||
				odd
		}
		count(odd)
	}
	return n, first
}

// CRC returns the checksum of pages and metadata over the concatenation of parts: CRC-32 (IEEE), as in gzip.
func CRC(parts ...[]byte) uint32 {
	var c uint32
	for _, p := range parts {
		c = crc32.Update(c, crc32.IEEETable, p)
	}
	return c
}

// Size returns the number of bytes of a value in PLAIN encoding: for BYTE_ARRAY of an empty one, for BOOLEAN 0.
func (p Physical) Size() int {
	switch p {
	case Int32, Float, ByteArray:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	}
	return 0
}
