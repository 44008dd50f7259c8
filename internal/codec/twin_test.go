package codec

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"stoa/fault"
)

// Blocks made by hand from the descriptions of the formats.
func TestByHand(t *testing.T) {
	for _, c := range []struct{ codec, block, raw string }{
		{"lz4", "50" + "68656c6c6f", "hello"},
		{"lz4", "00", ""},
		// one literal, then a match of 9 at distance 1, then the five literals that end every block
		{"lz4", "15" + "61" + "0100" + "50" + "6262626262", "aaaaaaaaaabbbbb"},
		{"snappy", "05" + "10" + "68656c6c6f", "hello"},
		{"snappy", "00", ""},
		// literal "ab", then a copy of 6 at distance 2
		{"snappy", "08" + "04" + "6162" + "09" + "02", "abababab"},
		// a stored block, then the Adler-32
		{"zlib", "7801" + "01" + "0500" + "faff" + "68656c6c6f" + "062c0215", "hello"},
		{"zlib", "789c" + "0300" + "00000001", ""},
		{"none", "68656c6c6f", "hello"},
	} {
		block, _ := hex.DecodeString(c.block)
		d, _ := ByName(c.codec)
		got := make([]byte, len(c.raw))
		if err := d.Decompress(got, block); err != nil || string(got) != c.raw {
			t.Errorf("%s %s: %q, %v", c.codec, c.block, got, err)
		}
		for _, n := range []int{len(c.raw) + 1, len(c.raw) - 1} {
			if n >= 0 && d.Decompress(make([]byte, n), block) == nil {
				t.Errorf("%s %s: no error for %d bytes decompressed as %d", c.codec, c.block, len(c.raw), n)
			}
		}
		for cut := range block {
			if c.codec != "none" && d.Decompress(got, block[:cut]) == nil {
				t.Errorf("%s %s: cut at %d: no error", c.codec, c.block, cut)
			}
		}
		if d.Decompress(got, append(block, 0)) == nil {
			t.Errorf("%s %s: no error for a byte after the end", c.codec, c.block)
		}
	}
	if _, ok := ByName("lzo"); ok {
		t.Error("there is a codec lzo")
	}
}

// naiveLZ4 follows the description of the LZ4 block format.
func naiveLZ4(src []byte) (out []byte, ok bool) {
	length := func(n int) (int, bool) {
		for b := byte(255); n >= 15 && b == 255; {
			if len(src) == 0 {
				return 0, false
			}
			b, src = src[0], src[1:]
			n += int(b)
		}
		return n, true
	}
	for len(src) > 0 {
		token := src[0]
		src = src[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(src) {
			return nil, false
		}
		out, src = append(out, src[:n]...), src[n:]
		if len(src) == 0 {
			return out, true
		}
		if len(src) < 2 {
			return nil, false
		}
		dist := int(src[0]) | int(src[1])<<8
		src = src[2:]
		n, ok = length(int(token & 15))
		if !ok || dist == 0 || dist > len(out) || n > 1<<20 {
			return nil, false
		}
		for range n + 4 {
			out = append(out, out[len(out)-dist])
		}
	}
	return out, true
}

func TestOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := bytes.Join(rapid.SliceOfN(
			rapid.SampledFrom([][]byte{[]byte("stoa"), bytes.Repeat([]byte("x"), 400), {0, 1, 2, 3, 4, 5, 6}, nil}),
			0, 30).Draw(t, "parts"), []byte{1})
		z, _ := ByName("zlib")
		r, err := zlib.NewReader(bytes.NewReader(z.Compress(nil, raw)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, raw) {
			t.Fatalf("the standard library reads %d bytes, %v", len(got), err)
		}
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		w.Write(raw)
		w.Close()
		got := make([]byte, len(raw))
		if err := z.Decompress(got, b.Bytes()); err != nil || !bytes.Equal(got, raw) {
			t.Fatal(err)
		}
		l, _ := ByName("lz4")
		if got, ok := naiveLZ4(l.Compress(nil, raw)); !ok || !bytes.Equal(got, raw) {
			t.Fatalf("the twin reads %d of %d bytes, %v", len(got), len(raw), ok)
		}
	})
}

// Damaged bytes: the error has a class and a span, and the pooled reader works afterwards.
func FuzzDecompress(f *testing.F) {
	good := bytes.Repeat([]byte("stoa and stoa "), 30)
	for i := range codecs {
		f.Add(uint8(i), codecs[i].Compress(nil, good), uint16(len(good)))
		f.Add(uint8(i), codecs[i].Compress(nil, good)[:5], uint16(len(good)))
	}
	f.Add(uint8(2), []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, uint16(5))
	f.Fuzz(func(t *testing.T, which uint8, src []byte, n uint16) {
		c := &codecs[which%uint8(len(codecs))]
		dst := make([]byte, n)
		err := c.Decompress(dst, src)
		var e *fault.Error
		if err != nil && (!errors.As(err, &e) || e.Class != fault.Corrupt || e.Path != c.Name || e.Reason == "" ||
			e.At.Off < 0) {
			t.Fatalf("%T %v", err, err)
		}
		if c.Name == "lz4" {
			// The naive decoder accepts more: it does not require a block to end in literals.
			if got, ok := naiveLZ4(src); err == nil && (!ok || !bytes.Equal(got, dst)) {
				t.Fatalf("%d bytes; twin %d, %v", n, len(got), ok)
			}
		}
		z := c.Compress(nil, good)
		got := make([]byte, len(good))
		if err := c.Decompress(got, z); err != nil || !bytes.Equal(got, good) {
			t.Fatal(err)
		}
	})
}

func BenchmarkCodecs(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var raw []byte
	for len(raw) < 256<<10 {
		raw = fmt.Appendf(raw, "host-%03d,%d,%s;", r.IntN(200), 1700000000+len(raw)/9,
			[]string{"ok", "warning", "error"}[r.IntN(3)])
	}
	for i := range codecs {
		c := &codecs[i]
		z, got := c.Compress(nil, raw), make([]byte, len(raw))
		b.Run(c.Name+"/decompress", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Decompress(got, z); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.Name+"/compress", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				z = c.Compress(z[:0], raw)
			}
		})
	}
}
