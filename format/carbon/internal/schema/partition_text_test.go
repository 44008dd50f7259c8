package schema

import (
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/format/carbon/internal/layout"
)

// TestPartitionText: partitions have the names that Spark 3.1.1 with CarbonData 2.3.0 gives them; the names here were
// listed from its tables.
func TestPartitionText(t *testing.T) {
	type number struct {
		v    float64
		want string
	}
	for _, x := range []number{{-2, "-2.0"}, {1e7, "1.0E7"}, {1e-3, "0.001"}, {1e-4, "1.0E-4"}, {0.1, "0.1"},
		{123456.789, "123456.789"}, {9999999, "9999999.0"}, {1e22, "1.0E22"}, {0, "0.0"}, {2e-323, "2.0E-323"}} {
		if got := PartitionText(&layout.ColumnSchema{Type: layout.TypeDouble}, Constant{F: x.v}); got != x.want {
			t.Errorf("double %g: %s, expected %s", x.v, got, x.want)
		}
	}
	for _, x := range []number{{-2, "-2.0"}, {0.1, "0.10000000149011612"}, {16777216, "1.6777216E7"}, {1e10, "1.0E10"},
		{0.001, "0.0010000000474974513"}, {0.0009, "8.999999845400453E-4"}, {3.4e38, "3.3999999521443642E38"}} {
		if got := PartitionText(&layout.ColumnSchema{Type: layout.TypeFloat}, Constant{F: x.v}); got != x.want {
			t.Errorf("float %g: %s, expected %s", x.v, got, x.want)
		}
	}
	for _, x := range []struct {
		unscaled string
		scale    int32
		want     string
	}{{"1000", 3, "1.000"}, {"-500", 3, "-0.500"}, {"1234567891", 3, "1234567.891"}, {"0", 3, "0.000"},
		{"10", 3, "0.010"}, {"1", 10, "1E-10"}, {"0", 10, "0E-10"}, {"120000000000", 10, "12.0000000000"},
		{"12000", 0, "12000"}} {
		u, _ := new(big.Int).SetString(x.unscaled, 10)
		c := &layout.ColumnSchema{Type: layout.TypeDecimal, Scale: x.scale}
		if got := PartitionText(c, Constant{D: decimal128.FromBigInt(u)}); got != x.want {
			t.Errorf("decimal %s, scale %d: %s, expected %s", x.unscaled, x.scale, got, x.want)
		}
	}
	for ms, want := range map[int64]string{
		1709168523456: "2024-02-29 01:02:03.456", 1709168523000: "2024-02-29 01:02:03",
		1709164800100: "2024-02-29 00:00:00.1", 1709164800120: "2024-02-29 00:00:00.12", -1: "1969-12-31 23:59:59.999",
	} {
		if got := PartitionText(&layout.ColumnSchema{Type: layout.TypeTimestamp}, Constant{I: ms}); got != want {
			t.Errorf("%d ms: %s, expected %s", ms, got, want)
		}
	}
	// as Spark escapes them: all but these stay
	escaped := map[byte]string{
		'"': "%22", '#': "%23", '%': "%25", '\'': "%27", '*': "%2A", '/': "%2F", ':': "%3A", '=': "%3D", '?': "%3F",
		'[': "%5B", '\\': "%5C", ']': "%5D", '^': "%5E", '{': "%7B", 127: "%7F",
	}
	for c := byte(' '); c < 128; c++ {
		want, ok := escaped[c]
		if !ok {
			want = string(rune(c))
		}
		if got := Escape("a" + string(rune(c)) + "z"); got != "a"+want+"z" {
			t.Errorf("%q: %s", c, got)
		}
	}
	if s := "é€😀\x01\t\n"; Unescape(Escape(s)) != s || !strings.HasPrefix(Escape(s), "é€😀%01%09%0A") {
		t.Errorf("%s", Escape(s))
	}
}
