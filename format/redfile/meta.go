package redfile

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Generation is one of the five forms that the metadata had under the magic RED1.
type Generation uint8

const (
	GenA Generation = 'A' // January 10, 2013: column metadata behind each chunk only
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

// Encoding is how the values of a page are encoded.
type Encoding int32

const (
	Plain       Encoding = 0
	GroupVarInt Encoding = 1
)

var encodingNames = [...]string{"PLAIN", "GROUP_VAR_INT"}

// Compression is how pages are compressed.
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

// Repetition is how often a field stands in its parent.
type repetition int32

const (
	required repetition = iota
	optional
	repeated
)

func (r repetition) String() string {
	return nameOf([]string{"REQUIRED", "OPTIONAL", "REPEATED"}, int32(r), "repetition ")
}

// Converted types say what a field was before it was made of RedFile's own types; -1 is none.
type converted int32

const (
	convNone converted = iota - 1
	convUTF8
	convMap
	convMapKeyValue
	convList
)

func (c converted) String() string {
	return nameOf([]string{"UTF8", "MAP", "MAP_KEY_VALUE", "LIST"}, int32(c), "converted type ")
}

// keyValue is a pair of metadata.
type keyValue struct{ key, value string }

func parsePair(r *thrift.Reader) (kv keyValue) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			kv.key = r.String("key")
		case 2:
			kv.value = r.String("value")
		}
	}
	return kv
}

func parsePairs(r *thrift.Reader) (out []keyValue) {
	for range r.List("key_value_metadata", thrift.Struct) {
		out = append(out, parsePair(r))
	}
	return out
}

// element is a SchemaElement of the generations D and E.
type element struct {
	typ      Physical // -1: a group
	rep      repetition
	name     string
	children int     // of E
	indices  []int32 // of D
	conv     converted
}

func parseElement(r *thrift.Reader, g *Generation) (e element) {
	e.typ, e.conv = -1, convNone
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			e.typ = Physical(r.Enum("type", textOf(Physical.String)))
		case 2:
			e.rep = repetition(r.Enum("repetition_type", textOf(repetition.String)))
		case 3:
			e.name = r.String("name")
		case 4:
			if r.Type() == thrift.List {
				*g = GenD
				for range r.List("children_indices", thrift.I32) {
					e.indices = append(e.indices, r.I32(""))
				}
				continue
			}
			e.children = int(r.I32("num_children"))
		case 5:
			e.conv = converted(r.Enum("converted_type", textOf(converted.String)))
		}
	}
	return e
}

// columnMeta is ColumnMetaData.
type columnMeta struct {
	typ       Physical
	encodings []Encoding
	path      []string
	codec     Compression
	values    int64 // nulls and empty lists included

	hasLevels      bool // A and B
	maxDef, maxRep int32
	raw, stored    int64 // C, D and E: bytes of the pages without their headers; -1 in A and B

	data, index int64 // offsets of the first data page and of the index page; -1: not said
	pairs       []keyValue
}

// parseColumnMeta reads the description of a chunk. Fields 6 and 7 were levels first, then sizes: their types tell.
func parseColumnMeta(r *thrift.Reader, name string) (m columnMeta) {
	m.typ, m.raw, m.stored, m.data, m.index, m.values = -1, -1, -1, -1, -1, -1
	for r.Struct(name); r.Next(); {
		levels := r.Type() == thrift.I32
		switch r.Field() {
		case 1:
			m.typ = Physical(r.Enum("type", textOf(Physical.String)))
		case 2:
			for range r.List("encodings", thrift.I32) {
				m.encodings = append(m.encodings, Encoding(r.Enum("", textOf(Encoding.String))))
			}
		case 3:
			for range r.List("path_in_schema", thrift.Bytes) {
				m.path = append(m.path, r.String(""))
			}
		case 4:
			m.codec = Compression(r.Enum("codec", textOf(Compression.String)))
		case 5:
			m.values = r.I64("num_values")
		case 6:
			if m.hasLevels = levels; levels {
				m.maxDef = r.I32("max_definition_level")
			} else {
				m.raw = r.I64("total_uncompressed_size")
			}
		case 7:
			if levels {
				m.maxRep = r.I32("max_repetition_level")
			} else {
				m.stored = r.I64("total_compressed_size")
			}
		case 8:
			m.data = r.I64("data_page_offset")
		case 9:
			m.index = r.I64("index_page_offset")
		case 10:
			m.pairs = parsePairs(r)
		}
	}
	return m
}

// write writes m as generation g has it.
func (m *columnMeta) write(w *thrift.Writer, id int16, g Generation) {
	w.Struct(id)
	w.I32(1, int32(m.typ))
	w.List(2, thrift.I32, len(m.encodings))
	for _, e := range m.encodings {
		w.I32(thrift.Item, int32(e))
	}
	w.List(3, thrift.Bytes, len(m.path))
	for _, p := range m.path {
		w.String(thrift.Item, p)
	}
	w.I32(4, int32(m.codec))
	w.I64(5, m.values)
	if g == GenA {
		w.I32(6, m.maxDef)
		w.I32(7, m.maxRep)
	} else {
		w.I64(6, m.raw)
		w.I64(7, m.stored)
	}
	w.I64(8, m.data)
	if m.index >= 0 {
		w.I64(9, m.index)
	}
	writePairs(w, 10, m.pairs)
	w.End()
}

// writePairs writes the list also when it is empty: what was generated for C++ in 2013 did.
func writePairs(w *thrift.Writer, id int16, pairs []keyValue) {
	w.List(id, thrift.Struct, len(pairs))
	for _, kv := range pairs {
		w.Struct(thrift.Item)
		w.String(1, kv.key)
		w.String(2, kv.value)
		w.End()
	}
}

// columnChunk is ColumnStart (A) and ColumnChunk (B to E).
type columnChunk struct {
	file   string // "": the file of the metadata
	offset int64
	meta   *columnMeta // nil: only at offset
}

func parseChunk(r *thrift.Reader) (c columnChunk) {
	c.offset = -1
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			c.file = r.String("file_path")
		case 2:
			c.offset = r.I64("file_offset")
		case 3:
			m := parseColumnMeta(r, "meta_data")
			c.meta = &m
		}
	}
	return c
}

// rowGroup is RowGroup.
type rowGroup struct {
	columns []columnChunk
	bytes   int64
	rows    int64 // -1: not said (A and B)
}

func parseRowGroup(r *thrift.Reader) (g rowGroup) {
	g.rows = -1
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("columns", thrift.Struct) {
				g.columns = append(g.columns, parseChunk(r))
			}
		case 2:
			g.bytes = r.I64("total_byte_size")
		case 3:
			g.rows = r.I64("num_rows")
		}
	}
	return g
}

// fileMeta is FileMetaData of every generation.
type fileMeta struct {
	gen      Generation
	protocol thrift.Protocol
	version  int32
	rows     int64
	cols     int32  // A and B; -1: not said
	text     string // C: the schema
	schema   []element
	groups   []rowGroup
	pairs    []keyValue

	hasCRC    bool
	crc, want uint32 // as stored; as computed
}

// parseFileMeta reads the metadata of a file. The types of its fields 2 and 3 tell the generation:
//
//	     A, B            C               D, E
//	2    i64 num_rows    i64 num_rows    list schema
//	3    i32 num_cols    string schema   i64 num_rows
//
// short says that the bytes ended.
func parseFileMeta(c *wire.Cursor) (m fileMeta, short bool) {
	m.gen, m.rows, m.cols, m.version = GenA, -1, -1, -1
	m.protocol = protocolOf(c.Rest())
	all, begin := c.Rest(), c.Pos()
	var crcAt, crcEnd int
	r := thrift.NewReader(c, m.protocol)
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			m.version = r.I32("version")
		case 2:
			if r.Type() == thrift.List {
				m.gen = GenE
				for range r.List("schema", thrift.Struct) {
					m.schema = append(m.schema, parseElement(r, &m.gen))
				}
				continue
			}
			m.rows = r.I64("num_rows")
		case 3:
			switch r.Type() {
			case thrift.Bytes:
				m.gen = GenC
				m.text = r.String("schema")
			case thrift.I64:
				m.rows = r.I64("num_rows")
			default:
				m.cols = r.I32("num_cols")
			}
		case 4:
			for range r.List("row_groups", thrift.Struct) {
				m.groups = append(m.groups, parseRowGroup(r))
			}
		case 5:
			m.pairs = parsePairs(r)
		case 6:
			if r.Type() == thrift.I32 {
				crcAt = c.Pos() - begin
				m.crc, m.hasCRC = uint32(r.I32("meta_data_crc")), true
				crcEnd = c.Pos() - begin
			}
		}
	}
	if m.hasCRC && c.Err() == nil {
		m.want = crcOf(all[:crcAt], all[crcEnd:c.Pos()-begin])
	}
	if m.gen == GenA && m.inline() {
		m.gen = GenB
	}
	return m, r.Short()
}

// inline reports whether any chunk has its metadata with it.
func (m *fileMeta) inline() bool {
	for _, g := range m.groups {
		for _, c := range g.columns {
			if c.meta != nil {
				return true
			}
		}
	}
	return false
}

// check looks for what parsing alone does not see. c is where the metadata was read, of size bytes.
func (m *fileMeta) check(at fault.Span) error {
	switch {
	case m.version < 0:
		return fault.Corruptf(at, "file_metadata.version", "it is missing")
	case m.version != 1:
		return fault.Unsupportedf(at, "file_metadata.version", "RED1 of version %d", m.version)
	case m.rows < 0:
		return fault.Corruptf(at, "file_metadata.num_rows", "it is missing or negative")
	case m.gen >= GenD && len(m.schema) == 0:
		return fault.Corruptf(at, "file_metadata.schema", "it has no root")
	}
	for i, g := range m.groups {
		if n := len(m.groups[0].columns); len(g.columns) != n {
			return fault.Corruptf(at, rowGroupPath(i)+".columns", "%d column chunks, the first row group has %d",
				len(g.columns), n)
		}
		if m.cols >= 0 && len(g.columns) != int(m.cols) {
			return fault.Corruptf(at, rowGroupPath(i)+".columns", "%d column chunks, num_cols is %d",
				len(g.columns), m.cols)
		}
	}
	return nil
}

// agree holds the number of rows against that which the row groups have together.
func (m *fileMeta) agree(total int64, at fault.Span) error {
	if total == m.rows {
		return nil
	}
	return fault.Corruptf(at, "file_metadata.num_rows", "%d, but the row groups have %d", m.rows, total)
}

// told reports whether the row groups have as many rows as the file is said to have, as far as they say it themselves.
func (m *fileMeta) told() bool {
	total := int64(0)
	for _, g := range m.groups {
		if g.rows < 0 {
			return true
		}
		total += g.rows
	}
	return total == m.rows
}

func rowGroupPath(i int) string { return "row_groups[" + strconv.Itoa(i) + "]" }

func chunkPath(group, col int) string {
	return rowGroupPath(group) + ".columns[" + strconv.Itoa(col) + "]"
}

// protocolOf tells the protocol of a structure whose first field is number 1, an i32, as all of RedFile's begin.
func protocolOf(b []byte) thrift.Protocol {
	if len(b) > 0 && b[0] == 8 {
		return thrift.Binary
	}
	return thrift.Compact
}

// encode gives the bytes of the metadata. With a checksum, which stands last, it is over the bytes without it.
func (m *fileMeta) encode() []byte {
	w := thrift.NewWriter(m.protocol)
	w.Struct(thrift.Item)
	w.I32(1, m.version)
	if m.gen == GenA {
		w.I64(2, m.rows)
		w.I32(3, m.cols)
	} else {
		w.List(2, thrift.Struct, len(m.schema))
		for i := range m.schema {
			m.schema[i].write(w)
		}
		w.I64(3, m.rows)
	}
	w.List(4, thrift.Struct, len(m.groups))
	for i := range m.groups {
		m.groups[i].write(w, m.gen)
	}
	writePairs(w, 5, m.pairs)
	if m.hasCRC {
		w.I32(6, int32(crcOf(w.Encoded(), []byte{0})))
	}
	w.End()
	return w.Encoded()
}

func (e *element) write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	if e.typ >= 0 {
		w.I32(1, int32(e.typ))
	}
	if e.rep >= 0 {
		w.I32(2, int32(e.rep))
	}
	w.String(3, e.name)
	if e.typ < 0 {
		w.I32(4, int32(e.children))
	}
	if e.conv >= 0 {
		w.I32(5, int32(e.conv))
	}
	w.End()
}

func (g *rowGroup) write(w *thrift.Writer, gen Generation) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(g.columns))
	for _, c := range g.columns {
		w.Struct(thrift.Item)
		if c.file != "" {
			w.String(1, c.file)
		}
		w.I64(2, c.offset)
		if gen != GenA && c.meta != nil {
			c.meta.write(w, 3, gen)
		}
		w.End()
	}
	w.I64(2, g.bytes)
	w.I64(3, g.rows) // A has no such field: readers of it pass it over
	w.End()
}

// pair is the value of a key; ok is false if there is none.
func (m *fileMeta) pair(key string) (value string, ok bool) {
	i := slices.IndexFunc(m.pairs, func(kv keyValue) bool { return kv.key == key })
	if i < 0 {
		return "", false
	}
	return m.pairs[i].value, true
}

// differs counts the structures of which another description of a row group says something else, and gives the
// first of it in words. One wrong bit is in one of them, whatever it makes of that. Files that chunks lie in
// are not looked at: a part does not name itself.
func (g *rowGroup) differs(o *rowGroup) (n int, first string) {
	hold := func(what string, a, b int64) bool {
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
	count(hold("num_rows", g.rows, o.rows))
	count(hold("total_byte_size", g.bytes, o.bytes))
	count(hold("a number of columns of", int64(len(g.columns)), int64(len(o.columns))))
	for i := range min(len(g.columns), len(o.columns)) {
		c, d := &g.columns[i], &o.columns[i]
		at := "columns[" + strconv.Itoa(i) + "]."
		odd := hold(at+"file_offset", c.offset, d.offset)
		if a, b := c.meta, d.meta; a != nil && b != nil {
			odd = hold(at+"type", int64(a.typ), int64(b.typ)) || hold(at+"codec", int64(a.codec), int64(b.codec)) ||
				hold(at+"num_values", a.values, b.values) ||
				hold(at+"total_uncompressed_size", a.raw, b.raw) ||
				hold(at+"total_compressed_size", a.stored, b.stored) ||
				hold(at+"data_page_offset", a.data, b.data) || hold(at+"index_page_offset", a.index, b.index) || odd
		}
		count(odd)
	}
	return n, first
}

// crcOf is the CRC-32 of pages and metadata: that of gzip.
func crcOf(parts ...[]byte) uint32 {
	var c uint32
	for _, p := range parts {
		c = crc32.Update(c, crc32.IEEETable, p)
	}
	return c
}

// size is the bytes of a stored value in PLAIN encoding; for BYTE_ARRAY the least.
func (p Physical) size() int {
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
