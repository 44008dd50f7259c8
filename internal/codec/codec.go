// Package codec compresses and decompresses whole blocks, by the name of the method.
//
// All methods here are block methods: the size of the raw block is declared by the surrounding format, and a block that
// decompresses to more or fewer bytes than declared is damaged. No memory is allocated only because a compressed block
// claims to need it.
package codec

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/pierrec/lz4/v4"

	"stoa/fault"
)

// Codec is one method.
type Codec struct {
	Name string
	// Decompress fills dst, whose length is the declared raw size, from all of src. dst and src must not overlap. A raw
	// size other than len(dst), unused bytes in src, and damage are errors (class corrupt, path Name, offsets relative
	// to src; the content of dst is then undefined).
	Decompress func(dst, src []byte) error
	// Compress appends the compressed form of src to dst, even if it is longer than src.
	Compress func(dst, src []byte) []byte
}

// The methods. Kudu uses their lower-case names in its column attributes; the numbers in each format's enums are left
// to the formats.
var codecs = [...]Codec{
	{"none", copyBlock, func(dst, src []byte) []byte { return append(dst, src...) }},
	{"lz4", decompressLZ4, compressLZ4},
	{"snappy", decompressSnappy, compressSnappy},
	{"zlib", decompressZlib, compressZlib},
	{"deflate", decompressDeflate, compressDeflate},
}

// ByName returns a codec: "none", "lz4" (an LZ4 block, no frame), "snappy" (a Snappy block, no framing), "zlib" (RFC
// 1950), "deflate" (RFC 1951, no header and no checksum).
func ByName(name string) (*Codec, bool) {
	for i := range codecs {
		if codecs[i].Name == name {
			return &codecs[i], true
		}
	}
	return nil, false
}

func copyBlock(dst, src []byte) error {
	if len(dst) != len(src) {
		return fault.Rel(0, len(src), "none", "%d bytes where %d are declared", len(src), len(dst))
	}
	copy(dst, src)
	return nil
}

func decompressLZ4(dst, src []byte) error {
	if len(src) == 0 {
		return fault.Rel(0, 0, "lz4", "no bytes: even an empty block has one")
	}
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return fault.Rel(0, len(src), "lz4", "not a block of %d raw bytes: %v", len(dst), err)
	}
	if n != len(dst) {
		return fault.Rel(0, len(src), "lz4", "the block holds %d raw bytes, %d are declared", n, len(dst))
	}
	return nil
}

func compressLZ4(dst, src []byte) []byte {
	at := len(dst)
	if len(src) == 0 {
		return append(dst, 0) // an empty block is a token for no literals
	}
	dst = grow(dst, lz4.CompressBlockBound(len(src)))
	n, err := lz4.CompressBlock(src, dst[at:], nil)
	if err != nil || n == 0 {
		panic("lz4: a block does not fit in its own bound") // impossible if the bound is computed correctly
	}
	return dst[:at+n]
}

func decompressSnappy(dst, src []byte) error {
	// The size in the block is checked first, because the library would allocate it.
	n, err := s2.DecodedLen(src)
	if err != nil {
		return fault.Rel(0, len(src), "snappy", "no raw size: %v", err)
	}
	if n != len(dst) {
		return fault.Rel(0, len(src), "snappy", "the block says %d raw bytes, %d are declared", n, len(dst))
	}
	if _, err := s2.Decode(dst, src); err != nil {
		return fault.Rel(0, len(src), "snappy", "damaged: %v", err)
	}
	return nil
}

func compressSnappy(dst, src []byte) []byte {
	at := len(dst)
	dst = grow(dst, s2.MaxEncodedLen(len(src)))
	return dst[:at+len(s2.EncodeSnappy(dst[at:], src))]
}

type inflater struct {
	in bytes.Reader
	z  io.ReadCloser
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

func decompressZlib(dst, src []byte) error {
	f := inflaters.Get().(*inflater)
	defer func() {
		f.in.Reset(nil)
		inflaters.Put(f)
	}()
	f.in.Reset(src)
	var err error
	if f.z == nil {
		f.z, err = zlib.NewReader(&f.in)
	} else {
		err = f.z.(zlib.Resetter).Reset(&f.in, nil)
	}
	if err != nil {
		f.z = nil
		return fault.Rel(0, len(src), "zlib", "no stream: %v", err)
	}
	n, err := io.ReadFull(f.z, dst)
	if err != nil {
		return fault.Rel(len(src)-f.in.Len(), 0, "zlib", "after %d of %d raw bytes: %v", n, len(dst), err)
	}
	return atEnd("zlib", f, dst, src) // which checks the checksum
}

// atEnd checks that a stream ends after filling dst, and that src ends with it.
func atEnd(name string, f *inflater, dst, src []byte) error {
	var one [1]byte
	if n, err := f.z.Read(one[:]); n != 0 || err != io.EOF {
		if n != 0 {
			return fault.Rel(0, len(src), name, "more than the %d raw bytes that are declared", len(dst))
		}
		return fault.Rel(len(src)-f.in.Len(), 0, name, "at the end: %v", err)
	}
	if f.in.Len() != 0 {
		return fault.Rel(len(src)-f.in.Len(), f.in.Len(), name, "%d bytes after the end of the stream", f.in.Len())
	}
	return nil
}

var rawInflaters = sync.Pool{New: func() any { return &inflater{z: flate.NewReader(nil)} }}

func decompressDeflate(dst, src []byte) error {
	if inflate(dst, src) {
		return nil
	}
	return decompressDeflateSlow(dst, src)
}

// decompressDeflateSlow decompresses streams that inflate refuses, in order to return an error that describes the
// damage.
func decompressDeflateSlow(dst, src []byte) error {
	f := rawInflaters.Get().(*inflater)
	defer func() {
		f.in.Reset(nil)
		rawInflaters.Put(f)
	}()
	f.in.Reset(src)
	if err := f.z.(flate.Resetter).Reset(&f.in, nil); err != nil {
		return fault.Rel(0, len(src), "deflate", "no stream: %v", err)
	}
	if n, err := io.ReadFull(f.z, dst); err != nil {
		return fault.Rel(len(src)-f.in.Len(), 0, "deflate", "after %d of %d raw bytes: %v", n, len(dst), err)
	}
	return atEnd("deflate", f, dst, src)
}

// rawDeflaters have level 6, which is zlib's default.
var rawDeflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, 6)
	if err != nil {
		panic(err) // level 6 exists
	}
	return w
}}

func compressDeflate(dst, src []byte) []byte {
	w := rawDeflaters.Get().(*flate.Writer)
	s := &sink{dst}
	w.Reset(s)
	w.Write(src) // a sink cannot fail
	w.Close()
	w.Reset(nil)
	rawDeflaters.Put(w)
	return s.b
}

var deflaters = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

// sink lets the compressor append to a slice.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) { s.b = append(s.b, p...); return len(p), nil }

func compressZlib(dst, src []byte) []byte {
	w := deflaters.Get().(*zlib.Writer)
	s := &sink{dst}
	w.Reset(s)
	w.Write(src) // a sink cannot fail
	w.Close()
	w.Reset(nil)
	deflaters.Put(w)
	return s.b
}

// grow makes dst n bytes longer; the new bytes are undefined.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst[:len(dst)+n]
	}
	out := make([]byte, len(dst)+n)
	copy(out, dst)
	return out
}
