package page

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/vec"
)

// decodeOptional decodes n entries after an existing one, in one pass or step by step.
func decodeOptional(t testing.TB, typ layout.Type, raw []byte, n int, more bool, atOnce bool) (arrow.Array, bool) {
	v, err := vec.New(layout.Types[typ].Arrow, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	v.ExtendUnset(1)
	d := &decoding{p: &Physical{StoredType: typ, Shape: ShapeOptional}, o: container.Opened{Raw: raw}, limit: 1 << 20,
		scratch: &vec.Arena{}, task: &format.Task{}, b: &container.Block{Rows: int64(n)}}
	d.p.Parent = -1
	if more {
		d.b.Rows++
	}
	if atOnce {
		if !d.optionalFast(v, n) {
			if v.Len() != 1 {
				t.Fatalf("%d entries are left", v.Len())
			}
			return nil, false
		}
	} else if err := d.arrayStepwise(v, n); err != nil {
		return nil, false
	}
	a, err := v.Emit(n + 1)
	if err != nil {
		t.Fatal(err)
	}
	return a, true
}

// sameOptional: one pass and step-by-step decoding yield the same result.
func sameOptional(t testing.TB, typ layout.Type, raw []byte, n int, more bool) (done bool) {
	got, done := decodeOptional(t, typ, raw, n, more, true)
	if !done {
		return false
	}
	want, ok := decodeOptional(t, typ, raw, n, more, false)
	if !ok || !array.Equal(got, want) || got.NullN() != want.NullN() {
		t.Fatalf("%s %.400x: %.400v, want %.400v", typ, raw, got, want)
	}
	return true
}

var optionalTypes = []layout.Type{layout.Boolean, layout.Int, layout.Long, layout.Fixed32, layout.Fixed64,
	layout.String, layout.Bytes}

// appendValue appends a value of a type, encoded as Avro specifies, of a random size.
func appendValue(b []byte, typ layout.Type, r *rand.Rand) []byte {
	switch typ {
	case layout.Boolean:
		return append(b, byte(r.IntN(2)))
	case layout.Int:
		return layout.AppendLong(b, int64(int32(r.Uint32())>>r.IntN(32)))
	case layout.Long:
		return layout.AppendLong(b, int64(r.Uint64())>>r.IntN(64))
	case layout.Fixed32, layout.Fixed64:
		for range layout.Types[typ].Width {
			b = append(b, byte(r.Uint32()))
		}
		return b
	}
	text := make([]byte, r.IntN(1<<r.IntN(9)))
	for i := range text {
		text[i] = 'a' + byte(r.IntN(26))
	}
	return layout.AppendText(b, text)
}

// TestOptionals: every block that Avro's writer can produce is decoded in one pass.
func TestOptionals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range optionalTypes {
		for range 40 {
			n := 1 + r.IntN(300)
			nulls := r.IntN(5) // of 4
			var raw []byte
			for i := 0; i < n; {
				if r.IntN(4) >= nulls {
					raw = appendValue(append(raw, 2), typ, r)
					i++
					continue
				}
				k := min(1+r.IntN(9), n-i)
				if k == 1 || r.IntN(4) == 0 { // version 1 has no runs
					raw = append(raw, make([]byte, k)...)
				} else {
					raw = layout.AppendLong(raw, int64(3-2*k))
				}
				i += k
			}
			if !sameOptional(t, typ, raw, n, false) {
				t.Fatalf("%s %.400x: not in one pass", typ, raw)
			}
			if n > 1 && !sameOptional(t, typ, raw, n-1, true) { // the first of a block's rows
				t.Fatalf("%s %.400x: not without the last", typ, raw)
			}
			cut := raw[:r.IntN(len(raw))]
			sameOptional(t, typ, cut, n, false)
			if _, ok := decodeOptional(t, typ, cut, n, false, false); ok {
				t.Fatalf("%s %.400x: cut off, and no error", typ, raw)
			}
		}
	}
}

// FuzzOptionals compares decoding in one pass with decoding length by length, for any bytes.
func FuzzOptionals(f *testing.F) {
	f.Add([]byte{2, 3, 0, 3, 2, 0x82, 0x80, 0x80, 0x80, 0x00}, uint8(1), uint8(5))
	f.Fuzz(func(t *testing.T, raw []byte, typ, n uint8) {
		sameOptional(t, optionalTypes[int(typ)%len(optionalTypes)], raw, int(n), n&1 != 0)
	})
}
