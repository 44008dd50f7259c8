package bzip2

import (
	"bytes"
	reader "compress/bzip2"
	"io"
	"math/rand/v2"
	"testing"
)

// TestBzip2: the standard library's decompressor restores the input of the compressor.
func TestBzip2(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	inputs := [][]byte{nil, {0}, []byte("a"), []byte("banana"), bytes.Repeat([]byte{7}, 100000),
		bytes.Repeat([]byte("abc"), 3000), bytes.Repeat([]byte{1, 1, 1, 1}, 64), bytes.Repeat([]byte{9}, 255+4)}
	for range 40 {
		b := make([]byte, r.IntN(5000))
		for i := range b {
			b[i] = byte(r.Uint32() >> r.IntN(9) & uint32(1<<r.IntN(9)-1))
		}
		inputs = append(inputs, b)
	}
	long := make([]byte, 910_000)
	for i := range long {
		long[i] = byte(r.IntN(256))
	}
	for i, in := range append(inputs, long) {
		out := Append(nil, in)
		got, err := io.ReadAll(reader.NewReader(bytes.NewReader(out)))
		if err != nil || !bytes.Equal(got, in) {
			t.Errorf("input %d of %d bytes: %v, %d bytes back", i, len(in), err, len(got))
		}
	}
}
