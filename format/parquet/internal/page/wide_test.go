package page

import (
	"math/rand/v2"
	"testing"
)

// TestWideOf compares numbers that are read a word at a time with those that are reversed byte by byte.
func TestWideOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for stored := range 17 {
		for k := range 20 {
			raw := make([]byte, k*stored)
			for i := range raw {
				raw[i] = byte(r.IntN(256))
			}
			out, want := make([][2]uint64, k), make([]byte, 16)
			bigEndian16(out, raw, stored)
			for i := range out {
				if !fromBigEndian(want, raw[i*stored:][:stored]) {
					t.Fatal("it fits")
				}
				if w := cast[[2]uint64](want, 1)[0]; out[i] != w {
					t.Fatalf("%x: %x, want %x", raw[i*stored:][:stored], out[i], w)
				}
			}
		}
	}
}
