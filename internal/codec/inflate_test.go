package codec

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	stdflate "compress/flate"
)

// deflated compresses with the standard library.
func deflated(t testing.TB, raw []byte, level int) []byte {
	var b bytes.Buffer
	w, err := stdflate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// standard returns the output of the standard library; ok if the stream is intact and extends over all of src.
func standard(src []byte) (raw []byte, ok bool) {
	in := bytes.NewReader(src)
	raw, err := io.ReadAll(io.LimitReader(stdflate.NewReader(in), 1<<22))
	return raw, err == nil && in.Len() == 0
}

// someData returns n bytes of a random kind.
func someData(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	kind := r.IntN(5)
	for i := range b {
		switch kind {
		case 0:
			b[i] = byte(r.Uint32())
		case 1:
			b[i] = byte(r.NormFloat64() * 9)
		case 2:
			b[i] = "the quick brown fox jumps over the lazy dog "[(i*7+r.IntN(3))%44]
		case 3:
			b[i] = byte(i >> r.IntN(9))
		case 4:
			if b[i] = 7; r.IntN(500) == 0 {
				b[i] = byte(r.Uint32())
			}
		}
		if i > 40 && r.IntN(30) == 0 { // a repetition
			copy(b[i:], b[r.IntN(i):])
		}
	}
	return b
}

// TestInflate: data deflated by the standard library inflate to the same bytes, and a wrong size, a missing byte or an
// extra byte is refused.
func TestInflate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		raw := someData(r, r.IntN(1<<(4+r.IntN(13))))
		for _, level := range []int{stdflate.HuffmanOnly, 0, 1, 6, 9} {
			src := deflated(t, raw, level)
			if dst := make([]byte, len(raw)); !inflate(dst, src) || !bytes.Equal(dst, raw) {
				t.Fatalf("%d bytes, level %d: inflated to other bytes, or refused", len(raw), level)
			}
			if inflate(make([]byte, len(raw)+1), src) || len(raw) > 0 && inflate(make([]byte, len(raw)-1), src) {
				t.Fatalf("%d bytes, level %d: inflated to another size without an error", len(raw), level)
			}
			if inflate(make([]byte, len(raw)), src[:len(src)-1]) ||
				inflate(make([]byte, len(raw)), append(bytes.Clone(src), 0)) {
				t.Fatalf("%d bytes, level %d: a stream with a byte less or more is not refused", len(raw), level)
			}
		}
	}
}

// TestInflateDamaged: a changed stream is inflated like by the standard library, or refused.
func TestInflateDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		raw := someData(r, 1+r.IntN(3000))
		src := deflated(t, raw, r.IntN(10))
		for range 60 {
			bad := bytes.Clone(src)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			sameInflate(t, bad, len(raw))
		}
	}
}

func sameInflate(t *testing.T, src []byte, n int) {
	t.Helper()
	dst := make([]byte, n)
	if !inflate(dst, src) {
		return
	}
	if want, ok := standard(src); !ok || !bytes.Equal(dst, want) {
		t.Fatalf("%x: inflated to %d bytes, by the standard library to %d (%v)", src, n, len(want), ok)
	}
}

func FuzzInflate(f *testing.F) {
	f.Add([]byte("\x4b\x4c\x4a\x4e\x4c\x4a\x06\x00"), uint16(6))
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		sameInflate(t, src, int(n))
		if want, ok := standard(src); ok && len(want) < 1<<20 {
			sameInflate(t, src, len(want))
		}
	})
}

func BenchmarkInflate(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	raw := make([]byte, 64<<10)
	for i := range raw {
		raw[i] = byte(r.NormFloat64() * 20)
		if i%20 > 12 && i > 1000 {
			raw[i] = raw[i-1000+i/4096]
		}
	}
	src := deflated(b, raw, 6)
	dst := make([]byte, len(raw))
	b.Run("here", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if !inflate(dst, src) {
				b.Fatal("the stream is refused")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if err := decompressDeflateSlow(dst, src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
