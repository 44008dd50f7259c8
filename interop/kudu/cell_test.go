package kudu

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// A column of these tests. Type, Enc and Comp are Kudu's own names, as in the footer.
type column struct {
	Name             string
	Type             string // INT8 … VARCHAR; DECIMAL32, DECIMAL64, DECIMAL128
	Key, Nullable    bool
	Enc, Comp        string
	BlockSize        int
	Prec, Scale, Len int
}

// A cell is nil (NULL), bool, int64 (INT*, UNIXTIME_MICROS, DATE, DECIMAL32/64), uint64 (UINT*),
// *big.Int (INT128, DECIMAL128), float32, float64, or []byte (STRING, VARCHAR, BINARY).
type cell any

// dumped returns the cell as `kudu fs dump cfile` of 1.18.1 prints it: a copy of its AppendDebugStringForValue, bugs
// included.
func dumped(typ string, v cell) string {
	switch x := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strconv.FormatBool(x)
	case uint64:
		return strconv.FormatUint(x, 10)
	case *big.Int:
		if typ == "DECIMAL128" {
			return dumped128(x) + "_D128"
		}
		return dumped128(x)
	case float32:
		if math.IsNaN(float64(x)) {
			return dumpedNaN(math.Signbit(float64(x)))
		}
		s := strconv.FormatFloat(float64(x), 'g', 6, 64)
		if p, err := strconv.ParseFloat(s, 32); err != nil || float32(p) != x {
			// one digit too few for some values: Kudu's text loses the last bit
			s = strconv.FormatFloat(float64(x), 'g', 8, 64)
		}
		return dumpedInf(s)
	case float64:
		if math.IsNaN(x) {
			return dumpedNaN(math.Signbit(x))
		}
		s := strconv.FormatFloat(x, 'g', 15, 64)
		if p, err := strconv.ParseFloat(s, 64); err != nil || p != x {
			s = strconv.FormatFloat(x, 'g', 17, 64)
		}
		return dumpedInf(s)
	case []byte:
		if typ == "BINARY" {
			return `"` + escapeHex(x) + `"`
		}
		return `"` + escapeOctal(x) + `"`
	case int64:
		switch typ {
		case "DECIMAL32":
			return strconv.FormatInt(x, 10) + "_D32"
		case "DECIMAL64":
			return strconv.FormatInt(x, 10) + "_D64"
		case "DATE":
			if x < -719162 || x > 2932896 {
				return fmt.Sprintf("value %d out of range for DATE type", x)
			}
			t := time.Unix(x*86400, 0).UTC()
			return fmt.Sprintf("%d-%02d-%02d", t.Year(), t.Month(), t.Day())
		case "UNIXTIME_MICROS":
			sec, us := x/1e6, x%1e6
			if us < 0 {
				sec, us = sec-1, us+1e6
			}
			t := time.Unix(sec, 0).UTC()
			return fmt.Sprintf("%d-%02d-%02dT%02d:%02d:%02d.%06dZ", t.Year(), t.Month(), t.Day(), t.Hour(),
				t.Minute(), t.Second(), us)
		}
		return strconv.FormatInt(x, 10)
	}
	panic(fmt.Sprintf("cell of type %T", v))
}

func dumpedNaN(neg bool) string {
	if neg {
		return "-nan"
	}
	return "nan"
}

func dumpedInf(s string) string { return strings.ToLower(strings.TrimPrefix(s, "+")) }

var twentyDigits = new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)

// dumped128 is FastInt128ToBufferLeft: the middle 19 digits lose their leading zeros.
func dumped128(v *big.Int) string {
	sign, u := "", new(big.Int).Set(v)
	if u.Sign() < 0 {
		sign = "-"
		u.Neg(u)
	}
	if u.IsUint64() {
		return sign + u.String()
	}
	top, rem := new(big.Int).QuoRem(u, twentyDigits, new(big.Int))
	mid, last := new(big.Int).QuoRem(rem, big.NewInt(10), new(big.Int))
	return sign + top.String() + mid.String() + last.String()
}

func escapeCommon(b *strings.Builder, c byte) bool {
	if i := strings.IndexByte("\n\r\t\"'\\", c); i >= 0 {
		b.WriteByte('\\')
		b.WriteByte("nrt\"'\\"[i])
		return true
	}
	return false
}

// escapeHex is gutil's CHexEscape: a hex digit after \xNN is escaped, too.
func escapeHex(s []byte) string {
	var b strings.Builder
	last := false
	for _, c := range s {
		if escapeCommon(&b, c) {
			last = false
			continue
		}
		digit := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if last = c < 32 || c > 126 || last && digit; last {
			fmt.Fprintf(&b, "\\x%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// escapeOctal is gutil's Utf8SafeCEscape.
func escapeOctal(s []byte) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case escapeCommon(&b, c):
		case c < 32 || c == 127:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// wired returns the cell as Drive.java reads and writes it: exact for every type.
func wired(v cell) string {
	switch x := v.(type) {
	case nil:
		return "N"
	case float32:
		return fmt.Sprintf("%08x", math.Float32bits(x))
	case float64:
		return fmt.Sprintf("%016x", math.Float64bits(x))
	case []byte:
		return "x" + hex.EncodeToString(x)
	}
	return fmt.Sprint(v)
}

func wiredRow(row []cell) string {
	s := make([]string, len(row))
	for i, v := range row {
		s[i] = wired(v)
	}
	return strings.Join(s, "\t")
}

// ---- Values by formula.

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func hash(seed, r int) uint64 { return mix(uint64(seed)*1000003 + uint64(r)) }

// segment is the number of rows with the same kind of values: random, runs of 37, ramp, ten distinct values,
// extreme values, all NULL, constant, random with long strings; then again.
const segment = 250

// value returns the cell of row r in a column, a pure function of its arguments.
func value(c column, seed, r int) cell {
	var h uint64
	habit := r / segment % 8
	if c.Nullable {
		switch habit {
		case 1:
			if hash(seed+500, r/23)&3 == 0 {
				return nil
			}
		case 2: // none
		case 5:
			return nil
		default:
			if hash(seed+500, r)&7 == 0 {
				return nil
			}
		}
	}
	switch habit {
	case 1:
		h = hash(seed, r/37)
	case 2:
		return ramp(c, r)
	case 3:
		h = hash(seed, int(hash(seed, r)>>1%10))
	case 4:
		e := edges(c)
		return e[r%len(e)]
	case 6:
		h = hash(seed, 6)
	default:
		h = hash(seed, r)
	}
	return fromHash(c, h, habit == 7)
}

func bits(typ string) uint {
	switch strings.TrimLeft(typ, "UINT") {
	case "8":
		return 8
	case "16":
		return 16
	case "32":
		return 32
	}
	return 64
}

func fromHash(c column, h uint64, long bool) cell {
	switch c.Type {
	case "BOOL":
		return h&1 == 1
	case "INT8", "INT16", "INT32", "INT64":
		n := 64 - bits(c.Type)
		return int64(h) << n >> n
	case "UINT8", "UINT16", "UINT32", "UINT64":
		n := 64 - bits(c.Type)
		return h << n >> n
	case "UNIXTIME_MICROS":
		return int64(h) >> (h & 15)
	case "DATE":
		return int64(h%3652059) - 719162
	case "FLOAT":
		switch h % 31 {
		case 0:
			return float32(math.NaN())
		case 1:
			return float32(math.Copysign(0, -1))
		case 2:
			return float32(math.Inf(-1))
		case 3:
			return math.Float32frombits(uint32(h>>32) &^ 0x40000000) // including tiny ones and denormals
		}
		return float32(int64(h)) / 1024
	case "DOUBLE":
		switch h % 31 {
		case 0:
			return nan64
		case 1:
			return math.Copysign(0, -1)
		case 2:
			return math.Inf(1)
		case 3:
			return math.Float64frombits(h &^ (1 << 62))
		}
		return float64(int64(h)) / 1024
	case "DECIMAL32", "DECIMAL64":
		return int64(h) % int64(math.Pow10(c.Prec))
	case "INT128", "DECIMAL128":
		v := new(big.Int).Mul(big.NewInt(int64(h)), new(big.Int).SetUint64(mix(h)>>(h%64)))
		if c.Type == "DECIMAL128" {
			v.Rem(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Prec)), nil))
		}
		return v
	}
	var b []byte
	if c.Type == "BINARY" {
		n := int(h >> 8 % 24)
		if long {
			n = int(h >> 8 % 700)
		}
		for i := range n {
			b = append(b, byte(hash(int(h>>40), i)))
		}
	} else if h%17 != 0 {
		b = fmt.Appendf(nil, "k%x", h)
		if h%5 == 0 {
			b = append(b, "é中😀"...)
		}
		if h%7 == 0 {
			b = append(b, "\x00z"...)
		}
		if long {
			b = bytes.Repeat(b, 1+int(h>>9%30))
		}
	}
	if b == nil {
		b = []byte{}
	}
	return cut(c, b)
}

// cut cuts a VARCHAR to its length in UTF-16 units, which the Java client counts.
func cut(c column, b []byte) []byte {
	if c.Type != "VARCHAR" {
		return b
	}
	left := c.Len
	for i, r := range string(b) {
		if left -= utf16.RuneLen(r); left < 0 {
			return b[:i]
		}
	}
	return b
}

func ramp(c column, r int) cell {
	switch c.Type {
	case "BOOL":
		return r/64&1 == 1
	case "INT8":
		return int64(int8(r))
	case "UINT8":
		return uint64(uint8(r))
	case "INT16":
		return int64(int16(r*3 - 1700))
	case "UINT16":
		return uint64(uint16(r * 3))
	case "UINT32", "UINT64":
		return uint64(r * 3)
	case "INT128", "DECIMAL128":
		return new(big.Int).Mul(big.NewInt(int64(r*3-1700)), big.NewInt(0x1234567890abcdf))
	case "FLOAT":
		return float32(r) / 8
	case "DOUBLE":
		return float64(r) / 8
	case "STRING", "BINARY", "VARCHAR":
		return fmt.Appendf(nil, "shared/prefix/%09d", r/2)
	}
	return int64(r*3 - 1700)
}

func edges(c column) []cell {
	ten := func(p int) int64 { return int64(math.Pow10(p)) - 1 }
	ints := func(v ...int64) (out []cell) {
		for _, x := range v {
			out = append(out, x)
		}
		return
	}
	switch c.Type {
	case "BOOL":
		return []cell{true, false, false}
	case "INT8", "INT16", "INT32", "INT64":
		m := int64(1)<<(bits(c.Type)-1) - 1
		return ints(0, m, -m-1, -1, 1, m-1, -m)
	case "UINT8", "UINT16", "UINT32", "UINT64":
		m := uint64(math.MaxUint64) >> (64 - bits(c.Type))
		return []cell{uint64(0), m, uint64(1), m/2 + 1, m / 2, m - 1}
	case "UNIXTIME_MICROS":
		return ints(0, math.MaxInt64, math.MinInt64, -1, 1, 999999, -999999, -1000000, 253402300799999999,
			-62135596800000000, -62135596800000001, -62167219200000001)
	case "DATE":
		return ints(0, -719162, 2932896, -1, 1, -719162+365*9)
	case "FLOAT":
		return []cell{float32(0), float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)),
			float32(math.NaN()), float32(math.MaxFloat32), float32(-math.MaxFloat32),
			float32(math.SmallestNonzeroFloat32), float32(1), float32(-1.5), float32(100000), float32(1e6),
			float32(0.0001), float32(0.00001)}
	case "DOUBLE":
		return []cell{0.0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), nan64, math.MaxFloat64, -math.MaxFloat64,
			math.SmallestNonzeroFloat64, 1.0, -1.5, 1e15, 1e16, 0.1, 0.0001, 0.00001, 1.0 / 3}
	case "DECIMAL32", "DECIMAL64":
		return ints(0, ten(c.Prec), -ten(c.Prec), 1, -1)
	case "INT128", "DECIMAL128":
		m := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(c.Prec, 1))), nil), big.NewInt(1))
		low := new(big.Int).Neg(m)
		if c.Type == "INT128" {
			m.Sub(m.Lsh(big.NewInt(1), 127), big.NewInt(1))
			low.Not(m)
		}
		big1 := func(s string) *big.Int { v, _ := new(big.Int).SetString(s, 10); return v }
		return []cell{big.NewInt(0), m, low, big.NewInt(1), big.NewInt(-1), big1("18446744073709551615"),
			big1("18446744073709551616"), big1("-100000000000000000000"), big1("629151888503418805751986341411960112")}
	}
	out := []cell{}
	for _, s := range []string{"", "a", "\x00", "a\x00", "a\x00\x01", "\"", "\\", "'\n\r\t", "\x01f0", "\x7f",
		"é中😀", "N", "NULL", strings.Repeat("z", 900), "", strings.Repeat("z", 901), "\x00\x00"} {
		out = append(out, cut(c, []byte(s)))
	}
	if c.Type == "BINARY" {
		out = append(out, bytes.Repeat([]byte{0xff}, 300), []byte{0xff}, []byte{0x80, 'a', '0', 0xfe, 'F', 'g'},
			[]byte{0xc3, 0x28})
	}
	return out
}

func values(c column, seed, n int) []cell {
	out := make([]cell, n)
	for r := range out {
		out[r] = value(c, seed, r)
	}
	return out
}

// nan64 is the NaN to which Java normalizes all others.
var nan64 = math.Float64frombits(0x7ff8000000000000)
