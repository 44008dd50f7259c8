package page

import (
	"encoding/binary"
	"math"
	"slices"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/codec"
	"stoa/internal/coerce"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
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

// class is the column's class in encoder_meta.
func (w *PageWriter) class() layout.ColumnType {
	switch {
	case w.Type == layout.TypeStruct:
		return structColumn
	case w.Type.Complex():
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

// compress compresses raw with the column's codec, which was validated when the options were parsed.
func (w *PageWriter) compress(raw []byte) []byte {
	b, _ := codec.CompressFramed(w.Codec, nil, raw)
	return b
}

// stats are the statistics by which the encoder is chosen. A null counts as 0.
type stats struct {
	min, max   int64   // whole numbers and unscaled decimals
	fmin, fmax float64 // floating-point numbers
	decimals   int32   // digits after the decimal point; -1: more than 5
}

// encoderMeta is ColumnPageEncoderMeta.
func (w *PageWriter) encoderMeta(store layout.StoreType, s stats) []byte {
	kind, ok := storeTypes[w.Type]
	if !ok || w.class() == layout.ComplexPrimitive && w.Type == layout.TypeDecimal {
		kind = layout.StoreByteArray
	}
	if w.Type == layout.TypeBinary && w.Parent != nil {
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

// narrowest returns the narrowest store type for whole numbers from lo to hi.
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

// close compresses raw, whose memory is then reused as scratch, and appends the row ids that invert left in p.Bytes.
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

// invert sorts numbers, returns them, and leaves the row ids in p.Bytes.
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

// rowIDs appends the inverted index: the length of the ids, the ids, and the positions in ids at which a run begins,
// whose last row is the next id.
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

// wholeBounds sets min and max. Measures and values in lists and structs have eight bytes (bytes and booleans one);
// dimensions have the bytes of the type with the sign bit inverted.
func (w *PageWriter) wholeBounds(p *layout.OutPage, s stats) {
	bound := func(v int64) []byte {
		be := binary.BigEndian
		switch {
		case w.Type == layout.TypeBoolean && w.class() == layout.PlainValue:
			return []byte{byte(-v)} // filters compare true as 255
		case w.Type == layout.TypeBoolean:
			return []byte{byte(v)}
		case w.Type == layout.TypeDecimal:
			return nil // smallDecimals has computed them
		case w.Type == layout.TypeByte:
			return []byte{byte(v)}
		case w.class() != layout.PlainValue:
			return be.AppendUint64(nil, uint64(v))
		case w.Type == layout.TypeShort:
			return be.AppendUint16(nil, uint16(v)^1<<15)
		case w.Type == layout.TypeInt:
			return be.AppendUint32(nil, uint32(v)^1<<31)
		}
		return be.AppendUint64(nil, uint64(v)^1<<63)
	}
	if w.Type == layout.TypeDecimal {
		p.MinMax.Min[0], p.MinMax.Max[0] = w.decimalMin, w.decimalMax
		return
	}
	if w.Type == layout.TypeByte && w.class() == layout.PlainValue {
		p.MinMax.Written[0] = false // CarbonData's writer stores them as text, which does not compare like numbers
		return
	}
	p.MinMax.Min[0], p.MinMax.Max[0] = bound(s.min), bound(s.max)
}

// DecimalBytes encodes a decimal as CarbonData does: the scale, then the shortest big-endian number.
func DecimalBytes(v decimal128.Num, scale int32) []byte {
	return append([]byte{byte(scale)}, coerce.BigEndian(v)...)
}

// compressedMeta returns the encoder_meta of values that are compressed but not otherwise encoded, and have no bounds.
func compressedMeta(name string, class layout.ColumnType, method string) []byte {
	b := append(layout.AppendUTF(nil, name), byte(layout.StoreByteArray), byte(class))
	b = binary.BigEndian.AppendUint64(b, math.MaxUint64) // scale and precision: -1
	b = append(b, byte(layout.StoreByteArray), 0, 0, 0, 0, 0)
	return layout.AppendUTF(b, method)
}

// lengthBytes returns the width in bytes of the length before a text.
func (w *PageWriter) lengthBytes() int {
	if w.Type == layout.TypeString && w.Parent == nil {
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

// plain writes the texts that at returns, each with its length.
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
	if w.Type == layout.TypeBinary && x != nil {
		p.Nulls = w.compress(x.nulls)
	}
}
