package text

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/cells"
	"stoa/internal/enc/half"
)

// TestHalfFloats: every float16 except NaN reads back as written, in CSV and JSON; a number beyond the largest is an
// error, and does not become infinite.
func TestHalfFloats(t *testing.T) {
	b := array.NewFloat16Builder(memory.DefaultAllocator)
	defer b.Release()
	set := halfSetter(b)
	for i := range 1 << 16 {
		b.Append(float16.FromBits(uint16(i)))
	}
	all := b.NewFloat16Array()
	defer all.Release()
	for i := range all.Len() {
		if all.Value(i).IsNaN() {
			continue
		}
		for _, write := range []func([]byte, arrow.Array, int) []byte{cells.AppendCSV, cells.AppendCell} {
			s := write(nil, all, i)
			if s[0] == '"' {
				s = s[1 : len(s)-1]
			}
			if err := set(s); err != nil {
				t.Fatalf("%#04x: %v", i, err)
			}
			one := b.NewFloat16Array()
			if got := one.Value(0).Uint16(); got != uint16(i) {
				t.Fatalf("%#04x is written as %s and read as %#04x", i, s, got)
			}
			one.Release()
		}
	}
	for s, ok := range map[string]bool{"65504": true, "65519.999": true, "65520": false, "-70000": false,
		"1e400": false, "Infinity": true} {
		if err := set([]byte(s)); (err == nil) != ok {
			t.Errorf("%s: %v", s, err)
		}
	}
	if half.Float(0x0001) == 0 {
		t.Error("the smallest float16 is 0")
	}
}
