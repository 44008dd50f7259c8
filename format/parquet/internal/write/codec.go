package write

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"stoa/format/parquet/internal/meta"
	"stoa/internal/codec"
)

// compressor returns the number of a codec and a function that appends the compressed form of src to dst; nil if pages
// are not compressed. Level 0 is the codec's default.
func compressor(name string, level int) (number meta.Compression, compress func(dst, src []byte) ([]byte, error),
	ok bool) {
	switch name {
	case "none":
		return meta.CodecNone, nil, true
	case "snappy":
		return meta.CodecSnappy, block("snappy"), true
	case "lz4":
		return meta.CodecLZ4Raw, block("lz4"), true
	case "gzip":
		return meta.CodecGzip, gzips(level), true
	case "zstd":
		return meta.CodecZstd, zstds(level), true
	case "brotli":
		if level == 0 {
			level = brotli.DefaultCompression
		}
		return meta.CodecBrotli, brotlis(level), true
	}
	return 0, nil, false
}

func block(name string) func(dst, src []byte) ([]byte, error) {
	z, _ := codec.ByName(name)
	return func(dst, src []byte) ([]byte, error) { return z.Compress(dst, src), nil }
}

// hadoopLZ4 compresses in Hadoop's framing, in small parts because Hadoop's own reader has a buffer of only 256 KiB.
func hadoopLZ4(dst, src []byte) ([]byte, error) {
	z, _ := codec.ByName("lz4")
	for part := range slices.Chunk(src, 128<<10) {
		at := len(dst)
		dst = z.Compress(binary.BigEndian.AppendUint64(dst, uint64(len(part))<<32), part)
		binary.BigEndian.PutUint32(dst[at+4:], uint32(len(dst)-at-8))
	}
	return dst, nil
}

func gzips(level int) func(dst, src []byte) ([]byte, error) {
	if level == 0 {
		level = gzip.DefaultCompression
	}
	var z *gzip.Writer
	return func(dst, src []byte) ([]byte, error) {
		out := bytes.NewBuffer(dst)
		var err error
		if z == nil {
			if z, err = gzip.NewWriterLevel(out, level); err != nil {
				return nil, err
			}
		}
		z.Reset(out)
		if _, err = z.Write(src); err == nil {
			err = z.Close()
		}
		return out.Bytes(), err
	}
}

func zstds(level int) func(dst, src []byte) ([]byte, error) {
	speed := zstd.SpeedFastest // as level 1, which is pyarrow's default
	if level != 0 {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	var z *zstd.Encoder
	return func(dst, src []byte) ([]byte, error) {
		if z == nil {
			var err error
			if z, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
				zstd.WithEncoderCRC(false),
				zstd.WithAllLitEntropyCompression(true)); err != nil {
				return nil, err
			}
		}
		return z.EncodeAll(src, dst), nil
	}
}

func brotlis(level int) func(dst, src []byte) ([]byte, error) {
	z := brotli.NewWriterLevel(nil, level)
	return func(dst, src []byte) ([]byte, error) {
		out := bytes.NewBuffer(dst)
		z.Reset(out)
		_, err := z.Write(src)
		if err == nil {
			err = z.Close()
		}
		return out.Bytes(), err
	}
}
