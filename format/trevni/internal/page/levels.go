package page

import (
	"math/bits"
	"strconv"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// The format of Impala's class IntegerArray: n numbers, each with the number of bits of the largest possible one, least
// significant bit first, without a length; the last byte is padded with zeros.

// arraySize is the number of bytes of an IntegerArray of n levels up to maxLevel.
func arraySize(n int64, maxLevel int) int64 { return (n*int64(bits.Len(uint(maxLevel))) + 7) / 8 }

// UnpackLevels decodes len(dst) levels of w bits each, w ≤ 32, from src.
func UnpackLevels[T uint8 | uint32](dst []T, src []byte, w int) {
	mask := uint64(1)<<w - 1
	acc, have, pos := uint64(0), 0, 0
	for i := range dst {
		if have < w {
			for have <= 56 && pos < len(src) {
				acc |= uint64(src[pos]) << have
				pos++
				have += 8
			}
		}
		dst[i] = T(acc & mask)
		acc >>= w
		have -= w
	}
}

// PackLevels appends levels of w bits each.
func PackLevels[T uint8 | uint32](dst []byte, levels []T, w int) []byte {
	acc, have := uint64(0), 0
	for _, l := range levels {
		acc |= uint64(l) << have
		for have += w; have >= 8; have -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	if have > 0 {
		dst = append(dst, byte(acc))
	}
	return dst
}

// levelParts are the parts of the raw bytes of a block with levels, and their offsets.
type levelParts struct {
	Def, Rep, Values     []byte
	DefAt, RepAt, ValsAt int
}

// SplitLevels splits the raw bytes of a block of n entries. The wiki has definition levels, repetition levels, values;
// Impala has values, definition levels, repetition levels. Repetition levels are present only if maxRep > 0.
func SplitLevels(d layout.Dialect, raw []byte, n int64, maxDef, maxRep int) (l levelParts, err error) {
	defs, reps := arraySize(n, maxDef), arraySize(n, maxRep)
	if defs+reps > int64(len(raw)) {
		return l, fault.Rel(0, len(raw), "definition-array",
			"the levels of %d entries take %d bytes, the block has %d", n, defs+reps, len(raw))
	}
	if d == layout.Impala {
		l.ValsAt, l.DefAt = 0, len(raw)-int(defs+reps)
		l.RepAt = l.DefAt + int(defs)
		l.Values = raw[:l.DefAt]
	} else {
		l.DefAt, l.RepAt, l.ValsAt = 0, int(defs), int(defs+reps)
		l.Values = raw[l.ValsAt:]
	}
	l.Def, l.Rep = raw[l.DefAt:l.DefAt+int(defs)], raw[l.RepAt:l.RepAt+int(reps)]
	return l, nil
}

// levels decodes entries with definition levels, and repetition levels if there are any.
func (d *decoding) levels(dst *vec.Vector, n int) error {
	maxDef, maxRep := int(d.p.MaxDef), int(d.p.MaxRep)
	if d.p.Shape == ShapeNullable {
		maxDef, maxRep = 1, 0
	}
	l, err := SplitLevels(d.d, d.o.Raw, d.b.Rows, maxDef, maxRep)
	if err != nil {
		return err
	}
	if d.p.Shape == ShapeNullable {
		return d.nullable(dst, l, n)
	}
	if int64(n) != d.b.Rows {
		return fault.Bugf("trevni: %d of %d entries are wanted", n, d.b.Rows)
	}
	def, rep := d.scratch.Bytes(n), d.scratch.Bytes(n)
	if err := UnpackLevelsUpTo(def, l.Def, int(d.p.MaxDef), "definition-array", l.DefAt); err != nil {
		return err
	}
	clear(rep)
	if d.p.MaxRep > 0 {
		if err := UnpackLevelsUpTo(rep, l.Rep, int(d.p.MaxRep), "repetition-array", l.RepAt); err != nil {
			return err
		}
	}
	k := 0
	for _, x := range def {
		if x == d.p.MaxDef {
			k++
		}
	}
	first := dst.Len()
	used, err := d.p.dense(dst, l.Values, k, d)
	if err != nil {
		return shifted(err, l.ValsAt)
	}
	if left := len(l.Values) - used; left != 0 {
		return fault.Rel(l.ValsAt+used, left, "", "%d bytes are after the last value", left)
	}
	spread(dst, first, k, n, d.scratch, func(valid []byte) {
		for i, x := range def {
			if j := first + i; x == d.p.MaxDef {
				valid[j>>3] |= 1 << (j & 7)
			} else {
				valid[j>>3] &^= 1 << (j & 7)
			}
		}
	})
	toDef, toRep := dst.ExtendLevels(n)
	copy(toDef, def)
	copy(toRep, rep)
	return nil
}

// UnpackLevelsUpTo unpacks levels that begin at offset off of the raw bytes. A level above maxLevel is an error of
// class Corrupt, with the path name.
func UnpackLevelsUpTo(dst, src []byte, maxLevel int, name string, off int) error {
	w := bits.Len(uint(maxLevel))
	UnpackLevels(dst, src, w)
	if maxLevel == 1<<w-1 {
		return nil
	}
	for i, x := range dst {
		if int(x) > maxLevel {
			return fault.Rel(off+i*w/8, 1, name+"["+strconv.Itoa(i)+"]", "expected a level of at most %d, found %d",
				maxLevel, x)
		}
	}
	return nil
}

// nullable decodes entries whose definition level is 0 or 1: the levels are Arrow's validity bitmap.
func (d *decoding) nullable(dst *vec.Vector, l levelParts, n int) error {
	sub := int(d.task.Page.Sub)
	before, k := plain.CountBits(l.Def, 0, sub), plain.CountBits(l.Def, sub, n)
	skip := skipValues(d.p.StoredType, l.Values, before)
	from := 0 // booleans of the part may begin within a byte
	if d.p.StoredType == layout.Boolean {
		skip, from = before/8, before%8
	}
	if skip < 0 || skip > len(l.Values) {
		return truncated(d.o.Raw, before, n)
	}
	src := l.Values[skip:]
	if from > 0 {
		if (from+k+7)/8 > len(src) {
			return truncated(d.o.Raw, before+k, n)
		}
		packed := d.scratch.Bytes((k + 7) / 8)
		plain.CopyBits(packed, 0, src, from, k)
		src = packed
	}
	first := dst.Len()
	used, err := d.p.dense(dst, src, k, d)
	if err != nil {
		return shifted(err, l.ValsAt+skip)
	}
	if left := len(src) - used; left != 0 && d.whole(n) {
		return fault.Rel(l.ValsAt+skip+used, left, "", "%d bytes are after the last value", left)
	}
	spread(dst, first, k, n, d.scratch, func(valid []byte) { plain.CopyBits(valid, first, l.Def, sub, n) })
	return nil
}
