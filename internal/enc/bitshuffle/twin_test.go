package bitshuffle

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"stoa/fault"
)

type tb interface {
	Helper()
	Fatalf(string, ...any)
}

// checkTwins compares the kernels with their bit-by-bit twins, and checks that Untranspose undoes Transpose.
func checkTwins(t tb, p []byte, elem int) {
	t.Helper()
	want, got := make([]byte, len(p)), bytes.Repeat([]byte{0xa5}, len(p))
	naiveUntranspose(want, p, elem)
	Untranspose(got, p, elem)
	if !bytes.Equal(got, want) {
		t.Fatalf("Untranspose, %d elements of %d bytes: got\n%x, want\n%x", len(p)/elem, elem, got, want)
	}
	naiveTranspose(want, p, elem)
	Transpose(got, p, elem)
	if !bytes.Equal(got, want) {
		t.Fatalf("Transpose, %d elements of %d bytes: got\n%x, want\n%x", len(p)/elem, elem, got, want)
	}
	Untranspose(want, got, elem)
	if !bytes.Equal(want, p) {
		t.Fatalf("%d elements of %d bytes: Untranspose does not undo Transpose", len(p)/elem, elem)
	}
}

func TestTwins(t *testing.T) {
	r := randomBytes(16 * 8 * 40)
	for _, elem := range []int{1, 2, 3, 4, 5, 8, 12, 16} {
		for n := 0; n <= 8*40; n += 8 {
			checkTwins(t, r[:n*elem], elem)
			// elements whose upper bytes are all the same, 0 or not
			for _, keep := range []int{0, 1, elem / 2} {
				for _, fill := range []byte{0, 0xff, 0x35} {
					p := bytes.Repeat([]byte{fill}, n*elem)
					for i := range p {
						if i%elem < keep {
							p[i] = r[i]
						}
					}
					checkTwins(t, p, elem)
					rows := make([]byte, len(p))
					naiveTranspose(rows, p, elem)
					checkTwins(t, rows, elem)
				}
			}
		}
	}
}

func FuzzTwins(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"), uint8(1))
	f.Add(bytes.Repeat([]byte{1, 0, 0, 0, 2, 0, 0, 0}, 100), uint8(4))
	f.Add(bytes.Repeat([]byte{1, 0xff, 0xff, 0xff, 2, 0xff, 0xff, 0xff}, 128), uint8(8))
	f.Fuzz(func(t *testing.T, p []byte, e uint8) {
		elem := int(e%16) + 1
		checkTwins(t, p[:len(p)/(8*elem)*(8*elem)], elem)
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elem := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 16, 64}).Draw(t, "elem")
		n := 8 * elem * rapid.IntRange(0, 3000/elem).Draw(t, "eights")
		raw := make([]byte, n)
		copy(raw, randomBytes(rapid.IntRange(0, n).Draw(t, "random")))
		enc := Append([]byte("head"), raw, elem)
		if string(enc[:4]) != "head" {
			t.Fatal("Append does not append")
		}
		enc = enc[4:]
		got := make([]byte, n)
		used, err := Decode(got, append(enc, 1, 2, 3), elem)
		if err != nil || used != len(enc) || !bytes.Equal(got, raw) {
			t.Fatalf("used %d of %d, %v", used, len(enc), err)
		}
		if n > 0 {
			cut := rapid.IntRange(0, len(enc)-1).Draw(t, "cut")
			if _, err := Decode(got, enc[:cut], elem); err == nil {
				t.Fatalf("cut at %d: no error", cut)
			}
		}
	})
}

// The sizes of chunks, by hand: 8192 bytes or 128 elements, whichever is more.
func TestChunks(t *testing.T) {
	for elem, want := range map[int]int{1: 8192, 2: 4096, 3: 2728, 4: 2048, 8: 1024, 16: 512, 64: 128} {
		if got := chunkElems(elem); got != want {
			t.Errorf("a chunk has %d elements of %d bytes, want %d", got, elem, want)
		}
		if want*elem > maxChunk {
			t.Errorf("a chunk of elements of %d bytes has %d bytes, more than maxChunk", elem, want*elem)
		}
		enc := Append(nil, make([]byte, (want+8)*elem), elem)
		first := binary.BigEndian.Uint32(enc)
		second := binary.BigEndian.Uint32(enc[4+first:])
		if int(8+first+second) != len(enc) {
			t.Errorf("elements of %d bytes: not two chunks", elem)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		hex  string
		n    int
		want string
	}{
		{"", 8, "[0+4]: corrupt: chunk[0].size: the input ends: 0 bytes are left"},
		{"000000", 8, "[0+4]: corrupt: chunk[0].size: the input ends: 3 bytes are left"},
		{"00000000", 8, "[0+4]: corrupt: chunk[0].size: 0: no LZ4 block is that short"},
		{"00000009" + "800102030405060708"[:16], 8, "[0+4]: corrupt: chunk[0].size: 9 bytes, 8 are left"},
		{"ffffffff00", 8, "[0+4]: corrupt: chunk[0].size: 4294967295 bytes, 1 are left"},
		{"00000008" + "7001020304050607", 8, "[4+8]: corrupt: chunk[0].lz4: 7 raw bytes where the chunk has 8"},
	} {
		src, _ := hex.DecodeString(c.hex)
		_, err := Decode(make([]byte, c.n), src, 1)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.hex, err, c.want)
		}
	}
	src, _ := hex.DecodeString("00000009" + "800102030405060708")
	dst := make([]byte, 8)
	if used, err := Decode(dst, src, 1); used != 13 || err != nil {
		t.Error(used, err)
	}
	if _, err := Decode(dst[:7], src, 1); !errors.Is(err, fault.Bug) {
		t.Error(err)
	}
	if _, err := Decode(dst, src, 0); !errors.Is(err, fault.Bug) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, elem := range []int{1, 4, 8, 16} {
		f.Add(Append(nil, samples(elem)["growing"][:8*elem*20], elem), uint16(20), uint8(elem-1))
	}
	f.Add(Append(nil, samples(8)["random"][:16384], 8), uint16(256), uint8(7))
	f.Fuzz(func(t *testing.T, src []byte, eights uint16, e uint8) {
		elem := int(e%64) + 1
		dst := make([]byte, int(eights%2000)*8*elem)
		used, err := Decode(dst, src, elem)
		var fe *fault.Error
		if err != nil && (!errors.As(err, &fe) || fe.Class != fault.Corrupt || fe.Path == "" || fe.Reason == "") {
			t.Fatalf("%T %v", err, err)
		}
		if used > len(src) {
			t.Fatalf("used %d of %d", used, len(src))
		}
		if err != nil {
			return
		}
		again := make([]byte, len(dst))
		if _, err := Decode(again, Append(nil, dst, elem), elem); err != nil || !bytes.Equal(again, dst) {
			t.Fatal(err)
		}
	})
}
