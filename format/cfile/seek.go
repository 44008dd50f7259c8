package cfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// lookup reads single blocks, for seeking. It is used by one goroutine.
type lookup struct {
	f    *file
	dict *vec.Vector
	key  []byte

	// The block decoded last: the two ends of a range often lie in one.
	last  blockPtr
	have  *vec.Vector
	first int64
}

// close gives the block decoded last back. Who looked at one before it may still do so.
func (l *lookup) close() {
	if l.have != nil {
		l.have.Release()
		l.have = nil
	}
}

// seekPool is the memory of blocks that look-ups decode.
var seekPool = vec.NewPool(4 << 20)

// arenas are for calls that decode a single block.
var arenas = sync.Pool{New: func() any { return new(vec.Arena) }}

// block decodes the data block at p. first is the ordinal that it gives itself.
func (l *lookup) block(ctx context.Context, p blockPtr, path string) (v *vec.Vector, first int64, err error) {
	if l.f.footer.Encoding == Dict && l.f.footer.Dict != nil && l.dict == nil {
		if l.dict, err = l.f.readDict(ctx); err != nil {
			return nil, 0, err
		}
	}
	if l.have != nil && p == l.last {
		return l.have, l.first, nil
	}
	b := &dataBlock{ptr: p, first: -1, rows: -1}
	v, lay, err := l.f.readData(ctx, b, l.dict, path)
	if err != nil {
		return nil, 0, err
	}
	l.last, l.have, l.first = p, v, int64(lay.values.ordinal)
	return v, l.first, nil
}

// readDict decodes the dictionary.
func (f *file) readDict(ctx context.Context) (*vec.Vector, error) {
	if reason := f.bad(*f.footer.Dict); reason != "" {
		return nil, fault.Corruptf(f.footSpan(), "footer.dict_block_ptr", "%s", reason)
	}
	v, _, err := f.readData(ctx, &dataBlock{ptr: *f.footer.Dict, rows: -1, first: -1}, nil, "dictionary")
	return v, err
}

// readData decodes a block by itself: the dictionary, if path says so.
func (f *file) readData(ctx context.Context, b *dataBlock, dict *vec.Vector, path string) (*vec.Vector, layout, error) {
	at := f.span(b.ptr)
	if err := f.fit(at, path); err != nil {
		return nil, layout{}, err
	}
	t := f.footer.Type.arrow(0, 0)
	page := format.Page{Spans: []fault.Span{at}, Own: b}
	if path == "dictionary" {
		page.Own = dictPage{}
	} else if f.footer.Array() {
		t = arrow.ListOf(t)
	}
	v, err := vec.New(t, seekPool)
	if err != nil {
		return nil, layout{}, err
	}
	a := arenas.Get().(*vec.Arena)
	defer arenas.Put(a)
	a.Reset()
	stored := a.Bytes(int(b.ptr.size))
	if err := format.ReadFull(ctx, f.src, at, path, stored); err != nil {
		return nil, layout{}, err
	}
	task := format.Task{Page: page, N: -1, Bytes: [][]byte{stored}, Dict: dict, Scratch: a, Limits: f.limits}
	lay, err := f.decode(&task, v, nil)
	if err != nil {
		return nil, layout{}, fault.Locate(err, at, true, path)
	}
	return v, lay, v.Plain()
}

// bound is the ordinal of the first value that is not below key (after: that is above key), and whether it equals key.
// Files with a value index only.
func (l *lookup) bound(ctx context.Context, key []byte, after bool) (n int64, exact bool, err error) {
	w := l.f.values()
	// Separators are not above the first value of their block. Equal values may go over the border of blocks; so the first value
	// not below key may lie in the last block whose separator is below it, and in no block before.
	if err := w.seek(ctx, key, !after); err != nil {
		return 0, false, err
	}
	for !w.eof {
		e, err := w.current()
		if err == nil {
			err = w.block(e)
		}
		if err != nil {
			return 0, false, err
		}
		v, first, err := l.block(ctx, e.ptr, w.path())
		if err != nil {
			return 0, false, err
		}
		i := l.search(v, key, after)
		if err := l.doubt(ctx, w, e, v, i, first, key, after); err != nil {
			return 0, false, err
		}
		if i < v.Len() {
			return first + int64(i), bytes.Equal(l.encode(v, i), key), nil
		}
		n = first + int64(v.Len())
		if err := w.next(ctx); err != nil {
			return 0, false, err
		}
	}
	return n, false, nil
}

// doubt looks for signs that the index led to the wrong block, or that the block's values are damaged, in files that have no
// checksums to tell: values that do not rise, and a value on the wrong side of the border to the block before.
func (l *lookup) doubt(ctx context.Context, w *walker, e indexEntry, v *vec.Vector, i int, first int64, key []byte, after bool) error {
	if l.f.footer.Checksums() && !l.f.noVerify {
		return nil
	}
	last, err := l.rising(v, l.f.span(e.ptr), w.path())
	if err != nil {
		return err
	}
	end := first + int64(v.Len())
	if i == v.Len() && l.f.footer.PosIdx != nil && end < l.f.footer.NumValues {
		return l.border(ctx, end, last, key, false, after)
	}
	if i == 0 && first > 0 && l.f.footer.PosIdx != nil {
		return l.border(ctx, first-1, l.copyOf(v, 0), key, true, after)
	}
	return nil
}

// rising checks that the values of a block rise, and returns the last.
func (l *lookup) rising(v *vec.Vector, at fault.Span, path string) ([]byte, error) {
	var before []byte
	for i := range v.Len() {
		x := l.encode(v, i)
		if i > 0 && bytes.Compare(x, before) < 0 {
			return nil, fault.Corruptf(at, fmt.Sprintf("%s/value[%d]", path, i), "is less than the value before, in a file that is sorted")
		}
		before = append(before[:0], x...)
	}
	return before, nil
}

func (l *lookup) copyOf(v *vec.Vector, i int) []byte { return bytes.Clone(l.encode(v, i)) }

// border checks, by the positional index, the value of row n, which lies in the next block (or the one before) of the one
// that the value index led to. near is the value on this side of the border.
func (l *lookup) border(ctx context.Context, n int64, near, key []byte, below, after bool) error {
	w := l.f.positions()
	if err := w.seek(ctx, positionKey(n), false); err != nil {
		return err
	}
	e, err := w.current()
	if err != nil {
		return err
	}
	v, first, err := l.block(ctx, e.ptr, w.path())
	if err != nil {
		return err
	}
	at := l.f.span(e.ptr)
	if n < first || n >= first+int64(v.Len()) {
		return fault.Corruptf(at, w.path(), "does not hold row %d", n)
	}
	if _, err := l.rising(v, at, w.path()); err != nil {
		return err
	}
	x := l.encode(v, int(n-first))
	order := bytes.Compare(x, near)
	if below {
		order = -order
	}
	side := bytes.Compare(x, key)
	if order < 0 || below && (side > 0 || side == 0 && !after) {
		return fault.Corruptf(at, w.path(), "row %d is not where the value index says", n)
	}
	return nil
}

// search finds the first entry of v that is not below key (after: that is above key).
func (l *lookup) search(v *vec.Vector, key []byte, after bool) int {
	return sort.Search(v.Len(), func(i int) bool {
		d := bytes.Compare(l.encode(v, i), key)
		return d > 0 || d == 0 && !after
	})
}

// encode is the key of entry i.
func (l *lookup) encode(v *vec.Vector, i int) []byte {
	t := l.f.footer.Type
	if t.IsBinary() {
		o := v.Offsets(i)
		return v.StringBytes()[o[0]:o[1]]
	}
	l.key = appendFixedKey(l.key[:0], t, v.Data(i)[:t.Width()])
	return l.key
}

// Narrow uses the value index of a sorted column. Damage that it meets there narrows nothing: the values themselves decide.
func (t *table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{{From: 0, To: t.rows}}
	if t.rows == 0 {
		return nil, nil
	}
	for i, f := range t.files {
		if !f.sorted() || f.found != nil || e == nil {
			continue
		}
		field := t.sc.Field(i)
		low, high, lowIn, highIn := e.KeyRange(pred.JoinPath(field.Name))
		r, err := f.rowsBetween(ctx, field.Type, low, high, lowIn, highIn)
		if err != nil {
			if ctx.Err() != nil || !isDamage(err) {
				return nil, err
			}
			continue
		}
		if r.Len() < t.rows {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "value index"})
		}
		all = all.Intersect(vec.Ranges{}.Add(r))
	}
	return all, nil
}

// rowsBetween are the rows whose value lies between two limits, each of which may be nil.
func (f *file) rowsBetween(ctx context.Context, at arrow.DataType, low, high *pred.Value, lowIn, highIn bool) (vec.Range, error) {
	r := vec.Range{From: 0, To: f.footer.NumValues}
	for _, v := range []*pred.Value{low, high} {
		if v != nil && v.Kind == pred.KindNull {
			return vec.Range{}, nil
		}
	}
	l := lookup{f: f}
	defer l.close()
	if low != nil {
		if key, ok := keyOf(f.footer.Type, at, *low); ok {
			n, _, err := l.bound(ctx, key, !lowIn)
			if err != nil {
				return r, err
			}
			r.From = n
		}
	}
	if high != nil {
		if key, ok := keyOf(f.footer.Type, at, *high); ok {
			n, _, err := l.bound(ctx, key, highIn)
			if err != nil {
				return r, err
			}
			r.To = n
		}
	}
	return vec.Range{From: min(r.From, r.To), To: min(r.To, f.footer.NumValues)}, nil
}

// isDamage reports whether err says that the file is damaged.
func isDamage(err error) bool { return errors.Is(err, fault.Corrupt) }
