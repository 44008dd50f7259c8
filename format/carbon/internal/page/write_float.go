package page

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"stoa/format/carbon/internal/layout"
)

// maxDecimals is the largest number of digits after the decimal point with which floating-point numbers are stored as
// whole numbers.
const maxDecimals = 5

// powers are the powers of ten up to 10^maxDecimals.
var powers = [...]float64{1, 10, 100, 1000, 10_000, 100_000}

// decimalCount returns the number of digits after the decimal point in v's shortest text, as Java's
// BigDecimal.valueOf(v).scale() does, but at most maxDecimals+1. Java always writes a point and a digit after it, so
// 1.0E-4 has five.
func decimalCount(v float64, bits int) int32 {
	a := math.Abs(v)
	if a == 0 || a >= 1e-3 && a < 1e7 {
		if bits == 64 {
			for k, f := range powers { // the text has k digits if k digits reproduce v
				if x := math.Round(a * f); x/f == a {
					return int32(k)
				}
			}
			return maxDecimals + 1
		}
		s := strconv.FormatFloat(a, 'f', -1, bits)
		if i := strings.IndexByte(s, '.'); i >= 0 {
			return int32(min(len(s)-i-1, maxDecimals+1))
		}
		return 0
	}
	s := strconv.FormatFloat(a, 'e', -1, bits) // d.ddde±xx
	e := strings.IndexByte(s, 'e')
	exp, err := strconv.Atoi(s[e+1:])
	if err != nil { // infinite or NaN
		return maxDecimals + 1
	}
	digits := max(1, e-2) // Java: at least one after the decimal point
	return int32(min(max(digits-exp, 0), maxDecimals+1))
}

// floating encodes floats and doubles: as whole numbers if that preserves every value, else unchanged.
func (w *PageWriter) floating(p *layout.OutPage, x *Cells) {
	s, odd := w.floatStats(x)
	w.floatBounds(p, s)
	bits := 64
	if w.Type == layout.TypeFloat {
		bits = 32
	}
	if !odd && s.decimals >= 0 && x.N > 0 {
		if store, enc, ok := w.chooseFloat(s, bits); ok {
			if v, ok := w.scaleUp(x, s, store, enc == layout.EncAdaptiveDeltaFloating, bits); ok {
				p.Encoders, p.Adaptive = layout.Encodings{enc}, true
				w.finish(p, x, v, store, s, false)
				p.Raw = int64(bits / 8 * x.N)
				w.child(p)
				return
			}
		}
	}
	raw := w.raw[:0]
	store := layout.StoreDouble
	for _, v := range x.Nums {
		if bits == 32 {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		} else {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
	}
	if bits == 32 {
		store = layout.StoreFloat
	}
	p.Encoders = layout.Encodings{layout.EncDirectCompress}
	w.close(p, x, raw, store, s)
	w.child(p)
}

// child marks a page as one inside a list or struct.
func (w *PageWriter) child(p *layout.OutPage) {
	if w.Parent != nil {
		p.Encoders = append(p.Encoders, layout.EncIntLengthChild)
	}
}

// floatStats computes the statistics of a page; odd reports whether a value is infinite or NaN.
func (w *PageWriter) floatStats(x *Cells) (s stats, odd bool) {
	s.fmin, s.fmax = math.Inf(1), math.Inf(-1)
	bits := 64
	if w.Type == layout.TypeFloat {
		bits = 32
	}
	for _, v := range x.Nums {
		if v != v || math.IsInf(v, 0) {
			odd = true
			continue
		}
		s.fmin, s.fmax = min(s.fmin, v), max(s.fmax, v)
		if s.decimals < 0 {
			continue
		}
		if d := decimalCount(v, bits); d > maxDecimals {
			s.decimals = -1
		} else {
			s.decimals = max(s.decimals, d)
		}
	}
	if odd { // bounds must not exclude a NaN
		s.fmin, s.fmax, s.decimals = math.Inf(-1), math.Inf(1), -1
	}
	return s, odd
}

func (w *PageWriter) floatBounds(p *layout.OutPage, s stats) {
	bound := func(v float64) []byte {
		if w.Type == layout.TypeFloat {
			return binary.BigEndian.AppendUint64(nil, uint64(math.Float32bits(float32(v)))<<32)
		}
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(v))
	}
	p.MinMax.Min[0], p.MinMax.Max[0] = bound(s.fmin), bound(s.fmax)
}

// chooseFloat returns the narrowest encoding as whole numbers; ok is false if none is narrower than the numbers
// themselves.
func (w *PageWriter) chooseFloat(s stats, bits int) (t layout.StoreType, e layout.Encoding, ok bool) {
	if s.decimals == 0 && bits == 64 {
		t = narrowest(toLong(s.fmin), toLong(s.fmax))
		return t, layout.EncAdaptiveIntegral, t != layout.StoreLong
	}
	f := powers[s.decimals]
	most := f * max(math.Abs(s.fmax), math.Abs(s.fmin))
	if most > math.MaxInt64 {
		return 0, 0, false
	}
	plain := narrowest(0, toLong(most))
	d := toLong(f * (s.fmax - s.fmin))
	delta := narrowest(d, d)
	if plain.Width() > delta.Width() {
		return delta, layout.EncAdaptiveDeltaFloating, true
	}
	return plain, layout.EncAdaptiveFloating, plain.Width() < 8
}

// scaleUp converts floating-point numbers to whole numbers; ok is false if one of them would not survive the round
// trip. CarbonData's writer does not check this, and corrupts some floats.
func (w *PageWriter) scaleUp(x *Cells, s stats, store layout.StoreType, delta bool, bits int) (v []int64, ok bool) {
	f := powers[s.decimals]
	base := int64(0)
	if delta {
		base = w.deltaBase(s, f)
	}
	n := 8 * store.Width()
	v = make([]int64, len(x.Nums))
	for i, y := range x.Nums {
		k := math.Round(y * f)
		back := float64(int64(k)) / f // -0 becomes 0
		if bits == 32 {
			back = float64(float32(back))
		}
		if math.Float64bits(back) != math.Float64bits(y) {
			return nil, false
		}
		v[i] = int64(k)
		if delta {
			v[i] = base - v[i]
		}
		if v[i]<<(64-n)>>(64-n) != v[i] {
			return nil, false
		}
	}
	return v, true
}

// deltaBase is the number from which values are subtracted: the largest value, rounded as CarbonData's writer does.
func (w *PageWriter) deltaBase(s stats, f float64) int64 {
	if w.Type == layout.TypeFloat {
		return toLong(float64(float32(int64(f)) * float32(s.fmax)))
	}
	return toLong(float64(int64(f)) * s.fmax)
}
