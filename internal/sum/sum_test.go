package sum

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The examples of RFC 3720, appendix B.4 (there printed in byte order), and the check value of the CRC catalogue.
func TestCRC32C(t *testing.T) {
	up := make([]byte, 32)
	for i := range up {
		up[i] = byte(i)
	}
	scsi, _ := hex.DecodeString("01c0000000000000000000000000000014000000000004000000001400000018280000000000000002" +
		"00000000000000")
	for _, c := range []struct {
		in   []byte
		want uint32
	}{
		{nil, 0},
		{[]byte("123456789"), 0xe3069283},
		{make([]byte, 32), 0x8a9136aa},
		{bytes.Repeat([]byte{0xff}, 32), 0x62a8ab43},
		{up, 0x46dd794e},
		{scsi, 0xd9963a56},
	} {
		if got := CRC32C(c.in); got != c.want {
			t.Errorf("CRC32C(%x) = %08x, want %08x", c.in, got, c.want)
		}
		for cut := range c.in {
			if got := CRC32C(c.in[:cut], nil, c.in[cut:]); got != c.want {
				t.Fatalf("cut at %d of %x: %08x, want %08x", cut, c.in, got, c.want)
			}
		}
	}
}

func BenchmarkCRC32C(b *testing.B) {
	p := make([]byte, 1<<16)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		CRC32C(p)
	}
}
