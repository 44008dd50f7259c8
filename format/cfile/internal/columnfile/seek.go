package columnfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/pred"
	"stoa/vec"
)

// Lookup finds values by the value index. It is not safe for concurrent use.
type Lookup struct {
	F    *File
	dict *vec.Vector
	key  []byte

	// The block decoded last is kept because the two ends of a range are often in the same block.
	last  block.BlockPtr
	have  *vec.Vector
	first int64
}

// Close releases the block decoded last. Blocks returned before it stay valid.
func (l *Lookup) Close() {
	if l.have != nil {
		l.have.Release()
		l.have = nil
	}
}

// seekPool is the memory of blocks that lookups decode.
var seekPool = vec.NewPool(4 << 20)

// Arenas are for calls that decode a single block.
var Arenas = sync.Pool{New: func() any { return new(vec.Arena) }}

// block decodes the data block at p. first is the ordinal of its first row.
func (l *Lookup) block(ctx context.Context, p block.BlockPtr, path string) (v *vec.Vector, first int64, err error) {
	if l.F.Footer.Encoding == block.Dict && l.F.Footer.Dict != nil && l.dict == nil {
		if l.dict, err = l.F.ReadDict(ctx); err != nil {
			return nil, 0, err
		}
	}
	if l.have != nil && p == l.last {
		return l.have, l.first, nil
	}
	b := &DataBlock{Ptr: p, First: -1, Rows: -1}
	v, lay, err := l.F.readData(ctx, b, l.dict, path)
	if err != nil {
		return nil, 0, err
	}
	l.last, l.have, l.first = p, v, int64(lay.Values.Ordinal)
	return v, l.first, nil
}

// ReadDict decodes the dictionary, which the footer must name.
func (f *File) ReadDict(ctx context.Context) (*vec.Vector, error) {
	if reason := f.Problem(*f.Footer.Dict); reason != "" {
		return nil, fault.Corruptf(f.FootSpan(), "footer.dict_block_ptr", "%s", reason)
	}
	v, _, err := f.readData(ctx, &DataBlock{Ptr: *f.Footer.Dict, Rows: -1, First: -1}, nil, "dictionary")
	return v, err
}

// readData reads and decodes a data block, or the dictionary if path is "dictionary".
func (f *File) readData(ctx context.Context, b *DataBlock, dict *vec.Vector, path string) (*vec.Vector,
	block.Layout, error) {
	at := f.Span(b.Ptr)
	if err := f.CheckSize(at, path); err != nil {
		return nil, block.Layout{}, err
	}
	t := f.Footer.Type.Arrow(0, 0)
	page := format.Page{Spans: []fault.Span{at}, Own: b}
	if path == "dictionary" {
		page.Own = dictPage{}
	} else if f.Footer.Array() {
		t = arrow.ListOf(t)
	}
	v, err := vec.New(t, seekPool)
	if err != nil {
		return nil, block.Layout{}, err
	}
	a := Arenas.Get().(*vec.Arena)
	defer Arenas.Put(a)
	a.Reset()
	stored := a.Bytes(int(b.Ptr.Size))
	if err := format.ReadFull(ctx, f.Src, at, path, stored); err != nil {
		return nil, block.Layout{}, err
	}
	task := format.Task{Page: page, N: -1, Bytes: [][]byte{stored}, Dict: dict, Scratch: a, Limits: f.Limits}
	lay, err := f.Decode(&task, v, nil)
	if err != nil {
		return nil, block.Layout{}, fault.Locate(err, at, true, path)
	}
	return v, lay, v.Plain()
}

// Bound returns the ordinal of the first value that is at least key, or greater than key if after is true; the number
// of values if there is none. exact reports whether that value equals key. The file must be Sorted.
func (l *Lookup) Bound(ctx context.Context, key []byte, after bool) (n int64, exact bool, err error) {
	w := l.F.Values()
	// A separator is at most the first value of its block, and equal values may span blocks. So the first value that is
	// at least key may be in the last block whose separator is less than key, but in no block before that.
	if err := w.seek(ctx, key, !after); err != nil {
		return 0, false, err
	}
	for !w.Eof {
		e, err := w.Current()
		if err == nil {
			err = w.Block(e)
		}
		if err != nil {
			return 0, false, err
		}
		v, first, err := l.block(ctx, e.Ptr, w.Path())
		if err != nil {
			return 0, false, err
		}
		i := l.search(v, key, after)
		if err := l.checkUnproven(ctx, w, e, v, i, first, key, after); err != nil {
			return 0, false, err
		}
		if i < v.Len() {
			return first + int64(i), bytes.Equal(l.Encode(v, i), key), nil
		}
		n = first + int64(v.Len())
		if err := w.Next(ctx); err != nil {
			return 0, false, err
		}
	}
	return n, false, nil
}

// checkUnproven checks, in files without checksums, that the index led to the right block and that the values of the
// block are intact: they must ascend, and the adjacent value in the next or previous block must lie on the other side
// of key.
func (l *Lookup) checkUnproven(ctx context.Context, w *Walker, e block.IndexEntry, v *vec.Vector, i int, first int64,
	key []byte, after bool) error {
	if l.F.Footer.Checksums() && !l.F.NoVerify {
		return nil
	}
	last, err := l.checkAscending(v, l.F.Span(e.Ptr), w.Path())
	if err != nil {
		return err
	}
	end := first + int64(v.Len())
	if i == v.Len() && l.F.Footer.PosIdx != nil && end < l.F.Footer.NumValues {
		return l.checkAdjacent(ctx, end, last, key, false, after)
	}
	if i == 0 && first > 0 && l.F.Footer.PosIdx != nil {
		return l.checkAdjacent(ctx, first-1, bytes.Clone(l.Encode(v, 0)), key, true, after)
	}
	return nil
}

// checkAscending checks that the values of a block ascend, and returns the last.
func (l *Lookup) checkAscending(v *vec.Vector, at fault.Span, path string) ([]byte, error) {
	var before []byte
	for i := range v.Len() {
		x := l.Encode(v, i)
		if i > 0 && bytes.Compare(x, before) < 0 {
			return nil, fault.Corruptf(at, fmt.Sprintf("%s/value[%d]", path, i),
				"less than the value before, in a sorted file")
		}
		before = append(before[:0], x...)
	}
	return before, nil
}

// checkAdjacent reads the value of row n through the positional index and checks it. Row n is in the block after the
// one that the value index led to or, if below is true, in the block before it. near is the value of that block next to
// row n.
func (l *Lookup) checkAdjacent(ctx context.Context, n int64, near, key []byte, below, after bool) error {
	w := l.F.Positions()
	if err := w.seek(ctx, block.PositionKey(n), false); err != nil {
		return err
	}
	e, err := w.Current()
	if err != nil {
		return err
	}
	v, first, err := l.block(ctx, e.Ptr, w.Path())
	if err != nil {
		return err
	}
	at := l.F.Span(e.Ptr)
	if n < first || n >= first+int64(v.Len()) {
		return fault.Corruptf(at, w.Path(), "expected row %d by the index, found rows %d to %d", n, first,
			first+int64(v.Len()))
	}
	if _, err := l.checkAscending(v, at, w.Path()); err != nil {
		return err
	}
	x := l.Encode(v, int(n-first))
	order := bytes.Compare(x, near)
	if below {
		order = -order
	}
	side := bytes.Compare(x, key)
	if order < 0 || below && (side > 0 || side == 0 && !after) {
		return fault.Corruptf(at, w.Path(), "the value of row %d contradicts the value index", n)
	}
	return nil
}

// search returns the index of the first entry of v that is at least key, or greater than key if after is true.
func (l *Lookup) search(v *vec.Vector, key []byte, after bool) int {
	return sort.Search(v.Len(), func(i int) bool {
		d := bytes.Compare(l.Encode(v, i), key)
		return d > 0 || d == 0 && !after
	})
}

// Encode returns the encoded key of entry i, valid until the next call.
func (l *Lookup) Encode(v *vec.Vector, i int) []byte {
	t := l.F.Footer.Type
	if t.IsBinary() {
		o := v.Offsets(i)
		return v.StringBytes()[o[0]:o[1]]
	}
	stored := v.Data(i)[:t.Width()]
	if u, ok := block.OtherUnit(v.Type); ok && t == block.UnixtimeMicros {
		x := block.StoredMicros(int64(binary.LittleEndian.Uint64(stored)), u)
		l.key = block.AppendFixedKey(l.key[:0], t, binary.LittleEndian.AppendUint64(nil, uint64(x)))
		return l.key
	}
	l.key = block.AppendFixedKey(l.key[:0], t, stored)
	return l.key
}

// RowsBetween returns the rows whose value is between low and high, which are values of the Arrow type at; nil means no
// limit. lowIn and highIn state whether the limit itself is included. A limit that the stored type cannot represent
// restricts nothing.
func (f *File) RowsBetween(ctx context.Context, at arrow.DataType, low, high *pred.Value, lowIn,
	highIn bool) (vec.Range, error) {
	r := vec.Range{From: 0, To: f.Footer.NumValues}
	for _, v := range []*pred.Value{low, high} {
		if v != nil && v.Kind == pred.KindNull {
			return vec.Range{}, nil
		}
	}
	l := Lookup{F: f}
	defer l.Close()
	if low != nil {
		if key, ok := block.KeyOf(f.Footer.Type, at, *low); ok {
			n, _, err := l.Bound(ctx, key, !lowIn)
			if err != nil {
				return r, err
			}
			r.From = n
		}
	}
	if high != nil {
		if key, ok := block.KeyOf(f.Footer.Type, at, *high); ok {
			n, _, err := l.Bound(ctx, key, highIn)
			if err != nil {
				return r, err
			}
			r.To = n
		}
	}
	return vec.Range{From: min(r.From, r.To), To: min(r.To, f.Footer.NumValues)}, nil
}

// IsDamage reports whether err is of class Corrupt.
func IsDamage(err error) bool { return errors.Is(err, fault.Corrupt) }
