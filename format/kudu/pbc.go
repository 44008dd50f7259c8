package kudu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// A protobuf container is the file in which Kudu keeps all its metadata: instances, superblocks, consensus metadata, and the
// block records of a log container. Numbers are little-endian, checksums are CRC-32C.
//
//	header       magic "kuducntr", u32 version
//	             v2: u32 checksum of these 12 bytes
//	record, v1   u32 length, body, u32 checksum of length and body
//	record, v2   u32 length, u32 checksum of the length, body, u32 checksum of the body
//
// The first record is a ContainerSupHeaderPB: descriptors, and the name of the type of all other records. A file that a crash
// cut has a torn last record: its end is missing, or is zeros.
const (
	pbcMagic   = "kuducntr"
	pbcHeadV1  = len(pbcMagic) + 4
	pbcHeadV2  = pbcHeadV1 + 4
	pbcWindow  = 64 << 10 // bytes read at once
	encMagic   = "kuduenc"
	pbcMaxSkip = 4 // times its own size that a damaged file is searched for the next record
)

// pbcSumV2 is the checksum of the header of version 2, which is always the same.
var pbcSumV2 = sum.CRC32C([]byte(pbcMagic), []byte{2, 0, 0, 0})

// errTorn is the cause of the error that tells of a torn last record.
var errTorn = errors.New("the last record was not written to its end")

// isTorn reports whether err tells that a container ends in a torn record, which is what a crash leaves, not damage.
func isTorn(err error) bool { return errors.Is(err, errTorn) }

// pbcOptions are how to read a container.
type pbcOptions struct {
	limits   format.Limits
	noVerify bool
	trace    func(region.Node)
	depth    int
}

// pbcReader goes through the records of a container.
type pbcReader struct {
	src     store.Source
	name    string
	size    int64
	o       pbcOptions
	version int
	typ     string // of the records, as the supplementary header names it; "" if that could not be read

	pos   int64
	index int // of the next record; the supplementary header is not counted
	ended bool
	skip  int64 // bytes that the search for a record may still look at

	win   []byte // the bytes from winAt on
	winAt int64
}

// pbcRecord is one record. data stays valid.
type pbcRecord struct {
	index int
	at    fault.Span // with lengths and checksums
	body  fault.Span
	data  []byte
}

// openPBC reads the header and the supplementary header. With a Corrupt error r may be usable nevertheless: it is not nil then,
// and the records behind the damage can be read.
func openPBC(ctx context.Context, src store.Source, name string, o pbcOptions) (r *pbcReader, err error) {
	o.limits = o.limits.WithDefaults()
	r = &pbcReader{src: src, name: name, size: src.Size(), o: o, skip: pbcMaxSkip * src.Size()}
	n := min(r.size, int64(pbcHeadV2))
	head, err := r.bytes(ctx, 0, n)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte(encMagic)) {
		return nil, fault.Unsupportedf(r.span(0, int64(len(encMagic))), "magic", "the file is encrypted at rest (%s), and its key is not in the directory", encMagic)
	}
	if len(head) < pbcHeadV1 {
		return nil, r.cutHead(head, "%d bytes are too few for a protobuf container")
	}
	c := wire.NewCursor(head, r.span(0, n), "header")
	version := binary.LittleEndian.Uint32(head[len(pbcMagic):])
	stored := uint32(0)
	if len(head) == pbcHeadV2 {
		stored = binary.LittleEndian.Uint32(head[pbcHeadV1:])
	}
	magicOK := string(head[:len(pbcMagic)]) == pbcMagic
	var broken *fault.Error
	switch {
	case stored == pbcSumV2 && magicOK && version == 2:
	case stored == pbcSumV2: // only version 2 has this checksum
		broken = fault.Corruptf(r.span(0, int64(pbcHeadV1)), "header", "magic %q, version %d: the checksum is that of %q, version 2", head[:len(pbcMagic)], version, pbcMagic)
		version = 2
	case !magicOK:
		return nil, fault.Corruptf(r.span(0, int64(len(pbcMagic))), "header.magic", "not a protobuf container: %q", head[:len(pbcMagic)])
	case version == 2 && len(head) < pbcHeadV2:
		return nil, r.cutHead(head, "%d bytes are too few for a protobuf container of version 2")
	case version == 2 && !o.noVerify:
		broken = fault.Corruptf(r.span(int64(pbcHeadV1), 4), "header.checksum", "%#08x is stored, %#08x is right", stored, pbcSumV2)
	case version == 1, version == 2:
	case stored == sum.CRC32C(head[:pbcHeadV1]):
		return nil, fault.Unsupportedf(r.span(int64(len(pbcMagic)), 4), "header.version", "protobuf container of version %d", version)
	default:
		return nil, fault.Corruptf(r.span(int64(len(pbcMagic)), 4), "header.version", "%d is neither 1 nor 2", version)
	}
	r.version, r.pos = int(version), int64(pbcHeadV1)
	if version == 2 {
		r.pos = int64(pbcHeadV2)
	}
	if o.trace != nil {
		o.trace(region.Node{Depth: o.depth, Kind: region.Struct, Name: "header", Value: fmt.Sprintf("protobuf container v%d", version), At: r.span(0, r.pos), Inner: -1})
		c.Trace(o.trace, o.depth+1)
		c.Bytes("magic", len(pbcMagic))
		c.U32("version")
		if version == 2 {
			c.U32("checksum")
		}
	}
	r.index = -1
	rec, err := r.next(ctx)
	switch {
	case err == nil:
		c := r.cursor(rec, "protos")
		r.typ = parseSupHeader(c)
		if c.Err() != nil && broken == nil {
			errors.As(c.Err(), &broken)
		}
	case err == io.EOF:
		return nil, r.torn(r.pos, "the file ends behind the header")
	case isTorn(err), !errors.Is(err, fault.Corrupt):
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

// cutHead is the error of a file that ends within the header. It is torn if it was one of ours.
func (r *pbcReader) cutHead(head []byte, why string) error {
	e := fault.Corruptf(r.span(0, r.size), "header", why, r.size)
	if n := min(len(head), len(pbcMagic)); string(head[:n]) == pbcMagic[:n] {
		e.Cause = errTorn
	}
	return e
}

// parseSupHeader reads a ContainerSupHeaderPB: the name of the type. The descriptors say nothing that we do not know.
func parseSupHeader(c *wire.Cursor) (typ string) {
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

func (r *pbcReader) span(off, n int64) fault.Span {
	return fault.Span{Object: r.name, Off: off, Len: n}
}

// path is the name of the record that is being read.
func (r *pbcReader) path() string {
	if r.index < 0 {
		return "supplementary header"
	}
	return fmt.Sprintf("record[%d]", r.index)
}

// cursor is a cursor over the body of rec, which traces if r does.
func (r *pbcReader) cursor(rec pbcRecord, path string) *wire.Cursor {
	c := wire.NewCursor(rec.data, rec.body, path)
	if r.o.trace != nil {
		c.Trace(r.o.trace, r.o.depth+2)
	}
	return c
}

// bytes are n bytes of the file, which the caller knows to be there.
func (r *pbcReader) bytes(ctx context.Context, off, n int64) ([]byte, error) {
	if off < r.winAt || off+n > r.winAt+int64(len(r.win)) {
		win := make([]byte, min(max(n, pbcWindow), r.size-off))
		if err := format.ReadFull(ctx, r.src, r.span(off, int64(len(win))), r.path(), win); err != nil {
			return nil, err
		}
		r.win, r.winAt = win, off
	}
	return r.win[off-r.winAt:][:n:n], nil
}

// zeros reports whether everything from off on is zero.
func (r *pbcReader) zeros(ctx context.Context, off int64) (bool, error) {
	for off < r.size {
		b, err := r.bytes(ctx, off, min(pbcWindow, r.size-off))
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

// lenBytes is how many bytes stand in front of a body.
func (r *pbcReader) lenBytes() int64 {
	if r.version == 1 {
		return 4
	}
	return 8
}

// next is the next record; io.EOF at the end. After a Corrupt error that is not torn (see isTorn) it goes on with the next record
// that can be found, so a loop may go on until io.EOF; what the error's span holds is lost.
func (r *pbcReader) next(ctx context.Context) (pbcRecord, error) {
	if r.ended || r.pos == r.size {
		return pbcRecord{}, io.EOF
	}
	rec, err := r.record(ctx, r.pos)
	r.index++
	return rec, err
}

func (r *pbcReader) torn(off int64, why string, args ...any) error {
	r.ended = true
	e := fault.Corruptf(r.span(off, r.size-off), r.path(), why, args...)
	e.Cause = errTorn
	return e
}

func (r *pbcReader) record(ctx context.Context, off int64) (pbcRecord, error) {
	head := r.lenBytes()
	if r.size-off < head {
		return pbcRecord{}, r.torn(off, "%d bytes are left of its length", r.size-off)
	}
	h, err := r.bytes(ctx, off, head)
	if err != nil {
		return pbcRecord{}, err
	}
	n := int64(binary.LittleEndian.Uint32(h))
	if r.version == 2 {
		if binary.LittleEndian.Uint64(h) == 0 {
			if all, err := r.zeros(ctx, off); err != nil {
				return pbcRecord{}, err
			} else if all {
				return pbcRecord{}, r.torn(off, "the rest of the file is zeros")
			}
		}
		if stored, want := binary.LittleEndian.Uint32(h[4:]), sum.CRC32C(h[:4]); stored != want && !r.o.noVerify {
			return pbcRecord{}, r.lostLength(ctx, off, stored, want)
		}
	}
	if n > r.size-off-head-4 {
		return pbcRecord{}, r.torn(off, "a body of %d bytes is declared, %d are left", n, max(r.size-off-head-4, 0))
	}
	if n > min(r.o.limits.Metadata, math.MaxInt32) {
		r.ended = true
		return pbcRecord{}, fault.Limitf(r.span(off, head+n+4), r.path(), "a body of %d bytes is more than the limit of %d", n, r.o.limits.Metadata)
	}
	all, err := r.bytes(ctx, off, head+n+4)
	if err != nil {
		return pbcRecord{}, err
	}
	rec := pbcRecord{index: r.index, at: r.span(off, head+n+4), body: r.span(off+head, n), data: all[head : head+n : head+n]}
	r.pos = off + head + n + 4
	r.traceFrame(rec, all)
	summed := rec.data
	if r.version == 1 {
		summed = all[:head+n]
	}
	if stored, want := binary.LittleEndian.Uint32(all[head+n:]), sum.CRC32C(summed); stored != want && !r.o.noVerify {
		r.ended = r.version == 1 // its length may be wrong, too
		return pbcRecord{}, fault.Corruptf(rec.at, r.path()+".checksum", "%#08x is stored, %#08x is right", stored, want)
	}
	return rec, nil
}

// traceFrame tells the parts of a record around its body.
func (r *pbcReader) traceFrame(rec pbcRecord, all []byte) {
	if r.o.trace == nil {
		return
	}
	r.o.trace(region.Node{Depth: r.o.depth, Kind: region.Struct, Name: r.path(), At: rec.at, Inner: -1})
	c := wire.NewCursor(all, rec.at, r.path()).Trace(r.o.trace, r.o.depth+1)
	c.U32("length")
	if r.version == 2 {
		c.U32("length_checksum")
	}
	n := len(rec.data)
	r.o.trace(region.Node{Depth: r.o.depth + 1, Kind: region.Data, Name: "checksum", At: rec.at.Sub(rec.at.Len-4, 4), Inner: -1,
		Value: fmt.Sprint(binary.LittleEndian.Uint32(all[len(all)-4:]))})
	r.o.trace(region.Node{Depth: r.o.depth + 1, Kind: region.Struct, Name: "body", At: rec.body, Inner: -1, Value: fmt.Sprintf("%d bytes", n)})
}

// lostLength searches for the next record behind one whose length is damaged: a length whose checksum fits, with a body whose
// checksum fits.
func (r *pbcReader) lostLength(ctx context.Context, off int64, stored, want uint32) error {
	found := r.size
	for at := off + 1; at+12 <= r.size && r.skip > 0; at++ {
		r.skip--
		h, err := r.bytes(ctx, at, 8)
		if err != nil {
			return err
		}
		if sum.CRC32C(h[:4]) != binary.LittleEndian.Uint32(h[4:]) {
			continue
		}
		n := int64(binary.LittleEndian.Uint32(h))
		if n > r.size-at-12 || n > r.o.limits.Metadata {
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
	r.ended = found == r.size
	e := fault.Corruptf(r.span(off, found-off), r.path()+".length_checksum", "%#08x is stored, %#08x is right", stored, want)
	if r.ended {
		e.Reason += "; no other record follows"
	}
	return e
}

// readPBC reads the one record of a container that has one: an instance, a superblock, consensus metadata. parse gets a cursor
// over it. notes tells of damage that did not keep the record from being read.
func readPBC(ctx context.Context, tree store.Tree, name string, o pbcOptions, path string, parse func(*wire.Cursor)) (notes []error, err error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r, err := openPBC(ctx, src, name, o)
	if r == nil {
		return nil, err
	}
	if err != nil {
		notes = append(notes, err)
	}
	rec, err := r.next(ctx)
	if err == io.EOF {
		e := fault.Corruptf(r.span(r.pos, 0), path, "the file ends before its record")
		e.Cause = errTorn
		return notes, e
	}
	if err != nil {
		return notes, err
	}
	c := r.cursor(rec, path)
	parse(c)
	if c.Err() != nil {
		return notes, c.Err()
	}
	if r.pos < r.size {
		at := r.span(r.pos, r.size-r.pos)
		notes = append(notes, fault.Corruptf(at, path, "%d bytes follow the record", at.Len))
		if o.trace != nil {
			o.trace(region.Node{Depth: o.depth, Kind: region.Gap, Name: "trailing bytes", At: at, Inner: -1})
		}
	}
	return notes, nil
}

// spanOf is the place that an error tells.
func spanOf(err error) fault.Span {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.At
	}
	return fault.Span{}
}
