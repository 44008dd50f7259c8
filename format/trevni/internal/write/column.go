package write

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/trevni/internal/bzip2"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/internal/codec"
	"stoa/internal/coerce"
)

// outColumn is a stored column being written: the current block, and the locations of the finished blocks.
type outColumn struct {
	layout.Column
	w        *outFile
	unsigned bool // fixed-size values are unsigned

	raw   []byte // may point into the spill
	rows  int64  // in the block; in the wiki's repeated columns: entries
	bit   int    // booleans: used bits of the last byte
	def   []byte
	rep   []byte
	run   int64 // Avro: number of pending lengths
	of    int64 // the value of each pending length, 0 or 1
	first []byte

	last       []byte // the previous value, in columns with first values
	unsorted   bool   // a value was below the previous one, or cannot be compared
	blocks     []outBlock
	blockSpill blockSpill
	packed     []byte // levels, followed by values
}

// outBlock is a finished block.
type outBlock struct {
	rows, raw, stored int64
	first             []byte
}

// maxRows is the maximum number of rows of a block: the count has 31 bits.
const maxRows = 1 << 30

// room ends the block if it is full.
func (c *outColumn) room() error {
	if len(c.raw)+c.levelBytes() >= c.w.opts.blockSize || c.rows >= maxRows {
		return c.flush()
	}
	return nil
}

// startRow begins the next row, in a new block if this one is full.
func (c *outColumn) startRow() error {
	if err := c.room(); err != nil {
		return err
	}
	c.rows++
	return nil
}

// levelBytes is the stored size of the levels of the block.
func (c *outColumn) levelBytes() int {
	if len(c.def) == 0 {
		return 0
	}
	return (len(c.def)*(bits.Len(uint(c.MaxDef))+bits.Len(uint(c.MaxRep))) + 7) / 8
}

// flush ends the block.
func (c *outColumn) flush() error {
	c.endRun()
	if c.rows == 0 {
		return nil
	}
	raw := c.raw
	if c.MaxDef > 0 {
		b := page.PackLevels(c.packed[:0], c.def, bits.Len(uint(c.MaxDef)))
		if c.MaxRep > 0 {
			b = page.PackLevels(b, c.rep, bits.Len(uint(c.MaxRep)))
		}
		c.packed = append(b, raw...)
		raw = c.packed
	}
	if len(raw) > 1<<31-1 {
		return fault.Limitf(fault.Span{}, c.Name, "a row of %d bytes does not fit a block", len(raw))
	}
	stored, err := c.compress(raw)
	if err != nil {
		return err
	}
	b := outBlock{rows: c.rows, raw: int64(len(raw)), stored: int64(len(stored)), first: c.first}
	var front, back []byte
	switch crc := crc32.ChecksumIEEE(raw); {
	case !c.Summed:
	case c.w.opts.dialect == layout.Wiki:
		front = binary.LittleEndian.AppendUint32(nil, crc)
	default:
		back = binary.BigEndian.AppendUint32(nil, crc)
	}
	if err := c.blockSpill.add(front, stored, back); err != nil {
		return err
	}
	c.blocks = append(c.blocks, b)
	c.raw, c.rows, c.bit, c.def, c.rep, c.first = c.raw[:0], 0, 0, c.def[:0], c.rep[:0], nil
	if c.Kind == layout.CodecNone && c.MaxDef == 0 && c.w.opts.blockSize <= madeInPlace {
		c.raw, err = c.blockSpill.place(c.front(), c.w.opts.blockSize+overBlock)
	}
	return err
}

// Blocks of up to this size are built in place, except the first of a column, which is all of a small table. If the
// last value takes more than overBlock bytes beyond the block size, the block is copied.
const (
	madeInPlace = 256 << 10
	overBlock   = 1 << 10
)

// front is the number of bytes before the data of a block.
func (c *outColumn) front() int {
	if c.Summed && c.w.opts.dialect == layout.Wiki {
		return 4
	}
	return 0
}

// compress returns the stored bytes of raw: raw itself, or other bytes, which may lie in the spill.
func (c *outColumn) compress(raw []byte) ([]byte, error) {
	if c.Kind == layout.CodecNone {
		return raw, nil
	}
	var to []byte
	if len(raw) <= 2*madeInPlace {
		var err error
		if to, err = c.blockSpill.place(c.front(), len(raw)+len(raw)/6+64); err != nil {
			return nil, err
		}
	}
	switch c.Kind {
	case layout.CodecSnappy:
		k, _ := codec.ByName("snappy")
		return k.Compress(to, raw), nil
	case layout.CodecDeflate:
		k, _ := codec.ByName("deflate")
		return k.Compress(to, raw), nil
	case layout.CodecBzip2:
		return bzip2.Append(to, raw), nil
	}
	return nil, fault.Bugf("trevni: a codec that is not written")
}

// maxRun is the maximum number of lengths in one varint, which has 32 bits.
const maxRun = 1 << 29

// length writes the number of values of the next entry of an array column. Runs of 0 or 1 are held back until they end:
// version 2 writes a run as one number.
func (c *outColumn) length(n int64) {
	if n > 1 || c.w.opts.version < 2 {
		c.endRun()
		c.raw, c.bit = layout.AppendLong(c.raw, n), 0
		return
	}
	if c.run > 0 && c.of == n && c.run < maxRun {
		c.run++
		return
	}
	c.endRun()
	c.run, c.of = 1, n
}

func (c *outColumn) endRun() {
	switch {
	case c.run == 1:
		c.raw, c.bit = layout.AppendLong(c.raw, c.of), 0
	case c.run > 1:
		c.raw, c.bit = layout.AppendLong(c.raw, 3-c.of-2*c.run), 0
	}
	c.run = 0
}

// bool appends a boolean.
func (c *outColumn) bool(v bool) {
	if c.bit == 0 {
		c.raw = append(c.raw, 0)
	}
	if v {
		c.raw[len(c.raw)-1] |= 1 << c.bit
	}
	c.bit = (c.bit + 1) & 7
}

// values writes single values of one array.
type values struct {
	c   *outColumn
	add appender
	bit func(i int) bool // of booleans
}

func (c *outColumn) valuesOf(a arrow.Array) (v values, err error) {
	v.c = c
	if c.Type == layout.Boolean {
		v.bit, err = boolsOf(a)
		return v, err
	}
	v.add, err = appenderOf(a, c.Type)
	return v, err
}

func boolsOf(a arrow.Array) (func(i int) bool, error) {
	switch a := coerce.Stored(a).(type) {
	case *array.Boolean:
		return a.Value, nil
	case *array.Dictionary:
		of, err := boolsOf(a.Dictionary())
		return func(i int) bool { return of(a.GetValueIndex(i)) }, err
	}
	return nil, fault.Bugf("trevni: %s as booleans", a.DataType())
}

// write appends value i.
func (v *values) write(i int) error {
	c := v.c
	if c.run > 0 && c.Type != layout.Null {
		c.endRun()
	}
	switch {
	case v.bit != nil:
		c.bool(v.bit(i))
		return nil
	case v.add == nil:
		return nil
	}
	from := len(c.raw)
	var err error
	if c.raw, err = v.add(c.raw, i); err != nil {
		return fault.Invalidf("column %q: %v", c.Name, err)
	}
	if c.FirstValues {
		if from == 0 {
			c.first = append([]byte(nil), c.raw...)
		}
		c.checkOrder(c.raw[from:])
	}
	return nil
}

// checkOrder compares a value with the previous one and sets unsorted.
func (c *outColumn) checkOrder(v []byte) {
	if !c.unsorted && c.last != nil && !c.inOrder(c.last, v) {
		c.unsorted = true
	}
	if c.last == nil {
		c.unsorted = !c.inOrder(v, v)
	}
	c.last = append(c.last[:0], v...)
}

// inOrder reports whether b is not less than a, both in stored form. NaN is less than everything, including itself.
func (c *outColumn) inOrder(a, b []byte) bool {
	le := binary.LittleEndian
	switch c.Type {
	case layout.Int, layout.Long:
		x, _ := layout.Varint(a)
		y, _ := layout.Varint(b)
		return x <= y
	case layout.Fixed32:
		if c.unsigned {
			return le.Uint32(a) <= le.Uint32(b)
		}
		return int32(le.Uint32(a)) <= int32(le.Uint32(b))
	case layout.Fixed64:
		if c.unsigned {
			return le.Uint64(a) <= le.Uint64(b)
		}
		return int64(le.Uint64(a)) <= int64(le.Uint64(b))
	case layout.Float:
		return math.Float32frombits(le.Uint32(a)) <= math.Float32frombits(le.Uint32(b))
	case layout.Double:
		return math.Float64frombits(le.Uint64(a)) <= math.Float64frombits(le.Uint64(b))
	}
	_, k := layout.Varint(a)
	_, l := layout.Varint(b)
	return bytes.Compare(a[k:], b[l:]) <= 0
}
