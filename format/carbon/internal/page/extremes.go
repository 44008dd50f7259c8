package page

import (
	"bytes"
	"cmp"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/format/carbon/internal/schema"
	"stoa/internal/civil"
	"stoa/pred"
	"stoa/vec"
)

// Extremes are min and max of the values of a vector that are not null; ok is false if there are none, or if values of
// the type are not compared. odd is the index of the first string that is not valid UTF-8, -1 if there is none.
func Extremes(v *vec.Vector) (lo, hi pred.Value, odd int, ok bool) {
	switch t := v.Type.(type) {
	case *arrow.Int8Type:
		return whole(v, vec.Fixed[int8](v, 0), pred.Int)
	case *arrow.Int16Type:
		return whole(v, vec.Fixed[int16](v, 0), pred.Int)
	case *arrow.Int32Type:
		return whole(v, vec.Fixed[int32](v, 0), pred.Int)
	case *arrow.Int64Type:
		return whole(v, vec.Fixed[int64](v, 0), pred.Int)
	case *arrow.Date32Type:
		return whole(v, vec.Fixed[int32](v, 0),
			func(i int64) pred.Value { return pred.Value{Kind: pred.KindDate, Int: i} })
	case *arrow.TimestampType:
		return whole(v, vec.Fixed[int64](v, 0), schema.TimestampValue)
	case *arrow.BooleanType:
		return booleans(v)
	case *arrow.Float32Type:
		a, z, ok := ends(v, vec.Fixed[float32](v, 0), cmp.Compare[float32])
		return pred.Float(float64(a)), pred.Float(float64(z)), -1, ok
	case *arrow.Float64Type:
		a, z, ok := ends(v, vec.Fixed[float64](v, 0), cmp.Compare[float64])
		return pred.Value{Kind: pred.KindFloat, Float: a}, pred.Value{Kind: pred.KindFloat, Float: z}, -1, ok
	case *arrow.Decimal128Type:
		a, z, ok := ends(v, vec.Fixed[decimal128.Num](v, 0), func(a, b decimal128.Num) int { return a.Cmp(b) })
		return pred.Value{Kind: pred.KindDecimal, Dec: a, Scale: t.Scale},
			pred.Value{Kind: pred.KindDecimal, Dec: z, Scale: t.Scale}, -1, ok
	case *arrow.StringType, *arrow.BinaryType:
		return texts(v)
	}
	return lo, hi, -1, false
}

func booleans(v *vec.Vector) (lo, hi pred.Value, odd int, ok bool) {
	var has [2]bool
	bits := v.Bits()
	for i := range v.Len() {
		if v.Valid(i) {
			has[bits[i>>3]>>(i&7)&1] = true
		}
	}
	return pred.Bool(!has[0]), pred.Bool(has[1]), -1, has[0] || has[1]
}

func whole[T integer](v *vec.Vector, x []T, value func(int64) pred.Value) (lo, hi pred.Value, odd int, ok bool) {
	a, z, ok := ends(v, x, cmp.Compare[T])
	return value(int64(a)), value(int64(z)), -1, ok
}

func ends[T any](v *vec.Vector, x []T, compare func(a, b T) int) (lo, hi T, ok bool) {
	for i, y := range x {
		if !v.Valid(i) {
			continue
		}
		if !ok {
			lo, hi, ok = y, y, true
			continue
		}
		if compare(y, lo) < 0 {
			lo = y
		}
		if compare(y, hi) > 0 {
			hi = y
		}
	}
	return lo, hi, ok
}

func texts(v *vec.Vector) (lo, hi pred.Value, odd int, ok bool) {
	odd = -1
	if v.Plain() != nil || v.Len() == 0 {
		return
	}
	offs, b := v.Offsets(0), v.StringBytes()
	var a, z []byte
	kind := pred.KindBytes
	if v.Type.ID() == arrow.STRING {
		kind = pred.KindString
	}
	for i := range v.Len() {
		if !v.Valid(i) {
			continue
		}
		s := b[offs[i]:offs[i+1]]
		if odd < 0 && kind == pred.KindString && !utf8.Valid(s) {
			odd = i
		}
		if !ok || bytes.Compare(s, a) < 0 {
			a = s
		}
		if !ok || bytes.Compare(s, z) > 0 {
			z = s
		}
		ok = true
	}
	return pred.Value{Kind: kind, Text: string(a)}, pred.Value{Kind: kind, Text: string(z)}, odd, ok
}

// Old counts the dates and times of v before the switch from the Julian to the Gregorian calendar, whichever calendar
// they use.
func Old(v *vec.Vector) (n int64) {
	switch v.Type.ID() {
	case arrow.DATE32:
		for i, d := range vec.Fixed[int32](v, 0) {
			if d < civil.Switch && v.Valid(i) {
				n++
			}
		}
	case arrow.TIMESTAMP:
		for i, ms := range vec.Fixed[int64](v, 0) {
			if ms < civil.Switch*dayMillis && v.Valid(i) {
				n++
			}
		}
	}
	return n
}

// Rebase converts the dates and times of dst from entry at on from Java's hybrid calendar to the proleptic Gregorian
// one, and returns how many changed.
func Rebase(dst *vec.Vector, at int) (changed int64) {
	switch dst.Type.ID() {
	case arrow.DATE32:
		days := vec.Fixed[int32](dst, at)
		for i, d := range days {
			if d < civil.Switch && dst.Valid(at+i) {
				days[i] = int32(max(math.MinInt32, civil.Gregorian(int64(d))))
				changed++
			}
		}
	case arrow.TIMESTAMP:
		times := vec.Fixed[int64](dst, at)
		for i, ms := range times {
			if ms < civil.Switch*dayMillis && ms > math.MinInt64/2 && dst.Valid(at+i) {
				day := civil.FloorDiv(ms, dayMillis)
				times[i] = civil.Gregorian(day)*dayMillis + ms - day*dayMillis
				changed++
			}
		}
	}
	return changed
}
