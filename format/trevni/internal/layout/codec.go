package layout

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"

	"stoa/fault"
	"stoa/internal/codec"
	"stoa/vec"
)

// Codec is a compression of blocks.
type Codec uint8

const (
	CodecNone Codec = iota
	CodecDeflate
	CodecSnappy
	CodecBzip2
	codecGzip // Impala's
)

// CodecByName finds a codec by its name in any dialect, in upper or lower case.
func CodecByName(name string) (Codec, bool) {
	switch strings.ToLower(name) {
	case "", "null", "none":
		return CodecNone, true
	case "deflate":
		return CodecDeflate, true
	case "snappy":
		return CodecSnappy, true
	case "bzip2":
		return CodecBzip2, true
	case "gzip":
		return codecGzip, true
	}
	return 0, false
}

// MaxRaw is the maximum number of raw bytes that n stored bytes can expand to.
func (k Codec) MaxRaw(n int64) int64 {
	switch k {
	case CodecDeflate, codecGzip:
		return 1032*n + 64
	case CodecSnappy:
		return 64 * n // a copy of at most 64 bytes takes at least two
	case CodecBzip2:
		return (n/20 + 1) * 47_000_000 // a block of 900 kB, with runs of 259 bytes coded as five, takes more than 20
	}
	return 1<<31 - 1
}

// Unpacked is the result of decompressing a block.
type Unpacked struct {
	Raw     []byte
	Zlib    bool // deflate with a zlib header around it
	Surplus int  // bytes after the declared raw size that were cut off (bzip2 of Avro before 1.10)
}

// Decompress decompresses a block. raw is the declared number of bytes. Any other number is damage, except in bzip2
// blocks by Avro before 1.10, where the rest of the writer's buffer follows: that is cut off.
func (k Codec) Decompress(stored []byte, raw int64, a *vec.Arena) (u Unpacked, err error) {
	if raw > k.MaxRaw(int64(len(stored))) {
		return u, fault.Rel(0, len(stored), "uncompressed-size", "%d bytes cannot come from %d", raw, len(stored))
	}
	if k == CodecNone {
		u.Raw = stored
		return u, nil
	}
	if k == CodecBzip2 {
		return unBzip2(stored, raw)
	}
	u.Raw = a.Bytes(int(raw))
	switch k {
	case CodecSnappy:
		c, _ := codec.ByName("snappy")
		err = c.Decompress(u.Raw, stored)
	case codecGzip:
		err = inflate(u.Raw, stored, "gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	case CodecDeflate:
		c, _ := codec.ByName("deflate")
		if err = c.Decompress(u.Raw, stored); err != nil && zlibHeader(stored) {
			if zerr := inflate(u.Raw, stored, "zlib",
				func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }); zerr == nil {
				u.Zlib, err = true, nil
			}
		}
	}
	return u, err
}

// zlibHeader reports whether b begins with a header of RFC 1950. A raw deflate stream may also begin so; raw deflate is
// tried first.
func zlibHeader(b []byte) bool {
	return len(b) > 2 && b[0]&0x0f == 8 && b[0]>>4 <= 7 && (int(b[0])<<8|int(b[1]))%31 == 0
}

// inflate fills dst, and checks that both the stream and src end there.
func inflate(dst, src []byte, name string, open func(io.Reader) (io.Reader, error)) error {
	in := bytes.NewReader(src)
	z, err := open(in)
	if err != nil {
		return fault.Rel(0, len(src), name, "no stream: %v", err)
	}
	if n, err := io.ReadFull(z, dst); err != nil {
		return fault.Rel(0, len(src), name, "after %d of %d raw bytes: %v", n, len(dst), err)
	}
	var one [1]byte
	if n, err := z.Read(one[:]); n != 0 {
		return fault.Rel(0, len(src), name, "more than the %d raw bytes that are declared", len(dst))
	} else if err != io.EOF {
		return fault.Rel(0, len(src), name, "at the end: %v", err)
	}
	if in.Len() != 0 {
		return fault.Rel(len(src)-in.Len(), in.Len(), name, "%d bytes after the end of the stream", in.Len())
	}
	return nil
}

// unBzip2 decodes a whole bzip2 stream. The buffer grows with the output, because a few bytes can expand to very many.
func unBzip2(src []byte, raw int64) (u Unpacked, err error) {
	z := bzip2.NewReader(bytes.NewReader(src))
	var out bytes.Buffer
	out.Grow(int(min(raw, 64<<10+vec.Slack)))
	if _, err := io.CopyN(&out, z, raw); err != nil {
		return u, fault.Rel(0, len(src), "bzip2", "after %d of %d raw bytes: %v", out.Len(), raw, err)
	}
	u.Raw = out.Bytes()
	rest, err := io.Copy(io.Discard, io.LimitReader(z, 64<<20)) // to the end, which has the stream's own checksum
	if err != nil {
		return u, fault.Rel(0, len(src), "bzip2", "after the %d raw bytes: %v", raw, err)
	}
	u.Surplus = int(rest)
	return u, nil
}
