package pbc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/budget"
	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// A protobuf container is the file in which Kudu keeps all its metadata: instances, superblocks, consensus
// metadata, and the block records of a log container. Numbers are little-endian, checksums are CRC-32C.
//
//	header       magic "kuducntr", u32 version
//	             v2: u32 checksum of these 12 bytes
//	record, v1   u32 length, body, u32 checksum of length and body
//	record, v2   u32 length, u32 checksum of the length, body, u32 checksum of the body
//
// The first record is a ContainerSupHeaderPB: descriptors, and the name of the type of all other records. A crash
// while a record is being appended leaves a torn last record: its end is missing, or zeros.
//
// Source: kudu/util/pb_util.h, WritablePBContainerFile.
const (
	Magic    = "kuducntr"
	HeadV1   = len(Magic) + 4 // size of the header of version 1, in bytes
	HeadV2   = HeadV1 + 4     // size of the header of version 2, in bytes
	EncMagic = "kuduenc"      // begins a file that is encrypted at rest

	window  = 64 << 10 // bytes per read
	maxSkip = 4        // a damaged file is searched for the next record for at most this many times its size
)

// headSumV2 is the checksum of a header of version 2, which is always the same.
var headSumV2 = sum.CRC32C([]byte(Magic), []byte{2, 0, 0, 0})

// ErrTorn is the cause of the error about a torn last record.
var ErrTorn = errors.New("the last record is incomplete")

// IsTorn reports whether err says that a container ends in a torn record, which is what a crash leaves, not damage.
func IsTorn(err error) bool { return errors.Is(err, ErrTorn) }

// Options are how to read a container.
type Options struct {
	Limits   format.Limits     // Metadata bounds the size of a record
	Memory   *budget.Memory    // charged for what is parsed; nil: each container has a budget of its own
	NoVerify bool              // checksums are not compared
	Trace    func(region.Node) // if set, is called for each part that is read
	Depth    int               // of the outermost traced nodes
}

// Reader reads the records of a container in order. It is not safe for concurrent use.
type Reader struct {
	src     store.Source
	name    string
	Size    int64 // of the file, in bytes
	o       Options
	Version int    // 1 or 2
	Typ     string // of the records, as the supplementary header names it; "" if that could not be read

	pos   int64
	index int // of the next record; the supplementary header is not counted
	ended bool
	skip  int64 // bytes that the search for the next record may still look at

	win   []byte // the bytes from winAt on
	winAt int64
}

// Record is one record.
type Record struct {
	Index int        // from 0; the supplementary header is not counted
	At    fault.Span // the whole record, with its length and checksums
	Body  fault.Span
	Data  []byte // the body; stays valid after the next call of Next
}

// perContainer is the memory that an open container is assumed to need besides its records.
const perContainer = 4 << 10

// Open reads the header and the supplementary header. A torn header has the cause ErrTorn. If the error is Corrupt and
// r is not nil, the records after the damage can still be read.
func Open(ctx context.Context, src store.Source, name string, o Options) (r *Reader, err error) {
	o.Limits = o.Limits.WithDefaults()
	r = &Reader{src: src, name: name, Size: src.Size(), o: o, skip: maxSkip * src.Size()}
	if err := o.Limits.Memory().Take(perContainer, r.Span(0, r.Size), "header"); err != nil {
		return nil, err
	}
	head, err := r.bytes(ctx, 0, min(r.Size, int64(HeadV2)))
	if err != nil {
		return nil, err
	}
	broken, err := r.parseHead(head)
	if err != nil {
		return nil, err
	}
	r.traceHead(head)
	r.index = -1
	rec, err := r.Next(ctx)
	switch {
	case err == nil:
		c := r.Cursor(rec, "protos")
		r.Typ = ParseSupHeader(c)
		if c.Err() != nil && broken == nil {
			errors.As(c.Err(), &broken)
		}
	case err == io.EOF:
		return nil, r.torn(r.pos, "the file ends after the header")
	case IsTorn(err), !errors.Is(err, fault.Corrupt):
		return nil, err
	case broken == nil:
		errors.As(err, &broken)
	}
	r.index = 0
	if broken != nil {
		return r, broken
	}
	return r, nil
}

// parseHead takes the version from the header, and moves past it. broken is damage in spite of which the file can be
// read.
func (r *Reader) parseHead(head []byte) (broken *fault.Error, err error) {
	if bytes.HasPrefix(head, []byte(EncMagic)) {
		return nil, fault.Unsupportedf(r.Span(0, int64(len(EncMagic))), "magic",
			"the file is encrypted at rest (%s), and its key is not in the directory", EncMagic)
	}
	if len(head) < HeadV1 {
		return nil, r.truncatedHead(head, "%d bytes are too few for a protobuf container")
	}
	version := binary.LittleEndian.Uint32(head[len(Magic):])
	stored := uint32(0)
	if len(head) == HeadV2 {
		stored = binary.LittleEndian.Uint32(head[HeadV1:])
	}
	magicOK := string(head[:len(Magic)]) == Magic
	switch {
	case stored == headSumV2 && magicOK && version == 2:
	case stored == headSumV2: // only a header of version 2 has this checksum
		broken = fault.Corruptf(r.Span(0, int64(HeadV1)), "header",
			"magic %q, version %d: the checksum is that of %q, version 2", head[:len(Magic)], version, Magic)
		version = 2
	case !magicOK:
		return nil, fault.Corruptf(r.Span(0, int64(len(Magic))), "header.magic", "not a protobuf container: %q",
			head[:len(Magic)])
	case version == 2 && len(head) < HeadV2:
		return nil, r.truncatedHead(head, "%d bytes are too few for a protobuf container of version 2")
	case version == 2 && !r.o.NoVerify:
		broken = fault.Corruptf(r.Span(int64(HeadV1), 4), "header.checksum", "expected %#08x, computed %#08x",
			stored, headSumV2)
	case version == 1, version == 2:
	case stored == sum.CRC32C(head[:HeadV1]):
		return nil, fault.Unsupportedf(r.Span(int64(len(Magic)), 4), "header.version",
			"protobuf container of version %d", version)
	default:
		return nil, fault.Corruptf(r.Span(int64(len(Magic)), 4), "header.version", "%d is neither 1 nor 2", version)
	}
	r.Version, r.pos = int(version), int64(HeadV1)
	if version == 2 {
		r.pos = int64(HeadV2)
	}
	return broken, nil
}

// traceHead reports the parts of the header.
func (r *Reader) traceHead(head []byte) {
	if r.o.Trace == nil {
		return
	}
	r.o.Trace(region.Node{Depth: r.o.Depth, Kind: region.Struct, Name: "header",
		Value: fmt.Sprintf("protobuf container v%d", r.Version), At: r.Span(0, r.pos), Inner: -1})
	c := wire.NewCursor(head, r.Span(0, int64(len(head))), "header").Trace(r.o.Trace, r.o.Depth+1)
	c.Bytes("magic", len(Magic))
	c.U32("version")
	if r.Version == 2 {
		c.U32("checksum")
	}
}

// truncatedHead is the error of a file that ends within the header. It is torn if what there is begins a container.
func (r *Reader) truncatedHead(head []byte, why string) error {
	e := fault.Corruptf(r.Span(0, r.Size), "header", why, r.Size)
	if n := min(len(head), len(Magic)); string(head[:n]) == Magic[:n] {
		e.Cause = ErrTorn
	}
	return e
}

// ParseSupHeader parses a ContainerSupHeaderPB: the full name of the records' message type. The descriptors are not
// needed: all types are known.
func ParseSupHeader(c *wire.Cursor) (typ string) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			r.Bytes("protos")
		case 2:
			typ = r.String("pb_type")
		default:
			r.Unknown()
		}
	}
	return typ
}

// Span is n bytes of the file, from off on.
func (r *Reader) Span(off, n int64) fault.Span {
	return fault.Span{Object: r.name, Off: off, Len: n}
}

// path names the record that is being read, for errors.
func (r *Reader) path() string {
	if r.index < 0 {
		return "supplementary header"
	}
	return fmt.Sprintf("record[%d]", r.index)
}

// Cursor is a cursor over the body of rec, which traces if r does. path names the record in errors.
func (r *Reader) Cursor(rec Record, path string) *wire.Cursor {
	c := wire.NewCursor(rec.Data, rec.Body, path)
	if r.o.Trace != nil {
		c.Trace(r.o.Trace, r.o.Depth+2)
	}
	return c
}

// bytes are n bytes of the file, which the caller knows to be there.
func (r *Reader) bytes(ctx context.Context, off, n int64) ([]byte, error) {
	if off < r.winAt || off+n > r.winAt+int64(len(r.win)) {
		win := make([]byte, min(max(n, window), r.Size-off))
		if err := format.ReadFull(ctx, r.src, r.Span(off, int64(len(win))), r.path(), win); err != nil {
			return nil, err
		}
		r.win, r.winAt = win, off
	}
	return r.win[off-r.winAt:][:n:n], nil
}

// zeros reports whether all bytes from off on are zero.
func (r *Reader) zeros(ctx context.Context, off int64) (bool, error) {
	for off < r.Size {
		b, err := r.bytes(ctx, off, min(window, r.Size-off))
		if err != nil {
			return false, err
		}
		for _, x := range b {
			if x != 0 {
				return false, nil
			}
		}
		off += int64(len(b))
	}
	return true, nil
}

// prefixSize is the number of bytes of a record before its body.
func (r *Reader) prefixSize() int64 {
	if r.Version == 1 {
		return 4
	}
	return 8
}

// Next is the next record; io.EOF at the end. After a Corrupt error it continues with the next record that can be
// found, if any, so a loop may continue until io.EOF; what lies in the error's span is lost.
func (r *Reader) Next(ctx context.Context) (Record, error) {
	if r.ended || r.pos == r.Size {
		return Record{}, io.EOF
	}
	rec, err := r.record(ctx, r.pos)
	r.index++
	return rec, err
}

// torn ends the reading: the record at off is incomplete.
func (r *Reader) torn(off int64, why string, args ...any) error {
	r.ended = true
	e := fault.Corruptf(r.Span(off, r.Size-off), r.path(), why, args...)
	e.Cause = ErrTorn
	return e
}

// record reads the record at off.
func (r *Reader) record(ctx context.Context, off int64) (Record, error) {
	head := r.prefixSize()
	if r.Size-off < head {
		return Record{}, r.torn(off, "%d bytes are left of its length", r.Size-off)
	}
	h, err := r.bytes(ctx, off, head)
	if err != nil {
		return Record{}, err
	}
	n := int64(binary.LittleEndian.Uint32(h))
	if r.Version == 2 {
		if binary.LittleEndian.Uint64(h) == 0 {
			if all, err := r.zeros(ctx, off); err != nil {
				return Record{}, err
			} else if all {
				return Record{}, r.torn(off, "the rest of the file is zeros")
			}
		}
		if stored, want := binary.LittleEndian.Uint32(h[4:]), sum.CRC32C(h[:4]); stored != want && !r.o.NoVerify {
			return Record{}, r.resync(ctx, off, stored, want)
		}
	}
	if n > r.Size-off-head-4 {
		return Record{}, r.torn(off, "a body of %d bytes is declared, %d are left", n, max(r.Size-off-head-4, 0))
	}
	if n > min(r.o.Limits.Metadata, math.MaxInt32) {
		r.ended = true
		return Record{}, fault.Limitf(r.Span(off, head+n+4), r.path(),
			"a body of %d bytes exceeds the metadata limit (%d)", n, r.o.Limits.Metadata)
	}
	all, err := r.bytes(ctx, off, head+n+4)
	if err != nil {
		return Record{}, err
	}
	rec := Record{Index: r.index, At: r.Span(off, head+n+4), Body: r.Span(off+head, n),
		Data: all[head : head+n : head+n]}
	r.pos = off + head + n + 4
	r.traceFrame(rec, all)
	summed := rec.Data
	if r.Version == 1 {
		summed = all[:head+n]
	}
	if stored, want := binary.LittleEndian.Uint32(all[head+n:]), sum.CRC32C(summed); stored != want && !r.o.NoVerify {
		r.ended = r.Version == 1 // its length may be wrong, too
		return Record{}, fault.Corruptf(rec.At, r.path()+".checksum", "expected %#08x, computed %#08x", stored,
			want)
	}
	return rec, nil
}

// traceFrame reports the parts of a record around its body.
func (r *Reader) traceFrame(rec Record, all []byte) {
	if r.o.Trace == nil {
		return
	}
	r.o.Trace(region.Node{Depth: r.o.Depth, Kind: region.Struct, Name: r.path(), At: rec.At, Inner: -1})
	c := wire.NewCursor(all, rec.At, r.path()).Trace(r.o.Trace, r.o.Depth+1)
	c.U32("length")
	if r.Version == 2 {
		c.U32("length_checksum")
	}
	n := len(rec.Data)
	r.o.Trace(region.Node{Depth: r.o.Depth + 1, Kind: region.Data, Name: "checksum",
		At: rec.At.Sub(rec.At.Len-4, 4), Inner: -1,
		Value: fmt.Sprint(binary.LittleEndian.Uint32(all[len(all)-4:]))})
	r.o.Trace(region.Node{Depth: r.o.Depth + 1, Kind: region.Struct, Name: "body", At: rec.Body, Inner: -1,
		Value: fmt.Sprintf("%d bytes", n)})
}

// resync searches for the next record after one whose length is damaged: a length with a matching checksum, and a body
// with a matching checksum. It returns the error about the damaged record.
func (r *Reader) resync(ctx context.Context, off int64, stored, want uint32) error {
	found := r.Size
	for at := off + 1; at+12 <= r.Size && r.skip > 0; at++ {
		r.skip--
		h, err := r.bytes(ctx, at, 8)
		if err != nil {
			return err
		}
		if sum.CRC32C(h[:4]) != binary.LittleEndian.Uint32(h[4:]) {
			continue
		}
		n := int64(binary.LittleEndian.Uint32(h))
		if n > r.Size-at-12 || n > r.o.Limits.Metadata {
			continue
		}
		r.skip -= n
		all, err := r.bytes(ctx, at, 8+n+4)
		if err != nil {
			return err
		}
		if sum.CRC32C(all[8:8+n]) == binary.LittleEndian.Uint32(all[8+n:]) {
			found = at
			break
		}
	}
	r.pos = found
	r.ended = found == r.Size
	e := fault.Corruptf(r.Span(off, found-off), r.path()+".length_checksum", "expected %#08x, computed %#08x",
		stored, want)
	if r.ended {
		e.Reason += "; no other record follows"
	}
	return e
}

// Read reads the only record of a container: of an instance, a superblock or consensus metadata. parse gets a cursor
// over it; path names it in errors. If the name is that of a directory or another thing that is not a regular file, the
// error is Corrupt: the file is lost. notes are damage in spite of which the record could be read.
func Read(ctx context.Context, tree store.Tree, name string, o Options, path string,
	parse func(*wire.Cursor)) (notes []error, err error) {
	src, err := tree.Open(ctx, name)
	if store.NoFile(err) { // something else has taken the file's name
		var at *iofs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, fault.Corruptf(fault.Span{Object: name}, path, "%v", err)
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r, err := Open(ctx, src, name, o)
	if r == nil {
		return nil, err
	}
	if err != nil {
		notes = append(notes, err)
	}
	rec, err := r.Next(ctx)
	if err == io.EOF {
		e := fault.Corruptf(r.Span(r.pos, 0), path, "the file ends before its record")
		e.Cause = ErrTorn
		return notes, e
	}
	if err != nil {
		return notes, err
	}
	c := r.Cursor(rec, path)
	memory := o.Memory
	if memory == nil {
		memory = o.Limits.Memory()
	}
	if err := memory.Take(rec.Body.Len, rec.Body, path); err != nil {
		return notes, err
	}
	parse(c.Within(memory))
	if c.Err() != nil {
		return notes, c.Err()
	}
	if r.pos < r.Size {
		at := r.Span(r.pos, r.Size-r.pos)
		notes = append(notes, fault.Corruptf(at, path, "%d bytes follow the record", at.Len))
		if o.Trace != nil {
			o.Trace(region.Node{Depth: o.Depth, Kind: region.Gap, Name: "trailing bytes", At: at, Inner: -1})
		}
	}
	return notes, nil
}

// SpanOf is the span of an error; the zero Span if it has none.
func SpanOf(err error) fault.Span {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.At
	}
	return fault.Span{}
}
