package page

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/codec"
)

// PageWriter encodes the pages of one column. It belongs to one goroutine at a time.
type PageWriter struct {
	*schema.Column
	Codec    string
	Inverted bool // a sort column with an inverted index
	Dict     *dictWriter

	decimalMin, decimalMax []byte // of the page that is being encoded

	raw  []byte // scratch
	perm []uint32
}

// column classes of ColumnPageEncoderMeta that only the writer names.
const (
	measureColumn layout.ColumnType = 4
	structColumn  layout.ColumnType = 5
	arrayColumn   layout.ColumnType = 6
)

// class is the column's class in encoder_meta.
func (w *PageWriter) class() layout.ColumnType {
	switch {
	case w.Typ == layout.TypeStruct:
		return structColumn
	case w.Typ.Complex():
		return arrayColumn
	case w.Parent != nil:
		return layout.ComplexPrimitive
	case w.Dimension:
		return layout.PlainValue
	}
	return measureColumn
}

// storeTypes are the numbers that encoder_meta has for the types of the schema.
var storeTypes = map[layout.DataType]layout.StoreType{layout.TypeBoolean: layout.StoreBoolean,
	layout.TypeByte: layout.StoreByte, layout.TypeShort: layout.StoreShort, layout.TypeInt: layout.StoreInt,
	layout.TypeLong:      layout.StoreLong,
	layout.TypeTimestamp: layout.StoreTimestamp, layout.TypeFloat: layout.StoreFloat,
	layout.TypeDouble: layout.StoreDouble, layout.TypeDecimal: layout.StoreDecimal,
	layout.TypeBinary: layout.StoreBinary}

// compress compresses raw with the column's method. The method was checked when the options were read.
func (w *PageWriter) compress(raw []byte) []byte {
	b, _ := codec.Squeeze(w.Codec, nil, raw)
	return b
}

// Encode makes a page of cells.
func (w *PageWriter) Encode(x *Cells) *layout.OutPage {
	p := &layout.OutPage{}
	p.DataChunk.Codec, p.Rows = w.Codec, int64(x.N)
	p.MinMax = &layout.MinMax{Min: [][]byte{{}}, Max: [][]byte{{}}, Written: []bool{true}}
	switch {
	case w.Typ.Complex():
		w.nested(p, x)
	case w.Parent == nil && (w.Typ == layout.TypeDate || w.Encoders.Has(layout.EncDictionary)):
		w.keys(p, x)
	case w.Typ == layout.TypeString, w.Typ == layout.TypeVarchar, w.Typ == layout.TypeBinary:
		w.texts(p, x)
	case w.Parent != nil && (w.Typ == layout.TypeDate || w.Typ == layout.TypeDecimal):
		w.leaves(p, x)
	case w.Typ == layout.TypeDecimal && w.Precision > 18:
		w.wideDecimals(p, x)
	case w.Typ == layout.TypeFloat, w.Typ == layout.TypeDouble:
		w.floating(p, x)
	default:
		w.integral(p, x)
	}
	if p.Nulls == nil {
		p.Nulls = w.compress(nil)
	}
	return p
}

// stats are what the encoder is chosen by. A null counts as 0.
type stats struct {
	min, max   int64   // whole numbers and unscaled decimals
	fmin, fmax float64 // floating numbers
	decimals   int32   // digits behind the point; -1: more than 5
}

// meta is ColumnPageEncoderMeta.
func (w *PageWriter) encoderMeta(store layout.StoreType, s stats) []byte {
	kind, ok := storeTypes[w.Typ]
	if !ok || w.class() == layout.ComplexPrimitive && w.Typ == layout.TypeDecimal {
		kind = layout.StoreByteArray
	}
	if w.Typ == layout.TypeBinary && w.Parent != nil {
		kind = layout.StoreByteArray
	}
	b := layout.AppendUTF(nil, w.Name)
	b = append(b, byte(kind), byte(w.class()))
	scale, precision := int32(-1), int32(-1)
	if kind == layout.StoreDecimal {
		scale, precision = w.Scale, w.Precision
	}
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(scale))
	b = be.AppendUint32(b, uint32(precision))
	b = append(b, byte(store))
	b = be.AppendUint32(b, uint32(s.decimals))
	b = append(b, 0) // dataTypeSelected
	switch kind {
	case layout.StoreBoolean, layout.StoreByte:
		b = append(b, byte(s.max), byte(s.min))
		b = be.AppendUint64(b, 0)
	case layout.StoreShort:
		b = be.AppendUint16(be.AppendUint16(b, uint16(s.max)), uint16(s.min))
		b = be.AppendUint64(b, 0)
	case layout.StoreInt:
		b = be.AppendUint32(be.AppendUint32(b, uint32(s.max)), uint32(s.min))
		b = be.AppendUint64(b, 0)
	case layout.StoreLong, layout.StoreTimestamp:
		b = be.AppendUint64(be.AppendUint64(b, uint64(s.max)), uint64(s.min))
		b = be.AppendUint64(b, 0)
	case layout.StoreDouble:
		b = be.AppendUint64(be.AppendUint64(b, math.Float64bits(s.fmax)), math.Float64bits(s.fmin))
		b = be.AppendUint64(b, 0)
	case layout.StoreFloat:
		b = be.AppendUint32(be.AppendUint32(b, math.Float32bits(float32(s.fmax))), math.Float32bits(float32(s.fmin)))
		b = be.AppendUint32(b, 0)
	case layout.StoreDecimal:
		for _, v := range [][]byte{w.decimalMax, w.decimalMin, DecimalBytes(decimal128.Num{}, 0)} {
			b = append(be.AppendUint16(b, uint16(len(v))), v...)
		}
		b = be.AppendUint32(be.AppendUint32(b, uint32(w.Scale)), uint32(w.Precision))
	}
	return layout.AppendUTF(b, w.Codec)
}

// width is how many bytes the narrowest store type for numbers from lo to hi has.
func narrowest(lo, hi int64) layout.StoreType {
	switch {
	case hi <= math.MaxInt8 && lo >= math.MinInt8:
		return layout.StoreByte
	case hi <= math.MaxInt16 && lo >= math.MinInt16:
		return layout.StoreShort
	case hi <= 1<<23-1 && lo >= -1<<23:
		return layout.StoreShortInt
	case hi <= math.MaxInt32 && lo >= math.MinInt32:
		return layout.StoreInt
	}
	return layout.StoreLong
}

// appendWhole appends a number of w bytes: little-endian, three bytes big-endian.
func appendWhole(b []byte, v int64, w int) []byte {
	switch w {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case 3:
		return append(b, byte(v>>16), byte(v>>8), byte(v))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(v))
}

// integral encodes whole numbers, booleans, timestamps, and decimals of up to 18 digits.
func (w *PageWriter) integral(p *layout.OutPage, x *Cells) {
	v := x.Ints
	source := storeTypes[w.Typ]
	if w.Typ == layout.TypeTimestamp {
		source = layout.StoreLong
	}
	if w.Typ == layout.TypeDecimal {
		if v = w.smallDecimals(x); w.Precision <= 9 {
			source = layout.StoreInt
		} else {
			source = layout.StoreLong
		}
	}
	var s stats
	if len(v) > 0 {
		s.min, s.max = slices.Min(v), slices.Max(v)
	} else {
		s.min, s.max = emptyStats(source)
	}
	w.wholeBounds(p, s)
	store, delta := w.chooseWhole(source, s)
	if store == source && w.Typ != layout.TypeDecimal && w.Parent == nil || w.Typ == layout.TypeBoolean &&
		w.Parent == nil {
		p.Encoders = layout.Encodings{layout.EncDirectCompress}
		w.finish(p, x, v, w.directType(source), s, false)
		return
	}
	p.Adaptive = true
	p.Encoders = layout.Encodings{layout.EncAdaptiveIntegral}
	if delta {
		p.Encoders[0] = layout.EncAdaptiveDeltaIntegral
	}
	if w.Inverted {
		v = w.invert(p, v)
	}
	w.finish(p, x, v, store, s, delta)
	if p.Raw = int64(source.Width() * x.N); w.Typ == layout.TypeDecimal {
		p.Raw = 0 // as the real writer says of them
	}
	w.child(p)
}

// directType is the store type of numbers that are only compressed.
func (w *PageWriter) directType(source layout.StoreType) layout.StoreType {
	if w.Typ == layout.TypeBoolean {
		return layout.StoreByte
	}
	return source
}

// emptyStats are the statistics of a page without entries, which only lists have below them.
func emptyStats(t layout.StoreType) (lo, hi int64) {
	n := 8*t.Width() - 1
	return 1<<n - 1, -1 << n
}

// chooseWhole picks the narrowest form: the numbers, or what they are less than the greatest.
func (w *PageWriter) chooseWhole(source layout.StoreType, s stats) (t layout.StoreType, delta bool) {
	plain := narrowest(s.min, s.max)
	if s.min > s.max {
		return layout.StoreByte, false
	}
	other := layout.StoreLong
	// else it overflowed; the real writer does not try wide decimals
	if d := s.max - s.min; d >= 0 && !(w.Typ == layout.TypeDecimal && source == layout.StoreLong) {
		other = narrowest(d, d)
	}
	if w.Typ == layout.TypeBoolean && w.Parent != nil {
		source = layout.StoreByte
	}
	if plain.Width() <= other.Width() {
		return plain, false
	}
	return other, true
}

// finish writes numbers, nulls and metadata.
func (w *PageWriter) finish(p *layout.OutPage, x *Cells, v []int64, store layout.StoreType, s stats, delta bool) {
	n := store.Width()
	raw := slices.Grow(w.raw[:0], n*len(v))
	if delta {
		for _, y := range v {
			raw = appendWhole(raw, s.max-y, n)
		}
	} else {
		for _, y := range v {
			raw = appendWhole(raw, y, n)
		}
	}
	w.close(p, x, raw, store, s)
}

// close compresses raw, which becomes scratch, and appends what invert prepared.
func (w *PageWriter) close(p *layout.OutPage, x *Cells, raw []byte, store layout.StoreType, s stats) {
	w.raw = raw
	p.Raw = int64(len(raw))
	data := w.compress(raw)
	p.DataLen = int32(len(data))
	p.Bytes = append(data, p.Bytes...)
	if x != nil {
		p.Nulls = w.compress(x.nulls)
	}
	p.Meta = [][]byte{w.encoderMeta(store, s)}
}

// invert sorts numbers and leaves the row ids in p.bytes.
func (w *PageWriter) invert(p *layout.OutPage, v []int64) []int64 {
	perm := w.identity(len(v))
	if !slices.IsSorted(v) {
		slices.SortStableFunc(perm, func(a, b uint32) int {
			switch {
			case v[a] < v[b]:
				return -1
			case v[a] > v[b]:
				return 1
			}
			return 0
		})
		out := make([]int64, len(v))
		for i, r := range perm {
			out[i] = v[r]
		}
		v = out
	}
	w.rowIDs(p, perm)
	return v
}

func (w *PageWriter) identity(n int) []uint32 {
	w.perm = slices.Grow(w.perm[:0], n)[:n]
	for i := range w.perm {
		w.perm[i] = uint32(i)
	}
	return w.perm
}

// rowIDs appends the inverted index: the length of the ids, the ids, and where in them a run begins of which
// the next id is the end.
func (w *PageWriter) rowIDs(p *layout.OutPage, perm []uint32) {
	var ids, starts []uint32
	for i := 0; i < len(perm); {
		end := i
		for end+1 < len(perm) && perm[end+1] == perm[end]+1 {
			end++
		}
		if end > i {
			starts = append(starts, uint32(len(ids)))
			ids = append(ids, perm[i], perm[end])
		} else {
			ids = append(ids, perm[i])
		}
		i = end + 1
	}
	if (len(ids)+len(starts))*100/len(perm) > 70 {
		ids, starts = perm, nil
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(2*len(ids)))
	for _, list := range [][]uint32{ids, starts} {
		for _, v := range list {
			b = binary.BigEndian.AppendUint16(b, uint16(v))
		}
	}
	p.RowidLen = int32(len(b))
	p.Bytes = append(p.Bytes, b...)
	p.Encoders = append(p.Encoders, layout.EncInvertedIndex)
	p.Sort = 2 // SORT_EXPLICIT
}

// wholeBounds sets the least and the greatest value: of measures and in lists and structs eight bytes (one of bytes and
// booleans), of dimensions the bytes of the type with the sign turned.
func (w *PageWriter) wholeBounds(p *layout.OutPage, s stats) {
	bound := func(v int64) []byte {
		be := binary.BigEndian
		switch {
		case w.Typ == layout.TypeBoolean && w.class() == layout.PlainValue:
			return []byte{byte(-v)} // true is 255 to filters
		case w.Typ == layout.TypeBoolean:
			return []byte{byte(v)}
		case w.Typ == layout.TypeDecimal:
			return nil // smallDecimals set them
		case w.Typ == layout.TypeByte:
			return []byte{byte(v)}
		case w.class() != layout.PlainValue:
			return be.AppendUint64(nil, uint64(v))
		case w.Typ == layout.TypeShort:
			return be.AppendUint16(nil, uint16(v)^1<<15)
		case w.Typ == layout.TypeInt:
			return be.AppendUint32(nil, uint32(v)^1<<31)
		}
		return be.AppendUint64(nil, uint64(v)^1<<63)
	}
	if w.Typ == layout.TypeDecimal {
		p.MinMax.Min[0], p.MinMax.Max[0] = w.decimalMin, w.decimalMax
		return
	}
	if w.Typ == layout.TypeByte && w.class() == layout.PlainValue {
		p.MinMax.Written[0] = false // the real writer keeps them as texts, which do not compare as numbers do
		return
	}
	p.MinMax.Min[0], p.MinMax.Max[0] = bound(s.min), bound(s.max)
}

// DecimalBytes is a decimal as Carbon has it: the scale, then the shortest big-endian number.
func DecimalBytes(v decimal128.Num, scale int32) []byte {
	return append([]byte{byte(scale)}, shortestNumber(v)...)
}

// shortestNumber is the shortest big-endian form of a number.
func shortestNumber(v decimal128.Num) []byte {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(v.HighBits())), v.LowBits())
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

// smallDecimals gives decimals as whole numbers and notes the least and the greatest. A null counts as 0 of scale 0.
func (w *PageWriter) smallDecimals(x *Cells) []int64 {
	w.decimalBounds(x)
	v := make([]int64, len(x.Decs))
	for i, d := range x.Decs {
		v[i] = int64(d.LowBits())
	}
	return v
}

func (w *PageWriter) decimalBounds(x *Cells) {
	var lo, hi decimal128.Num
	loScale, hiScale := w.Scale, w.Scale
	for i, d := range x.Decs {
		scale := w.Scale
		if x.Null(i) {
			scale = 0
		}
		if i == 0 || d.Less(lo) {
			lo, loScale = d, scale
		}
		if i == 0 || d.Greater(hi) {
			hi, hiScale = d, scale
		}
	}
	w.decimalMin, w.decimalMax = DecimalBytes(lo, loScale), DecimalBytes(hi, hiScale)
}

// wideDecimals encodes decimals of more than 18 digits: big-endian numbers of a width that follows from the precision.
func (w *PageWriter) wideDecimals(p *layout.OutPage, x *Cells) {
	w.decimalBounds(x)
	w.wholeBounds(p, stats{})
	n := minBytes(w.Precision)
	raw := w.raw[:0]
	var wide [16]byte
	for _, d := range x.Decs {
		binary.BigEndian.PutUint64(wide[:], uint64(d.HighBits()))
		binary.BigEndian.PutUint64(wide[8:], d.LowBits())
		for range n - 16 {
			raw = append(raw, wide[0]>>7*255)
		}
		raw = append(raw, wide[max(0, 16-n):]...)
	}
	p.Encoders = layout.Encodings{layout.EncDirectCompress}
	w.close(p, x, raw, layout.StoreDecimal, stats{})
}

// keys encodes a column with a global dictionary, or a direct one: codes, big-endian, of four bytes or of as
// many as the greatest code of a global dictionary needs; null is code 1.
func (w *PageWriter) keys(p *layout.OutPage, x *Cells) {
	n := 4
	if schema.GlobalCodes(w.Column) {
		n = keyBytes(w.Column)
	}
	codes := make([]int64, len(x.Ints))
	for i := range codes {
		codes[i] = int64(surrogate(w.Column, x, i))
	}
	p.Encoders = layout.Encodings{layout.EncDictionary, layout.EncRLE}
	p.Sort = 1 // SORT_NATIVE
	p.MinMax.Min[0], p.MinMax.Max[0] = appendCode(nil, uint32(slices.Min(codes)), n),
		appendCode(nil, uint32(slices.Max(codes)), n)
	if w.Inverted {
		codes = w.invert(p, codes)
	}
	raw := slices.Grow(w.raw[:0], n*len(codes))
	for _, c := range codes {
		if n == 4 {
			raw = binary.BigEndian.AppendUint32(raw, uint32(c))
		} else {
			raw = appendCode(raw, uint32(c), n)
		}
	}
	w.close(p, nil, raw, 0, stats{})
	p.Meta = nil
}

// leaves encodes dates and decimals within lists and structs: a length of four bytes and the value; no bytes are null.
func (w *PageWriter) leaves(p *layout.OutPage, x *Cells) {
	raw := w.raw[:0]
	for i := range x.N {
		var v []byte
		switch {
		case x.Null(i):
		case w.Typ == layout.TypeDate:
			v = binary.BigEndian.AppendUint32(nil, uint32(x.Ints[i]+schema.DateOffset)^1<<31)
		default:
			v = DecimalBytes(x.Decs[i], w.Scale)
		}
		raw = append(binary.BigEndian.AppendUint32(raw, uint32(len(v))), v...)
	}
	w.byteArrays(p, raw)
	p.Raw -= int64(4 * x.N)
}

// byteArrays ends a page of values with lengths, or of lengths, within a list or struct.
func (w *PageWriter) byteArrays(p *layout.OutPage, raw []byte) {
	p.Encoders = layout.Encodings{layout.EncDirectCompress, layout.EncIntLengthChild}
	w.raw, p.Raw = raw, int64(len(raw))
	p.Bytes = w.compress(raw)
	p.DataLen = int32(len(p.Bytes))
	p.Meta = [][]byte{bareMeta(w.Name, w.class(), w.Codec)}
}

// bareMeta is the encoder_meta of values that are only compressed and have no bounds.
func bareMeta(name string, class layout.ColumnType, method string) []byte {
	b := append(layout.AppendUTF(nil, name), byte(layout.StoreByteArray), byte(class))
	b = binary.BigEndian.AppendUint64(b, math.MaxUint64) // scale and precision: -1
	b = append(b, byte(layout.StoreByteArray), 0, 0, 0, 0, 0)
	return layout.AppendUTF(b, method)
}

// nested encodes what a list or map has per entry, the number of its items and of its first one, or a struct:
// the number of its children.
func (w *PageWriter) nested(p *layout.OutPage, x *Cells) {
	raw := w.raw[:0]
	if w.Typ == layout.TypeStruct {
		for range x.N {
			raw = binary.BigEndian.AppendUint16(raw, uint16(len(w.Kids)))
		}
	} else {
		at := int64(0)
		for _, n := range x.Ints {
			first := at
			if n == 0 {
				first = 0
			}
			raw = binary.BigEndian.AppendUint32(raw, uint32(n))
			raw = binary.BigEndian.AppendUint32(raw, uint32(first))
			at += n
		}
	}
	w.byteArrays(p, raw)
}

// maxBound is the longest text that is kept as a bound; with a longer one in the page, none is.
const maxBound = 200

// textBounds sets the least and the greatest text, with that of a null for a null.
func (w *PageWriter) textBounds(p *layout.OutPage, x *Cells) {
	if w.Parent != nil {
		return
	}
	var lo, hi []byte
	for i := range x.N {
		v := x.Text(i)
		if x.Null(i) && w.Typ != layout.TypeBinary {
			v = []byte(schema.NullText)
		}
		if len(v) > maxBound {
			p.MinMax.Written[0] = false
			return
		}
		if i == 0 || bytes.Compare(v, lo) < 0 {
			lo = v
		}
		if i == 0 || bytes.Compare(v, hi) > 0 {
			hi = v
		}
	}
	p.MinMax.Min[0], p.MinMax.Max[0] = bytes.Clone(lo), bytes.Clone(hi)
	if p.MinMax.Min[0] == nil {
		p.MinMax.Min[0], p.MinMax.Max[0] = []byte{}, []byte{}
	}
}

// texts encodes strings and binaries: as codes of the local dictionary, or with a length before each.
func (w *PageWriter) texts(p *layout.OutPage, x *Cells) {
	w.textBounds(p, x)
	if w.Dict != nil {
		if codes := w.Dict.codesOf(w, x); codes != nil {
			p.Codes = codes
			w.coded(p, x, codes)
			return
		}
	}
	w.plainTexts(p, x)
}

// lengthBytes is how many bytes the length of a text has.
func (w *PageWriter) lengthBytes() int {
	if w.Typ == layout.TypeString && w.Parent == nil {
		return 2
	}
	return 4
}

func appendText(b []byte, v []byte, lv int) []byte {
	if lv == 2 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(v)))
	} else {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	}
	return append(b, v...)
}

func (w *PageWriter) plainTexts(p *layout.OutPage, x *Cells) {
	lv := w.lengthBytes()
	at := func(i int) []byte {
		if w.Typ != layout.TypeBinary && x.Null(i) {
			return []byte(schema.NullText)
		}
		return x.Text(i)
	}
	w.plain(p, x, lv, at)
}

// plain writes n texts that at gives.
func (w *PageWriter) plain(p *layout.OutPage, x *Cells, lv int, at func(i int) []byte) {
	p.Encoders = nil
	n := int(p.Rows)
	var perm []uint32
	if w.Parent == nil {
		p.Sort = 1
		if lv == 4 {
			p.Encoders = layout.Encodings{layout.EncDirectCompressVarchar}
		}
		if w.Inverted {
			perm = w.sortTexts(p, n, at)
		}
	}
	raw := w.raw[:0]
	for i := range n {
		if perm != nil {
			i = int(perm[i])
		}
		raw = appendText(raw, at(i), lv)
	}
	if w.Parent != nil {
		w.byteArrays(p, raw)
	} else {
		w.close(p, nil, raw, 0, stats{})
		p.Meta = nil
	}
	if w.Typ == layout.TypeBinary && x != nil {
		p.Nulls = w.compress(x.nulls)
	}
}

// sortTexts gives the order of texts and leaves the row ids in p.
func (w *PageWriter) sortTexts(p *layout.OutPage, n int, at func(i int) []byte) []uint32 {
	perm := w.identity(n)
	slices.SortStableFunc(perm, func(a, b uint32) int { return bytes.Compare(at(int(a)), at(int(b))) })
	w.rowIDs(p, perm)
	return perm
}

// coded writes codes of the local dictionary: three bytes each; in columns of the table equal neighbours once,
// with runs, if that is worth it.
func (w *PageWriter) coded(p *layout.OutPage, x *Cells, codes []uint32) {
	if w.Parent != nil {
		raw := w.raw[:0]
		for _, c := range codes {
			raw = append(raw, byte(c>>16), byte(c>>8), byte(c))
		}
		w.byteArrays(p, raw)
		return
	}
	p.Sort = 1
	if w.lengthBytes() == 4 {
		p.Encoders = layout.Encodings{layout.EncDirectCompressVarchar}
	}
	if w.Inverted {
		v := make([]int64, len(codes))
		for i, c := range codes {
			v[i] = int64(c)
		}
		v = w.invert(p, v)
		codes = slices.Clone(codes)
		for i, c := range v {
			codes[i] = uint32(c)
		}
	}
	values, runs := runsOf(codes)
	raw := w.raw[:0]
	for _, c := range values {
		raw = append(raw, byte(c>>16), byte(c>>8), byte(c))
	}
	w.close(p, nil, raw, 0, stats{})
	p.Raw = int64(3 * len(codes))
	p.Meta = nil
	if len(runs) > 0 {
		p.Encoders = append(p.Encoders, layout.EncRLE)
		p.RleLen = int32(2 * len(runs))
		for _, r := range runs {
			p.Bytes = binary.BigEndian.AppendUint16(p.Bytes, uint16(r))
		}
	}
}

// runsOf gives each run's code once, and pairs of first entry and count; no runs if they would save little.
func runsOf(codes []uint32) (values, runs []uint32) {
	for i, c := range codes {
		if i > 0 && c == codes[i-1] {
			runs[len(runs)-1]++
			continue
		}
		values = append(values, c)
		runs = append(runs, uint32(i), 1)
	}
	if (len(values)+len(runs))*100/max(1, len(codes)) > 70 {
		return codes, nil
	}
	return values, runs
}
