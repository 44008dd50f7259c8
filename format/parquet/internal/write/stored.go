package write

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
)

// Stored are entries of a data page with values in their stored form, and the encoding in which they are to be written.
type Stored struct {
	Def, Rep       []byte
	MaxDef, MaxRep uint8
	Packed         [2]bool // repetition and definition levels are in BIT_PACKED
	Encoding       int32
	Physical       meta.Physical
	Width          int // bytes of a value, 1 for booleans; 0 for BYTE_ARRAY
	Codes          func(value []byte) (uint32, bool)

	values dense
}

// Values returns the number of entries that are not null.
func (s *Stored) Values() int { return s.values.n }

// AddFixed appends values of fixed size.
func (s *Stored) AddFixed(b []byte) {
	s.values.fixed, s.values.n = append(s.values.fixed, b...), s.values.n+len(b)/s.Width
}

// AddStrings appends values of BYTE_ARRAY: string i is data[offs[i]:offs[i+1]].
func (s *Stored) AddStrings(offs []int32, data []byte) {
	v := &s.values
	if v.offs == nil {
		v.offs = []int32{0}
	}
	move := int32(len(v.data)) - offs[0]
	for _, o := range offs[1:] {
		v.offs = append(v.offs, o+move)
	}
	v.data, v.n = append(v.data, data[offs[0]:offs[len(offs)-1]]...), v.n+len(offs)-1
}

// Strings returns the total length in bytes of BYTE_ARRAY values.
func (s *Stored) Strings() int64 { return int64(len(s.values.data)) }

// Same reports whether o has the same entries.
func (s *Stored) Same(o *Stored) bool {
	return bytes.Equal(s.Def, o.Def) && bytes.Equal(s.Rep, o.Rep) && s.values.n == o.values.n &&
		bytes.Equal(s.values.fixed, o.values.fixed) && slices.Equal(s.values.offs, o.values.offs) &&
		bytes.Equal(s.values.data, o.values.data)
}

// Bounds returns the minimum and the maximum of a column of type t in the form used in statistics; nil if there are no
// values or the type has no order.
func (s *Stored) Bounds(t arrow.DataType) (low, high []byte) {
	b := s.ordering(t).boundsOf(s.values, s.Width)
	return b.Min, b.Max
}

// ordering returns the ordering of values of type t in their stored form.
func (s *Stored) ordering(t arrow.DataType) ordering {
	number := s.Physical == meta.TypeInt32 || s.Physical == meta.TypeInt64
	switch t.(type) {
	case *arrow.NullType:
		return orderNone
	case *arrow.BooleanType:
		return orderBool
	case *arrow.StringType, *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		return orderBytes
	case *arrow.Float16Type:
		return orderHalf
	case *arrow.Float32Type, *arrow.Float64Type:
		return orderFloat
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return orderUnsigned
	}
	switch _, decimal := t.(arrow.DecimalType); {
	case number:
		return orderSigned
	case decimal && s.Physical == meta.TypeFixed:
		return orderDecimal
	}
	return orderNone // decimals of any length, INT96
}

// Levels appends repetition levels and definition levels. rep and def are their lengths in bytes. If sized is set, each
// is preceded by its length, except in BIT_PACKED.
func (s *Stored) Levels(dst []byte, sized bool) (out []byte, rep, def int) {
	var size [2]int
	for k, levels := range [][]byte{s.Rep, s.Def} {
		most := []uint8{s.MaxRep, s.MaxDef}[k]
		if most == 0 {
			continue
		}
		at := len(dst)
		if s.Packed[k] {
			dst = dremel.AppendPackedLevels(dst, levels, most)
			size[k] = len(dst) - at
			continue
		}
		if sized {
			dst = append(dst, 0, 0, 0, 0)
		}
		begin := len(dst)
		dst = dremel.AppendLevels(dst, levels, most)
		if size[k] = len(dst) - begin; sized {
			binary.LittleEndian.PutUint32(dst[at:], uint32(size[k]))
		}
	}
	return dst, size[0], size[1]
}

// Encode appends the values.
func (s *Stored) Encode(dst []byte) ([]byte, error) {
	if meta.IsDictionary(s.Encoding) {
		return s.encodeCodes(dst)
	}
	v := s.values
	if v.offs == nil { // there are no values
		v.offs = []int32{0}
	}
	boolean, text := s.Physical == meta.TypeBoolean, s.Physical == meta.TypeBytes
	switch e := s.Encoding; {
	case boolean && e == meta.PlainValues:
		return dremel.AppendBits(dst, v.fixed), nil
	case boolean && e == meta.RleValues:
		return dremel.AppendBools(dst, v.fixed), nil
	case boolean:
	case text && e == meta.PlainValues:
		return dremel.AppendPlainStrings(dst, v.offs, v.data), nil
	case e == meta.PlainValues:
		return append(dst, v.fixed...), nil
	case text && e == meta.DeltaLengths:
		return dremel.AppendDeltaLengths(dst, v.offs, v.data), nil
	case e == meta.DeltaByteArray:
		offs, data := v.offs, v.data
		if !text { // values of fixed size may have it, too
			data = v.fixed
			for i := range v.n {
				offs = append(offs, int32((i+1)*s.Width))
			}
		}
		return dremel.AppendDeltaStrings(dst, offs, data), nil
	case e == meta.DeltaBinaryPacked && s.Physical == meta.TypeInt32:
		return dremel.AppendDeltas(dst, wordsOf[int32](v.fixed)), nil
	case e == meta.DeltaBinaryPacked && s.Physical == meta.TypeInt64:
		return dremel.AppendDeltas(dst, wordsOf[int64](v.fixed)), nil
	case e == meta.ByteStreamSplit && !text:
		return dremel.AppendSplit(dst, v.fixed, s.Width), nil
	}
	return nil, fault.Bugf("parquet: values in encoding %s", meta.EnumName(meta.Encodings, s.Encoding))
}

func (s *Stored) encodeCodes(dst []byte) ([]byte, error) {
	codes, largest := make([]uint32, 0, s.values.n), uint32(0)
	for i := range s.values.n {
		c, ok := s.Codes(s.values.at(i, s.Width))
		if !ok {
			return nil, fault.Bugf("parquet: a value that is not in the dictionary")
		}
		codes, largest = append(codes, c), max(largest, c)
	}
	return dremel.AppendCodes(dst, codes, largest), nil
}

// CompressorOf returns a function that appends the compressed form of src to dst, nil if pages are not compressed; ok
// is false for unsupported codecs. Pages in the deprecated LZ4 codec are written in Hadoop's framing or as plain
// blocks.
func CompressorOf(c meta.Compression, framed bool) (compress func(dst, src []byte) ([]byte, error), ok bool) {
	if c == meta.CodecLZ4 && framed {
		return hadoopLZ4, true
	}
	if c == meta.CodecLZ4 {
		c = meta.CodecLZ4Raw
	}
	for _, name := range []string{"none", "snappy", "lz4", "gzip", "zstd", "brotli"} {
		if number, compress, _ := compressor(name, 0); number == c {
			return compress, true
		}
	}
	return nil, false
}
