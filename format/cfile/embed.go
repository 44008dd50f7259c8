package cfile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// What follows is for formats that keep CFiles inside their own files (package kudu): a CFile is then a part of an object, and places
// in errors, and the spans of pages, are those of the object.

// OpenAt opens the column file that is the part at of src.
func OpenAt(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*Reader, error) {
	f, err := openFile(ctx, src, at, o)
	if err != nil {
		return nil, err
	}
	return &Reader{f, f.field(readOptions{scale: -1, typ: -1})}, nil
}

// OpenDeltaAt opens the delta file that is the part at of src.
func OpenDeltaAt(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*DeltaFile, error) {
	f, err := openFile(ctx, src, at, o)
	if err != nil {
		return nil, err
	}
	return newDelta(f)
}

// OpenBloomAt opens the bloom file that is the part at of src.
func OpenBloomAt(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*Bloom, error) {
	f, err := openFile(ctx, src, at, o)
	if err != nil {
		return nil, err
	}
	if err := f.wantBloom(); err != nil {
		return nil, err
	}
	return &Bloom{f}, nil
}

// At is where the file lies.
func (r *Reader) At() fault.Span { return r.f.at }

// FooterAt is where its footer lies: what is wrong with num_values, type or metadata is placed there.
func (r *Reader) FooterAt() fault.Span { return r.f.footSpan() }

// Chunk is the file's pages, from the one that holds rows.From on. Its vectors have the file's Arrow type; of decimals any precision
// and scale will do.
func (r *Reader) Chunk(ctx context.Context, rows vec.Range) (format.Chunk, error) {
	c, err := r.f.newChunk(ctx, rows)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Find is the ordinal of the first value whose encoded key (see AppendKey) is not below key (after: that is above it), Len if there is
// none; exact says that it equals key. Only files with a value index can do that.
func (r *Reader) Find(ctx context.Context, key []byte, after bool) (n int64, exact bool, err error) {
	if !r.f.sorted() {
		return 0, false, fault.Unsupportedf(r.f.footSpan(), "footer.validx_info", "the file has no value index, or its values are not keys")
	}
	l := lookup{f: r.f}
	defer l.close()
	return l.bound(ctx, key, after)
}

// DeltaBlock is a block of a delta file as its index knows it.
type DeltaBlock struct {
	First, Last int64 // its deltas are of these rows, both included; Last is where the next block begins
	At          fault.Span
}

// Blocks are the blocks that may hold deltas of rows, in order. Only the index is read.
func (d *DeltaFile) Blocks(ctx context.Context, rows vec.Range) (out []DeltaBlock, err error) {
	w := d.f.values()
	// A row may go over the border of blocks, so it may begin in the last block whose key is below it.
	if err := w.seek(ctx, appendOrderedVarint(nil, uint64(max(0, rows.From))), true); err != nil {
		return nil, err
	}
	for !w.eof {
		e, err := w.current()
		if err == nil {
			err = w.block(e)
		}
		if err != nil {
			return out, err
		}
		b := DeltaBlock{Last: 1<<32 - 1, At: d.f.span(e.ptr)}
		c := wire.NewCursor(e.key, w.place(), w.path()+".key")
		if b.First = int64(parseOrderedVarint(c, "row")); c.Err() != nil {
			return out, fault.Corruptf(w.place(), w.path()+".key", "%x is not a row and a timestamp", e.key)
		}
		if n := len(out); n > 0 {
			if b.First < out[n-1].First {
				return out, fault.Corruptf(w.place(), w.path()+".key", "row %d, the entry before says %d", b.First, out[n-1].First)
			}
			out[n-1].Last = b.First
		}
		if b.First >= rows.To {
			break
		}
		out = append(out, b)
		if err := w.next(ctx); err != nil {
			return out, err
		}
	}
	if w.eof && len(out) == 0 && d.f.footer.NumValues > 0 && rows.From == 0 {
		return nil, fault.Corruptf(d.f.footSpan(), "footer.num_values", "%d, but the index is empty", d.f.footer.NumValues)
	}
	return out, nil
}

// DeltaDecoder decodes blocks of delta files. It is used by one goroutine.
type DeltaDecoder struct {
	arena   vec.Arena
	vals    *vec.Vector
	changes []DeltaChange
}

// Decode calls f for each delta of the block b, in order; bytes are those at b.At. What f gets is good during the call, except that the
// bytes of values stay good until the next Decode.
func (x *DeltaDecoder) Decode(d *DeltaFile, b DeltaBlock, bytes []byte, f func(Delta) error) error {
	if x.vals == nil {
		var err error
		if x.vals, err = vec.New(Binary.arrow(0, 0), memory.DefaultAllocator); err != nil {
			return err
		}
	}
	x.vals.Reset()
	x.arena.Reset()
	path := fmt.Sprintf("deltas(from row %d)", b.First)
	page := format.Page{Spans: []fault.Span{b.At}, Own: &dataBlock{first: -1, rows: -1}}
	t := format.Task{Page: page, N: -1, Bytes: [][]byte{bytes}, Scratch: &x.arena, Limits: d.f.limits}
	if _, err := d.f.decode(&t, x.vals, nil); err != nil {
		return fault.Locate(err, b.At, true, path)
	}
	offs, text, last := x.vals.Offsets(0), x.vals.StringBytes(), int64(-1)
	for i := range x.vals.Len() {
		c := wire.NewInnerCursor(text[offs[i]:offs[i+1]], b.At, "")
		delta := parseDelta(c, x.changes)
		x.changes = delta.Changes
		switch {
		case c.Err() != nil:
			return fault.Locate(c.Err(), b.At, false, fmt.Sprintf("%s[%d]", path, i))
		case i == 0 && delta.Row != b.First, delta.Row < last, delta.Row > b.Last:
			return fault.Corruptf(b.At, fmt.Sprintf("%s[%d].row", path, i), "%d does not lie between row %d, which comes before, and row %d, which comes after", delta.Row, max(last, b.First), b.Last)
		}
		last = delta.Row
		if err := f(delta); err != nil {
			return fault.Locate(err, b.At, false, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return nil
}

// ParseChanges reads a RowChangeList: what a delta's value holds behind row and timestamp. changes has its memory used again; values are
// part of list. Errors are placed at at, which list was made from.
func ParseChanges(list []byte, at fault.Span, path string, changes []DeltaChange) (DeltaOp, []DeltaChange, error) {
	c := wire.NewInnerCursor(list, at, path)
	op, changes := parseChangeList(c, changes)
	return op, changes, c.Err()
}

// ParseCells reads cells in the form that a RowChangeList has behind its first byte.
func ParseCells(cells []byte, at fault.Span, path string, changes []DeltaChange) ([]DeltaChange, error) {
	c := wire.NewInnerCursor(cells, at, path)
	changes = changes[:0]
	for c.Err() == nil && c.Left() > 0 {
		changes = append(changes, parseChange(c))
	}
	return changes, c.Err()
}

// ParseDeltaStats reads the metadata deltafilestats of a footer that lies at at.
func ParseDeltaStats(b []byte, at fault.Span) (DeltaStats, error) {
	c := wire.NewInnerCursor(b, at, "footer."+metaDeltaStats)
	s := parseDeltaStats(c)
	return s, c.Err()
}

// String is the statistics as Kudu's tools write them, except that the columns are in order: Kudu lists them as its hash table happens
// to have them.
func (s *DeltaStats) String() string {
	var counts []string
	for _, id := range slices.Sorted(maps.Keys(s.Updates)) {
		counts = append(counts, fmt.Sprintf("%d:%d", id, s.Updates[id]))
	}
	return fmt.Sprintf("ts range=[%d, %d], delete_count=[%d], reinsert_count=[%d], update_counts_by_col_id=[%s]",
		s.MinTimestamp, s.MaxTimestamp, s.Deletes, s.Reinserts, strings.Join(counts, ","))
}

// Stored is a literal as a block of a column of type t, whose Arrow type is at, stores it: little-endian, or the bytes of a string; false
// if t has no such value.
func Stored(t Type, at arrow.DataType, v pred.Value) ([]byte, bool) {
	if t.IsBinary() {
		return []byte(v.Text), v.Kind == pred.KindString || v.Kind == pred.KindBytes
	}
	if t == Bool || t == Float || t == Double {
		return nil, false
	}
	key, ok := keyOf(t, at, v)
	if !ok {
		return nil, false
	}
	return fixedKey(key, t), true
}

// Literal is the inverse of Stored: a stored value of a key's type as a literal.
func Literal(t Type, at arrow.DataType, stored []byte) (pred.Value, bool) {
	if !keyable(t) || !t.IsBinary() && len(stored) != t.Width() {
		return pred.Value{}, false
	}
	return valueOf(t, at, stored)
}

// TypeByName is the type whose String is name.
func TypeByName(name string) (Type, bool) {
	t, err := typeByName(name)
	return t, err == nil
}

// EncodingByName is the encoding whose String is name; AutoEncoding if there is none.
func EncodingByName(name string) Encoding {
	for _, e := range []Encoding{Plain, Prefix, GroupVarint, RLE, Dict, BitShuffle} {
		if e.String() == name {
			return e
		}
	}
	return AutoEncoding
}

// CompressionByName is the compression whose String is name; DefaultCompression if there is none.
func CompressionByName(name string) Compression {
	for _, c := range []Compression{NoCompression, Snappy, LZ4, Zlib} {
		if c.String() == name {
			return c
		}
	}
	return DefaultCompression
}
