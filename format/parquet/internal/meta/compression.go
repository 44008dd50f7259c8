package meta

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/andybalholm/brotli"

	"stoa/fault"
	"stoa/internal/codec"
)

// Codecs: parquet.thrift, CompressionCodec.
const (
	CodecNone   Compression = 0
	CodecSnappy Compression = 1
	CodecGzip   Compression = 2
	codecLZO    Compression = 3
	CodecBrotli Compression = 4
	codecLZ4    Compression = 5
	CodecZstd   Compression = 6
	CodecLZ4Raw Compression = 7
)

// Known reports whether there is a decoder.
func (c Compression) Known() bool { return c >= CodecNone && c <= CodecLZ4Raw && c != codecLZO }

// mostRaw is how long n compressed bytes can be raw at most: Snappy copies 64 bytes by three, LZ4 255 by one,
// Deflate 258 by two bits, Zstandard has blocks of 128 KiB of one byte in four. Brotli has no bound to speak
// of: 64 MiB of it are granted. What a page says is held against this before memory is taken.
func (c Compression) mostRaw(n int64) int64 {
	const more = 64 << 10 // headers, and what is shorter than its own frame
	switch c {
	case CodecNone:
		return n
	case CodecSnappy:
		return 22*n + more
	case codecLZ4, CodecLZ4Raw:
		return 255*n + more
	case CodecGzip:
		return 1032*n + more
	case CodecZstd:
		return 32768*n + more
	}
	return 32768*n + 64<<20
}

// Inflate gives the raw bytes of src, which must be so many. room gives memory.
func (c Compression) Inflate(src []byte, raw, limit int64, room func(int) []byte) (dst []byte, err error) {
	if raw > limit {
		return nil, fault.New(fault.Limit, fault.Span{Len: int64(len(src))}, "uncompressed_page_size",
			"%d bytes are more than a page may have (%d, --max-page or --memory)", raw, limit)
	}
	if most := c.mostRaw(int64(len(src))); raw > most {
		return nil, fault.Rel(0, len(src), "uncompressed_page_size", "%d, but %d bytes cannot become more than %d",
			raw, len(src), most)
	}
	switch c {
	case CodecNone:
		dst = src
	case CodecSnappy:
		dst = room(int(raw))
		return dst, decompressor("snappy", dst, src)
	case CodecLZ4Raw:
		dst = room(int(raw))
		return dst, decompressor("lz4", dst, src)
	case codecLZ4:
		dst = room(int(raw))
		if !unHadoop(dst, src) { // Arrow's libraries wrote bare blocks by this name, too
			return dst, decompressor("lz4", dst, src)
		}
		return dst, nil
	case CodecGzip:
		dst, err = codec.Expand("gzip", src, max(raw, 1), room)
	case CodecZstd:
		dst, err = codec.Expand("zstd", src, max(raw, 1), room)
	case CodecBrotli:
		dst = room(int(raw))
		return dst, unBrotli(dst, src)
	default:
		return nil, fault.Unsupportedf(fault.Span{Len: int64(len(src))}, "", "codec %s", c)
	}
	if err == nil && int64(len(dst)) != raw {
		err = fault.Rel(0, len(src), "uncompressed_page_size", "%d, but there are %d bytes", raw, len(dst))
	}
	return dst, notLimit(err)
}

// notLimit makes damage of a limit: more raw bytes than the page says is what is wrong, not what the reader allows.
func notLimit(err error) error {
	if e, ok := err.(*fault.Error); ok && e.Class == fault.Limit {
		out := *e
		out.Class = fault.Corrupt
		return &out
	}
	return err
}

func decompressor(name string, dst, src []byte) error {
	z, _ := codec.ByName(name)
	return z.Decompress(dst, src)
}

// unHadoop decompresses LZ4 in Hadoop's framing: u32 big-endian of the raw size, u32 big-endian of the stored
// size, block; and so on.
func unHadoop(dst, src []byte) bool {
	z, _ := codec.ByName("lz4")
	for len(dst) > 0 {
		if len(src) < 8 {
			return false
		}
		raw, stored := int64(binary.BigEndian.Uint32(src)), int64(binary.BigEndian.Uint32(src[4:]))
		if src = src[8:]; raw == 0 || raw > int64(len(dst)) || stored > int64(len(src)) ||
			z.Decompress(dst[:raw], src[:stored]) != nil {
			return false
		}
		dst, src = dst[raw:], src[stored:]
	}
	return len(src) == 0
}

func unBrotli(dst, src []byte) error {
	in := bytes.NewReader(src)
	z := brotli.NewReader(in)
	if n, err := io.ReadFull(z, dst); err != nil {
		return fault.Rel(0, len(src), "brotli", "after %d of %d raw bytes: %v", n, len(dst), err)
	}
	var one [1]byte
	if n, err := io.ReadFull(z, one[:]); n != 0 || err != io.EOF {
		return fault.Rel(0, len(src), "brotli", "there is no end after %d raw bytes", len(dst))
	}
	return nil
}

// Says is how long compressed bytes say that they are raw; ok: they do say it, for what it is worth.
func (c Compression) Says(b []byte) (n int64, ok bool) {
	switch c {
	case CodecNone:
		return int64(len(b)), true
	case CodecSnappy: // a ULEB128 in front
		v, k := binary.Uvarint(b)
		return int64(v), k > 0 && v < 1<<32
	case CodecGzip:
		return gzipSize(b)
	case CodecZstd:
		return zstdSize(b)
	}
	return 0, false
}

// gzipSize is ISIZE, the size modulo 2^32 at the end of a member (RFC 1952). Nothing tells whether the bytes
// are one member, as writers make them, or several; those of other writers that begin another way are not
// judged.
func gzipSize(b []byte) (int64, bool) {
	if len(b) < 18 || b[0] != 0x1f || b[1] != 0x8b {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint32(b[len(b)-4:])), true
}

// zstdSize is Frame_Content_Size of a frame's header (RFC 8878, 3.1.1), which not every writer gives.
func zstdSize(b []byte) (int64, bool) {
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != 0xFD2FB528 {
		return 0, false
	}
	d := b[4]
	single, at := d&0x20 != 0, 5
	if !single {
		at++ // Window_Descriptor
	}
	at += [...]int{0, 1, 2, 4}[d&3] // Dictionary_ID
	size := [...]int{0, 2, 4, 8}[d>>6]
	if single && size == 0 {
		size = 1
	}
	if size == 0 || len(b) < at+size {
		return 0, false
	}
	var full [8]byte
	copy(full[:], b[at:at+size])
	n := int64(binary.LittleEndian.Uint64(full[:]))
	if size == 2 {
		n += 256
	}
	return n, n >= 0
}
