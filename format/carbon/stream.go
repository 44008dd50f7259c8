package carbon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// A file of a streaming segment has rows instead of columns, and no footer, because it grows (CarbonStreamRecordWriter):
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
// An index file beside it says how many of its bytes are committed: what is behind them belongs to a batch that did not end.

// streamFile is the blocklets of a file of rows.
type streamFile struct {
	fields    []streamField
	codec     string
	committed int64 // bytes that count
	blocklets []streamBlocklet
}

// streamBlocklet is one of them.
type streamBlocklet struct {
	at   fault.Span // from the marker on
	head fault.Span // BlockletHeader
	data fault.Span // compressed
	rows int64
	raw  int64 // bytes of the rows, decompressed
}

// streamField is a value of a row.
type streamField struct {
	col   *column
	width int // bytes of the value; 0: a length stands before it
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
			h.mutation = r.Enum("mutation", func(v int32) string { return map[int32]string{0: "INSERT", 1: "DELETE"}[v] })
		case 3:
			parseBlockletIndex(r, "blocklet_index")
		case 4:
			h.rows = parseBlockletInfo1(r, "blocklet_info").rows
		}
	}
	return h
}

// readStream finds the blocklets of a file of rows.
func (f *dataFile) readStream(ctx context.Context, trace func(region.Node)) error {
	at := f.at.Sub(0, f.headLen)
	if len(f.header.sync) != markerLen {
		return fault.Corruptf(at, "header.sync_marker", "%d bytes, want %d", len(f.header.sync), markerLen)
	}
	var err error
	if f.roots, _, err = columnTree(f.header.columns, at, "header.column_schema"); err != nil {
		return err
	}
	f.footAt = f.at.Len
	s := &streamFile{codec: "snappy", committed: f.committed(ctx)}
	f.stream = s
	if c := f.header.compressor; c != "" {
		s.codec = strings.ToLower(c)
	}
	if s.fields, err = streamFields(f.roots, at); err != nil {
		return err
	}
	if s.committed < f.headLen {
		return fault.Corruptf(at, "", "the index file says that %d bytes are committed, the header alone has %d", s.committed, f.headLen)
	}
	for pos := f.headLen; pos < s.committed; {
		b, err := f.streamBlocklet(ctx, pos, len(s.blocklets), trace)
		if err != nil {
			return err
		}
		pos = b.at.End()
		s.blocklets = append(s.blocklets, b)
		f.footer.blocklet = append(f.footer.blocklet, blockletInfo{rows: b.rows})
		f.footer.index = append(f.footer.index, blockletIndex{})
		f.footer.rows += b.rows
	}
	if n := f.at.Len - s.committed; n > 0 {
		tell(trace, region.Node{Kind: region.Data, Name: "uncommitted", Value: "behind what the index file says is committed", At: f.at.Sub(s.committed, n), Inner: -1})
	}
	return nil
}

// committed is how many bytes of the file count: what the index file beside it says, or else all.
func (f *dataFile) committed(ctx context.Context) int64 {
	for info, err := range f.tree.List(ctx, path.Dir(f.at.Object)) {
		if err != nil {
			break
		}
		if !strings.HasSuffix(info.Name, indexExt) {
			continue
		}
		o, err := openObject(ctx, f.tree, info.Name, f.limits)
		if err != nil {
			continue
		}
		files, err := o.readIndex(ctx, false, nil)
		if err != nil {
			continue
		}
		for _, b := range files[0].blocks {
			if path.Base(b.file) == path.Base(f.at.Object) && b.size > 0 && b.size <= f.at.Len {
				return b.size
			}
		}
	}
	return f.at.Len
}

// streamBlocklet reads what stands before the rows of a blocklet.
func (f *dataFile) streamBlocklet(ctx context.Context, pos int64, i int, trace func(region.Node)) (b streamBlocklet, err error) {
	name := fmt.Sprintf("blocklet[%d]", i)
	left := f.stream.committed - pos
	bad := func(off, n int64, format string, args ...any) (streamBlocklet, error) {
		return b, fault.Corruptf(f.at.Sub(off, n), name, format, args...)
	}
	if left < markerLen+8 {
		return bad(pos, left, "%d bytes are too few for a blocklet", left)
	}
	top, err := f.read(ctx, pos, markerLen+4, name)
	if err != nil {
		return b, err
	}
	if string(top[:markerLen]) != string(f.header.sync) {
		return bad(pos, markerLen, "not the marker that the header says")
	}
	n := int64(int32(binary.BigEndian.Uint32(top[markerLen:])))
	if n < 1 || n > left-markerLen-8 {
		return bad(pos+markerLen, 4, "a header of %d bytes, %d are left", n, left-markerLen-8)
	}
	b.head = f.at.Sub(pos+markerLen+4, n)
	head, err := f.read(ctx, b.head.Off, n+4, name)
	if err != nil {
		return b, err
	}
	var h blockletHeader
	parse := func(t func(region.Node)) error {
		c := wire.NewCursor(head[:n], b.head, name)
		if t != nil {
			c.Trace(t, 1)
		}
		if h = parseBlockletHeader(thrift.NewReader(c, thrift.Compact), "BlockletHeader"); c.Err() == nil && c.Left() > 0 {
			c.Fail(c.Pos(), c.Left(), "", "%d bytes behind it", c.Left())
		}
		return c.Err()
	}
	if err := parse(nil); err != nil {
		return b, err
	}
	m := int64(int32(binary.BigEndian.Uint32(head[n:])))
	if off := b.head.End(); m < 0 || m > f.stream.committed-off-4 {
		return bad(off, 4, "%d bytes of rows, %d are left", m, f.stream.committed-off-4)
	}
	b.data = f.at.Sub(b.head.End()+4, m)
	b.at = f.at.Sub(pos, b.data.End()-pos)
	b.rows, b.raw = h.rows, int64(h.length)
	switch {
	case h.mutation != 0:
		return b, fault.Unsupportedf(b.head, name+".mutation", "%d: only rows that are inserted are known", h.mutation)
	case b.raw < 0, b.rows < 0, b.rows > maxPageRows, 2*b.rows > b.raw:
		return bad(b.head.Off, b.head.Len, "%d rows in %d bytes", b.rows, b.raw)
	}
	if trace != nil {
		trace(region.Node{Kind: region.Struct, Name: name, Value: fmt.Sprintf("%d rows", b.rows), At: b.at, Inner: -1})
		trace(region.Node{Depth: 1, Kind: region.Data, Name: "sync_marker", At: f.at.Sub(pos, markerLen), Inner: -1})
		trace(region.Node{Depth: 1, Kind: region.Data, Name: "length", Value: fmt.Sprint(n), At: f.at.Sub(pos+markerLen, 4), Inner: -1})
		if err := parse(trace); err != nil {
			return b, err
		}
		trace(region.Node{Depth: 1, Kind: region.Data, Name: "length", Value: fmt.Sprint(m), At: f.at.Sub(b.head.End(), 4), Inner: -1})
		trace(region.Node{Depth: 1, Kind: region.Data, Name: "rows", Value: f.stream.codec, At: b.data, Inner: -1})
	}
	return b, nil
}

// streamFields is what a row has: dimensions, complex ones behind the others, then measures.
func streamFields(roots []*column, at fault.Span) ([]streamField, error) {
	out := make([]streamField, len(roots))
	class := func(c *column) int {
		switch {
		case !c.dimension:
			return 2
		case c.typ.complex():
			return 1
		}
		return 0
	}
	for i, c := range roots {
		f := streamField{col: c, lv: 2}
		switch {
		case c.typ.complex():
		case c.dimension && (c.typ == typeDate || c.encoders.has(encDictionary)):
			f.width = 4
		case c.dimension && c.typ == typeVarchar:
			f.lv = 4
		case c.dimension, c.typ == typeDecimal:
		default:
			if f.width = plainWidth(c.typ); f.width == 0 {
				return nil, fault.Unsupportedf(at, "header.column_schema", "column %s: a streaming file has no %s", c.name, c.typ)
			}
		}
		out[i] = f
	}
	slices.SortStableFunc(out, func(a, b streamField) int { return class(a.col) - class(b.col) })
	return out, nil
}

// plainWidth is how many bytes a number has; 0: the type is not kept as one.
func plainWidth(t dataType) int {
	switch t {
	case typeBoolean:
		return 1
	case typeShort:
		return 2
	case typeInt:
		return 4
	case typeLong, typeDouble, typeTimestamp:
		return 8
	}
	return 0
}

// streamChunk is a column of a blocklet of rows: one page, which is all of the blocklet. It is a format.Chunk.
type streamChunk struct {
	f     *dataFile
	b     *streamBlocklet
	index int // of the field
	path  string
	dates dateRule
	done  bool
}

// newStreamChunk gives the column col of blocklet g.
func (t *table) newStreamChunk(f *dataFile, g int, col *column) (*streamChunk, error) {
	i := slices.IndexFunc(f.stream.fields, func(x streamField) bool { return x.col == col })
	c := &streamChunk{f: f, b: &f.stream.blocklets[g], index: i, path: fmt.Sprintf("blocklet[%d].%s", g, col.name), dates: t.dates}
	if i < 0 || col.typ.complex() {
		return nil, fault.Unsupportedf(c.b.at, c.path, "lists and structs of a streaming file")
	}
	if col.globalCodes() {
		return nil, fault.Unsupportedf(c.b.at, c.path, "a dictionary column of a streaming file")
	}
	return c, nil
}

func (c *streamChunk) Next(context.Context) (format.Page, error) {
	if c.done || c.b.rows == 0 {
		return format.Page{}, io.EOF
	}
	c.done = true
	return format.Page{Rows: c.b.rows, Entries: c.b.rows, Spans: []fault.Span{c.b.data}, Raw: c.b.raw}, nil
}

func (c *streamChunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (c *streamChunk) Decode(t *format.Task, dst *vec.Vector) error {
	raw, err := codec.Expand(c.f.stream.codec, t.Bytes[0], c.f.limits.Page, t.Scratch.Bytes)
	if err == nil && int64(len(raw)) != c.b.raw {
		err = fault.Rel(0, 0, "", "%d bytes of rows, blocklet_length says %d", len(raw), c.b.raw)
	}
	if err == nil {
		t.Raw += int64(len(raw))
		err = c.decode(raw, t.Scratch, dst)
	}
	if err != nil {
		return fault.Locate(err, c.b.data, false, c.path)
	}
	return nil
}

// decode appends the values of the rows.
func (c *streamChunk) decode(raw []byte, a *vec.Arena, dst *vec.Vector) error {
	n := int(c.b.rows)
	spots, err := c.spots(raw, a)
	if err != nil {
		return err
	}
	at := dst.Extend(n)
	var valid []byte
	nulls := 0
	text := dst.Type.ID() == arrow.STRING || dst.Type.ID() == arrow.BINARY
	var offs []int32
	var room []byte
	if text {
		var size int64
		for i := range n {
			size += int64(spots[2*i+1] - spots[2*i])
		}
		offs = dst.Offsets(at)
		if room, err = dst.Bytes(offs[0], size); err != nil {
			return err
		}
	} else {
		clear(dst.Data(at))
	}
	scale := int32(0)
	if d, ok := dst.Type.(*arrow.Decimal128Type); ok {
		scale = d.Scale
	}
	k := 0
	for i := range n {
		v := raw[spots[2*i]:spots[2*i+1]]
		switch {
		case spots[2*i] == noSpot, text && string(v) == nullText && c.f.stream.fields[c.index].col.typ != typeBinary:
			if valid == nil {
				valid = dst.Validity()
			}
			clearOne(valid, at+i)
			nulls++
		case text:
			k += copy(room[k:], v)
		default:
			x, ok, err := c.value(v, scale)
			if err != nil {
				return fault.Rel(int(spots[2*i]), len(v), "", "row %d: %v", i, err)
			}
			if !ok {
				if valid == nil {
					valid = dst.Validity()
				}
				clearOne(valid, at+i)
				nulls++
				break
			}
			x.put(dst, at+i)
		}
		if text {
			offs[i+1] = offs[0] + int32(k)
		}
	}
	dst.AddNulls(nulls)
	return nil
}

// noSpot is where a null begins and ends: there are no bytes of it. The first two bytes of a page are never a value's.
const noSpot = 0

// spots finds where the column's value begins and ends in each row.
func (c *streamChunk) spots(raw []byte, a *vec.Arena) ([]uint32, error) {
	fields := c.f.stream.fields
	if len(raw) > math.MaxInt32 {
		return nil, fault.Rel(0, 0, "", "%d bytes of rows", len(raw))
	}
	out := a.Uint32s(2 * int(c.b.rows))
	pos := 0
	need := func(i, n int, what string) error {
		if n < 0 || n > len(raw)-pos {
			return fault.Rel(pos, 0, "", "row %d: %d bytes of %s, %d are left", i, n, what, len(raw)-pos)
		}
		return nil
	}
	for i := range int(c.b.rows) {
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
			return nil, fault.Rel(pos, k, "", "row %d: %d bytes of nulls for %d columns", i, k, len(fields))
		}
		pos += k
		out[2*i], out[2*i+1] = noSpot, noSpot
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
			if err := need(i, n, fields[j].col.name); err != nil {
				return nil, err
			}
			if j == c.index {
				out[2*i], out[2*i+1] = uint32(pos), uint32(pos+n)
			}
			pos += n
		}
	}
	if pos != len(raw) {
		return nil, fault.Rel(pos, len(raw)-pos, "", "%d bytes behind the last of %d rows", len(raw)-pos, c.b.rows)
	}
	return out, nil
}

// value is what the bytes of a value that is no text mean; ok is false for null. scale is that of the wanted decimals.
func (c *streamChunk) value(b []byte, scale int32) (v constant, ok bool, err error) {
	col := c.f.stream.fields[c.index].col
	whole := func() int64 {
		var x int64
		for _, y := range b {
			x = x<<8 | int64(y)
		}
		return x << (64 - 8*len(b)) >> (64 - 8*len(b))
	}
	if len(b) == 0 { // null, where the writer does not set the bit
		return v, false, nil
	}
	wrong := func() (constant, bool, error) { return v, false, fmt.Errorf("a %s of %d bytes", col.typ, len(b)) }
	switch {
	case col.dimension && c.f.stream.fields[c.index].width == 4: // a code of a direct dictionary
		x := whole()
		switch {
		case x == nullCode:
			return v, false, nil
		case col.typ == typeDate:
			v.i = x - dateOffset
		default:
			v.i = (x-2)*c.dates.unit + c.dates.cutoff
		}
		return v, true, nil
	case col.typ == typeDecimal && len(b) > 1:
		up := scale - int32(b[0])
		if len(b) > 17 || up < 0 {
			return wrong()
		}
		v.d = bigNum(b[1:]).Mul(decimal128.GetScaleMultiplier(int(up)))
		return v, true, nil
	case col.typ == typeDouble && len(b) == 8:
		v.f = math.Float64frombits(binary.BigEndian.Uint64(b))
		return v, true, nil
	case col.typ == typeByte && col.dimension: // a text
		v, err = parseValue(col, string(b), nil)
		return v, err == nil, err
	}
	if n := plainWidth(col.typ); n == 0 || n != len(b) {
		return wrong()
	}
	v.i = whole()
	if col.dimension && col.typ != typeBoolean { // the sign is turned, so that bytes are in the order of the numbers
		v.i ^= -1 << (8*len(b) - 1)
	}
	return v, true, nil
}

// decodeRows decodes a column of blocklet g, whose stored bytes are given, for the sake of the error.
func (t *table) decodeRows(f *dataFile, g int, p *physical, stored []byte, a *vec.Arena) error {
	c, err := t.newStreamChunk(f, g, p.col)
	if err != nil {
		return err
	}
	page, err := c.Next(context.Background())
	if err != nil {
		return nil // no rows
	}
	dst, err := vec.New(p.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer dst.Release()
	defer a.Reset()
	return c.Decode(&format.Task{Page: page, N: page.Entries, Bytes: [][]byte{stored}, Scratch: a, Limits: f.limits}, dst)
}

// resync finds the blocklets behind one that is damaged, by the marker before each. It gives what lies between.
func (f *dataFile) resync(ctx context.Context) (lost []fault.Span, err error) {
	pos := f.headLen
	if n := len(f.stream.blocklets); n > 0 {
		pos = f.stream.blocklets[n-1].at.End()
	}
	for from := pos; pos < f.stream.committed; {
		b, err := f.streamBlocklet(ctx, pos, len(f.stream.blocklets), nil)
		switch {
		case err == nil:
			if pos > from {
				lost = append(lost, f.at.Sub(from, pos-from))
			}
			f.stream.blocklets = append(f.stream.blocklets, b)
			f.footer.blocklet = append(f.footer.blocklet, blockletInfo{rows: b.rows})
			f.footer.index = append(f.footer.index, blockletIndex{})
			f.footer.rows += b.rows
			pos = b.at.End()
			from = pos
			continue
		case ctx.Err() != nil || !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported):
			return lost, err
		}
		if pos, err = f.nextMarker(ctx, pos+1); err != nil {
			return lost, err
		}
		if pos == f.stream.committed {
			lost = append(lost, f.at.Sub(from, pos-from))
		}
	}
	return lost, nil
}

// nextMarker is where the next marker stands from pos on; where the file ends if there is none.
func (f *dataFile) nextMarker(ctx context.Context, pos int64) (int64, error) {
	const step = 1 << 20
	for pos+markerLen <= f.stream.committed {
		n := min(step+markerLen, f.stream.committed-pos)
		b, err := f.read(ctx, pos, n, "sync_marker")
		if err != nil {
			return pos, err
		}
		if i := bytes.Index(b, f.header.sync); i >= 0 {
			return pos + int64(i), nil
		}
		if n < step+markerLen {
			break
		}
		pos += step
	}
	return f.stream.committed, nil
}
