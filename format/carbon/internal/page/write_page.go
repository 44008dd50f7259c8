package page

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// Column classes of ColumnPageEncoderMeta that only the writer uses.
const (
	measureColumn layout.ColumnType = 4
	structColumn  layout.ColumnType = 5
	arrayColumn   layout.ColumnType = 6
)

// Encode makes a page of cells.
func (w *PageWriter) Encode(x *Cells) *layout.OutPage {
	p := &layout.OutPage{}
	p.DataChunk.Codec, p.Rows = w.Codec, int64(x.N)
	p.MinMax = &layout.MinMax{Min: [][]byte{{}}, Max: [][]byte{{}}, Written: []bool{true}}
	switch {
	case w.Type.Complex():
		w.nested(p, x)
	case w.Parent == nil && (w.Type == layout.TypeDate || w.Encoders.Has(layout.EncDictionary)):
		w.keys(p, x)
	case w.Type == layout.TypeString, w.Type == layout.TypeVarchar, w.Type == layout.TypeBinary:
		w.texts(p, x)
	case w.Parent != nil && (w.Type == layout.TypeDate || w.Type == layout.TypeDecimal):
		w.leaves(p, x)
	case w.Type == layout.TypeDecimal && w.Precision > 18:
		w.wideDecimals(p, x)
	case w.Type == layout.TypeFloat, w.Type == layout.TypeDouble:
		w.floating(p, x)
	default:
		w.integral(p, x)
	}
	if p.Nulls == nil {
		p.Nulls = w.compress(nil)
	}
	return p
}

// integral encodes whole numbers, booleans, timestamps, and decimals of up to 18 digits.
func (w *PageWriter) integral(p *layout.OutPage, x *Cells) {
	v := x.Ints
	source := storeTypes[w.Type]
	if w.Type == layout.TypeTimestamp {
		source = layout.StoreLong
	}
	if w.Type == layout.TypeDecimal {
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
	if store == source && w.Type != layout.TypeDecimal && w.Parent == nil || w.Type == layout.TypeBoolean &&
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
	if p.Raw = int64(source.Width() * x.N); w.Type == layout.TypeDecimal {
		p.Raw = 0 // as CarbonData's writer records it
	}
	w.child(p)
}

// directType is the store type of numbers that are compressed but not otherwise encoded.
func (w *PageWriter) directType(source layout.StoreType) layout.StoreType {
	if w.Type == layout.TypeBoolean {
		return layout.StoreByte
	}
	return source
}

// emptyStats returns min and max of a page without entries; only pages below lists can be empty.
func emptyStats(t layout.StoreType) (lo, hi int64) {
	n := 8*t.Width() - 1
	return 1<<n - 1, -1 << n
}

// chooseWhole chooses the narrower form: the numbers, or their differences from the largest one.
func (w *PageWriter) chooseWhole(source layout.StoreType, s stats) (t layout.StoreType, delta bool) {
	plain := narrowest(s.min, s.max)
	if s.min > s.max {
		return layout.StoreByte, false
	}
	other := layout.StoreLong
	// a negative difference is an overflow; CarbonData's writer does not try deltas of wide decimals
	if d := s.max - s.min; d >= 0 && !(w.Type == layout.TypeDecimal && source == layout.StoreLong) {
		other = narrowest(d, d)
	}
	if w.Type == layout.TypeBoolean && w.Parent != nil {
		source = layout.StoreByte
	}
	if plain.Width() <= other.Width() {
		return plain, false
	}
	return other, true
}

// smallDecimals returns decimals as whole numbers and records min and max. A null counts as 0 with scale 0.
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

// wideDecimals encodes decimals of more than 18 digits: big-endian numbers whose width the precision determines.
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

// keys encodes a column with a global or direct dictionary: big-endian codes of four bytes, or of as many bytes as the
// largest code of the global dictionary needs; null is code 1.
func (w *PageWriter) keys(p *layout.OutPage, x *Cells) {
	n := 4
	if schema.HasGlobalCodes(w.Column) {
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

// leaves encodes dates and decimals in lists and structs: a length of four bytes, then the value. Null has length 0.
func (w *PageWriter) leaves(p *layout.OutPage, x *Cells) {
	raw := w.raw[:0]
	for i := range x.N {
		var v []byte
		switch {
		case x.Null(i):
		case w.Type == layout.TypeDate:
			v = binary.BigEndian.AppendUint32(nil, uint32(x.Ints[i]+schema.DateOffset)^1<<31)
		default:
			v = DecimalBytes(x.Decs[i], w.Scale)
		}
		raw = append(binary.BigEndian.AppendUint32(raw, uint32(len(v))), v...)
	}
	w.byteArrays(p, raw)
	p.Raw -= int64(4 * x.N)
}

// byteArrays finishes a page, inside a list or struct, of values with lengths or of lengths alone.
func (w *PageWriter) byteArrays(p *layout.OutPage, raw []byte) {
	p.Encoders = layout.Encodings{layout.EncDirectCompress, layout.EncIntLengthChild}
	w.raw, p.Raw = raw, int64(len(raw))
	p.Bytes = w.compress(raw)
	p.DataLen = int32(len(p.Bytes))
	p.Meta = [][]byte{compressedMeta(w.Name, w.class(), w.Codec)}
}

// nested encodes a column with children. Each entry of a list or map is the number of its items and the ordinal of its
// first item; each entry of a struct is the number of its children.
func (w *PageWriter) nested(p *layout.OutPage, x *Cells) {
	raw := w.raw[:0]
	if w.Type == layout.TypeStruct {
		for range x.N {
			raw = binary.BigEndian.AppendUint16(raw, uint16(len(w.Children)))
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

// maxBound is the length in bytes of the longest text that can be a bound. A page with a longer text has no bounds.
const maxBound = 200

// textBounds sets the min and max text; a null counts as NullText.
func (w *PageWriter) textBounds(p *layout.OutPage, x *Cells) {
	if w.Parent != nil {
		return
	}
	var lo, hi []byte
	for i := range x.N {
		v := x.Text(i)
		if x.Null(i) && w.Type != layout.TypeBinary {
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

// texts encodes strings and binaries: as codes of the local dictionary, or each preceded by its length.
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

func (w *PageWriter) plainTexts(p *layout.OutPage, x *Cells) {
	lv := w.lengthBytes()
	at := func(i int) []byte {
		if w.Type != layout.TypeBinary && x.Null(i) {
			return []byte(schema.NullText)
		}
		return x.Text(i)
	}
	w.plain(p, x, lv, at)
}

// sortTexts returns the sort order of texts and leaves the row ids in p.
func (w *PageWriter) sortTexts(p *layout.OutPage, n int, at func(i int) []byte) []uint32 {
	perm := w.identity(n)
	slices.SortStableFunc(perm, func(a, b uint32) int { return bytes.Compare(at(int(a)), at(int(b))) })
	w.rowIDs(p, perm)
	return perm
}

// coded writes codes of the local dictionary, three bytes each. In top-level columns, adjacent equal codes are stored
// once with runs if that saves enough.
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

// runsOf returns the code of each run once, and the runs as pairs of first entry and count. If runs would save little
// it returns the codes unchanged and no runs.
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
