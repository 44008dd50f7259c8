package write

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/unpack"
	"stoa/internal/codec"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/redlevels"
	"stoa/internal/nest"
	"stoa/internal/thrift"
)

// columnWriter makes the pages of one column of one row group.
type columnWriter struct {
	l    schema.Leaf
	o    *createOptions
	enc  layout.Encoding
	head *thrift.Writer

	// The page that is being filled. In vals a bool takes a byte, everything else is in PLAIN encoding.
	vals     []byte
	def, rep []byte
	entries  int // nulls and empty lists included
	present  int // values
	rows     int // that begin in the page

	// The row group.
	pages            []byte // finished pages that are still in memory
	spilled          []segment
	body, compressed []byte // scratch
	index            []layout.IndexEntry
	end              int64 // bytes of all finished pages
	values           int64
	groupRows        int64
	raw, stored      int64 // of the bodies
}

// segment is a run of finished pages in the temporary file.
type segment struct{ off, n int64 }

// add appends the entries of a shredded leaf. Pages end between rows.
func (c *columnWriter) add(s *nest.Shredded, mem memory.Allocator) error {
	dense, err := s.Dense(mem)
	if err != nil {
		return err
	}
	if d, ok := dense.(*array.Dictionary); ok {
		dense, err = nest.Decoded(d, mem)
		d.Release()
		if err != nil {
			return err
		}
	}
	defer dense.Release()
	if dense.NullN() > 0 {
		return fault.Unsupportedf(fault.Span{}, c.l.Column.Name, "a dictionary with a null among its values")
	}
	if n := s.Count(); dense.Len() != n {
		return fault.Bugf("redfile: column %s: expected %d values, there are %d", c.l.Column.Name, n, dense.Len())
	}
	sizes := c.sizes(dense)
	for e, v := 0, 0; e < s.Entries; {
		e2, v2, rows := c.fit(s, e, v, sizes)
		if err := c.appendValues(dense, v, v2); err != nil {
			return err
		}
		if c.l.MaxDef > 0 {
			c.def = append(c.def, s.Def[e:e2]...)
		}
		if c.l.MaxRep > 0 {
			c.rep = append(c.rep, s.Rep[e:e2]...)
		}
		c.entries, c.present, c.rows = c.entries+e2-e, c.present+v2-v, c.rows+rows
		e, v = e2, v2
		if c.full() && (e == s.Entries || s.Rep == nil || s.Rep[e] == 0) {
			if err := c.cut(); err != nil {
				return err
			}
		}
	}
	return nil
}

// full reports whether the page that is being filled has reached the page size.
func (c *columnWriter) full() bool {
	n := len(c.vals)
	if c.l.Type == layout.Boolean {
		n /= 8
	}
	return n >= c.o.pageSize || c.entries >= 8*c.o.pageSize || len(c.def) > 0 && (n+c.entries/8 >= c.o.pageSize)
}

// sizes returns a function that returns the stored size of string i; nil if a does not contain strings.
func (c *columnWriter) sizes(a arrow.Array) func(i int) int {
	switch a := a.(type) {
	case *array.String:
		return func(i int) int { return 4 + a.ValueLen(i) }
	case *array.Binary:
		return func(i int) int { return 4 + a.ValueLen(i) }
	case *array.LargeString:
		return func(i int) int { return 4 + len(a.Value(i)) }
	case *array.LargeBinary:
		return func(i int) int { return 4 + len(a.Value(i)) }
	}
	return nil
}

// fit returns the end of the page that begins with entry e, whose values begin at v: entry e2 and value v2, and the
// number of rows that begin in the page. The end is between rows.
func (c *columnWriter) fit(s *nest.Shredded, e, v int, sizes func(int) int) (e2, v2, rows int) {
	width := c.l.Type.Size()
	switch {
	case c.l.Type == layout.Boolean:
		width = 1
	case c.l.Value.Form == schema.FormFixed:
		width = 4 + c.l.Value.Width
	}
	limit := c.o.pageSize
	if c.l.Type == layout.Boolean {
		limit *= 8
	}
	left := limit - len(c.vals)
	if s.Def == nil && s.Rep == nil && sizes == nil {
		n := min(s.Entries-e, max(1, (left+width-1)/width))
		return e + n, v + n, n
	}
	maxEntries := max(1, 8*c.o.pageSize-c.entries)
	for e2, v2 = e, v; e2 < s.Entries; {
		if s.Def == nil || s.Def[e2] == c.l.MaxDef {
			if sizes != nil {
				width = sizes(v2)
			}
			left -= width
			v2++
		}
		if s.Rep == nil || s.Rep[e2] == 0 {
			rows++
		}
		e2++
		if (left <= 0 || e2-e >= maxEntries) && (e2 == s.Entries || s.Rep == nil || s.Rep[e2] == 0) {
			break
		}
	}
	return e2, v2, rows
}

// appendValues appends the values [from, to) of a, which has no nulls.
func (c *columnWriter) appendValues(a arrow.Array, from, to int) error {
	if from == to {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		for i := from; i < to; i++ {
			b := byte(0)
			if a.Value(i) {
				b = 1
			}
			c.vals = append(c.vals, b)
		}
		return nil
	case *array.String:
		c.vals = appendStrings(c.vals, a.ValueOffsets()[from:to+1], a.ValueBytes(), a.ValueOffsets()[0])
		return nil
	case *array.Binary:
		c.vals = appendStrings(c.vals, a.ValueOffsets()[from:to+1], a.ValueBytes(), a.ValueOffsets()[0])
		return nil
	case *array.LargeString:
		for i := from; i < to; i++ {
			c.vals = appendBytes(c.vals, a.Value(i))
		}
		return nil
	case *array.LargeBinary:
		for i := from; i < to; i++ {
			c.vals = appendBytes(c.vals, a.Value(i))
		}
		return nil
	}
	w := c.l.Value.Width
	bufs := a.Data().Buffers()
	if len(bufs) < 2 || bufs[1] == nil {
		return fault.Bugf("redfile: column %s: an array of type %s without values", c.l.Column.Name, a.DataType())
	}
	off := a.Data().Offset()
	data := bufs[1].Bytes()[(off+from)*w : (off+to)*w]
	switch c.l.Value.Form {
	case schema.FormSame:
		c.vals = append(c.vals, data...)
	case schema.FormNarrow:
		c.widen(data, to-from)
	case schema.FormFixed:
		for i := range to - from {
			c.vals = binary.LittleEndian.AppendUint32(c.vals, uint32(w))
			c.vals = append(c.vals, data[i*w:(i+1)*w]...)
		}
	}
	return nil
}

// widen appends n integers of one or two bytes as INT32.
func (c *columnWriter) widen(data []byte, n int) {
	for i := range n {
		var x int32
		switch v := c.l.Value; {
		case v.Width == 1 && v.Signed:
			x = int32(int8(data[i]))
		case v.Width == 1:
			x = int32(data[i])
		case v.Signed:
			x = int32(int16(binary.LittleEndian.Uint16(data[2*i:])))
		default:
			x = int32(binary.LittleEndian.Uint16(data[2*i:]))
		}
		c.vals = binary.LittleEndian.AppendUint32(c.vals, uint32(x))
	}
}

// appendStrings appends strings whose offsets count from first in data.
func appendStrings(dst []byte, offs []int32, data []byte, first int32) []byte {
	dst = slices.Grow(dst, int(offs[len(offs)-1]-offs[0])+4*len(offs))
	for i := range len(offs) - 1 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(offs[i+1]-offs[i]))
		dst = append(dst, data[offs[i]-first:offs[i+1]-first]...)
	}
	return dst
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// cut ends the page that is being filled.
func (c *columnWriter) cut() error {
	if c.entries == 0 {
		return nil
	}
	c.body = c.body[:0]
	if c.l.MaxRep > 0 {
		c.body = redlevels.PackRep(c.body, c.rep, c.l.MaxRep)
	}
	if c.l.MaxDef > 0 {
		c.body = redlevels.PackDef(c.body, c.def, c.l.MaxDef)
	}
	switch {
	case c.l.Type == layout.Boolean:
		at := len(c.body)
		c.body = append(c.body, make([]byte, (len(c.vals)+7)/8)...)
		for i, b := range c.vals {
			bitutil.SetBitTo(c.body[at:], i, b != 0)
		}
	case c.enc == layout.GroupVarInt && c.l.Type == layout.Int32:
		c.body = groupvarint.Append(c.body, wordsOfBytes[uint32](c.vals))
	case c.enc == layout.GroupVarInt:
		c.body = unpack.AppendGroups64(c.body, wordsOfBytes[uint64](c.vals))
	default:
		c.body = append(c.body, c.vals...)
	}
	if len(c.body) > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, c.l.Column.Name, "a page of %d bytes: one row is too large", len(c.body))
	}
	h := layout.PageHeader{Kind: layout.DataPage, Values: int32(c.entries), Encoding: c.enc}
	at := len(c.pages)
	c.pages = c.appendPage(c.pages, h, c.body)
	e := layout.IndexEntry{Offset: c.end, First: c.groupRows, Size: int32(len(c.pages) - at), Values: int32(c.entries),
		Rows: int32(c.rows), Nulls: int32(c.entries - c.present)}
	if !c.o.noIndex && c.l.MaxRep == 0 {
		fillBounds(&e, c.l.Column.Type, c.l.Type, c.vals)
	}
	c.index = append(c.index, e)
	c.end += int64(len(c.pages) - at)
	c.values += int64(c.entries)
	c.groupRows += int64(c.rows)
	c.vals, c.def, c.rep, c.entries, c.present, c.rows = c.vals[:0], c.def[:0], c.rep[:0], 0, 0, 0
	return nil
}

// wordsOfBytes returns b as values of T in the byte order of this machine.
func wordsOfBytes[T any](b []byte) []T {
	var t T
	return schema.As[T](b, len(b)/int(unsafe.Sizeof(t)))
}

// appendPage appends the header and the compressed body of a page.
func (c *columnWriter) appendPage(dst []byte, h layout.PageHeader, body []byte) []byte {
	h.Raw = int32(len(body))
	switch c.o.codec {
	case layout.Snappy:
		z, _ := codec.ByName("snappy")
		c.compressed = z.Compress(c.compressed[:0], body)
		body = c.compressed
	case layout.Gzip:
		c.compressed = unpack.Gzip(c.compressed[:0], body)
		body = c.compressed
	}
	h.Stored = int32(len(body))
	if !c.o.noCRC {
		h.CRC = layout.CRC(body)
	}
	if h.Kind == layout.DataPage {
		c.raw += int64(h.Raw)
		c.stored += int64(h.Stored)
	}
	c.head.Reset()
	h.Write(c.head)
	return append(append(dst, c.head.Encoded()...), body...)
}

// pending is the approximate number of bytes of the column in memory.
func (c *columnWriter) pending() int64 { return int64(len(c.pages) + len(c.vals)) }

// reset begins the next row group.
func (c *columnWriter) reset() {
	c.pages, c.spilled, c.index = c.pages[:0], nil, c.index[:0]
	c.end, c.values, c.groupRows, c.raw, c.stored = 0, 0, 0, 0, 0
}

// fillBounds sets the bounds of a page whose values are in PLAIN encoding in vals.
func fillBounds(e *layout.IndexEntry, t arrow.DataType, p layout.Physical, vals []byte) {
	if len(vals) == 0 {
		return
	}
	le := binary.LittleEndian
	switch t.ID() {
	case arrow.BOOL:
		e.SetBounds([]byte{slices.Min(vals)}, []byte{slices.Max(vals)})
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.UINT8, arrow.UINT16, arrow.DATE32, arrow.TIME32:
		lo, hi := minMax(wordsOfBytes[int32](vals))
		e.SetBounds(le.AppendUint32(nil, uint32(lo)), le.AppendUint32(nil, uint32(hi)))
	case arrow.UINT32:
		lo, hi := minMax(wordsOfBytes[uint32](vals))
		e.SetBounds(le.AppendUint32(nil, lo), le.AppendUint32(nil, hi))
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP:
		lo, hi := minMax(wordsOfBytes[int64](vals))
		e.SetBounds(le.AppendUint64(nil, uint64(lo)), le.AppendUint64(nil, uint64(hi)))
	case arrow.UINT64:
		lo, hi := minMax(wordsOfBytes[uint64](vals))
		e.SetBounds(le.AppendUint64(nil, lo), le.AppendUint64(nil, hi))
	case arrow.FLOAT32:
		if lo, hi, nans, ok := minMaxFloat(wordsOfBytes[float32](vals)); ok {
			e.NoNaN = nans == 0
			e.SetBounds(le.AppendUint32(nil, math.Float32bits(lo)), le.AppendUint32(nil, math.Float32bits(hi)))
		}
	case arrow.FLOAT64:
		if lo, hi, nans, ok := minMaxFloat(wordsOfBytes[float64](vals)); ok {
			e.NoNaN = nans == 0
			e.SetBounds(le.AppendUint64(nil, math.Float64bits(lo)), le.AppendUint64(nil, math.Float64bits(hi)))
		}
	case arrow.STRING, arrow.BINARY:
		fillStrings(e, vals)
	}
}

func minMax[T int32 | int64 | uint32 | uint64](v []T) (lo, hi T) {
	lo, hi = v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// minMaxFloat ignores NaN and counts it; ok is false if there are no other values.
func minMaxFloat[T float32 | float64](v []T) (lo, hi T, nans int, ok bool) {
	for _, x := range v {
		switch {
		case x != x:
			nans++
		case !ok:
			lo, hi, ok = x, x, true
		default:
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	return lo, hi, nans, ok
}

func fillStrings(e *layout.IndexEntry, vals []byte) {
	var lo, hi []byte
	for first := true; len(vals) > 0; first = false {
		n := binary.LittleEndian.Uint32(vals)
		s := vals[4 : 4+n]
		vals = vals[4+n:]
		if first || string(s) < string(lo) {
			lo = s
		}
		if first || string(s) > string(hi) {
			hi = s
		}
	}
	e.MinCut, e.MaxCut = len(lo) > layout.LongestBound, len(hi) > layout.LongestBound
	e.SetBounds(slices.Clone(lo[:min(len(lo), layout.LongestBound)]),
		slices.Clone(hi[:min(len(hi), layout.LongestBound)]))
}

// sliceBytes is the approximate size of the slices of a batch. After each slice the sizes of the row group and of the
// used memory are checked.
const sliceBytes = 1 << 20

// sliceEnd returns the end of the slice of b that begins at row from, at most maxEnd. It has at least one row, and
// unless that row is larger, at most sliceBytes, an eighth of the row group and an eighth of the memory.
func (w *writer) sliceEnd(b arrow.RecordBatch, from, maxEnd int64) int64 {
	limit := min(sliceBytes, max(w.opts.groupSize/8, 1), max(w.opts.memory/8, 64<<10))
	to := maxEnd
	for to-from > 1 {
		size := int64(0)
		for _, a := range b.Columns() {
			size += nest.SizeOfRows(a, from, to)
		}
		if size <= limit {
			break
		}
		to = from + max(1, min((to-from)/2, (to-from)*limit/size))
	}
	return to
}

// BoundsOf sets the bounds of the values of a to those that the writer would store for a page of them.
func BoundsOf(e *layout.IndexEntry, l *schema.Leaf, a arrow.Array) {
	w := columnWriter{l: *l, o: &createOptions{}}
	if w.appendValues(a, 0, a.Len()) == nil {
		fillBounds(e, l.Column.Type, l.Type, w.vals)
	}
}
