package ipc

import (
	"encoding/binary"
	"fmt"
	"math"

	"stoa/fault"
)

// Kinds of messages, as the union Message.header numbers them.
const (
	kindSchema     = 1
	kindDictionary = 2
	kindBatch      = 3
)

var kindNames = map[int]string{kindSchema: "schema", kindDictionary: "dictionary", kindBatch: "record batch", 4: "tensor", 5: "sparse tensor"}

func kindName(k int) string {
	if n := kindNames[k]; n != "" {
		return n
	}
	return fmt.Sprintf("message of kind %d", k)
}

// header is what the metadata of a message says.
type header struct {
	version int
	kind    int
	body    int64
	batch   batchHeader // of a record batch, or of a dictionary's values
	id      int64       // of a dictionary
	delta   bool
}

// batchHeader is the table RecordBatch.
type batchHeader struct {
	rows    int64
	nodes   []node
	buffers []buffer
	codec   int // -1 none
}

type node struct{ rows, nulls int64 }

// buffer is a run of bytes of the body.
type buffer struct{ off, len int64 }

const (
	codecNone = -1
	codecLZ4  = 0
	codecZstd = 1
)

var codecNames = map[int]string{codecNone: "none", codecLZ4: "lz4", codecZstd: "zstd"}

// parseHeader reads the table Message and checks it as far as it goes without the body. Errors are relative to b.
func parseHeader(b []byte) (header, error) {
	h := header{batch: batchHeader{codec: codecNone}}
	t, err := rootTable(b)
	if err != nil {
		return h, err
	}
	version, err := t.number(0, 2, 0, "version")
	if err != nil {
		return h, err
	}
	if version < 2 || version > 4 {
		return h, fault.New(fault.Unsupported, fault.Span{}, "version", "metadata of version V%d; V3, V4 and V5 can be read", version+1)
	}
	kind, err := t.number(1, 1, 0, "header_type")
	if err != nil {
		return h, err
	}
	h.version, h.kind = int(version), int(kind)
	if h.body, err = t.number(3, 8, 0, "bodyLength"); err != nil {
		return h, err
	}
	if h.body < 0 {
		return h, fault.Rel(t.pos, 4, "bodyLength", "%d is negative", h.body)
	}
	sub, ok, err := t.table(2, "header")
	if err != nil {
		return h, err
	}
	if !ok {
		return h, fault.Rel(t.pos, 4, "header", "is missing")
	}
	switch h.kind {
	case kindSchema:
		budget := len(b) / 8
		return h, checkFields(sub, 1, 0, &budget)
	case kindDictionary:
		return h, parseDictionary(sub, &h)
	case kindBatch:
		return h, parseBatch(sub, &h.batch, h.body)
	}
	return h, fault.New(fault.Unsupported, fault.Span{}, "header_type", "a %s", kindName(h.kind))
}

// maxDepth is the nesting that the library takes.
const maxDepth = 64

// checkFields walks the fields of a schema (vector n of t), so that no cycle and no bottomless nesting reaches the
// library. budget is how many fields the bytes can hold.
func checkFields(t table, n, depth int, budget *int) error {
	if depth > maxDepth {
		return fault.Rel(t.pos, 4, "schema", "fields are nested deeper than %d", maxDepth)
	}
	return t.tables(n, "fields", func(f table) error {
		if *budget--; *budget < 0 {
			return fault.Rel(f.pos, 4, "schema", "more fields than the bytes can hold")
		}
		return checkFields(f, 5, depth+1, budget)
	})
}

func parseDictionary(t table, h *header) (err error) {
	if h.id, err = t.number(0, 8, 0, "dictionary.id"); err != nil {
		return err
	}
	delta, err := t.number(2, 1, 0, "dictionary.isDelta")
	if err != nil {
		return err
	}
	h.delta = delta != 0
	data, ok, err := t.table(1, "dictionary.data")
	if err != nil {
		return err
	}
	if !ok {
		return fault.Rel(t.pos, 4, "dictionary.data", "is missing")
	}
	return parseBatch(data, &h.batch, h.body)
}

// parseBatch reads a RecordBatch whose body has body bytes.
func parseBatch(t table, r *batchHeader, body int64) (err error) {
	if r.rows, err = t.number(0, 8, 0, "length"); err != nil {
		return err
	}
	if r.rows < 0 || r.rows > math.MaxInt32 {
		return fault.Rel(t.pos, 4, "length", "%d rows in one batch", r.rows)
	}
	if err := parseNodes(t, r); err != nil {
		return err
	}
	if err := parseBuffers(t, r, body); err != nil {
		return err
	}
	if err := checkVariadic(t, len(r.buffers)); err != nil {
		return err
	}
	c, ok, err := t.table(3, "compression")
	if err != nil || !ok {
		return err
	}
	codec, err := c.number(0, 1, codecLZ4, "compression.codec")
	if err != nil {
		return err
	}
	r.codec = int(codec)
	if _, ok := codecNames[r.codec]; !ok || codec < 0 {
		return fault.New(fault.Unsupported, fault.Span{}, "compression.codec", "codec %d", codec)
	}
	return nil
}

func parseNodes(t table, r *batchHeader) error {
	b, at, err := t.vector(1, 16, "nodes")
	if err != nil {
		return err
	}
	r.nodes = make([]node, 0, len(b)/16)
	for i := 0; i < len(b); i += 16 {
		n := node{int64(binary.LittleEndian.Uint64(b[i:])), int64(binary.LittleEndian.Uint64(b[i+8:]))}
		if n.rows < 0 || n.nulls < 0 || n.nulls > n.rows {
			return fault.Rel(at+i, 16, fmt.Sprintf("nodes[%d]", i/16), "%d nulls of %d values", n.nulls, n.rows)
		}
		r.nodes = append(r.nodes, n)
	}
	return nil
}

func parseBuffers(t table, r *batchHeader, body int64) error {
	b, at, err := t.vector(2, 16, "buffers")
	if err != nil {
		return err
	}
	r.buffers = make([]buffer, 0, len(b)/16)
	for i := 0; i < len(b); i += 16 {
		x := buffer{int64(binary.LittleEndian.Uint64(b[i:])), int64(binary.LittleEndian.Uint64(b[i+8:]))}
		if x.off < 0 || x.len < 0 || x.off > body || x.len > body-x.off {
			return fault.Rel(at+i, 16, fmt.Sprintf("buffers[%d]", i/16), "%d bytes at %d of a body of %d", x.len, x.off, body)
		}
		r.buffers = append(r.buffers, x)
	}
	return nil
}

// checkVariadic looks at how many buffers the view columns claim.
func checkVariadic(t table, buffers int) error {
	b, at, err := t.vector(4, 8, "variadicBufferCounts")
	if err != nil {
		return err
	}
	left := int64(buffers)
	for i := 0; i < len(b); i += 8 {
		n := int64(binary.LittleEndian.Uint64(b[i:]))
		if n < 0 || n > left {
			return fault.Rel(at+i, 8, fmt.Sprintf("variadicBufferCounts[%d]", i/8), "%d of %d buffers", n, buffers)
		}
		left -= n
	}
	return nil
}

// checkSizes compares the uncompressed sizes that the buffers of a compressed body declare with what the codec can
// make of the bytes at best, and with the limit. at is the body's place.
func (r *batchHeader) checkSizes(body []byte, at fault.Span, limit int64) error {
	if r.codec == codecNone {
		return nil
	}
	for i, x := range r.buffers {
		if x.len == 0 {
			continue
		}
		path, span := fmt.Sprintf("buffers[%d]", i), at.Sub(x.off, x.len)
		if x.len < 8 {
			return fault.Corruptf(span, path, "a compressed buffer of %d bytes", x.len)
		}
		size := int64(binary.LittleEndian.Uint64(body[x.off:]))
		most := int64(math.MaxInt64)
		if x.len < 1<<40 {
			most = 64 + (x.len-8)*mostRatio[r.codec]
		}
		switch {
		case size == -1: // stored as it is
		case size < 0 || size > most:
			return fault.Corruptf(span, path, "%d bytes cannot come from %d bytes of %s", size, x.len-8, codecNames[r.codec])
		case size > limit:
			return fault.Limitf(span, path, "%d bytes uncompressed, the limit is %d", size, limit)
		}
	}
	return nil
}

// mostRatio is an upper bound of what one compressed byte can become: LZ4 extends a match by 255 a byte;
// a run-length block of zstd makes 128 KiB from 4 bytes.
var mostRatio = map[int]int64{codecLZ4: 255, codecZstd: 128 << 10 / 4}

// footer is the table Footer of a file.
type footer struct {
	version      int
	dictionaries []block
	batches      []block
}

// block is the place of a message: metadata with its prefix, then the body.
type block struct {
	off  int64
	meta int32
	body int64
}

func (b block) end() int64 { return b.off + int64(b.meta) + b.body }

// parseFooter reads the table Footer; limit is where the footer itself begins, before which all blocks lie.
func parseFooter(b []byte, limit int64) (f footer, err error) {
	t, err := rootTable(b)
	if err != nil {
		return f, err
	}
	version, err := t.number(0, 2, 0, "version")
	if err != nil {
		return f, err
	}
	f.version = int(version)
	schema, ok, err := t.table(1, "schema")
	if err != nil {
		return f, err
	}
	if !ok {
		return f, fault.Rel(t.pos, 4, "schema", "is missing")
	}
	budget := len(b) / 8
	if err := checkFields(schema, 1, 0, &budget); err != nil {
		return f, err
	}
	if f.dictionaries, err = parseBlocks(t, 2, "dictionaries", limit); err != nil {
		return f, err
	}
	f.batches, err = parseBlocks(t, 3, "recordBatches", limit)
	return f, err
}

func parseBlocks(t table, n int, path string, limit int64) ([]block, error) {
	b, at, err := t.vector(n, 24, path)
	if err != nil {
		return nil, err
	}
	out := make([]block, 0, len(b)/24)
	for i := 0; i < len(b); i += 24 {
		x := block{int64(binary.LittleEndian.Uint64(b[i:])), int32(binary.LittleEndian.Uint32(b[i+8:])), int64(binary.LittleEndian.Uint64(b[i+16:]))}
		if x.off < 0 || x.meta < 8 || x.body < 0 || x.off > limit || int64(x.meta) > limit-x.off || x.body > limit-x.off-int64(x.meta) {
			return nil, fault.Rel(at+i, 24, fmt.Sprintf("%s[%d]", path, i/24), "%d+%d bytes at %d, but the footer begins at %d", x.meta, x.body, x.off, limit)
		}
		out = append(out, x)
	}
	return out, nil
}
