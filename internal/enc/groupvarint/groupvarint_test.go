package groupvarint

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// Groups by hand.
var byHand = []struct {
	hex  string
	vals [4]uint32
}{
	{"0001020304", [4]uint32{1, 2, 3, 4}},
	{"1bff" + "0002" + "000003" + "00000004", [4]uint32{0xff, 0x200, 0x30000, 0x4000000}},
	{"e4" + "00000004" + "000003" + "0002" + "ff", [4]uint32{0x4000000, 0x30000, 0x200, 0xff}},
	{"55" + "0001" + "0101" + "ffff" + "3412", [4]uint32{0x100, 0x101, 0xffff, 0x1234}},
	{"aa" + "000001" + "563412" + "ffffff" + "010002", [4]uint32{0x10000, 0x123456, 0xffffff, 0x20001}},
	{"ff" + "00000001" + "00000080" + "ffffffff" + "78563412", [4]uint32{1 << 24, 1 << 31, 1<<32 - 1, 0x12345678}},
	{"0000ff7f00", [4]uint32{0, 255, 127, 0}},
}

func TestByHand(t *testing.T) {
	for _, c := range byHand {
		src, _ := hex.DecodeString(c.hex)
		v, used, err := Decode4(src)
		if err != nil || v != c.vals || used != len(src) {
			t.Errorf("Decode4(%s) = %x, %d, %v", c.hex, v, used, err)
		}
		if v, used, err = Decode4(append(src, make([]byte, 40)...)); err != nil || v != c.vals || used != len(src) {
			t.Errorf("Decode4(%s…) = %x, %d, %v", c.hex, v, used, err)
		}
		if got := Append4(nil, c.vals[0], c.vals[1], c.vals[2], c.vals[3]); !bytes.Equal(got, src) {
			t.Errorf("Append4(%x) = %x, want %s", c.vals, got, c.hex)
		}
		for cut := range src {
			if _, _, err := Decode4(src[:cut]); err == nil {
				t.Errorf("%s cut at %d: no error", c.hex, cut)
			}
		}
	}
}
