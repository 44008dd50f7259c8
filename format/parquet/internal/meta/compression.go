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
	CodecLZ4    Compression = 5
	CodecZstd   Compression = 6
	CodecLZ4Raw Compression = 7
)

// Supported reports whether the codec can be decompressed.
func (c Compression) Supported() bool { return c >= CodecNone && c <= CodecLZ4Raw && c != codecLZO }

// maxRaw bounds the raw size to which n compressed bytes can expand: Snappy copies 64 bytes for three, LZ4 255 for one,
// Deflate 258 for two bits, Zstandard encodes a block of 128 KiB of one byte in four. Brotli has no useful bound, so 64
// MiB are allowed. A page's declared size is checked against this before memory is allocated.
func (c Compression) maxRaw(n int64) int64 {
	const slack = 64 << 10 // headers, and data shorter than its own frame
	switch c {
	case CodecNone:
		return n
	case CodecSnappy:
		return 22*n + slack
	case CodecLZ4, CodecLZ4Raw:
		return 255*n + slack
	case CodecGzip:
		return 1032*n + slack
	case CodecZstd:
		return 32768*n + slack
	}
	return 32768*n + 64<<20
}

// Decompress returns the raw bytes of src, whose number must be exactly raw and at most limit. alloc allocates the
// result; uncompressed data is returned as src itself.
func (c Compression) Decompress(src []byte, raw, limit int64, alloc func(int) []byte) (dst []byte, err error) {
	if largest := c.maxRaw(int64(len(src))); raw > largest {
		return nil, fault.Rel(0, len(src), "uncompressed_page_size",
			"%d, but %d compressed bytes cannot become more than %d",
			raw, len(src), largest)
	}
	if raw > limit {
		return nil, fault.New(fault.Limit, fault.Span{Len: int64(len(src))}, "uncompressed_page_size",
			"%d bytes are more than a page may have (%d, page limit or memory limit)", raw, limit)
	}
	switch c {
	case CodecNone:
		dst = src
	case CodecSnappy:
		dst = alloc(int(raw))
		return dst, decompressBlock("snappy", dst, src)
	case CodecLZ4Raw:
		dst = alloc(int(raw))
		return dst, decompressBlock("lz4", dst, src)
	case CodecLZ4:
		dst = alloc(int(raw))
		if !decompressHadoop(dst, src) { // Arrow's libraries also wrote blocks without framing under this name
			return dst, decompressBlock("lz4", dst, src)
		}
		return dst, nil
	case CodecGzip:
		dst, err = codec.Expand("gzip", src, max(raw, 1), alloc)
	case CodecZstd:
		dst, err = codec.Expand("zstd", src, max(raw, 1), alloc)
	case CodecBrotli:
		dst = alloc(int(raw))
		return dst, decompressBrotli(dst, src)
	default:
		return nil, fault.Unsupportedf(fault.Span{Len: int64(len(src))}, "", "codec %s", c)
	}
	if err == nil && int64(len(dst)) != raw {
		err = fault.Rel(0, len(src), "uncompressed_page_size", "%d, but there are %d bytes", raw, len(dst))
	}
	return dst, asCorrupt(err)
}

// asCorrupt turns an exceeded limit into damage: if more bytes come out than the page declares, the fault is the page's
// and not the reader's limit.
func asCorrupt(err error) error {
	if e, ok := err.(*fault.Error); ok && e.Class == fault.Limit {
		out := *e
		out.Class = fault.Corrupt
		return &out
	}
	return err
}

func decompressBlock(name string, dst, src []byte) error {
	z, _ := codec.ByName(name)
	return z.Decompress(dst, src)
}

// Framed reports whether src is Hadoop-framed LZ4 that decompresses to raw bytes, rather than a plain block of the
// deprecated LZ4 codec.
func Framed(src []byte, raw int64) bool { return decompressHadoop(make([]byte, raw), src) }

// decompressHadoop decompresses LZ4 in Hadoop's framing: blocks, each preceded by its raw and its compressed size as
// big-endian u32. ok is false if src is not framed this way.
func decompressHadoop(dst, src []byte) bool {
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

func decompressBrotli(dst, src []byte) error {
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

// DeclaredSize returns the raw size that the compressed bytes themselves state; ok is false if the codec or the writer
// does not state one.
func (c Compression) DeclaredSize(b []byte) (n int64, ok bool) {
	switch c {
	case CodecNone:
		return int64(len(b)), true
	case CodecSnappy: // begins with the size as ULEB128
		v, k := binary.Uvarint(b)
		return int64(v), k > 0 && v < 1<<32
	case CodecGzip:
		return gzipSize(b)
	case CodecZstd:
		return zstdSize(b)
	}
	return 0, false
}

// gzipSize returns ISIZE, the size modulo 2^32 at the end of a member (RFC 1952). It assumes a single member, which is
// what writers produce; several members cannot be recognized.
func gzipSize(b []byte) (int64, bool) {
	if len(b) < 18 || b[0] != 0x1f || b[1] != 0x8b {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint32(b[len(b)-4:])), true
}

// zstdSize returns Frame_Content_Size of the frame header (RFC 8878, 3.1.1), which is optional.
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
