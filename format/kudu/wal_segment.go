package kudu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/codec"
	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// A segment of a tablet's write-ahead log. Numbers are little-endian, checksums are CRC-32C.
//
//	header   magic "kudulogf", u32 length, LogSegmentHeaderPB
//	batch    u32 compressed length, u32 raw length, u32 checksum of the compressed bytes, u32 checksum of these 12 bytes,
//	         LogEntryBatchPB, compressed with the header's codec
//	footer   LogSegmentFooterPB, magic "closedls", u32 length; only if the segment was closed
//
// Kudu 1.2 and older had no compression, and no compressed length: its batch header is 12 bytes. Such a segment has
// major_version in its header. The header and the footer have no checksums. The segment that was being written when the server
// stopped has no footer; it ends in zeros (space taken in advance), or in a batch that was not written to its end.
const (
	walMagic     = "kudulogf"
	walEndMagic  = "closedls"
	walMaxHeader = 8 << 20 // bytes of the message of a header or footer
	walWindow    = 256 << 10
)

// WALHeader is a LogSegmentHeaderPB.
type WALHeader struct {
	TabletID      string
	Sequence      uint64
	Schema        Schema // when the segment was begun
	SchemaVersion uint32
	Codec         cfile.Compression
	Old           bool // of Kudu 1.2 or older: the short batch header
	Features      []int32
}

// WALFooter is a LogSegmentFooterPB.
type WALFooter struct {
	Entries            int64
	MinIndex, MaxIndex int64 // of the operations in the segment; -1: there are none
	Closed             int64 // microseconds since 1970; 0: not told
}

// walReader goes through the batches of a segment.
type walReader struct {
	src  store.Source
	name string
	size int64
	o    pbcOptions

	head  WALHeader
	codec *codec.Codec
	foot  *WALFooter // nil: the segment was not closed
	start int64      // of the first batch
	end   int64      // of the batches
	pos   int64

	win   []byte // the bytes from winAt on
	winAt int64
	step  int64 // of how many bytes a window is; 0: walWindow
}

// walBatch is one batch. Its bytes stay valid.
type walBatch struct {
	at     fault.Span // with its header
	cursor *wire.Cursor
}

// openWAL reads the header and the footer. notes are damage that does not hinder reading; with an error of class Corrupt r may be
// usable nevertheless: it is not nil then, its header is empty, and the batches are those that can be found, compressed with
// codec like, which is what the segment before had.
func openWAL(ctx context.Context, src store.Source, name string, o pbcOptions, like cfile.Compression) (r *walReader, notes []error, err error) {
	o.limits = o.limits.WithDefaults()
	r = &walReader{src: src, name: name, size: src.Size(), o: o}
	r.end = r.size
	err = r.readHeader(ctx)
	switch {
	case err == nil:
		r.codec, err = r.codecOf(r.head.Codec)
	case errors.Is(err, fault.Corrupt) && !isTorn(err) && r.start >= 0:
		r.codec, _ = r.codecOf(like)
	}
	if r.codec == nil {
		return nil, nil, err
	}
	if note := r.readFooter(ctx); note != nil {
		if !errors.As(note, new(*fault.Error)) {
			return nil, nil, note
		}
		notes = append(notes, note)
	}
	if err != nil {
		start, ferr := r.find(ctx, r.start)
		if ferr != nil {
			return nil, nil, ferr
		}
		r.start = start
	}
	r.pos = r.start
	return r, notes, err
}

func (r *walReader) span(off, n int64) fault.Span {
	return fault.Span{Object: r.name, Off: off, Len: n}
}

func (r *walReader) codecOf(c cfile.Compression) (*codec.Codec, error) {
	name := ""
	switch c {
	case cfile.DefaultCompression, cfile.NoCompression:
		name = "none"
	case cfile.Snappy:
		name = "snappy"
	case cfile.LZ4:
		name = "lz4"
	case cfile.Zlib:
		name = "zlib"
	}
	if x, ok := codec.ByName(name); ok {
		return x, nil
	}
	return nil, fault.Unsupportedf(r.span(0, r.start), "header.compression_codec", "%s", compressionName(c))
}

// readHeader reads the header. A start below 0 says that the file is no segment.
func (r *walReader) readHeader(ctx context.Context) error {
	const fixed = len(walMagic) + 4
	b, err := r.bytes(ctx, 0, min(r.size, int64(fixed)))
	if err != nil {
		return err
	}
	r.start = -1
	blank := len(bytes.Trim(b, "\x00")) == 0
	switch {
	case bytes.HasPrefix(b, []byte(encMagic)):
		return fault.Unsupportedf(r.span(0, int64(len(encMagic))), "header.magic", "the file is encrypted at rest (%s), and its key is not in the directory", encMagic)
	case blank || len(b) < fixed && bytes.HasPrefix([]byte(walMagic), b[:min(len(b), len(walMagic))]):
		e := fault.Corruptf(r.span(0, r.size), "header", "the segment was not begun: it has no header")
		e.Cause = errTorn
		return e
	case len(b) < fixed:
		return fault.Corruptf(r.span(0, r.size), "header", "%d bytes are too few for a segment of a log", r.size)
	}
	r.start = int64(fixed)
	c := wire.NewCursor(b, r.span(0, int64(len(b))), "header")
	if string(b[:len(walMagic)]) != walMagic {
		c.Fail(0, len(walMagic), "magic", "%q is not %q: not a segment of a log", b[:len(walMagic)], walMagic)
		return c.Err()
	}
	n := int64(binary.LittleEndian.Uint32(b[len(walMagic):]))
	if n > walMaxHeader || n > r.size-int64(fixed) {
		if n <= walMaxHeader {
			r.start = -1 // a torn header: nothing is behind it
		}
		c.Fail(len(walMagic), 4, "length", "%d bytes, %d are left, at most %d are allowed", n, r.size-int64(fixed), walMaxHeader)
		return c.Err()
	}
	if b, err = r.bytes(ctx, 0, int64(fixed)+n); err != nil {
		return err
	}
	b = bytes.Clone(b) // the schema's defaults are part of it
	c = wire.NewCursor(b, r.span(0, int64(len(b))), "header")
	if r.o.trace != nil {
		r.o.trace(region.Node{Depth: r.o.depth, Kind: region.Struct, Name: "header", Value: "segment of a write-ahead log", At: r.span(0, int64(len(b))), Inner: -1})
		c.Trace(r.o.trace, r.o.depth+1)
	}
	c.Bytes("magic", len(walMagic))
	c.U32("length")
	m := c.Section("", int(n))
	if r.o.trace != nil {
		m.Trace(r.o.trace, r.o.depth+1)
	}
	h := parseWALHeader(m)
	if c.Join(m); c.Err() != nil {
		return c.Err()
	}
	r.head, r.start = h, int64(fixed)+n
	if len(h.Features) > 0 {
		return fault.Unsupportedf(r.span(0, r.start), "header.incompatible_features", "%v", h.Features)
	}
	return nil
}

// parseWALHeader reads a LogSegmentHeaderPB.
func parseWALHeader(c *wire.Cursor) (h WALHeader) {
	h.Codec = cfile.NoCompression
	var need required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			r.Uint32("major_version")
			h.Old = true
		case 2:
			r.Uint32("minor_version")
		case 5:
			h.TabletID = r.String("tablet_id")
			need.has(5)
		case 6:
			h.Sequence = r.Uint("sequence_number")
			need.has(6)
		case 7:
			m := r.Message("schema")
			h.Schema = parseSchema(m)
			r.Join(m)
			need.has(7)
		case 8:
			h.SchemaVersion = r.Uint32("schema_version")
		case 9:
			h.Codec = cfile.Compression(r.Enum("compression_codec", func(v int32) string { return compressionName(cfile.Compression(v)) }))
		case 10:
			h.Features = append(h.Features, r.Int32("incompatible_features"))
		default:
			r.Unknown()
		}
	}
	need.check(c, "tablet_id", 5, "sequence_number", 6, "schema", 7)
	return h
}

// readFooter looks for a footer, and finds where the batches end. A footer that cannot be read is an error; where the batches end is
// known then, too, if its length is possible.
func (r *walReader) readFooter(ctx context.Context) error {
	const fixed = int64(len(walEndMagic) + 4)
	if r.size-r.start < fixed {
		return nil
	}
	b, err := r.bytes(ctx, r.size-fixed, fixed)
	if err != nil {
		return err
	}
	if string(b[:len(walEndMagic)]) != walEndMagic {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(b[len(walEndMagic):]))
	if n == 0 || n > walMaxHeader || n > r.size-fixed-r.start {
		r.end = r.size - fixed
		return fault.Corruptf(r.span(r.size-4, 4), "footer.length", "%d bytes, %d are left", n, r.size-fixed-r.start)
	}
	r.end = r.size - fixed - n
	if b, err = r.bytes(ctx, r.end, n); err != nil {
		return err
	}
	f, err := parseWALFooter(wire.NewCursor(b, r.span(r.end, n), "footer"))
	if err != nil {
		return err
	}
	r.foot = &f
	return nil
}

// parseWALFooter reads a LogSegmentFooterPB.
func parseWALFooter(c *wire.Cursor) (f WALFooter, err error) {
	f.MinIndex, f.MaxIndex = -1, -1
	var need required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			f.Entries = r.Int("num_entries")
			need.has(1)
		case 2:
			f.MinIndex = r.Int("min_replicate_index")
		case 3:
			f.MaxIndex = r.Int("max_replicate_index")
		case 4:
			f.Closed = r.Int("close_timestamp_micros")
		default:
			r.Unknown()
		}
	}
	need.check(c, "num_entries", 1)
	return f, c.Err()
}

// bytes are n bytes of the file, which the caller knows to be there. They are valid until the next call.
func (r *walReader) bytes(ctx context.Context, off, n int64) ([]byte, error) {
	if off < r.winAt || off+n > r.winAt+int64(len(r.win)) {
		size := min(max(n, cmp.Or(r.step, walWindow)), r.size-off)
		if int64(cap(r.win)) < size {
			r.win = make([]byte, size)
		}
		r.win, r.winAt = r.win[:size], off
		if err := format.ReadFull(ctx, r.src, r.span(off, size), "segment", r.win); err != nil {
			r.win = r.win[:0]
			return nil, err
		}
	}
	return r.win[off-r.winAt:][:n:n], nil
}

// headLen is the size of a batch header.
func (r *walReader) headLen() int64 {
	if r.head.Old {
		return 12
	}
	return 16
}

// batchHead is what stands in front of a batch.
type batchHead struct{ stored, raw, sum int64 }

// parseBatchHead reads a batch header; its own checksum is not compared.
func (r *walReader) parseBatchHead(c *wire.Cursor) (h batchHead, headSum uint32) {
	h.stored = int64(c.U32("compressed_length"))
	h.raw = h.stored
	if !r.head.Old {
		h.raw = int64(c.U32("length"))
	}
	h.sum = int64(c.U32("checksum"))
	return h, c.U32("header_checksum")
}

// plausible reports whether a whole batch begins with the given header, which has its right checksum.
func (r *walReader) plausible(head []byte) (batchHead, bool) {
	n := len(head) - 4
	if binary.LittleEndian.Uint32(head) == 0 || sum.CRC32C(head[:n]) != binary.LittleEndian.Uint32(head[n:]) {
		return batchHead{}, false
	}
	h, _ := r.parseBatchHead(wire.NewCursor(head, fault.Span{}, ""))
	return h, true
}

// next is the next batch; io.EOF at the end. After a Corrupt error it goes on with the next batch that can be found, so a loop may
// go on until io.EOF; what the error's span holds is lost. An error that isTorn is the end that a crash leaves.
func (r *walReader) next(ctx context.Context) (walBatch, error) {
	if r.pos >= r.end {
		return walBatch{}, io.EOF
	}
	off := r.pos
	b, err := r.batch(ctx, off)
	switch {
	case err == nil:
		r.pos = b.at.End()
		return b, nil
	case !errors.Is(err, fault.Corrupt):
		return walBatch{}, err
	}
	found, ferr := r.find(ctx, off+1)
	if ferr != nil {
		return walBatch{}, ferr
	}
	r.pos = found
	var e *fault.Error
	errors.As(err, &e)
	lost := *e
	lost.At = r.span(off, found-off)
	if found == r.end && r.foot == nil {
		if z, err := r.zero(ctx, off); err != nil || z {
			return walBatch{}, cmpErr(err, io.EOF)
		}
		lost.Cause = errTorn
	}
	return walBatch{}, &lost
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// zero reports whether everything from off to the end is zero.
func (r *walReader) zero(ctx context.Context, off int64) (bool, error) {
	for off < r.end {
		b, err := r.bytes(ctx, off, min(walWindow, r.end-off))
		if err != nil {
			return false, err
		}
		if len(bytes.TrimLeft(b, "\x00")) > 0 {
			return false, nil
		}
		off += int64(len(b))
	}
	return true, nil
}

// batch reads the batch at off.
func (r *walReader) batch(ctx context.Context, off int64) (walBatch, error) {
	n := r.headLen()
	if r.end-off < n {
		return walBatch{}, fault.Corruptf(r.span(off, r.end-off), "batch.header", "%d bytes are needed, %d are left", n, r.end-off)
	}
	head, err := r.bytes(ctx, off, n)
	if err != nil {
		return walBatch{}, err
	}
	h, headSum := r.parseBatchHead(wire.NewCursor(head, r.span(off, n), "batch.header"))
	at := r.span(off, n+h.stored)
	if want := sum.CRC32C(head[:n-4]); want != headSum && !(r.o.noVerify && h.stored > 0 && at.End() <= r.end) {
		return walBatch{}, fault.Corruptf(r.span(off, n), "batch.header.header_checksum", "%#08x is stored, %#08x is right", headSum, want)
	}
	switch {
	case h.stored == 0 || h.raw == 0:
		return walBatch{}, fault.Corruptf(r.span(off, n), "batch.header", "a batch of 0 bytes")
	case at.End() > r.end:
		return walBatch{}, fault.Corruptf(r.span(off, r.end-off), "batch.header.compressed_length", "%d bytes, %d are left", h.stored, r.end-off-n)
	case h.raw > r.o.limits.Page:
		return walBatch{}, fault.Limitf(r.span(off, n), "batch.header.length", "a batch of %d bytes, the limit is %d", h.raw, r.o.limits.Page)
	}
	head = bytes.Clone(head)
	stored, err := r.bytes(ctx, off+n, h.stored)
	if err != nil {
		return walBatch{}, err
	}
	if got := sum.CRC32C(stored); int64(got) != h.sum && !r.o.noVerify {
		return walBatch{}, fault.Corruptf(at, "batch", "checksum %#08x is stored, %#08x is right", h.sum, got)
	}
	b := walBatch{at: at}
	if r.codec.Name == "none" {
		if h.raw != h.stored {
			return walBatch{}, fault.Corruptf(at, "batch", "%d bytes of an uncompressed batch are declared, it has %d", h.raw, h.stored)
		}
		b.cursor = wire.NewCursor(bytes.Clone(stored), r.span(off+n, h.stored), "batch")
	} else {
		raw, err := r.unpack(stored, h.raw)
		if err != nil {
			return walBatch{}, fault.Corruptf(at, "batch", "not %s: %v", r.codec.Name, err)
		}
		b.cursor = wire.NewInnerCursor(raw, r.span(off+n, h.stored), "batch")
	}
	if r.o.trace != nil {
		r.o.trace(region.Node{Depth: r.o.depth, Kind: region.Struct, Name: "batch", At: at, Inner: -1})
		r.parseBatchHead(wire.NewCursor(head, r.span(off, n), "").Trace(r.o.trace, r.o.depth+1))
		r.o.trace(region.Node{Depth: r.o.depth + 1, Kind: region.Struct, Name: "entries", Value: fmt.Sprintf("%s, %d bytes", r.codec.Name, h.raw), At: r.span(off+n, h.stored), Inner: -1})
		b.cursor.Trace(r.o.trace, r.o.depth+2)
	}
	return b, nil
}

// maxRatio is more than any of the codecs can expand a byte to: deflate's 1032.
const maxRatio = 1100

func (r *walReader) unpack(stored []byte, raw int64) ([]byte, error) {
	if raw > int64(len(stored)+64)*maxRatio {
		return nil, fmt.Errorf("%d bytes cannot hold %d", len(stored), raw)
	}
	out := make([]byte, raw)
	return out, r.codec.Decompress(out, stored)
}

// find looks for a whole batch from off on: its place, or the end of the batches.
func (r *walReader) find(ctx context.Context, off int64) (found int64, err error) {
	n := r.headLen()
	for ; off+n <= r.end; off += walWindow - n {
		win, err := r.bytes(ctx, off, min(walWindow, r.end-off))
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimLeft(win, "\x00")) == 0 {
			continue
		}
		win = bytes.Clone(win)
		for i := 0; i+int(n) <= len(win); i++ {
			h, ok := r.plausible(win[i : i+int(n)])
			at := off + int64(i)
			if !ok || at+n+h.stored > r.end {
				continue
			}
			body, err := r.bytes(ctx, at+n, h.stored)
			if err != nil {
				return 0, err
			}
			if int64(sum.CRC32C(body)) == h.sum {
				return at, nil
			}
		}
	}
	return r.end, nil
}
