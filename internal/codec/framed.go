package codec

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// CompressFramed appends src to dst, compressed in a form that records its own end and raw size: "none", "snappy" (a
// block), "zstd" (a frame with its size), "gzip". Expand is the inverse. ok is false if there is no such method.
func CompressFramed(name string, dst, src []byte) (out []byte, ok bool) {
	switch name {
	case "none":
		return append(dst, src...), true
	case "snappy":
		return compressSnappy(dst, src), true
	case "zstd":
		z := zstdEncoders.Get().(*zstd.Encoder)
		defer zstdEncoders.Put(z)
		if len(src) == 0 { // the library would return no bytes at all, which is not a frame
			return append(dst, emptyZstd...), true
		}
		return z.EncodeAll(src, dst), true
	case "gzip":
		g := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(g)
		to := sink{b: dst}
		g.Reset(&to)
		_, err := bytes.NewReader(src).WriteTo(g)
		if err == nil {
			err = g.Close()
		}
		if err != nil {
			panic("gzip: " + err.Error()) // writing to memory cannot fail
		}
		return to.b, true
	}
	return dst, false
}

// emptyZstd is a frame without content: magic, a single segment of no bytes, and a last raw block of no bytes.
var emptyZstd = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00}

var zstdEncoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true))
	if err != nil {
		panic("zstd: " + err.Error()) // the options are constants
	}
	return z
}}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
