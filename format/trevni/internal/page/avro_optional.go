package page

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// A nullable column of Avro's is an array column of lengths 0 and 1:
//
//	null    0x00, or a run of n ≥ 2 of them: the varint 3 − 2n, whose lowest bit is set
//	value   0x02, then the value
//
// optionals decodes it in one pass, each value directly to its final position. It leaves everything else (over-long
// forms of 0 and 1, longer lengths, runs of ones, damage) to arrayStepwise, which also reports errors.
type optionals struct {
	src   []byte
	pos   int
	n     int    // entries
	part  bool   // the block has more entries
	valid []byte // bitmap of the n entries; all ones at first
	nulls int
}

// null decodes a null or a run of nulls that begins at entry i, and returns their number; 0: not a null.
func (o *optionals) null(i int) int {
	k := 1
	if o.src[o.pos] == 0 {
		o.pos++
		o.valid[i>>3] &^= 1 << (i & 7)
	} else {
		v, size := layout.Varint(o.src[o.pos:])
		if size <= 0 || v >= 0 || v&1 == 0 || v < -1<<31 || !o.part && (1-v)>>1 >= int64(o.n-i) {
			return 0
		}
		o.pos += size
		k = min(int((1-v)>>1)+1, o.n-i)
		vec.SetBits(o.valid, i, i+k, false)
	}
	o.nulls += k
	return k
}

// optionalFast appends the block's n entries to dst. If ok is false, dst is unchanged, and arrayStepwise must decode
// them.
func (d *decoding) optionalFast(dst *vec.Vector, n int) (ok bool) {
	form := layout.Types[d.p.StoredType].Form
	if d.p.Conv != nil || d.task.Page.Sub > 0 || form == layout.FormNone || len(d.o.Raw) == 0 ||
		int64(n)*int64(max(dst.Width(), 4)) > d.limit {
		return false
	}
	o := &optionals{src: d.o.Raw, n: n, part: !d.whole(n), valid: d.scratch.Bytes((n + 7) / 8)}
	vec.SetBits(o.valid, 0, n, true)
	first := dst.Extend(n)
	switch form {
	case layout.FormBits:
		ok = o.bools(dst.Bits(), first)
	case layout.FormFixed:
		ok = o.fixed(dst.Data(first), layout.Types[d.p.StoredType].Width)
	case layout.FormVarint:
		if d.p.StoredType == layout.Int {
			ok = optionalVarints(o, vec.Fixed[int32](dst, first), intStops, 1<<32-1)
		} else {
			ok = optionalVarints(o, vec.Fixed[int64](dst, first), stops, 1<<64-1)
		}
	case layout.FormString:
		ok = o.strings(dst, first, d.p.StoredType == layout.String)
	}
	if !ok || o.pos != len(o.src) && !o.part {
		dst.Truncate(first)
		return false
	}
	if o.nulls > 0 {
		plain.CopyBits(dst.Validity(), first, o.valid, 0, n)
		dst.AddNulls(o.nulls)
	}
	return true
}

// fixed decodes values of 4 or 8 bytes.
func (o *optionals) fixed(out []byte, width int) bool {
	for i := 0; i < o.n; {
		if o.pos >= len(o.src) {
			return false
		}
		if o.src[o.pos] != 2 {
			k := o.null(i)
			if k == 0 {
				return false
			}
			clear(out[i*width : (i+k)*width])
			i += k
			continue
		}
		if o.pos+1+width > len(o.src) {
			return false
		}
		if from := o.src[o.pos+1:]; width == 8 {
			*(*[8]byte)(out[8*i:]) = *(*[8]byte)(from)
		} else {
			*(*[4]byte)(out[4*i:]) = *(*[4]byte)(from)
		}
		o.pos += 1 + width
		i++
	}
	return true
}

// bools decodes booleans: each begins a new byte.
func (o *optionals) bools(out []byte, first int) bool {
	vec.SetBits(out, first, first+o.n, false)
	for i := 0; i < o.n; {
		if o.pos >= len(o.src) {
			return false
		}
		if o.src[o.pos] != 2 {
			k := o.null(i)
			if k == 0 {
				return false
			}
			i += k
			continue
		}
		if o.pos+1 >= len(o.src) {
			return false
		}
		out[(first+i)>>3] |= o.src[o.pos+1] & 1 << ((first + i) & 7)
		o.pos += 2
		i++
	}
	return true
}

// optionalVarints decodes ints or longs. As in shortStrings, the length of the next one is predicted.
func optionalVarints[T int32 | int64](o *optionals, out []T, truncated, most uint64) bool {
	prev, step := uint64(0), 0
	for i := 0; i < len(out); {
		if o.pos+9 > len(o.src) || o.src[o.pos] != 2 {
			k := oneOptional(o, i, out, most)
			if k == 0 {
				return false
			}
			i += k
			continue
		}
		w := binary.LittleEndian.Uint64(o.src[o.pos+1:])
		end := ^w & truncated
		x := gather7(w & (end ^ (end - 1)))
		if end == 0 || x > most {
			k := oneOptional(o, i, out, most)
			if k == 0 {
				return false
			}
			i += k
			continue
		}
		if end &= -end; end != prev {
			prev, step = end, 1+(bits.TrailingZeros64(end)+1)>>3
		}
		out[i] = T(x>>1) ^ -T(x&1)
		o.pos += step
		i++
	}
	return true
}

// oneOptional decodes nulls, or one value without a kernel, and returns the number of entries; 0: neither.
func oneOptional[T int32 | int64](o *optionals, i int, out []T, most uint64) int {
	if o.pos >= len(o.src) {
		return 0
	}
	if o.src[o.pos] != 2 {
		k := o.null(i)
		clear(out[i : i+k])
		return k
	}
	v, size := layout.Varint(o.src[o.pos+1:])
	if out[i] = T(v); size <= 0 || int64(out[i]) != v || size > 5 && most == 1<<32-1 {
		return 0
	}
	o.pos += 1 + size
	return 1
}

// strings decodes strings; those of at most 48 bytes with copyShort, as shortStrings does.
func (o *optionals) strings(dst *vec.Vector, first int, text bool) bool {
	offs := dst.Offsets(first)
	base := offs[0]
	out, err := dst.Bytes(base, int64(len(o.src)))
	if err != nil {
		return false
	}
	end := 0
	prev, step := byte(0), 0
	for i := 0; i < o.n; {
		if o.pos >= len(o.src) {
			return false
		}
		if o.src[o.pos] != 2 {
			k := o.null(i)
			if k == 0 {
				return false
			}
			for j := range k {
				offs[i+1+j] = base + int32(end)
			}
			i += k
			continue
		}
		if o.pos+2+48 > len(o.src) || o.src[o.pos+1] > 96 || o.src[o.pos+1]&1 != 0 {
			l, size := layout.Varint(o.src[o.pos+1:])
			if size <= 0 || l < 0 || l > int64(len(o.src)-o.pos-1-size) {
				return false
			}
			from := o.pos + 1 + size
			o.pos = from + int(l)
			end += copy(out[end:], o.src[from:o.pos])
		} else {
			l := o.src[o.pos+1]
			if l != prev {
				prev, step = l, int(l>>1)
			}
			copyShort(unsafe.Pointer(&out[end]), unsafe.Pointer(&o.src[o.pos+2]), l)
			o.pos += 2 + step
			end += step
		}
		offs[i+1] = base + int32(end)
		i++
	}
	return !text || InvalidUTF8(out[:end], offs) < 0
}

// copyShort copies a string of at most 48 bytes, whose length is stored as l, together with some bytes after it, 16 at
// a time: for larger copies the compiler calls a function.
func copyShort(to, from unsafe.Pointer, l byte) {
	*(*[16]byte)(to) = *(*[16]byte)(from)
	if l > 32 {
		*(*[16]byte)(unsafe.Add(to, 16)) = *(*[16]byte)(unsafe.Add(from, 16))
		if l > 64 {
			*(*[16]byte)(unsafe.Add(to, 32)) = *(*[16]byte)(unsafe.Add(from, 32))
		}
	}
}
