package vec

import (
	"math"
	"math/bits"

	"stoa/fault"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// Append appends those of the entries [from, to) of src that sel selects. sel counts from entry from (nil = all). Both
// vectors have the same type.
func (v *Vector) Append(src *Vector, from, to int, sel *Sel) error {
	if sel.IsAll() {
		return v.appendRun(src, from, to)
	}
	if src.kind == strs || src.kind == list {
		return v.appendRuns(src, from, sel)
	}
	if v.coded < v.n {
		if err := v.Plain(); err != nil {
			return err
		}
	}
	at := v.Extend(sel.Count)
	if src.valid != nil && src.nulls > 0 {
		b := v.Validity()
		k := at
		sel.each(func(i int) {
			if !bitutil.BitIsSet(src.valid.Buf(), from+i) {
				bitutil.ClearBit(b, k)
				v.nulls++
			}
			k++
		})
	}
	if src.def != nil {
		def, rep := v.ExtendLevels(sel.Count)
		k := 0
		sel.each(func(i int) { def[k], rep[k] = src.def[from+i], src.rep[from+i]; k++ })
	}
	switch v.kind {
	case boolean:
		b, s, k := v.Bits(), src.Bits(), at
		sel.each(func(i int) { bitutil.SetBitTo(b, k, bitutil.BitIsSet(s, from+i)); k++ })
	case fixed:
		v.pick(src, at, from, sel)
	}
	return nil
}

func (v *Vector) pick(src *Vector, at, from int, sel *Sel) {
	switch v.width {
	case 1:
		pick(Fixed[uint8](v, at), Fixed[uint8](src, from), sel)
	case 2:
		pick(Fixed[uint16](v, at), Fixed[uint16](src, from), sel)
	case 4:
		pick(Fixed[uint32](v, at), Fixed[uint32](src, from), sel)
	case 8:
		pick(Fixed[uint64](v, at), Fixed[uint64](src, from), sel)
	case 16:
		pick(Fixed[[2]uint64](v, at), Fixed[[2]uint64](src, from), sel)
	default:
		d, s, w := v.Data(at), src.Data(from), v.width
		sel.each(func(i int) { copy(d[:w], s[i*w:]); d = d[w:] })
	}
}

func pick[T any](dst, src []T, sel *Sel) {
	k := 0
	sel.each(func(i int) { dst[k] = src[i]; k++ })
}

// each calls f with every selected entry, in order.
func (s *Sel) each(f func(i int)) {
	for j, x := range s.Bits {
		for ; x != 0; x &= x - 1 {
			f(8*j + bits.TrailingZeros8(x))
		}
	}
}

// appendRuns appends strings or lists run by run.
func (v *Vector) appendRuns(src *Vector, from int, sel *Sel) error {
	start, last := -1, -1
	var err error
	flush := func() {
		if start >= 0 && err == nil {
			err = v.appendRun(src, from+start, from+last+1)
		}
	}
	sel.each(func(i int) {
		if i != last+1 || start < 0 {
			flush()
			start = i
		}
		last = i
	})
	flush()
	return err
}

// appendRun appends entries [from, to) of src.
func (v *Vector) appendRun(src *Vector, from, to int) error {
	n := to - from
	if n <= 0 {
		return nil
	}
	if src.coded < src.n {
		if src.coded == 0 && (v.n == 0 || v.coded < v.n && v.dict == src.dict) {
			at := v.n
			copy(v.ExtendCodes(n, src.dict), words[uint32](src.codes, src.n)[from:to])
			v.copyValid(src, at, from, n)
			v.copyLevels(src, from, to)
			return nil
		}
		if err := src.Plain(); err != nil {
			return err
		}
	}
	if err := v.Plain(); err != nil {
		return err
	}
	at := v.Extend(n)
	v.copyValid(src, at, from, n)
	v.copyLevels(src, from, to)
	switch v.kind {
	case fixed:
		copy(v.Data(at), src.Data(from))
	case boolean:
		copyBits(v.Bits(), at, src.Bits(), from, n)
	case strs, list:
		o, so := v.Offsets(at), src.Offsets(from)[:n+1]
		base, first := o[0], so[0]
		if int64(base)+int64(so[n]-first) > math.MaxInt32 {
			v.Truncate(at)
			return fault.Limitf(fault.Span{}, "", "more than 2^31-1 bytes or items do not fit one batch")
		}
		for i := 1; i <= n; i++ {
			o[i] = base + so[i] - first
		}
		if v.kind == list {
			return v.Items.appendRun(src.Items, int(first), int(so[n]))
		}
		b, err := v.Bytes(base, int64(so[n]-first))
		if err != nil {
			v.Truncate(at)
			return err
		}
		copy(b, src.StringBytes()[first:so[n]])
	}
	return nil
}

func (v *Vector) copyLevels(src *Vector, from, to int) {
	if src.def == nil {
		return
	}
	def, rep := v.ExtendLevels(to - from)
	copy(def, src.def[from:to])
	copy(rep, src.rep[from:to])
}

func (v *Vector) copyValid(src *Vector, at, from, n int) {
	if src.valid == nil || src.nulls == 0 {
		return
	}
	b := v.Validity()
	copyBits(b, at, src.valid.Buf(), from, n)
	v.nulls += countZeros(b, at, at+n)
}
