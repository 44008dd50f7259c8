package vec

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"stoa/fault"
)

// Interleave appends len(at) entries: entry i is entry at[i] of srcs[from[i]]. All vectors have the same type. Codes in
// srcs remain codes, unless entries have levels or only some are codes.
func (v *Vector) Interleave(srcs []*Vector, from []uint16, at []int32) error {
	if len(at) == 0 {
		return nil
	}
	nulls, levels := false, false
	for _, s := range srcs {
		if _, dict, ok := s.Coded(); !ok || dict.n == 0 || s.def != nil {
			if err := s.Plain(); err != nil {
				return err
			}
		}
		nulls = nulls || s.nulls > 0
		levels = levels || s.def != nil
	}
	if err := v.Plain(); err != nil {
		return err
	}
	if v.kind == list || levels {
		for i := range at {
			if err := v.appendRun(srcs[from[i]], int(at[i]), int(at[i])+1); err != nil {
				return err
			}
		}
		return nil
	}
	start := v.Extend(len(at))
	if nulls && v.kind != null {
		b := v.Validity()
		for i, k := range at {
			if !srcs[from[i]].Valid(int(k)) {
				bitutil.ClearBit(b, start+i)
				v.nulls++
			}
		}
	}
	switch v.kind {
	case boolean:
		b := v.Bits()
		for i, k := range at {
			bitutil.SetBitTo(b, start+i, bitutil.BitIsSet(srcs[from[i]].data.Buf(), int(k)))
		}
	case strs:
		if err := v.interleaveStrings(start, srcs, from, at); err != nil {
			v.Truncate(start)
			return err
		}
	case fixed:
		v.interleaveFixed(start, srcs, from, at)
	}
	return nil
}

func (v *Vector) interleaveFixed(start int, srcs []*Vector, from []uint16, at []int32) {
	switch v.width {
	case 1:
		interleave[uint8](v, start, srcs, from, at)
	case 2:
		interleave[uint16](v, start, srcs, from, at)
	case 4:
		interleave[uint32](v, start, srcs, from, at)
	case 8:
		interleave[uint64](v, start, srcs, from, at)
	case 16:
		interleave[[2]uint64](v, start, srcs, from, at)
	default:
		d, w := v.Data(start), v.width
		for i, k := range at {
			copy(d[i*w:][:w], srcs[from[i]].data.Buf()[int(k)*w:])
		}
	}
}

func interleave[T any](v *Vector, start int, srcs []*Vector, from []uint16, at []int32) {
	vals := make([][]T, len(srcs))
	for i, s := range srcs {
		vals[i] = words[T](s.data, s.n)
	}
	dst := Fixed[T](v, start)
	for i, k := range at {
		dst[i] = vals[from[i]][k]
	}
}

// texts is where interleaveStrings finds the strings of a source.
type texts struct {
	offs  []int32
	bytes []byte
	codes []uint32 // of the strings in offs and bytes; nil: these are the entries
	valid []byte   // of codes; nil: all are valid
}

func textsOf(v *Vector) (t texts) {
	if codes, dict, ok := v.Coded(); ok && dict.n > 0 {
		t.codes = codes
		if v.valid != nil && v.nulls > 0 {
			t.valid = v.valid.Buf()
		}
		v = dict
	}
	t.offs, t.bytes = words[int32](v.offs, v.n+1), v.StringBytes()
	return t
}

// span returns where in t.bytes entry k is. A null is empty.
func (t *texts) span(k int32) (from, to int32) {
	if t.codes != nil {
		if t.valid != nil && !bitutil.BitIsSet(t.valid, int(k)) {
			return 0, 0
		}
		k = int32(t.codes[k])
	}
	return t.offs[k], t.offs[k+1]
}

func (v *Vector) interleaveStrings(start int, srcs []*Vector, from []uint16, at []int32) error {
	all := make([]texts, len(srcs))
	for i, s := range srcs {
		all[i] = textsOf(s)
	}
	o := v.Offsets(start)
	base := o[0]
	end := int64(base)
	for i, k := range at {
		a, b := all[from[i]].span(k)
		end += int64(b - a)
		if end > math.MaxInt32 {
			return fault.Limitf(fault.Span{}, "", "more than 2^31-1 bytes of strings do not fit one batch")
		}
		o[i+1] = int32(end)
	}
	dst, err := v.Bytes(base, end-int64(base))
	if err != nil {
		return err
	}
	for i, k := range at {
		t := &all[from[i]]
		a, b := t.span(k)
		d := dst[o[i]-base:]
		if b-a <= 16 && int(a)+16 <= len(t.bytes) && len(d) >= 16 {
			// two words whatever the length: the next string overwrites the excess, and Slack absorbs the last
			s := t.bytes[a:][:16]
			binary.LittleEndian.PutUint64(d, binary.LittleEndian.Uint64(s))
			binary.LittleEndian.PutUint64(d[8:], binary.LittleEndian.Uint64(s[8:]))
			continue
		}
		copy(d, t.bytes[a:b])
	}
	return nil
}
