package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"stoa/fault"
)

// Expand decompresses all of src, whose raw size is not declared by the surrounding format: "none", "snappy" (a block
// without framing), "zstd", "gzip", "lz4-frame". room allocates n bytes with undefined content. A raw size above limit
// is a Limit error; a size that the bytes state is compared with the largest size that the method can reach before
// memory is allocated. Errors are relative to src.
func Expand(name string, src []byte, limit int64, room func(n int) []byte) ([]byte, error) {
	switch name {
	case "none":
		out := room(len(src))
		copy(out, src)
		return out, nil
	case "snappy":
		return expandSnappy(src, limit, room)
	case "zstd":
		return expandZstd(src, limit, room)
	case "gzip":
		return expandGzip(src, limit, room)
	case "lz4-frame":
		return drain("lz4", lz4.NewReader(bytes.NewReader(src)), src, firstAlloc(src, 0, limit), limit, room)
	}
	return nil, fault.Unsupportedf(fault.Span{}, "", "compression %q", name)
}

func tooMuch(name string, n uint64, limit int64) error {
	return fault.Limitf(fault.Span{}, name, "%d raw bytes are more than the %d allowed", n, limit)
}

// snappyRatio bounds how much a Snappy block can expand: a copy of 64 bytes takes three.
const snappyRatio = 22

func expandSnappy(src []byte, limit int64, room func(n int) []byte) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	switch {
	case err != nil:
		return nil, fault.Rel(0, len(src), "snappy", "no raw size: %v", err)
	case int64(n) > snappyRatio*int64(len(src)):
		return nil, fault.Rel(0, len(src), "snappy", "%d bytes cannot decompress to %d", len(src), n)
	case int64(n) > limit:
		return nil, tooMuch("snappy", uint64(n), limit)
	}
	out := room(n)
	if _, err := s2.Decode(out, src); err != nil {
		return nil, fault.Rel(0, len(src), "snappy", "damaged: %v", err)
	}
	return out, nil
}

var newZstdDecoder = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // the options are valid
	}
	return d
}}

// firstAlloc returns the number of bytes to allocate first if src does not state its raw size, or states one that is
// much larger than src.
func firstAlloc(src []byte, declared uint64, limit int64) int {
	n := uint64(16*len(src) + 4096)
	if declared > 0 {
		n = min(n, declared)
	}
	return int(min(n, uint64(limit)))
}

func expandZstd(src []byte, limit int64, room func(n int) []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return nil, fault.Rel(0, len(src), "zstd", "no frame: %v", err)
	}
	declared := uint64(0)
	if h.HasFCS {
		if declared = h.FrameContentSize; declared > uint64(limit) {
			return nil, tooMuch("zstd", declared, limit)
		}
	}
	d := newZstdDecoder.Get().(*zstd.Decoder)
	defer func() {
		d.Reset(nil)
		newZstdDecoder.Put(d)
	}()
	if h.HasFCS && declared <= uint64(firstAlloc(src, declared, limit)) {
		out, err := d.DecodeAll(src, room(int(declared))[:0])
		if err == nil && uint64(len(out)) != declared {
			return nil, fault.Rel(0, len(src), "zstd", "the frame holds %d raw bytes and says %d", len(out), declared)
		}
		if err != nil {
			return nil, fault.Rel(0, len(src), "zstd", "damaged: %v", err)
		}
		return out, nil
	}
	if err := d.Reset(narrowed(src, &h, limit)); err != nil {
		return nil, fault.Rel(0, len(src), "zstd", "damaged: %v", err)
	}
	return drain("zstd", d, src, firstAlloc(src, declared, limit), limit, room)
}

// narrowed returns the frame with a window no larger than its content may be: a streaming writer such as parquet-mr's
// requests 2 MiB or more for a few bytes, and the decoder allocates it. No match can reach back further than the length
// of the content.
func narrowed(src []byte, h *zstd.Header, limit int64) io.Reader {
	const block, lowest = 128 << 10, 10 // bytes of the largest block; the smallest window is 2^10
	log := max(bits.Len64(uint64(max(limit, block)-1)), lowest)
	if h.Skippable || h.SingleSegment || log-lowest > 31 || h.WindowSize <= 1<<log {
		return bytes.NewReader(src)
	}
	const windowAt = 5 // after the magic number and the frame's descriptor: RFC 8878, 3.1.1
	head := append([]byte(nil), src[:windowAt+1]...)
	head[windowAt] = byte(log-lowest) << 3
	return io.MultiReader(bytes.NewReader(head), bytes.NewReader(src[windowAt+1:]))
}

// drain reads all of z.
func drain(name string, z io.Reader, src []byte, first int, limit int64, room func(n int) []byte) ([]byte, error) {
	r := cutErrors{z}
	out := room(first)
	n := 0
	for {
		k, err := io.ReadFull(r, out[n:])
		n += k
		if err == io.EOF || err == io.ErrUnexpectedEOF { // returned by ReadFull itself: see cutErrors
			return out[:n], nil
		}
		if err != nil {
			return nil, fault.Rel(0, len(src), name, "after %d raw bytes: %v", n, err)
		}
		var one [1]byte // check that nothing follows
		if k, err := io.ReadFull(r, one[:]); k == 0 {
			if err == io.EOF {
				return out[:n], nil
			}
			return nil, fault.Rel(0, len(src), name, "after %d raw bytes: %v", n, err)
		}
		if int64(n) >= limit {
			return nil, tooMuch(name, uint64(n)+1, limit)
		}
		more := room(int(min(2*int64(n)+4096, limit)))
		copy(more, out[:n])
		more[n] = one[0]
		out, n = more, n+1
	}
}

// gzipTail is the length of the checksum and the raw size (modulo 2³²) at the end of a member.
const gzipTail = 8

var gunzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

func expandGzip(src []byte, limit int64, room func(n int) []byte) ([]byte, error) {
	z := gunzips.Get().(*gzip.Reader)
	defer gunzips.Put(z)
	if err := z.Reset(bytes.NewReader(src)); err != nil {
		return nil, fault.Rel(0, len(src), "gzip", "no member: %v", err)
	}
	declared := uint64(0)
	if len(src) > gzipTail {
		declared = uint64(binary.LittleEndian.Uint32(src[len(src)-4:])) + 1
	}
	return drain("gzip", z, src, firstAlloc(src, declared, limit), limit, room)
}

// cutErrors makes sure that a truncated stream is not mistaken for one that ends.
type cutErrors struct{ z io.Reader }

func (c cutErrors) Read(p []byte) (int, error) {
	n, err := c.z.Read(p)
	if err == io.ErrUnexpectedEOF {
		err = errCut
	}
	return n, err
}

var errCut = errors.New("the stream is cut")
