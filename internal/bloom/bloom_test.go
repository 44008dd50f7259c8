package bloom

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"
)

// The vectors were made with the gutil library of Kudu 1.18.1: every length from 0 on, with several kinds of content.
func TestHashVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/kudu_cityhash64_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Hex, City64 string }
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 100 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	lens := map[string]int{}
	for _, v := range vectors {
		key, _ := hex.DecodeString(v.Hex)
		want, _ := strconv.ParseUint(v.City64, 16, 64)
		if got := Hash(key); got != want {
			t.Fatalf("Hash of %d bytes (%.40s) = %016x, want %016x", len(key), v.Hex, got, want)
		}
		switch n := len(key); {
		case n <= 16:
			lens["16"]++
		case n <= 32:
			lens["32"]++
		case n <= 64:
			lens["64"]++
		default:
			lens["long"]++
		}
	}
	if len(lens) != 4 {
		t.Errorf("the vectors miss a branch: %v", lens)
	}
}

func key(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

func TestFilter(t *testing.T) {
	for _, size := range []int{1, 3, 100, 512, 4096, 5000} {
		expected := size/2 + 1
		f := New(size, expected)
		for i := range expected {
			f.Add(Hash(key(i)))
		}
		for i := range expected {
			if !f.Has(Hash(key(i))) {
				t.Fatalf("size %d: key %d got lost", size, i)
			}
		}
	}
	f := New(4096, Capacity(4096, 0.0001))
	if f.Hashes != 13 { // the number in Kudu's files of this size
		t.Errorf("%d hashes, want 13", f.Hashes)
	}
	for i := range 1710 {
		f.Add(Hash(key(i)))
	}
	wrong := 0
	for i := range 100000 {
		if f.Has(Hash(key(i + 1<<20))) {
			wrong++
		}
	}
	if wrong > 50 { // 0.01 % by design
		t.Errorf("%d of 100000 absent keys look present", wrong)
	}
	if New(10, 1000).Hashes != 1 {
		t.Error("fewer than one hash")
	}
}

// Probe positions by hand: hash 0x00000003_00000005 in 10 bytes (80 bits), 4 probes: 5, 8, 11, 14.
func TestProbes(t *testing.T) {
	f := &Filter{Bits: make([]byte, 10), Hashes: 4}
	f.Add(0x00000003_00000005)
	if got := hex.EncodeToString(f.Bits); got != "20490000000000000000" {
		t.Errorf("bits %s", got)
	}
	// The sum wraps at 32 bits before it is reduced: ffffffff mod 80 = 15, then (ffffffff+2) mod 2^32 = 1.
	g := &Filter{Bits: make([]byte, 10), Hashes: 2}
	g.Add(0x00000002_ffffffff)
	if got := hex.EncodeToString(g.Bits); got != "02800000000000000000" {
		t.Errorf("bits %s", got)
	}
	if !new(Filter).Has(1) {
		t.Error("a filter without bits must not exclude")
	}
	new(Filter).Add(1)
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{4, 8, 16, 32, 64, 256} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			p := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				Hash(p)
			}
		})
	}
}

func BenchmarkHas(b *testing.B) {
	f := New(4096, 1709)
	for i := range 1709 {
		f.Add(Hash(key(i)))
	}
	h := Hash(key(7))
	for b.Loop() {
		f.Has(h)
	}
}
