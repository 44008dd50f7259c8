package wal

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
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
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
//	batch    u32 compressed length, u32 raw length, u32 checksum of the compressed bytes, u32 checksum of these
//	         12 bytes, LogEntryBatchPB, compressed with the header's codec
//	footer   LogSegmentFooterPB, magic "closedls", u32 length; only if the segment was closed
//
// Kudu 1.2 and older had no compression, and no compressed length: its batch header is 12 bytes. Such a segment
// has major_version in its header. The header and the footer have no checksums. The segment that was being written when
// the server stopped has no footer; it ends in zeros (preallocated space), or in an incomplete batch.
//
// Source: kudu/consensus/log_util.h and log.proto.
const (
	Magic     = "kudulogf"
	EndMagic  = "closedls"
	maxHeader = 8 << 20 // bytes of the message of a header or footer
	Window    = 256 << 10
)

// Header is a LogSegmentHeaderPB.
type Header struct {
	TabletID      string
	Sequence      uint64
	Schema        meta.Schema // when the segment was begun
	SchemaVersion uint32
	Codec         cfile.Compression
	ShortHeader   bool // of Kudu 1.2 or older: the short batch header
	Features      []int32
}

// Footer is a LogSegmentFooterPB.
type Footer struct {
	Entries            int64
	MinIndex, MaxIndex int64 // of the operations in the segment; -1: there are none
	Closed             int64 // microseconds since 1970; 0: not stored
}

// Reader reads the batches of a segment in order. It is not safe for concurrent use.
type Reader struct {
	src  store.Source
	name string
	size int64
	o    pbc.Options

	Head  Header
	Codec *codec.Codec
	Foot  *Footer // nil: the segment was not closed
	Start int64   // of the first batch
	end   int64   // of the batches
	pos   int64

	win   []byte // the bytes from winAt on
	winAt int64
	step  int64 // bytes per read; 0: Window
}

// Batch is one batch. Its bytes stay valid after the next call of Next.
type Batch struct {
	At     fault.Span // header included
	cursor *wire.Cursor
}

// Open reads the header and the footer. notes are damage in spite of which the segment can be read. If the error is
// Corrupt and r is not nil, the header is lost, but batches can still be found; they are taken to be compressed with
// like, the codec of the previous segment. The caller closes src.
func Open(ctx context.Context, src store.Source, name string, o pbc.Options, like cfile.Compression) (r *Reader,
	notes []error, err error) {
	o.Limits = o.Limits.WithDefaults()
	r = &Reader{src: src, name: name, size: src.Size(), o: o}
	r.end = r.size
	err = r.readHeader(ctx)
	switch {
	case err == nil:
		r.Codec, err = r.codecOf(r.Head.Codec)
	case errors.Is(err, fault.Corrupt) && !pbc.IsTorn(err) && r.Start >= 0:
		r.Codec, _ = r.codecOf(like)
	}
	if r.Codec == nil {
		return nil, nil, err
	}
	if note := r.readFooter(ctx); note != nil {
		if fault.NotOfFile(note) {
			return nil, nil, note
		}
		notes = append(notes, note)
	}
	if err != nil {
		start, ferr := r.find(ctx, r.Start)
		if ferr != nil {
			return nil, nil, ferr
		}
		r.Start = start
	}
	r.pos = r.Start
	return r, notes, err
}

func (r *Reader) span(off, n int64) fault.Span {
	return fault.Span{Object: r.name, Off: off, Len: n}
}

func (r *Reader) codecOf(c cfile.Compression) (*codec.Codec, error) {
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
	return nil, fault.Unsupportedf(r.span(0, r.Start), "header.compression_codec", "%s", meta.CompressionName(c))
}

// readHeader reads the header. r.Start is negative if no batches can follow.
func (r *Reader) readHeader(ctx context.Context) error {
	const fixed = len(Magic) + 4
	b, err := r.bytes(ctx, 0, min(r.size, int64(fixed)))
	if err != nil {
		return err
	}
	r.Start = -1
	blank := len(bytes.Trim(b, "\x00")) == 0
	switch {
	case bytes.HasPrefix(b, []byte(pbc.EncMagic)):
		return fault.Unsupportedf(r.span(0, int64(len(pbc.EncMagic))), "header.magic",
			"the file is encrypted at rest (%s), and its key is not in the directory", pbc.EncMagic)
	case blank || len(b) < fixed && bytes.HasPrefix([]byte(Magic), b[:min(len(b), len(Magic))]):
		e := fault.Corruptf(r.span(0, r.size), "header", "the segment is empty: it has no header")
		e.Cause = pbc.ErrTorn
		return e
	case len(b) < fixed:
		return fault.Corruptf(r.span(0, r.size), "header", "%d bytes are too few for a segment of a log", r.size)
	}
	r.Start = int64(fixed)
	c := wire.NewCursor(b, r.span(0, int64(len(b))), "header")
	if string(b[:len(Magic)]) != Magic {
		c.Fail(0, len(Magic), "magic", "%q is not %q: not a segment of a log", b[:len(Magic)], Magic)
		return c.Err()
	}
	n := int64(binary.LittleEndian.Uint32(b[len(Magic):]))
	if n > maxHeader || n > r.size-int64(fixed) {
		if n <= maxHeader {
			r.Start = -1 // a torn header: nothing follows it
		}
		c.Fail(len(Magic), 4, "length", "%d bytes, %d are left, at most %d are allowed", n, r.size-int64(fixed),
			maxHeader)
		return c.Err()
	}
	if b, err = r.bytes(ctx, 0, int64(fixed)+n); err != nil {
		return err
	}
	b = bytes.Clone(b) // the schema's defaults refer to it
	c = wire.NewCursor(b, r.span(0, int64(len(b))), "header").Within(r.o.Limits.Memory())
	if r.o.Trace != nil {
		r.o.Trace(region.Node{Depth: r.o.Depth, Kind: region.Struct, Name: "header",
			Value: "segment of a write-ahead log", At: r.span(0, int64(len(b))), Inner: -1})
		c.Trace(r.o.Trace, r.o.Depth+1)
	}
	c.Bytes("magic", len(Magic))
	c.U32("length")
	m := c.Section("", int(n))
	if r.o.Trace != nil {
		m.Trace(r.o.Trace, r.o.Depth+1)
	}
	h := ParseHeader(m)
	if c.Join(m); c.Err() != nil {
		return c.Err()
	}
	r.Head, r.Start = h, int64(fixed)+n
	if len(h.Features) > 0 {
		return fault.Unsupportedf(r.span(0, r.Start), "header.incompatible_features", "%v", h.Features)
	}
	return nil
}

// ParseHeader reads a LogSegmentHeaderPB.
func ParseHeader(c *wire.Cursor) (h Header) {
	h.Codec = cfile.NoCompression
	var need meta.Required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			r.Uint32("major_version")
			h.ShortHeader = true
		case 2:
			r.Uint32("minor_version")
		case 5:
			h.TabletID = r.String("tablet_id")
			need.Has(5)
		case 6:
			h.Sequence = r.Uint("sequence_number")
			need.Has(6)
		case 7:
			m := r.Message("schema")
			h.Schema = meta.ParseSchema(m)
			r.Join(m)
			need.Has(7)
		case 8:
			h.SchemaVersion = r.Uint32("schema_version")
		case 9:
			h.Codec = cfile.Compression(r.Enum("compression_codec",
				func(v int32) string { return meta.CompressionName(cfile.Compression(v)) }))
		case 10:
			h.Features = append(h.Features, r.Int32("incompatible_features"))
		default:
			r.Unknown()
		}
	}
	need.Check(c, "tablet_id", 5, "sequence_number", 6, "schema", 7)
	return h
}

// readFooter reads the footer, if there is one, and sets the end of the batches, which is known also if the footer
// cannot be parsed.
func (r *Reader) readFooter(ctx context.Context) error {
	const fixed = int64(len(EndMagic) + 4)
	if r.size-r.Start < fixed {
		return nil
	}
	b, err := r.bytes(ctx, r.size-fixed, fixed)
	if err != nil {
		return err
	}
	if string(b[:len(EndMagic)]) != EndMagic {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(b[len(EndMagic):]))
	if n == 0 || n > maxHeader || n > r.size-fixed-r.Start {
		r.end = r.size - fixed
		return fault.Corruptf(r.span(r.size-4, 4), "footer.length", "%d bytes, %d are left", n, r.size-fixed-r.Start)
	}
	r.end = r.size - fixed - n
	if b, err = r.bytes(ctx, r.end, n); err != nil {
		return err
	}
	f, err := ParseFooter(wire.NewCursor(b, r.span(r.end, n), "footer"))
	if err != nil {
		return err
	}
	r.Foot = &f
	return nil
}

// ParseFooter reads a LogSegmentFooterPB.
func ParseFooter(c *wire.Cursor) (f Footer, err error) {
	f.MinIndex, f.MaxIndex = -1, -1
	var need meta.Required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			f.Entries = r.Int("num_entries")
			need.Has(1)
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
	need.Check(c, "num_entries", 1)
	return f, c.Err()
}

// bytes are n bytes of the file, which must not end before. They are valid until the next call.
func (r *Reader) bytes(ctx context.Context, off, n int64) ([]byte, error) {
	if off < r.winAt || off+n > r.winAt+int64(len(r.win)) {
		size := min(max(n, cmp.Or(r.step, Window)), r.size-off)
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

// headSize is the size of a batch header, in bytes.
func (r *Reader) headSize() int64 {
	if r.Head.ShortHeader {
		return 12
	}
	return 16
}

// batchHead is a batch header: lengths in bytes, and the checksum of the compressed bytes.
type batchHead struct{ stored, raw, sum int64 }

// parseBatchHead reads a batch header; its own checksum is not compared.
func (r *Reader) parseBatchHead(c *wire.Cursor) (h batchHead, headSum uint32) {
	h.stored = int64(c.U32("compressed_length"))
	h.raw = h.stored
	if !r.Head.ShortHeader {
		h.raw = int64(c.U32("length"))
	}
	h.sum = int64(c.U32("checksum"))
	return h, c.U32("header_checksum")
}

// plausible reports whether head is a batch header with a matching checksum.
func (r *Reader) plausible(head []byte) (batchHead, bool) {
	n := len(head) - 4
	if binary.LittleEndian.Uint32(head) == 0 || sum.CRC32C(head[:n]) != binary.LittleEndian.Uint32(head[n:]) {
		return batchHead{}, false
	}
	h, _ := r.parseBatchHead(wire.NewCursor(head, fault.Span{}, ""))
	return h, true
}

// Next is the next batch; io.EOF at the end. After a Corrupt error it continues with the next batch that can be
// found, so a loop may continue until io.EOF; what the error's span holds is lost. An error for which pbc.IsTorn holds
// is the end that a crash leaves.
func (r *Reader) Next(ctx context.Context) (Batch, error) {
	if r.pos >= r.end {
		return Batch{}, io.EOF
	}
	off := r.pos
	b, err := r.batch(ctx, off)
	switch {
	case err == nil:
		r.pos = b.At.End()
		return b, nil
	case !errors.Is(err, fault.Corrupt):
		return Batch{}, err
	}
	found, ferr := r.find(ctx, off+1)
	if ferr != nil {
		return Batch{}, ferr
	}
	r.pos = found
	var e *fault.Error
	errors.As(err, &e)
	lost := *e
	lost.At = r.span(off, found-off)
	if found == r.end && r.Foot == nil {
		if end, err := r.used(ctx, off); err != nil || end == off {
			return Batch{}, cmp.Or(err, io.EOF)
		}
		lost.Cause = pbc.ErrTorn
	}
	return Batch{}, &lost
}

// used returns where the last byte ends that is not zero, from off to the end of the batches; off if there is none.
func (r *Reader) used(ctx context.Context, off int64) (end int64, err error) {
	for end = off; off < r.end; {
		b, err := r.bytes(ctx, off, min(Window, r.end-off))
		if err != nil {
			return 0, err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			end = off + int64(n)
		}
		off += int64(len(b))
	}
	return end, nil
}

// batch reads the batch at off.
func (r *Reader) batch(ctx context.Context, off int64) (Batch, error) {
	n := r.headSize()
	if r.end-off < n {
		return Batch{}, fault.Corruptf(r.span(off, r.end-off), "batch.header",
			"%d bytes are needed, %d are left", n, r.end-off)
	}
	head, err := r.bytes(ctx, off, n)
	if err != nil {
		return Batch{}, err
	}
	h, headSum := r.parseBatchHead(wire.NewCursor(head, r.span(off, n), "batch.header"))
	at := r.span(off, n+h.stored)
	if want := sum.CRC32C(head[:n-4]); want != headSum && !(r.o.NoVerify && h.stored > 0 && at.End() <= r.end) {
		return Batch{}, fault.Corruptf(r.span(off, n), "batch.header.header_checksum",
			"expected %#08x, computed %#08x", headSum, want)
	}
	switch {
	case h.stored == 0 || h.raw == 0:
		return Batch{}, fault.Corruptf(r.span(off, n), "batch.header", "a batch of 0 bytes")
	case at.End() > r.end:
		return Batch{}, fault.Corruptf(r.span(off, r.end-off), "batch.header.compressed_length",
			"%d bytes, %d are left", h.stored, r.end-off-n)
	case h.raw > r.o.Limits.Page:
		return Batch{}, fault.Limitf(r.span(off, n), "batch.header.length",
			"a batch of %d bytes exceeds the page limit (%d)", h.raw, r.o.Limits.Page)
	}
	head = bytes.Clone(head)
	stored, err := r.bytes(ctx, off+n, h.stored)
	if err != nil {
		return Batch{}, err
	}
	if !r.o.NoVerify {
		if got := sum.CRC32C(stored); int64(got) != h.sum {
			return Batch{}, fault.Corruptf(at, "batch", "checksum: expected %#08x, computed %#08x", h.sum, got)
		}
	}
	b := Batch{At: at}
	if r.Codec.Name == "none" {
		if h.raw != h.stored {
			return Batch{}, fault.Corruptf(at, "batch",
				"an uncompressed batch with a length of %d, but a compressed length of %d", h.raw, h.stored)
		}
		b.cursor = wire.NewCursor(bytes.Clone(stored), r.span(off+n, h.stored), "batch")
	} else {
		raw, err := r.unpack(stored, h.raw)
		if err != nil {
			return Batch{}, fault.Corruptf(at, "batch", "not %s: %v", r.Codec.Name, err)
		}
		b.cursor = wire.NewInnerCursor(raw, r.span(off+n, h.stored), "batch")
	}
	if r.o.Trace != nil {
		r.o.Trace(region.Node{Depth: r.o.Depth, Kind: region.Struct, Name: "batch", At: at, Inner: -1})
		r.parseBatchHead(wire.NewCursor(head, r.span(off, n), "").Trace(r.o.Trace, r.o.Depth+1))
		r.o.Trace(region.Node{Depth: r.o.Depth + 1, Kind: region.Struct, Name: "entries",
			Value: fmt.Sprintf("%s, %d bytes", r.Codec.Name, h.raw), At: r.span(off+n, h.stored), Inner: -1})
		b.cursor.Trace(r.o.Trace, r.o.Depth+2)
	}
	return b, nil
}

// maxRatio is more than any of the codecs can expand a byte to; the most is deflate's 1032.
const maxRatio = 1100

func (r *Reader) unpack(stored []byte, raw int64) ([]byte, error) {
	if raw > int64(len(stored)+64)*maxRatio {
		return nil, fmt.Errorf("%d bytes cannot hold %d", len(stored), raw)
	}
	out := make([]byte, raw)
	return out, r.Codec.Decompress(out, stored)
}

// find searches for an intact batch from off on, and returns its offset; the end of the batches if there is none.
func (r *Reader) find(ctx context.Context, off int64) (found int64, err error) {
	n := r.headSize()
	for ; off+n <= r.end; off += Window - n {
		win, err := r.bytes(ctx, off, min(Window, r.end-off))
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
