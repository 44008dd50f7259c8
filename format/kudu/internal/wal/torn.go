package wal

import (
	"context"
	"encoding/binary"

	"stoa/format"
)

// Torn is what is left of a batch within which a log ends. All entries of a batch are of one type, and a COMMIT is a
// batch of its own.
type Torn struct {
	Commit bool  // of an operation that is in the log before it, and nothing follows
	To     int64 // index of the last operation that may have been there; 0: only More is known
	More   int64 // how many operations there may have been
}

// The sizes of the smallest REPLICATE entry (its type, its id and its time) and of the smallest batch, in bytes.
const minReplicate, minBatch = 23, 32

// torn reads as much of the batch at off as is there.
func (r *Reader) torn(ctx context.Context, off int64) (x Torn, err error) {
	n := r.headSize()
	used, err := r.used(ctx, off)
	if err != nil {
		return x, err
	}
	unknown := Torn{More: 1 + (used-off)/minBatch}
	if used-off <= n {
		return unknown, nil
	}
	head, err := r.bytes(ctx, off, n)
	if err != nil {
		return x, err
	}
	h, ok := r.plausible(head)
	if !ok || h.stored > r.o.Limits.Page || h.raw > r.o.Limits.Page {
		return unknown, nil
	}
	end := off + n + h.stored
	more := max(0, used-end+minBatch-1) / minBatch
	b := make([]byte, min(end, r.end)-off-n)
	if err := format.ReadFull(ctx, r.src, r.span(off+n, int64(len(b))), "segment", b); err != nil {
		return x, err
	}
	switch r.Codec.Name {
	case "none":
	case "lz4":
		b = beginningOf(b, int(h.raw))
	default:
		b = nil
	}
	if x, ok = tornEntries(b, h.raw); !ok {
		return Torn{More: max(1, h.raw/minReplicate) + more}, nil
	}
	if x.Commit && more > 0 {
		return Torn{More: more}, nil
	}
	x.To += more
	return x, nil
}

// tornEntries parses the first bytes, b, of a LogEntryBatchPB of size bytes: its type, and the index of its first
// operation. What is not there may be many small operations.
func tornEntries(b []byte, size int64) (x Torn, ok bool) {
	p := prefix{b}
	if _, ok = p.field(1, lengthDelimited); !ok { // entry
		return x, false
	}
	if kind, ok := p.field(1, varint); !ok || kind == 2 {
		return Torn{Commit: true}, ok && p.begins(3, lengthDelimited)
	}
	for _, f := range [][2]uint64{{2, lengthDelimited}, {1, lengthDelimited}, {1, varint}} { // replicate, id, term
		if _, ok = p.field(f[0], f[1]); !ok {
			return x, false
		}
	}
	first, ok := p.field(2, varint)
	x.To = int64(first)
	for at := int64(0); ok && at < size; x.To++ {
		q := prefix{b[min(at, int64(len(b))):]}
		left := len(q.b)
		n, known := q.field(1, lengthDelimited)
		if !known || int64(n) > size-at {
			x.To += max(1, (size-at)/minReplicate)
			break
		}
		at += int64(left-len(q.b)) + int64(n)
	}
	x.To--
	return x, ok && x.To > 0
}

// Wire types of protobuf.
const varint, lengthDelimited = 0, 2

// prefix reads the beginning of a message.
type prefix struct{ b []byte }

// begins reports whether the next field is this one, and skips its tag.
func (p *prefix) begins(field, wire uint64) bool {
	if len(p.b) == 0 || uint64(p.b[0]) != field<<3|wire {
		return false
	}
	p.b = p.b[1:]
	return true
}

// field returns the varint that follows the tag of this field: its value, or the length of the message in it.
func (p *prefix) field(field, wire uint64) (v uint64, ok bool) {
	if !p.begins(field, wire) {
		return 0, false
	}
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		return 0, false
	}
	p.b = p.b[n:]
	return v, true
}

// beginningOf decodes an LZ4 block as far as its bytes are there, up to size bytes.
func beginningOf(b []byte, size int) (out []byte) {
	length := func(n int) (int, bool) {
		if n < 15 {
			return n, true
		}
		for len(b) > 0 {
			x := int(b[0])
			b = b[1:]
			if n += x; x < 255 {
				return n, true
			}
		}
		return 0, false
	}
	for len(b) > 0 && len(out) < size {
		token := int(b[0])
		b = b[1:]
		n, ok := length(token >> 4)
		if !ok {
			return out
		}
		out = append(out, b[:min(n, len(b), size-len(out))]...)
		if n+2 > len(b) {
			return out
		}
		from := len(out) - int(binary.LittleEndian.Uint16(b[n:]))
		b = b[n+2:]
		if n, ok = length(token & 15); !ok || from < 0 || from == len(out) {
			return out
		}
		for range min(n+4, size-len(out)) { // the bytes may overlap
			out = append(out, out[from])
			from++
		}
	}
	return out
}
