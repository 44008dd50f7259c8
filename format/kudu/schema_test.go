package kudu

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
)

func le(v int64, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(v))
	for len(b) < n {
		b = append(b, byte(v>>63))
	}
	return b[:n]
}

func TestValueText(t *testing.T) {
	for _, x := range []struct {
		typ         cfile.Type
		raw         []byte
		kudu, plain string
		scale       int32
	}{
		{cfile.Int8, le(-128, 1), "-128", "-128", 0},
		{cfile.Uint32, le(-1, 4), "4294967295", "4294967295", 0},
		{cfile.Uint64, le(-1, 8), "18446744073709551615", "18446744073709551615", 0},
		{cfile.Int64, le(math.MinInt64, 8), "-9223372036854775808", "-9223372036854775808", 0},
		{cfile.Bool, []byte{1}, "true", "true", 0},
		{cfile.Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.1)), "0.1", "0.1", 0},
		{cfile.Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(-1e300)), "-1e+300", "-1e+300", 0},
		{cfile.Decimal32, le(-12345, 4), "-12345_D32", "-123.45", 2},
		{cfile.Decimal64, le(5, 8), "5_D64", "0.0005", 4},
		{cfile.Decimal128, le(-1, 16), "-1_D128", "-1", 0},
		{cfile.Int128, le(-7, 16), "-7", "-7", 0},
		{cfile.Date, le(0, 4), "1970-01-01", "1970-01-01", 0},
		{cfile.Date, le(meta.MinDate, 4), "1-01-01", "1-01-01", 0},
		{cfile.Date, le(meta.MaxDate, 4), "9999-12-31", "9999-12-31", 0},
		{cfile.Date, le(meta.MaxDate+1, 4), "value 2932897 out of range for DATE type",
			"value 2932897 out of range for DATE type", 0},
		{cfile.UnixtimeMicros, le(-1, 8), "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z", 0},
		{cfile.String, []byte("a\"'\\\n\té\x00z\x7f"), `"a\"\'\\\n\té\000z\177"`, "a\"'\\\n\té\x00z\x7f", 0},
		{cfile.String, []byte("\xff"), "\"\xff\"", `\xff`, 0},
		{cfile.String, []byte("ff"), `"ff"`, "ff", 0},
		{cfile.Varchar, []byte(`\xff`), `"\\xff"`, `\x5c786666`, 0},
		{cfile.Binary, []byte("\xffab\x00g1"), `"\xff\x61\x62\x00g1"`, "ff6162006731", 0},
		{cfile.Int32, []byte{1}, "<01>", "01", 0},
		{18, []byte{1}, "<01>", "01", 0},
	} {
		if got := meta.ValueText(x.typ, x.raw); got != x.kudu {
			t.Errorf("%s %x: %s, want %s", x.typ, x.raw, got, x.kudu)
		}
		c := meta.Column{Type: x.typ, Scale: x.scale}
		if got := c.PlainText(x.raw); got != x.plain {
			t.Errorf("%s %x: PlainText %s, want %s", x.typ, x.raw, got, x.plain)
		}
		if back, err := c.Value(x.plain); x.typ.IsBinary() && (err != nil || !bytes.Equal(back, x.raw)) {
			t.Errorf("%s %x is parsed as %x, %v", x.typ, x.raw, back, err)
		}
	}
}

func TestKeyText(t *testing.T) {
	s := tableOf(cfile.Int32, cfile.String, cfile.Int8, cfile.Date)
	for _, x := range []struct {
		key  []byte
		want string
	}{
		{key(t, s, 1, "a", 2, 0), `(1, "a", 2, 1970-01-01)`},
		{key(t, s, math.MinInt32, "a", 2, meta.MinDate), `(-2147483648, "a", 2)`},
		{key(t, s, 1, "", 2, 0), `(1)`},
		{key(t, s, 1, "a", -128, 0), `(1, "a")`},
	} {
		if got, err := s.KeyText(x.key); err != nil || got != x.want {
			t.Errorf("%s: %s, want %s; %v", hex.EncodeToString(x.key), got, x.want, err)
		}
	}
	if _, err := s.KeyText([]byte{1}); err == nil {
		t.Error("a cut key has a text")
	}
}
