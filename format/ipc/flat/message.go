package flat

import (
	"encoding/binary"
	"fmt"
	"math"

	"stoa/fault"
)

// Kinds of messages, numbered as in the union Message.header.
const (
	Schema      = 1
	Dictionary  = 2
	RecordBatch = 3
)

var kindNames = map[int]string{Schema: "schema", Dictionary: "dictionary", RecordBatch: "record batch", 4: "tensor",
	5: "sparse tensor"}

// KindName returns the name of a message kind.
func KindName(k int) string {
	if n := kindNames[k]; n != "" {
		return n
	}
	return fmt.Sprintf("message of kind %d", k)
}

// Header is the parsed metadata of a message.
type Header struct {
	Version int   // V5 is 4
	Kind    int   // Schema, Dictionary or RecordBatch
	Body    int64 // bytes of the body
	Batch   Batch // of a record batch, or of a dictionary's values
	Place   Place // of a record batch
	ID      int64 // of a dictionary
	Delta   bool  // of a dictionary: it extends an earlier one
	Endian  int   // of a schema: 0 little, 1 big
	Schema  Extent
}

// Extent is the size of a schema. It is not bounded by the schema's bytes: fields may share the bytes of their names.
type Extent struct {
	Fields int64 // including nested fields
	Depth  int64 // nesting of lists, maps and structs
	Memory int64 // bytes that the library needs for it
}

// Estimated bytes of memory of a field, and of a metadata pair, without their texts.
const (
	perField = 1 << 10
	perPair  = 64
)

// Batch is the table RecordBatch.
type Batch struct {
	Rows    int64
	Nodes   []Node
	Buffers []Buffer
	Codec   int   // None, LZ4, Zstd
	Views   int   // number of view columns, which declare their number of buffers
	Size    int64 // decompressed bytes of all buffers; set by CheckSizes
}

// Node is one array of a batch, parents before their children.
type Node struct{ Rows, Nulls int64 }

// Buffer is a range of bytes of the body.
type Buffer struct{ Off, Len int64 }

// Codecs of bodies.
const (
	None = -1
	LZ4  = 0
	Zstd = 1
)

// CodecNames are the names of the codecs in the writer's option.
var CodecNames = map[int]string{None: "none", LZ4: "lz4", Zstd: "zstd"}

// ParseHeader parses the table Message and checks it as far as possible without the body. Errors are relative to b.
func ParseHeader(b []byte) (Header, error) {
	h := Header{Batch: Batch{Codec: None}}
	t, err := rootTable(b)
	if err != nil {
		return h, err
	}
	version, err := t.number(0, 2, 0, "version")
	if err != nil {
		return h, err
	}
	if version < 2 || version > 4 {
		return h, fault.New(fault.Unsupported, fault.Span{}, "version",
			"metadata of version V%d; V3, V4 and V5 can be read", version+1)
	}
	kind, err := t.number(1, 1, 0, "header_type")
	if err != nil {
		return h, err
	}
	h.Version, h.Kind = int(version), int(kind)
	if h.Body, err = t.number(3, 8, 0, "bodyLength"); err != nil {
		return h, err
	}
	if h.Body < 0 {
		return h, fault.Rel(t.pos, 4, "bodyLength", "%d is negative", h.Body)
	}
	s := schemaCheck{left: len(b) / 8}
	if err := t.tables(4, "custom_metadata", s.pair); err != nil {
		return h, err
	}
	sub, ok, err := t.table(2, "header")
	if err != nil {
		return h, err
	}
	if !ok {
		return h, fault.Rel(t.pos, 4, "header", "is missing")
	}
	switch h.Kind {
	case Schema:
		endian, err := sub.number(0, 2, 0, "schema.endianness")
		if h.Endian = int(endian); err != nil {
			return h, err
		}
		err = s.schema(sub)
		h.Schema = s.Extent
		return h, err
	case Dictionary:
		return h, parseDictionary(sub, &h)
	case RecordBatch:
		if h.Place, err = parsePlace(t); err != nil {
			return h, err
		}
		return h, parseBatch(sub, &h.Batch, h.Body)
	}
	return h, fault.New(fault.Unsupported, fault.Span{}, "header_type", "a %s", KindName(h.Kind))
}

// maxDepth is the nesting at which the walk stops; format.Limits allows less (see Extent).
const maxDepth = 1000

// CheckSchema checks an encapsulated schema message, such as in Parquet files, before the library parses it.
func CheckSchema(b []byte) (Extent, error) {
	if len(b) >= 8 && binary.LittleEndian.Uint32(b) == 0xFFFFFFFF {
		b = b[4:]
	}
	size, err := u32(b, 0, "length")
	if err != nil {
		return Extent{}, err
	}
	if int64(size) > int64(len(b))-4 {
		return Extent{}, fault.Rel(0, 4, "length", "%d bytes, there are %d", size, len(b)-4)
	}
	h, err := ParseHeader(b[4 : 4+size])
	if err == nil && (h.Kind != Schema || h.Body != 0) {
		err = fault.Rel(0, 4, "header_type", "a %s of %d bytes instead of a schema", KindName(h.Kind), h.Body)
	}
	return h.Schema, err
}

// schemaCheck walks the table Schema, so that no cycle, unbounded nesting or endless list reaches the library, and
// determines its size.
type schemaCheck struct {
	Extent
	left int // the number of tables that the bytes can still hold
}

func (s *schemaCheck) schema(t table) error {
	if _, err := t.number(0, 2, 0, "schema.endianness"); err != nil {
		return err
	}
	if err := t.tables(2, "schema.custom_metadata", s.pair); err != nil {
		return err
	}
	if _, _, err := t.vector(3, 8, "schema.features"); err != nil {
		return err
	}
	return s.fields(t, 1, 0, typeStruct)
}

// countTable counts a table against the number that the bytes can hold.
func (s *schemaCheck) countTable(t table) error {
	if s.left--; s.left < 0 {
		return fault.Rel(t.pos, 4, "schema", "more fields and metadata than the bytes can hold")
	}
	return nil
}

// pair counts a KeyValue.
func (s *schemaCheck) pair(t table) error {
	s.Memory += perPair + t.textLen(0) + t.textLen(1)
	return s.countTable(t)
}

// textLen returns the length of a string field in bytes; 0 if it is absent or invalid.
func (t table) textLen(n int) int64 {
	b, _, err := t.vector(n, 1, "")
	if err != nil {
		return 0
	}
	return int64(len(b))
}

// Kinds of types that have children.
const (
	typeStruct      = 13
	typeUnion       = 14
	typeFixedBinary = 15
	typeFixedList   = 16
	typeMap         = 17 // its child is a struct of key and value
)

// fields walks the fields in vector n of t, at a nesting depth, below a type of kind of.
func (s *schemaCheck) fields(t table, n, depth int, of int64) error {
	if depth > maxDepth {
		return fault.New(fault.Limit, fault.Span{Off: int64(t.pos), Len: 4}, "schema",
			"fields are nested deeper than %d", maxDepth)
	}
	return t.tables(n, "fields", func(f table) error {
		if err := s.countTable(f); err != nil {
			return err
		}
		if of == typeStruct || of == typeUnion { // list items do not count as a field
			s.Fields++
		}
		s.Depth = max(s.Depth, int64(depth))
		s.Memory += perField + f.textLen(0)
		if err := f.tables(6, "field.custom_metadata", s.pair); err != nil {
			return err
		}
		if err := checkType(f); err != nil {
			return err
		}
		kind, err := f.number(2, 1, 0, "field.type_type")
		if err != nil {
			return err
		}
		below := depth + 1
		if of == typeMap {
			below = depth
		}
		return s.fields(f, 5, below, kind)
	})
}

// checkType checks the parameters of a type that the library trusts or treats as damage: values and lists of width 0
// are valid, but the library does not support them.
func checkType(f table) error {
	kind, err := f.number(2, 1, 0, "field.type_type")
	if err != nil || kind != typeUnion && kind != typeFixedBinary && kind != typeFixedList {
		return err
	}
	t, ok, err := f.table(3, "field.type")
	if err != nil || !ok {
		return err
	}
	if kind != typeUnion {
		if width, err := t.number(0, 4, 0, "field.type.width"); err != nil || width != 0 {
			return err
		}
		return fault.New(fault.Unsupported, fault.Span{Off: int64(t.pos), Len: 4}, "field.type",
			"fixed-size values or lists of width 0")
	}
	_, _, err = t.vector(1, 4, "field.type.typeIds")
	return err
}

func parseDictionary(t table, h *Header) (err error) {
	if h.ID, err = t.number(0, 8, 0, "dictionary.id"); err != nil {
		return err
	}
	delta, err := t.number(2, 1, 0, "dictionary.isDelta")
	if err != nil {
		return err
	}
	h.Delta = delta != 0
	data, ok, err := t.table(1, "dictionary.data")
	if err != nil {
		return err
	}
	if !ok {
		return fault.Rel(t.pos, 4, "dictionary.data", "is missing")
	}
	return parseBatch(data, &h.Batch, h.Body)
}

// parseBatch parses a RecordBatch. body is the size of its body in bytes.
func parseBatch(t table, r *Batch, body int64) (err error) {
	if r.Rows, err = t.number(0, 8, 0, "length"); err != nil {
		return err
	}
	if r.Rows < 0 || r.Rows > math.MaxInt32 {
		return fault.Rel(t.pos, 4, "length", "%s in one batch", fault.Count(r.Rows, "row"))
	}
	if err := parseNodes(t, r); err != nil {
		return err
	}
	if len(r.Nodes) > 0 && r.Nodes[0].Rows != r.Rows { // the first node is a top-level column
		return fault.Rel(t.pos, 4, "length", "%s, the first column has %d", fault.Count(r.Rows, "row"), r.Nodes[0].Rows)
	}
	if err := parseBuffers(t, r, body); err != nil {
		return err
	}
	if r.Views, err = checkVariadic(t, len(r.Buffers)); err != nil {
		return err
	}
	c, ok, err := t.table(3, "compression")
	if err != nil || !ok {
		return err
	}
	codec, err := c.number(0, 1, LZ4, "compression.codec")
	if err != nil {
		return err
	}
	r.Codec = int(codec)
	if _, ok := CodecNames[r.Codec]; !ok || codec < 0 {
		return fault.New(fault.Unsupported, fault.Span{}, "compression.codec", "codec %d", codec)
	}
	return nil
}

func parseNodes(t table, r *Batch) error {
	b, at, err := t.vector(1, 16, "nodes")
	if err != nil {
		return err
	}
	r.Nodes = make([]Node, 0, len(b)/16)
	for i := 0; i < len(b); i += 16 {
		n := Node{int64(binary.LittleEndian.Uint64(b[i:])), int64(binary.LittleEndian.Uint64(b[i+8:]))}
		if n.Rows < 0 || n.Nulls < 0 || n.Nulls > n.Rows {
			return fault.Rel(at+i, 16, fmt.Sprintf("nodes[%d]", i/16), "%s of %s", fault.Count(n.Nulls, "null"),
				fault.Count(n.Rows, "value"))
		}
		r.Nodes = append(r.Nodes, n)
	}
	return nil
}

func parseBuffers(t table, r *Batch, body int64) error {
	b, at, err := t.vector(2, 16, "buffers")
	if err != nil {
		return err
	}
	r.Buffers = make([]Buffer, 0, len(b)/16)
	for i := 0; i < len(b); i += 16 {
		x := Buffer{int64(binary.LittleEndian.Uint64(b[i:])), int64(binary.LittleEndian.Uint64(b[i+8:]))}
		if x.Off < 0 || x.Len < 0 || x.Off > body || x.Len > body-x.Off {
			return fault.Rel(at+i, 16, fmt.Sprintf("buffers[%d]", i/16), "%d bytes at %d of a body of %d", x.Len,
				x.Off, body)
		}
		r.Buffers = append(r.Buffers, x)
	}
	return nil
}

// checkVariadic checks the buffer counts of the view columns, and returns the number of these columns.
func checkVariadic(t table, buffers int) (views int, err error) {
	b, at, err := t.vector(4, 8, "variadicBufferCounts")
	if err != nil {
		return 0, err
	}
	left := int64(buffers)
	for i := 0; i < len(b); i += 8 {
		n := int64(binary.LittleEndian.Uint64(b[i:]))
		if n < 0 || n > left {
			return 0, fault.Rel(at+i, 8, fmt.Sprintf("variadicBufferCounts[%d]", i/8), "%d of %d buffers", n, buffers)
		}
		left -= n
	}
	return len(b) / 8, nil
}

// CheckSizes compares the uncompressed sizes that the buffers of a compressed body declare with the maximum expansion
// of the codec (Corrupt), and with limit (Limit), and sets Size. at is the location of the body.
func (r *Batch) CheckSizes(body []byte, at fault.Span, limit int64) error {
	r.Size = int64(len(body))
	if r.Codec == None {
		return nil
	}
	for i, x := range r.Buffers {
		if x.Len == 0 {
			continue
		}
		path, span := fmt.Sprintf("buffers[%d]", i), at.Sub(x.Off, x.Len)
		if x.Len < 8 {
			return fault.Corruptf(span, path, "a compressed buffer of %d bytes", x.Len)
		}
		size := int64(binary.LittleEndian.Uint64(body[x.Off:]))
		maxSize := int64(math.MaxInt64)
		if x.Len < 1<<40 {
			maxSize = 64 + (x.Len-8)*maxRatio[r.Codec]
		}
		switch {
		case size == -1: // stored uncompressed
		case size < 0 || size > maxSize:
			return fault.Corruptf(span, path, "%d bytes cannot come from %d bytes of %s", size, x.Len-8,
				CodecNames[r.Codec])
		case size > limit:
			return fault.Limitf(span, path, "%d bytes uncompressed, and at most %d are read (page limit)", size,
				limit)
		default:
			r.Size += size
		}
	}
	// Several buffers may share bytes, and repetitive bytes expand greatly.
	if maxSize := max(limit, usualRatio*int64(len(body))); r.Size > maxSize {
		return fault.Limitf(at, "", "a batch of %d bytes uncompressed, and at most %d are read (page limit)", r.Size,
			maxSize)
	}
	return nil
}

// usualRatio is the ratio of uncompressed to stored bytes up to which a batch may exceed the page limit.
const usualRatio = 16

// maxRatio is an upper bound of the expansion per compressed byte: LZ4 extends a match by 255 per byte; a run-length
// block of zstd makes 128 KiB from 4 bytes.
var maxRatio = map[int]int64{LZ4: 255, Zstd: 128 << 10 / 4}

// Footer is the table Footer of a file.
type Footer struct {
	Version      int
	Dictionaries []Block
	Batches      []Block
	Schema       Extent
}

// Block is the location of a message: metadata with its prefix, then the body.
type Block struct {
	Off  int64 // from the start of the file
	Meta int32
	Body int64
}

// End returns the offset after the body.
func (b Block) End() int64 { return b.Off + int64(b.Meta) + b.Body }

// First returns the offset of the first message in f, or end if f lists none.
func (f Footer) First(end int64) int64 {
	for _, list := range [][]Block{f.Dictionaries, f.Batches} {
		for _, b := range list {
			end = min(end, b.Off)
		}
	}
	return end
}

// ParseFooter parses the table Footer; limit is the offset of the footer itself, which all blocks must precede.
func ParseFooter(b []byte, limit int64) (f Footer, err error) {
	t, err := rootTable(b)
	if err != nil {
		return f, err
	}
	version, err := t.number(0, 2, 0, "version")
	if err != nil {
		return f, err
	}
	f.Version = int(version)
	schema, ok, err := t.table(1, "schema")
	if err != nil {
		return f, err
	}
	if !ok {
		return f, fault.Rel(t.pos, 4, "schema", "is missing")
	}
	s := schemaCheck{left: len(b) / 8}
	err = s.schema(schema)
	if f.Schema = s.Extent; err != nil {
		return f, err
	}
	if f.Dictionaries, err = parseBlocks(t, 2, "dictionaries", limit); err != nil {
		return f, err
	}
	f.Batches, err = parseBlocks(t, 3, "recordBatches", limit)
	return f, err
}

func parseBlocks(t table, n int, path string, limit int64) ([]Block, error) {
	b, at, err := t.vector(n, 24, path)
	if err != nil {
		return nil, err
	}
	out := make([]Block, 0, len(b)/24)
	for i := 0; i < len(b); i += 24 {
		x := Block{int64(binary.LittleEndian.Uint64(b[i:])), int32(binary.LittleEndian.Uint32(b[i+8:])),
			int64(binary.LittleEndian.Uint64(b[i+16:]))}
		if x.Off < 0 || x.Meta < 8 || x.Body < 0 || x.Off > limit || int64(x.Meta) > limit-x.Off ||
			x.Body > limit-x.Off-int64(x.Meta) {
			return nil, fault.Rel(at+i, 24, fmt.Sprintf("%s[%d]", path, i/24),
				"%d+%d bytes at %d, but the footer begins at %d", x.Meta, x.Body, x.Off, limit)
		}
		out = append(out, x)
	}
	return out, nil
}
