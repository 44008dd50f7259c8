package coerce_test

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/coerce"
)

// TestBigEndian: the bytes are those of math/big, with a sign, and there is no redundant byte.
func TestBigEndian(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		v := decimal128.New(int64(r.Uint64())>>(i%65), r.Uint64()>>(i%64))
		if i%3 == 0 { // a number of few bytes
			v = decimal128.FromI64(int64(r.Uint64()) >> (i % 64))
		}
		b := coerce.BigEndian(v)
		n := new(big.Int).SetBytes(b)
		if b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		if n.Cmp(v.BigInt()) != 0 {
			t.Fatalf("%s is %x, which is %s", v.BigInt(), b, n)
		}
		if len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
			t.Fatalf("%s is %x: a byte is spare", v.BigInt(), b)
		}
		sign := byte(0)
		if b[0] >= 0x80 {
			sign = 0xff
		}
		long := append(bytes.Repeat([]byte{sign}, i%20), b...)
		if got, ok := coerce.OfBigEndian(long); !ok || got != v {
			t.Fatalf("%x is %s, %v; expected %s", long, got.BigInt(), ok, v.BigInt())
		}
	}
	for _, b := range [][]byte{append([]byte{1}, make([]byte, 16)...), append([]byte{0, 0x80}, make([]byte, 15)...),
		append([]byte{0xff, 0x7f}, make([]byte, 15)...)} {
		if v, ok := coerce.OfBigEndian(b); ok {
			t.Errorf("%x does not fit 128 bits, and is %s", b, v.BigInt())
		}
	}
	if v, ok := coerce.OfBigEndian(nil); !ok || v != (decimal128.Num{}) {
		t.Errorf("no bytes are %s, %v", v.BigInt(), ok)
	}
}

// TestExtensions: extensions, also of extensions, become their storage.
func TestExtensions(t *testing.T) {
	inner := extensions.NewUUIDType()
	b := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 16})
	b.Append(make([]byte, 16))
	plain := b.NewArray()
	a := array.NewExtensionArrayWithStorage(inner, plain)
	if got := coerce.Stored(a); !arrow.TypeEqual(got.DataType(), plain.DataType()) {
		t.Errorf("an array of %s is stored as %s", inner, got.DataType())
	}
	if got := coerce.Storage(inner); !arrow.TypeEqual(got, plain.DataType()) || coerce.Storage(got) != got {
		t.Errorf("%s is stored as %s", inner, got)
	}
}
