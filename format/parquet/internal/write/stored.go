package write

import (
	"encoding/binary"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
)

// Stored are entries of a data page with their values as they are stored, in the encoding that they are to have.
type Stored struct {
	Def, Rep       []byte
	MaxDef, MaxRep uint8
	Encoding       int32
	Values         [][]byte // but the nulls; a boolean is a byte
	Boolean, Text  bool     // the physical type is BOOLEAN, BYTE_ARRAY
	Width          int      // of other types
	Codes          func(value []byte) (uint32, bool)
	Packed         [2]bool // repetition and definition levels are in BIT_PACKED
}

// Levels appends repetition levels and definition levels, and returns how many bytes each has; sized: with their
// lengths before them, which those in BIT_PACKED never have.
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
	offs, data := []int32{0}, slices.Concat(s.Values...)
	for _, x := range s.Values {
		offs = append(offs, offs[len(offs)-1]+int32(len(x)))
	}
	switch e := s.Encoding; {
	case s.Boolean && e == meta.PlainValues:
		return dremel.AppendBits(dst, data), nil
	case s.Boolean && e == meta.RleValues:
		return dremel.AppendBools(dst, data), nil
	case s.Boolean:
	case s.Text && e == meta.PlainValues:
		return dremel.AppendPlainStrings(dst, offs, data), nil
	case e == meta.PlainValues:
		return append(dst, data...), nil
	case s.Text && e == meta.DeltaLengths:
		return dremel.AppendDeltaLengths(dst, offs, data), nil
	case e == meta.DeltaByteArray:
		return dremel.AppendDeltaStrings(dst, offs, data), nil
	case e == meta.DeltaBinaryPacked && s.Width == 4:
		return dremel.AppendDeltas(dst, wordsOf[int32](data)), nil
	case e == meta.DeltaBinaryPacked && s.Width == 8:
		return dremel.AppendDeltas(dst, wordsOf[int64](data)), nil
	case e == meta.ByteStreamSplit && !s.Text:
		return dremel.AppendSplit(dst, data, s.Width), nil
	}
	return nil, fault.Bugf("parquet: values in encoding %s", meta.EnumName(meta.Encodings, s.Encoding))
}

func (s *Stored) encodeCodes(dst []byte) ([]byte, error) {
	codes, largest := make([]uint32, 0, len(s.Values)), uint32(0)
	for _, x := range s.Values {
		c, ok := s.Codes(x)
		if !ok {
			return nil, fault.Bugf("parquet: a value that is not in the dictionary")
		}
		codes, largest = append(codes, c), max(largest, c)
	}
	return dremel.AppendCodes(dst, codes, largest), nil
}

// CompressorOf returns the function that appends the compressed form of src to dst, nil if pages are not compressed; ok
// is false for codecs that we do not know. Pages in the old LZ4 are written in Hadoop's framing, or as bare blocks.
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
