package parquet

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// mostRaw is how long n compressed bytes can be raw at most: Snappy copies 64 bytes by three, LZ4 255 by one, Deflate 258 by two bits, Zstandard has
// blocks of 128 KiB of one byte in four. Brotli has no bound to speak of: 64 MiB of it are granted. What a page says is held against this before memory is taken.
func mostRaw(code compress.Compression, n int64) int64 {
	const more = 64 << 10 // headers, and what is shorter than its own frame
	switch code {
	case compress.Codecs.Uncompressed:
		return n
	case compress.Codecs.Snappy:
		return 22*n + more
	case compress.Codecs.Lz4Raw:
		return 255*n + more
	case compress.Codecs.Gzip:
		return 1032*n + more
	case compress.Codecs.Zstd:
		return 32768*n + more
	}
	return 32768*n + 64<<20
}

// rawSize is how long compressed bytes say that they are raw; ok: they do say it, for what it is worth.
func rawSize(code compress.Compression, b []byte) (n int64, ok bool) {
	switch code {
	case compress.Codecs.Uncompressed:
		return int64(len(b)), true
	case compress.Codecs.Snappy: // a ULEB128 in front
		v, k := binary.Uvarint(b)
		return int64(v), k > 0 && v < 1<<32
	case compress.Codecs.Gzip:
		return gzipSize(b)
	case compress.Codecs.Zstd:
		return zstdSize(b)
	}
	return 0, false
}

// gzipSize is ISIZE, the size modulo 2^32 at the end of a member (RFC 1952). Nothing tells whether the bytes are one member, as writers
// make them, or several; those of other writers that begin another way are not judged.
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
