package vec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"stoa/fault"
)

// Interleave appends len(at) entries: entry i is entry at[i] of srcs[from[i]]. All vectors have the same type; codes in
// srcs are expanded.
func (v *Vector) Interleave(srcs []*Vector, from []uint16, at []int32) error {
	if len(at) == 0 {
		return nil
	}
	nulls, levels := false, false
	for _, s := range srcs {
		if err := s.Plain(); err != nil {
			return err
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

func (v *Vector) interleaveStrings(start int, srcs []*Vector, from []uint16, at []int32) error {
	offs, bytes := make([][]int32, len(srcs)), make([][]byte, len(srcs))
	for i, s := range srcs {
		offs[i], bytes[i] = words[int32](s.offs, s.n+1), s.StringBytes()
	}
	o := v.Offsets(start)
	base := o[0]
	end := int64(base)
	for i, k := range at {
		so := offs[from[i]]
		end += int64(so[k+1] - so[k])
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
		so := offs[from[i]]
		copy(dst[o[i]-base:], bytes[from[i]][so[k]:so[k+1]])
	}
	return nil
}
