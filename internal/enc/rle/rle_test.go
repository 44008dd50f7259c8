package rle

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// encodings by hand. The values are written as digits, "3*100" repeats.
var byHand = []struct {
	name  string
	width int
	hex   string
	vals  string
}{
	{"the package comment", 1, "c80101c80100055503", "1*100 0*100 1 0 1 0 1 0 1 0 1 1"},
	{"200 alternating (Kudu's rle-encoding.h: 26 bytes)", 1, "33" + strings.Repeat("aa", 25), strings.Repeat("0 1 ", 100)},
	{"one value", 1, "0201", "1"},
	{"two values", 1, "0302", "0 1"},
	{"seven equal values", 8, "0e05", "5*7"},
	{"packed, then a run: the run begins with a group", 8, "03" + "0102020202020202" + "1202", "1 2*16"},
	{"a run takes on what comes", 8, "1402" + "0203", "2*10 3"},
	{"a run of 32-bit values", 32, "10" + "78563412", "305419896*8"},
	{"the last group is cut", 16, "03" + "010002000300", "1 2 3"},
	{"3 bits", 3, "03" + "88c6fa", "0 1 2 3 4 5 6 7"},
	{"12 bits", 12, "03" + "bc3a12", "2748 291"},
	{"64 groups: two packed runs", 1, "7f" + strings.Repeat("aa", 63) + "03aa", strings.Repeat("0 1 ", 256)},
	{"nothing", 1, "", ""},
}

func parse(s string) (out []uint64) {
	for _, f := range strings.Fields(s) {
		var v uint64
		n := 1
		if strings.Contains(f, "*") {
			fmt.Sscanf(f, "%d*%d", &v, &n)
		} else {
			fmt.Sscanf(f, "%d", &v)
		}
		for range n {
			out = append(out, v)
		}
	}
	return out
}

func TestByHand(t *testing.T) {
	for _, c := range byHand {
		t.Run(c.name, func(t *testing.T) {
			src, _ := hex.DecodeString(c.hex)
			want := parse(c.vals)
			got := make([]uint64, len(want))
			if err := DecodeInts(got, src, c.width, 0); err != nil {
				t.Fatal(err)
			}
			e := NewEncoder(c.width)
			for i, v := range want {
				if got[i] != v {
					t.Fatalf("value %d: %d, want %d", i, got[i], v)
				}
				e.Put(v)
			}
			if e.Len() != len(src) {
				t.Errorf("Len %d, want %d", e.Len(), len(src))
			}
			if out := e.Finish(); !bytes.Equal(out, src) {
				t.Errorf("encoded as %x, want %s", out, c.hex)
			}
		})
	}
}
