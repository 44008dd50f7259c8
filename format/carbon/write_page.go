package carbon

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/internal/codec"
)

// outPage is an encoded page: its DataChunk2 and its bytes.
type outPage struct {
	dataChunk
	nulls    []byte // PresenceMeta's bits, compressed
	bytes    []byte // data, row ids, runs
	adaptive bool   // rowid_page_length is told even if it is 0
	codes    []uint32
}

// size is what the page takes of a blocklet, with its metadata, about.
func (p *outPage) size() int64 {
	n := len(p.bytes) + len(p.nulls) + 64
	for _, m := range p.meta {
		n += len(m)
	}
	return int64(n + len(p.minMax.min[0]) + len(p.minMax.max[0]))
}

// pageWriter encodes the pages of one column. It belongs to one goroutine at a time.
type pageWriter struct {
	*column
	codec    string
	inverted bool // a sort column with an inverted index
	dict     *dictWriter

	decimalMin, decimalMax []byte // of the page that is being encoded

	raw  []byte // scratch
	perm []uint32
}

// column classes of ColumnPageEncoderMeta that only the writer names.
const (
	measureColumn columnType = 4
	structColumn  columnType = 5
	arrayColumn   columnType = 6
)

// class is the column's class in encoder_meta.
func (w *pageWriter) class() columnType {
	switch {
	case w.typ == typeStruct:
		return structColumn
	case w.typ.complex():
		return arrayColumn
	case w.parent != nil:
		return complexPrimitive
	case w.dimension:
		return plainValue
	}
	return measureColumn
}

// storeTypes are the numbers that encoder_meta has for the types of the schema.
var storeTypes = map[dataType]storeType{typeBoolean: storeBoolean, typeByte: storeByte, typeShort: storeShort, typeInt: storeInt, typeLong: storeLong,
	typeTimestamp: storeTimestamp, typeFloat: storeFloat, typeDouble: storeDouble, typeDecimal: storeDecimal, typeBinary: storeBinary}

// compress compresses raw with the column's method. The method was checked when the options were read.
func (w *pageWriter) compress(raw []byte) []byte {
	b, _ := codec.Squeeze(w.codec, nil, raw)
	return b
}

// encode makes a page of cells.
func (w *pageWriter) encode(x *cells) *outPage {
	p := &outPage{}
	p.dataChunk.codec, p.rows = w.codec, int64(x.n)
	p.minMax = &minMax{min: [][]byte{{}}, max: [][]byte{{}}, written: []bool{true}}
	switch {
	case w.typ.complex():
		w.nested(p, x)
	case w.parent == nil && (w.typ == typeDate || w.encoders.has(encDictionary)):
		w.keys(p, x)
	case w.typ == typeString, w.typ == typeVarchar, w.typ == typeBinary:
		w.texts(p, x)
	case w.parent != nil && (w.typ == typeDate || w.typ == typeDecimal):
		w.leaves(p, x)
	case w.typ == typeDecimal && w.precision > 18:
		w.wideDecimals(p, x)
	case w.typ == typeFloat, w.typ == typeDouble:
		w.floating(p, x)
	default:
		w.integral(p, x)
	}
	if p.nulls == nil {
		p.nulls = w.compress(nil)
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
func (w *pageWriter) encoderMeta(store storeType, s stats) []byte {
	schema, ok := storeTypes[w.typ]
	if !ok || w.class() == complexPrimitive && w.typ == typeDecimal {
		schema = storeByteArray
	}
	if w.typ == typeBinary && w.parent != nil {
		schema = storeByteArray
	}
	b := appendUTF(nil, w.name)
	b = append(b, byte(schema), byte(w.class()))
	scale, precision := int32(-1), int32(-1)
	if schema == storeDecimal {
		scale, precision = w.scale, w.precision
	}
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(scale))
	b = be.AppendUint32(b, uint32(precision))
	b = append(b, byte(store))
	b = be.AppendUint32(b, uint32(s.decimals))
	b = append(b, 0) // dataTypeSelected
	switch schema {
	case storeBoolean, storeByte:
		b = append(b, byte(s.max), byte(s.min))
		b = be.AppendUint64(b, 0)
	case storeShort:
		b = be.AppendUint16(be.AppendUint16(b, uint16(s.max)), uint16(s.min))
		b = be.AppendUint64(b, 0)
	case storeInt:
		b = be.AppendUint32(be.AppendUint32(b, uint32(s.max)), uint32(s.min))
		b = be.AppendUint64(b, 0)
	case storeLong, storeTimestamp:
		b = be.AppendUint64(be.AppendUint64(b, uint64(s.max)), uint64(s.min))
		b = be.AppendUint64(b, 0)
	case storeDouble:
		b = be.AppendUint64(be.AppendUint64(b, math.Float64bits(s.fmax)), math.Float64bits(s.fmin))
		b = be.AppendUint64(b, 0)
	case storeFloat:
		b = be.AppendUint32(be.AppendUint32(b, math.Float32bits(float32(s.fmax))), math.Float32bits(float32(s.fmin)))
		b = be.AppendUint32(b, 0)
	case storeDecimal:
		for _, v := range [][]byte{w.decimalMax, w.decimalMin, decimalBytes(decimal128.Num{}, 0)} {
			b = append(be.AppendUint16(b, uint16(len(v))), v...)
		}
		b = be.AppendUint32(be.AppendUint32(b, uint32(w.scale)), uint32(w.precision))
	}
	return appendUTF(b, w.codec)
}

func appendUTF(b []byte, s string) []byte {
	s = s[:min(len(s), math.MaxUint16)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// width is how many bytes the narrowest store type for numbers from lo to hi has.
func narrowest(lo, hi int64) storeType {
	switch {
	case hi <= math.MaxInt8 && lo >= math.MinInt8:
		return storeByte
	case hi <= math.MaxInt16 && lo >= math.MinInt16:
		return storeShort
	case hi <= 1<<23-1 && lo >= -1<<23:
		return storeShortInt
	case hi <= math.MaxInt32 && lo >= math.MinInt32:
		return storeInt
	}
	return storeLong
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
func (w *pageWriter) integral(p *outPage, x *cells) {
	v := x.ints
	source := storeTypes[w.typ]
	if w.typ == typeTimestamp {
		source = storeLong
	}
	if w.typ == typeDecimal {
		if v = w.smallDecimals(x); w.precision <= 9 {
			source = storeInt
		} else {
			source = storeLong
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
	if store == source && w.typ != typeDecimal && w.parent == nil || w.typ == typeBoolean && w.parent == nil {
		p.encoders = encodings{encDirectCompress}
		w.finish(p, x, v, w.directType(source), s, false)
		return
	}
	p.adaptive = true
	p.encoders = encodings{encAdaptiveIntegral}
	if delta {
		p.encoders[0] = encAdaptiveDeltaIntegral
	}
	if w.inverted {
		v = w.invert(p, v)
	}
	w.finish(p, x, v, store, s, delta)
	if p.raw = int64(source.width() * x.n); w.typ == typeDecimal {
		p.raw = 0 // as the real writer says of them
	}
	w.child(p)
}

// directType is the store type of numbers that are only compressed.
func (w *pageWriter) directType(source storeType) storeType {
	if w.typ == typeBoolean {
		return storeByte
	}
	return source
}

// emptyStats are the statistics of a page without entries, which only lists have below them.
func emptyStats(t storeType) (lo, hi int64) {
	n := 8*t.width() - 1
	return 1<<n - 1, -1 << n
}

// chooseWhole picks the narrowest form: the numbers, or what they are less than the greatest.
func (w *pageWriter) chooseWhole(source storeType, s stats) (t storeType, delta bool) {
	plain := narrowest(s.min, s.max)
	if s.min > s.max {
		return storeByte, false
	}
	other := storeLong
	if d := s.max - s.min; d >= 0 && !(w.typ == typeDecimal && source == storeLong) { // else it overflowed; the real writer does not try wide decimals
		other = narrowest(d, d)
	}
	if w.typ == typeBoolean && w.parent != nil {
		source = storeByte
	}
	if plain.width() <= other.width() {
		return plain, false
	}
	return other, true
}

// finish writes numbers, nulls and metadata.
func (w *pageWriter) finish(p *outPage, x *cells, v []int64, store storeType, s stats, delta bool) {
	n := store.width()
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
func (w *pageWriter) close(p *outPage, x *cells, raw []byte, store storeType, s stats) {
	w.raw = raw
	p.raw = int64(len(raw))
	data := w.compress(raw)
	p.dataLen = int32(len(data))
	p.bytes = append(data, p.bytes...)
	if x != nil {
		p.nulls = w.compress(x.nulls)
	}
	p.meta = [][]byte{w.encoderMeta(store, s)}
}

// invert sorts numbers and leaves the row ids in p.bytes.
func (w *pageWriter) invert(p *outPage, v []int64) []int64 {
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

func (w *pageWriter) identity(n int) []uint32 {
	w.perm = slices.Grow(w.perm[:0], n)[:n]
	for i := range w.perm {
		w.perm[i] = uint32(i)
	}
	return w.perm
}

// rowIDs appends the inverted index: the length of the ids, the ids, and where in them a run begins of which the next id is the end.
func (w *pageWriter) rowIDs(p *outPage, perm []uint32) {
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
	p.rowidLen = int32(len(b))
	p.bytes = append(p.bytes, b...)
	p.encoders = append(p.encoders, encInvertedIndex)
	p.sort = 2 // SORT_EXPLICIT
}

// wholeBounds sets the least and the greatest value: of measures and in lists and structs eight bytes (one of bytes and
// booleans), of dimensions the bytes of the type with the sign turned.
func (w *pageWriter) wholeBounds(p *outPage, s stats) {
	bound := func(v int64) []byte {
		be := binary.BigEndian
		switch {
		case w.typ == typeBoolean && w.class() == plainValue:
			return []byte{byte(-v)} // true is 255 to filters
		case w.typ == typeBoolean:
			return []byte{byte(v)}
		case w.typ == typeDecimal:
			return nil // smallDecimals set them
		case w.typ == typeByte:
			return []byte{byte(v)}
		case w.class() != plainValue:
			return be.AppendUint64(nil, uint64(v))
		case w.typ == typeShort:
			return be.AppendUint16(nil, uint16(v)^1<<15)
		case w.typ == typeInt:
			return be.AppendUint32(nil, uint32(v)^1<<31)
		}
		return be.AppendUint64(nil, uint64(v)^1<<63)
	}
	if w.typ == typeDecimal {
		p.minMax.min[0], p.minMax.max[0] = w.decimalMin, w.decimalMax
		return
	}
	if w.typ == typeByte && w.class() == plainValue {
		p.minMax.written[0] = false // the real writer keeps them as texts, which do not compare as numbers do
		return
	}
	p.minMax.min[0], p.minMax.max[0] = bound(s.min), bound(s.max)
}

// decimalBytes is a decimal as Carbon has it: the scale, then the shortest big-endian number.
func decimalBytes(v decimal128.Num, scale int32) []byte {
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
func (w *pageWriter) smallDecimals(x *cells) []int64 {
	w.decimalBounds(x)
	v := make([]int64, len(x.decs))
	for i, d := range x.decs {
		v[i] = int64(d.LowBits())
	}
	return v
}

func (w *pageWriter) decimalBounds(x *cells) {
	var lo, hi decimal128.Num
	loScale, hiScale := w.scale, w.scale
	for i, d := range x.decs {
		scale := w.scale
		if x.null(i) {
			scale = 0
		}
		if i == 0 || d.Less(lo) {
			lo, loScale = d, scale
		}
		if i == 0 || d.Greater(hi) {
			hi, hiScale = d, scale
		}
	}
	w.decimalMin, w.decimalMax = decimalBytes(lo, loScale), decimalBytes(hi, hiScale)
}

// wideDecimals encodes decimals of more than 18 digits: big-endian numbers of a width that follows from the precision.
func (w *pageWriter) wideDecimals(p *outPage, x *cells) {
	w.decimalBounds(x)
	w.wholeBounds(p, stats{})
	n := minBytes(w.precision)
	raw := w.raw[:0]
	var wide [16]byte
	for _, d := range x.decs {
		binary.BigEndian.PutUint64(wide[:], uint64(d.HighBits()))
		binary.BigEndian.PutUint64(wide[8:], d.LowBits())
		for range n - 16 {
			raw = append(raw, wide[0]>>7*255)
		}
		raw = append(raw, wide[max(0, 16-n):]...)
	}
	p.encoders = encodings{encDirectCompress}
	w.close(p, x, raw, storeDecimal, stats{})
}

// keys encodes a column with a global dictionary, or a direct one: codes, big-endian, of four bytes or of as many as the greatest
// code of a global dictionary needs; null is code 1.
func (w *pageWriter) keys(p *outPage, x *cells) {
	n := 4
	if w.globalCodes() {
		n = w.keyBytes()
	}
	codes := make([]int64, len(x.ints))
	for i := range codes {
		codes[i] = int64(w.surrogate(x, i))
	}
	p.encoders = encodings{encDictionary, encRLE}
	p.sort = 1 // SORT_NATIVE
	p.minMax.min[0], p.minMax.max[0] = appendCode(nil, uint32(slices.Min(codes)), n), appendCode(nil, uint32(slices.Max(codes)), n)
	if w.inverted {
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
	p.meta = nil
}

// leaves encodes dates and decimals within lists and structs: a length of four bytes and the value; no bytes are null.
func (w *pageWriter) leaves(p *outPage, x *cells) {
	raw := w.raw[:0]
	for i := range x.n {
		var v []byte
		switch {
		case x.null(i):
		case w.typ == typeDate:
			v = binary.BigEndian.AppendUint32(nil, uint32(x.ints[i]+dateOffset)^1<<31)
		default:
			v = decimalBytes(x.decs[i], w.scale)
		}
		raw = append(binary.BigEndian.AppendUint32(raw, uint32(len(v))), v...)
	}
	w.byteArrays(p, raw)
	p.raw -= int64(4 * x.n)
}

// byteArrays ends a page of values with lengths, or of lengths, within a list or struct.
func (w *pageWriter) byteArrays(p *outPage, raw []byte) {
	p.encoders = encodings{encDirectCompress, encIntLengthChild}
	w.raw, p.raw = raw, int64(len(raw))
	p.bytes = w.compress(raw)
	p.dataLen = int32(len(p.bytes))
	p.meta = [][]byte{bareMeta(w.name, w.class(), w.codec)}
}

// bareMeta is the encoder_meta of values that are only compressed and have no bounds.
func bareMeta(name string, class columnType, method string) []byte {
	b := append(appendUTF(nil, name), byte(storeByteArray), byte(class))
	b = binary.BigEndian.AppendUint64(b, math.MaxUint64) // scale and precision: -1
	b = append(b, byte(storeByteArray), 0, 0, 0, 0, 0)
	return appendUTF(b, method)
}

// nested encodes what a list or map has per entry, the number of its items and of its first one, or a struct: the number of its
// children.
func (w *pageWriter) nested(p *outPage, x *cells) {
	raw := w.raw[:0]
	if w.typ == typeStruct {
		for range x.n {
			raw = binary.BigEndian.AppendUint16(raw, uint16(len(w.kids)))
		}
	} else {
		at := int64(0)
		for _, n := range x.ints {
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
func (w *pageWriter) textBounds(p *outPage, x *cells) {
	if w.parent != nil {
		return
	}
	var lo, hi []byte
	for i := range x.n {
		v := x.text(i)
		if x.null(i) && w.typ != typeBinary {
			v = []byte(nullText)
		}
		if len(v) > maxBound {
			p.minMax.written[0] = false
			return
		}
		if i == 0 || bytes.Compare(v, lo) < 0 {
			lo = v
		}
		if i == 0 || bytes.Compare(v, hi) > 0 {
			hi = v
		}
	}
	p.minMax.min[0], p.minMax.max[0] = bytes.Clone(lo), bytes.Clone(hi)
	if p.minMax.min[0] == nil {
		p.minMax.min[0], p.minMax.max[0] = []byte{}, []byte{}
	}
}

// texts encodes strings and binaries: as codes of the local dictionary, or with a length before each.
func (w *pageWriter) texts(p *outPage, x *cells) {
	w.textBounds(p, x)
	if w.dict != nil {
		if codes := w.dict.codesOf(w, x); codes != nil {
			p.codes = codes
			w.coded(p, x, codes)
			return
		}
	}
	w.plainTexts(p, x)
}

// lengthBytes is how many bytes the length of a text has.
func (w *pageWriter) lengthBytes() int {
	if w.typ == typeString && w.parent == nil {
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

func (w *pageWriter) plainTexts(p *outPage, x *cells) {
	lv := w.lengthBytes()
	at := func(i int) []byte {
		if w.typ != typeBinary && x.null(i) {
			return []byte(nullText)
		}
		return x.text(i)
	}
	w.plain(p, x, lv, at)
}

// plain writes n texts that at gives.
func (w *pageWriter) plain(p *outPage, x *cells, lv int, at func(i int) []byte) {
	p.encoders = nil
	n := int(p.rows)
	var perm []uint32
	if w.parent == nil {
		p.sort = 1
		if lv == 4 {
			p.encoders = encodings{encDirectCompressVarchar}
		}
		if w.inverted {
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
	if w.parent != nil {
		w.byteArrays(p, raw)
	} else {
		w.close(p, nil, raw, 0, stats{})
		p.meta = nil
	}
	if w.typ == typeBinary && x != nil {
		p.nulls = w.compress(x.nulls)
	}
}

// sortTexts gives the order of texts and leaves the row ids in p.
func (w *pageWriter) sortTexts(p *outPage, n int, at func(i int) []byte) []uint32 {
	perm := w.identity(n)
	slices.SortStableFunc(perm, func(a, b uint32) int { return bytes.Compare(at(int(a)), at(int(b))) })
	w.rowIDs(p, perm)
	return perm
}

// coded writes codes of the local dictionary: three bytes each; in columns of the table equal neighbours once, with runs, if that
// is worth it.
func (w *pageWriter) coded(p *outPage, x *cells, codes []uint32) {
	if w.parent != nil {
		raw := w.raw[:0]
		for _, c := range codes {
			raw = append(raw, byte(c>>16), byte(c>>8), byte(c))
		}
		w.byteArrays(p, raw)
		return
	}
	p.sort = 1
	if w.lengthBytes() == 4 {
		p.encoders = encodings{encDirectCompressVarchar}
	}
	if w.inverted {
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
	p.raw = int64(3 * len(codes))
	p.meta = nil
	if len(runs) > 0 {
		p.encoders = append(p.encoders, encRLE)
		p.rleLen = int32(2 * len(runs))
		for _, r := range runs {
			p.bytes = binary.BigEndian.AppendUint16(p.bytes, uint16(r))
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
