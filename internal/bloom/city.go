package bloom

import (
	"encoding/binary"
	"math/bits"
)

// The multipliers of the hash. They come from a state of CityHash before its first publication: no released CityHash
// has them, so no other library computes these hashes.
const (
	k0 = 0xa5b85c5e198ed849
	k1 = 0x8d58ac26afe12e47
	k2 = 0xc47b6e9e3a970ed3
	k3 = 0xc70f6907e782aa0b
	// kFold is the multiplier that folds 128 bits to 64 (the one of Murmur).
	kFold = 0xc6a4a7935bd1e995
)

// Hash is the CityHash64 of Kudu's gutil (2010), with which every bloom filter of Kudu is built. key is the encoded
// primary key. Source: notes on BloomFile, section 5, and vectors made with Kudu's own library.
func Hash(key []byte) uint64 {
	switch n := len(key); {
	case n > 64:
		return hashLong(key)
	case n > 32:
		return hash64(key)
	case n > 16:
		return hash32(key)
	}
	return hash16(key)
}

func le64(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

func rotr(v uint64, n int) uint64 { return bits.RotateLeft64(v, -n) }

func mix(v uint64) uint64 { return v ^ v>>47 }

// fold reduces 128 bits to 64 in the way of Murmur.
func fold(hi, lo uint64) uint64 {
	a := mix((hi ^ lo) * kFold)
	return mix((hi^a)*kFold) * kFold
}

// hash16 hashes 0 to 16 bytes.
func hash16(p []byte) uint64 {
	n := len(p)
	switch {
	case n > 8:
		a, b := le64(p), le64(p[n-8:])
		return fold(a, rotr(b+uint64(n), n)) ^ b
	case n >= 4:
		a, b := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[n-4:])
		return fold(uint64(n)+uint64(a)<<3, uint64(b))
	case n > 0:
		y := uint32(p[0]) + uint32(p[n/2])<<8
		z := uint32(n) + uint32(p[n-1])<<2
		return mix(uint64(y)*k2^uint64(z)*k3) * k2
	}
	return k2
}

// hash32 hashes 17 to 32 bytes.
func hash32(p []byte) uint64 {
	n := len(p)
	a := le64(p) * k1
	b := le64(p[8:])
	c := le64(p[n-8:]) * k2
	d := le64(p[n-16:]) * k0
	return fold(rotr(a-b, 43)+rotr(c, 30)+d, a+rotr(b^k3, 20)-c+uint64(n))
}

// half64 processes 32 bytes, passed as words; hash64 uses it for the front and for the back of the key.
func half64(a, w1, w2, z uint64) (x, y uint64) {
	b, c := rotr(a+z, 52), rotr(a, 37)
	a += w1
	c += rotr(a, 7)
	a += w2
	return a + z, b + rotr(a, 31) + c
}

// hash64 hashes 33 to 64 bytes.
func hash64(p []byte) uint64 {
	n := len(p)
	z := le64(p[24:])
	vx, vy := half64(le64(p)+(uint64(n)+le64(p[n-16:]))*k0, le64(p[8:]), le64(p[16:]), z)
	wx, wy := half64(le64(p[16:])+le64(p[n-32:]), le64(p[n-24:]), le64(p[n-16:]), z+le64(p[n-8:]))
	r := mix((vx+wy)*k2 + (wx+vy)*k0)
	return mix(r*k0+vy) * k2
}

// weak mixes 32 bytes into two words of state.
func weak(p []byte, a, b uint64) (uint64, uint64) {
	_ = p[31]
	z := le64(p[24:])
	a += le64(p)
	b = rotr(b+a+z, 51)
	c := a
	a += le64(p[8:]) + le64(p[16:])
	return a + z, b + rotr(a, 23) + c
}

// hashLong hashes more than 64 bytes: first the end, then all complete blocks of 64.
func hashLong(p []byte) uint64 {
	n := len(p)
	x := le64(p[n-40:])
	y := le64(p[n-16:]) + le64(p[n-56:])
	z := fold(le64(p[n-48:])+uint64(n), le64(p[n-24:]))
	v0, v1 := weak(p[n-64:], uint64(n), z)
	w0, w1 := weak(p[n-32:], y+k1, x)
	x = x*k1 + le64(p)
	for left := (n - 1) &^ 63; left > 0; left -= 64 {
		x = rotr(x+y+v0+le64(p[8:]), 37) * k1
		y = rotr(y+v1+le64(p[48:]), 42) * k1
		x ^= w1
		y += v0 + le64(p[40:])
		z = rotr(z+w0, 33) * k1
		v0, v1 = weak(p, v1*k1, x+w0)
		w0, w1 = weak(p[32:], z+w1, y+le64(p[16:]))
		z, x = x, z
		p = p[64:]
	}
	return fold(fold(v0, w0)+mix(y)*k1+z, fold(v1, w1)+x)
}
