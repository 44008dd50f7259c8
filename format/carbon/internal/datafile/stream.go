package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/codec"
	"stoa/internal/sorted"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/vec"
)

// A file of a streaming segment is in row format, and has no footer, because it grows (CarbonStreamRecordWriter):
//
//	FileHeader   is_footer_present false; sync_marker; compressor_name
//	blocklets    sync_marker, 16 bytes
//	             length, i32 big-endian; BlockletHeader
//	             length, i32 big-endian; rows, compressed
//
//	row          length, i16; bits of the nulls, least significant first, in the order of the values
//	             dimensions: i16 length (varchar: i32) and bytes; dates and dictionaries: i32 code
//	             complex dimensions: i16 length and bytes
//	             measures: big-endian; decimals: i16 length, scale, big-endian number
//
// An index file in the same directory has the number of committed bytes: bytes after that belong to an unfinished
// batch.

// streamFile is a row-format file.
type streamFile struct {
	Fields    []StreamField // in the order of a row
	codec     string
	committed int64 // bytes
	Blocklets []streamBlocklet
}

// streamBlocklet is a blocklet of a row-format file.
type streamBlocklet struct {
	At   fault.Span // from the sync marker on
	head fault.Span // BlockletHeader
	Data fault.Span // the rows, compressed
	Rows int64
	raw  int64 // bytes of the rows, decompressed
}

// StreamField is a value in a row.
type StreamField struct {
	Col   *schema.Column
	width int // bytes of the value; 0: a length precedes it
	lv    int // bytes of that length
}

const markerLen = 16

// blockletHeader is BlockletHeader.
type blockletHeader struct {
	length   int32
	mutation int32
	rows     int64
}

func parseBlockletHeader(r *thrift.Reader, name string) (h blockletHeader) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.length = r.I32("blocklet_length")
		case 2:
			h.mutation = r.Enum("mutation",
				func(v int32) string { return map[int32]string{0: "INSERT", 1: "DELETE"}[v] })
		case 3:
			layout.ParseBlockletIndex(r, "blocklet_index")
		case 4:
			h.rows = layout.ParseBlockletInfo1(r, "blocklet_info").Rows
		}
	}
	return h
}

// readStream finds the blocklets of a row-format file.
func (f *DataFile) readStream(ctx context.Context, trace func(region.Node)) error {
	at := f.At.Sub(0, f.HeadLen)
	if len(f.Header.Sync) != markerLen {
		return fault.Corruptf(at, "header.sync_marker", "expected %d bytes, found %d", markerLen, len(f.Header.Sync))
	}
	var err error
	if f.Roots, _, err = schema.ColumnTree(f.Header.Columns, at, "header.column_schema"); err == nil {
		err = schema.CheckLimits(f.Roots, f.Limits, at, "header.column_schema")
	}
	if err != nil {
		return err
	}
	f.FootAt = f.At.Len
	s := &streamFile{codec: "snappy", committed: f.committed(ctx)}
	f.Stream = s
	if c := f.Header.Compressor; c != "" {
		s.codec = strings.ToLower(c)
	}
	if s.Fields, err = streamFields(f.Roots, at); err != nil {
		return err
	}
	if s.committed < f.HeadLen {
		return fault.Corruptf(at, "", "the index file has %d committed bytes, fewer than the header (%d)", s.committed,
			f.HeadLen)
	}
	for pos := f.HeadLen; pos < s.committed; {
		b, err := f.streamBlocklet(ctx, pos, len(s.Blocklets), trace)
		if err != nil {
			return err
		}
		pos = b.At.End()
		f.addStreamBlocklet(b)
	}
	if n := f.At.Len - s.committed; n > 0 {
		layout.Trace(trace, region.Node{Kind: region.Data, Name: "uncommitted",
			Value: "after the size in the index file", At: f.At.Sub(s.committed, n), Inner: -1})
	}
	return nil
}

func (f *DataFile) addStreamBlocklet(b streamBlocklet) {
	f.Stream.Blocklets = append(f.Stream.Blocklets, b)
	f.Footer.Blocklet = append(f.Footer.Blocklet, layout.BlockletInfo{Rows: b.Rows})
	f.Footer.Index = append(f.Footer.Index, layout.BlockletIndex{})
	f.Footer.Rows += b.Rows
}

// committed returns the number of committed bytes: the size in an index file in the same directory, or else the whole
// file.
func (f *DataFile) committed(ctx context.Context) int64 {
	for files, err := range f.indexes(ctx, false) {
		if err != nil {
			continue
		}
		for _, b := range files[0].Blocks {
			if path.Base(b.File) == path.Base(f.At.Object) && b.Size > 0 && b.Size <= f.At.Len {
				return b.Size
			}
		}
	}
	return f.At.Len
}

// streamBlocklet reads the marker, the lengths and the header of blocklet i at offset pos.
func (f *DataFile) streamBlocklet(ctx context.Context, pos int64, i int, trace func(region.Node)) (b streamBlocklet,
	err error) {
	name := fmt.Sprintf("blocklet[%d]", i)
	left := f.Stream.committed - pos
	bad := func(off, n int64, format string, args ...any) (streamBlocklet, error) {
		return b, fault.Corruptf(f.At.Sub(off, n), name, format, args...)
	}
	if left < markerLen+8 {
		return bad(pos, left, "expected a blocklet of at least %d bytes, found %d", markerLen+8, left)
	}
	top, err := f.Read(ctx, pos, markerLen+4, name)
	if err != nil {
		return b, err
	}
	if string(top[:markerLen]) != string(f.Header.Sync) {
		return bad(pos, markerLen, "expected the sync marker %x, found %x", f.Header.Sync, top[:markerLen])
	}
	n := int64(int32(binary.BigEndian.Uint32(top[markerLen:])))
	if n < 1 || n > left-markerLen-8 {
		return bad(pos+markerLen, 4, "expected a header of 1 to %d bytes, found %d", left-markerLen-8, n)
	}
	b.head = f.At.Sub(pos+markerLen+4, n)
	head, err := f.Read(ctx, b.head.Off, n+4, name)
	if err != nil {
		return b, err
	}
	h, err := f.blockletHeader(head[:n], b.head, name, nil)
	if err != nil {
		return b, err
	}
	m := int64(int32(binary.BigEndian.Uint32(head[n:])))
	if off := b.head.End(); m < 0 || m > f.Stream.committed-off-4 {
		return bad(off, 4, "expected at most %d bytes of rows, found %d", f.Stream.committed-off-4, m)
	}
	b.Data = f.At.Sub(b.head.End()+4, m)
	b.At = f.At.Sub(pos, b.Data.End()-pos)
	b.Rows, b.raw = h.rows, int64(h.length)
	switch {
	case h.mutation != 0:
		return b, fault.Unsupportedf(b.head, name+".mutation", "%d: only inserted rows (0) are supported", h.mutation)
	case b.raw < 0, b.Rows < 0, b.Rows > page.MaxPageRows, 2*b.Rows > b.raw:
		return bad(b.head.Off, b.head.Len, "%d rows do not fit in %d bytes", b.Rows, b.raw)
	}
	if trace != nil {
		err = f.traceBlocklet(&b, head[:n], name, trace)
	}
	return b, err
}

// blockletHeader parses head, which must consist of one BlockletHeader.
func (f *DataFile) blockletHeader(head []byte, at fault.Span, name string,
	trace func(region.Node)) (blockletHeader, error) {
	c := f.Cursor(head, at, name)
	if trace != nil {
		c.Trace(trace, 1)
	}
	h := parseBlockletHeader(thrift.NewReader(c, thrift.Compact), "BlockletHeader")
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes after the header", c.Left())
	}
	return h, c.Err()
}

// traceBlocklet traces the parts of a blocklet in the order of the file.
func (f *DataFile) traceBlocklet(b *streamBlocklet, head []byte, name string, trace func(region.Node)) error {
	part := func(name, value string, at fault.Span) {
		trace(region.Node{Depth: 1, Kind: region.Data, Name: name, Value: value, At: at, Inner: -1})
	}
	trace(region.Node{Kind: region.Struct, Name: name, Value: fault.Count(b.Rows, "row"), At: b.At, Inner: -1})
	part("sync_marker", "", b.At.Sub(0, markerLen))
	part("length", fmt.Sprint(b.head.Len), b.At.Sub(markerLen, 4))
	if _, err := f.blockletHeader(head, b.head, name, trace); err != nil {
		return err
	}
	part("length", fmt.Sprint(b.Data.Len), f.At.Sub(b.head.End(), 4))
	part("rows", f.Stream.codec, b.Data)
	return nil
}

// streamFields returns the values of a row in order: simple dimensions, complex dimensions, measures.
func streamFields(roots []*schema.Column, at fault.Span) ([]StreamField, error) {
	out := make([]StreamField, len(roots))
	class := func(c *schema.Column) int {
		switch {
		case !c.Dimension:
			return 2
		case c.Type.Complex():
			return 1
		}
		return 0
	}
	for i, c := range roots {
		f := StreamField{Col: c, lv: 2}
		switch {
		case c.Type.Complex():
		case c.Dimension && (c.Type == layout.TypeDate || c.Encoders.Has(layout.EncDictionary)):
			f.width = 4
		case c.Dimension && c.Type == layout.TypeVarchar:
			f.lv = 4
		case c.Dimension, c.Type == layout.TypeDecimal:
		default:
			if f.width = plainWidth(c.Type); f.width == 0 {
				return nil, fault.Unsupportedf(at, "header.column_schema", "column %s: type %s in a row-format file",
					c.Name, c.Type)
			}
		}
		out[i] = f
	}
	sorted.StablyBy(out, func(a, b StreamField) int { return class(a.Col) - class(b.Col) })
	return out, nil
}

// plainWidth returns the width of a number in bytes; 0 if the type is not stored as a number.
func plainWidth(t layout.DataType) int {
	switch t {
	case layout.TypeBoolean:
		return 1
	case layout.TypeShort:
		return 2
	case layout.TypeInt:
		return 4
	case layout.TypeLong, layout.TypeDouble, layout.TypeTimestamp:
		return 8
	}
	return 0
}

// StreamChunk is a format.Chunk: a column of a blocklet of a row-format file. Its one page is the whole blocklet.
type StreamChunk struct {
	F     *DataFile
	B     *streamBlocklet
	Index int // of the field
	Path  string
	Dates page.DateRule
	done  bool
}

// Next is format.Chunk.Next.
func (c *StreamChunk) Next(context.Context) (format.Page, error) {
	if c.done || c.B.Rows == 0 {
		return format.Page{}, io.EOF
	}
	c.done = true
	return format.Page{Rows: c.B.Rows, Entries: c.B.Rows, Spans: []fault.Span{c.B.Data}, Raw: c.B.raw}, nil
}

// Dict is format.Chunk.Dict: there is no dictionary.
func (c *StreamChunk) Dict() (format.Page, bool) { return format.Page{}, false }

// Decode is format.Chunk.Decode.
func (c *StreamChunk) Decode(t *format.Task, dst *vec.Vector) error {
	raw, err := codec.Expand(c.F.Stream.codec, t.Bytes[0], c.F.Limits.Page, t.Scratch.Bytes)
	if err == nil && int64(len(raw)) != c.B.raw {
		err = fault.Rel(0, 0, "", "expected %d bytes of rows, found %d", c.B.raw, len(raw))
	}
	if err == nil {
		t.Raw += int64(len(raw))
		before := dst.Len()
		if err = c.decode(raw, t.Scratch, dst); err == nil {
			if c.F.Hybrid {
				c.F.Rebased.Add(page.Rebase(dst, before))
			}
			if i := dst.TooManyDigits(before); i >= 0 {
				err = fault.Rel(0, 0, "", "row %d has more digits than %s", i-before, dst.Type)
			}
		}
	}
	if err != nil {
		return fault.Locate(err, c.B.Data, false, c.Path)
	}
	return nil
}

// decode appends the values of the rows.
func (c *StreamChunk) decode(raw []byte, a *vec.Arena, dst *vec.Vector) error {
	n := int(c.B.Rows)
	ends, err := c.ends(raw, a)
	if err != nil {
		return err
	}
	at := dst.Extend(n)
	if dst.Type.ID() == arrow.STRING || dst.Type.ID() == arrow.BINARY {
		return c.decodeTexts(raw, ends, dst, at)
	}
	clear(dst.Data(at))
	scale := int32(0)
	if d, ok := dst.Type.(*arrow.Decimal128Type); ok {
		scale = d.Scale
	}
	nulls := nullSetter{dst: dst}
	for i := range n {
		if ends[2*i] == noValue {
			nulls.set(at + i)
			continue
		}
		v := raw[ends[2*i]:ends[2*i+1]]
		x, ok, err := c.value(v, scale)
		if err != nil {
			return fault.Rel(int(ends[2*i]), len(v), "", "row %d: %v", i, err)
		}
		if ok {
			x.Set(dst, at+i)
		} else {
			nulls.set(at + i)
		}
	}
	dst.AddNulls(nulls.n)
	return nil
}

// decodeTexts sets the strings or binaries of the rows in dst, from entry at on.
func (c *StreamChunk) decodeTexts(raw []byte, ends []uint32, dst *vec.Vector, at int) error {
	var size int64
	for i := 0; i < len(ends); i += 2 {
		size += int64(ends[i+1] - ends[i])
	}
	offs := dst.Offsets(at)
	room, err := dst.Bytes(offs[0], size)
	if err != nil {
		return err
	}
	nullText := c.F.Stream.Fields[c.Index].Col.Type != layout.TypeBinary // NullText means null
	nulls, k := nullSetter{dst: dst}, 0
	for i := range len(ends) / 2 {
		v := raw[ends[2*i]:ends[2*i+1]]
		if ends[2*i] == noValue || nullText && string(v) == schema.NullText {
			nulls.set(at + i)
		} else {
			k += copy(room[k:], v)
		}
		offs[i+1] = offs[0] + int32(k)
	}
	dst.AddNulls(nulls.n)
	return nil
}

// nullSetter sets entries of a vector to null; the first null creates the validity bitmap.
type nullSetter struct {
	dst   *vec.Vector
	valid []byte
	n     int // entries that were made null
}

func (s *nullSetter) set(i int) {
	if s.valid == nil {
		s.valid = s.dst.Validity()
	}
	schema.SetNull(s.valid, i)
	s.n++
}

// noValue is the start and end of a null. No value starts at 0, because the length of the first row's null bits is
// there.
const noValue = 0

// ends returns the start and end in raw of the column's value in each row.
func (c *StreamChunk) ends(raw []byte, a *vec.Arena) ([]uint32, error) {
	fields := c.F.Stream.Fields
	if len(raw) > math.MaxInt32 {
		return nil, fault.Rel(0, 0, "", "%d bytes of rows", len(raw))
	}
	out := a.Uint32s(2 * int(c.B.Rows))
	pos := 0
	need := func(i, n int, what string) error {
		if n < 0 || n > len(raw)-pos {
			return fault.Rel(pos, 0, "", "row %d: expected at most %d bytes of %s, found %d", i, len(raw)-pos, what, n)
		}
		return nil
	}
	for i := range int(c.B.Rows) {
		if err := need(i, 2, "a length"); err != nil {
			return nil, err
		}
		k := int(binary.BigEndian.Uint16(raw[pos:]))
		pos += 2
		if err := need(i, k, "nulls"); err != nil {
			return nil, err
		}
		nulls := raw[pos : pos+k]
		if k > (len(fields)+7)/8 {
			return nil, fault.Rel(pos, k, "", "row %d: expected at most %d bytes of nulls, found %d", i,
				(len(fields)+7)/8, k)
		}
		pos += k
		out[2*i], out[2*i+1] = noValue, noValue
		for j := range fields {
			if j>>3 < k && nulls[j>>3]>>(j&7)&1 != 0 {
				continue
			}
			n := fields[j].width
			if n == 0 {
				lv := fields[j].lv
				if err := need(i, lv, "a length"); err != nil {
					return nil, err
				}
				if lv == 2 {
					n = int(binary.BigEndian.Uint16(raw[pos:]))
				} else {
					n = int(int32(binary.BigEndian.Uint32(raw[pos:])))
				}
				pos += lv
			}
			if err := need(i, n, fields[j].Col.Name); err != nil {
				return nil, err
			}
			if j == c.Index {
				out[2*i], out[2*i+1] = uint32(pos), uint32(pos+n)
			}
			pos += n
		}
	}
	if pos != len(raw) {
		return nil, fault.Rel(pos, len(raw)-pos, "", "%d bytes after the last of %d rows", len(raw)-pos, c.B.Rows)
	}
	return out, nil
}

// value parses a value that is not a string; ok is false for null. Decimals are converted to the given scale.
func (c *StreamChunk) value(b []byte, scale int32) (v schema.Constant, ok bool, err error) {
	col := c.F.Stream.Fields[c.Index].Col
	whole := func() int64 {
		var x int64
		for _, y := range b {
			x = x<<8 | int64(y)
		}
		return x << (64 - 8*len(b)) >> (64 - 8*len(b))
	}
	if len(b) == 0 { // a null whose bit the writer does not set
		return v, false, nil
	}
	wrong := func() (schema.Constant, bool, error) {
		return v, false, fmt.Errorf("a value of type %s cannot have %d bytes", col.Type, len(b))
	}
	switch {
	case col.Dimension && c.F.Stream.Fields[c.Index].width == 4: // a code of a direct dictionary
		x := whole()
		switch {
		case x == schema.NullCode:
			return v, false, nil
		case x < schema.NullCode: // the code is signed
			return v, false, fmt.Errorf("expected a code of a date or time from %d, found %d", schema.NullCode, x)
		case col.Type == layout.TypeDate:
			v.I = x - schema.DateOffset
		default:
			v.I = (x-2)*c.Dates.Unit + c.Dates.Cutoff
		}
		return v, true, nil
	case col.Type == layout.TypeDecimal && len(b) > 1:
		up := scale - int32(b[0])
		if len(b) > 17 || up < 0 {
			return wrong()
		}
		v.D = schema.ParseDecimal(b[1:]).Mul(decimal128.GetScaleMultiplier(int(up)))
		return v, true, nil
	case col.Type == layout.TypeDouble && len(b) == 8:
		v.F = math.Float64frombits(binary.BigEndian.Uint64(b))
		return v, true, nil
	case col.Type == layout.TypeByte && col.Dimension: // a text
		v, err = schema.ParseValue(col, string(b), nil)
		return v, err == nil, err
	}
	if n := plainWidth(col.Type); n == 0 || n != len(b) {
		return wrong()
	}
	v.I = whole()
	// the sign bit is inverted, so that bytes compare as the numbers do
	if col.Dimension && col.Type != layout.TypeBoolean {
		v.I ^= -1 << (8*len(b) - 1)
	}
	return v, true, nil
}

// resync finds the blocklets after a damaged one by their sync markers. It returns the spans that are lost between
// blocklets.
func (f *DataFile) resync(ctx context.Context) (lost []fault.Span, err error) {
	pos := f.HeadLen
	if n := len(f.Stream.Blocklets); n > 0 {
		pos = f.Stream.Blocklets[n-1].At.End()
	}
	for from := pos; pos < f.Stream.committed; {
		b, err := f.streamBlocklet(ctx, pos, len(f.Stream.Blocklets), nil)
		switch {
		case err == nil:
			if pos > from {
				lost = append(lost, f.At.Sub(from, pos-from))
			}
			f.addStreamBlocklet(b)
			pos = b.At.End()
			from = pos
			continue
		case ctx.Err() != nil || !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported):
			return lost, err
		}
		if pos, err = f.nextMarker(ctx, pos+1); err != nil {
			return lost, err
		}
		if pos == f.Stream.committed {
			lost = append(lost, f.At.Sub(from, pos-from))
		}
	}
	return lost, nil
}

// nextMarker returns the offset of the next sync marker at or after pos; the end of the committed bytes if there is
// none.
func (f *DataFile) nextMarker(ctx context.Context, pos int64) (int64, error) {
	const step = 1 << 20
	for pos+markerLen <= f.Stream.committed {
		n := min(step+markerLen, f.Stream.committed-pos)
		b, err := f.Read(ctx, pos, n, "sync_marker")
		if err != nil {
			return pos, err
		}
		if i := bytes.Index(b, f.Header.Sync); i >= 0 {
			return pos + int64(i), nil
		}
		if n < step+markerLen {
			break
		}
		pos += step
	}
	return f.Stream.committed, nil
}
