package table

import (
	"bytes"
	"context"
	"io"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/vec"
)

// keyIndex is the file with the encoded keys of a rowset and an index of them: the key column, or, if the key has
// several columns, the ad-hoc index.
type keyIndex struct {
	t      *Table
	set    *RowSet
	block  meta.BlockRef
	places []fs.Place      // of the file and its twins, in other replicas
	open   []*cfile.Reader // of the first places, opened as needed; nil: cannot be opened
	err    error           // why the file cannot be used

	runs []keyRun // all keys, if they had to be read sequentially
	at   int      // the run whose keys are in keys; -1: none
	keys [][]byte
}

// keyRun is a range of rows with the first and the last of their keys.
type keyRun struct {
	rows      vec.Range
	low, high []byte
	err       error // the keys cannot be read
}

// indexOfKeys returns the block of a rowset's keyIndex.
func (t *Table) indexOfKeys(s *RowSet) (b meta.BlockRef) {
	if t.Stored.NumKeys > 1 {
		return s.Adhoc
	}
	b, _ = s.Block(t.Stored.Columns[0].ID)
	return b
}

func (t *Table) keyIndex(ctx context.Context, s *RowSet) *keyIndex {
	b := t.indexOfKeys(s)
	x := &keyIndex{t: t, set: s, block: b, at: -1}
	if b.IsNull() {
		x.err = fault.Corruptf(fault.Span{Object: s.Tablet.Object}, "rowsets.adhoc_index_block",
			"rowset %d has no index of its keys", s.ID)
		return x
	}
	var r *cfile.Reader
	r, x.places, x.err = opened(ctx, t, s, b, t.opener(s, b))
	x.open = append(x.open, r)
	return x
}

// find looks a key up in the file's value index, or in that of a twin if it is damaged. It returns the first row whose
// key is at least key.
func (x *keyIndex) find(ctx context.Context, key []byte) (row int64, exact bool, err error) {
	if x.err != nil {
		return 0, false, x.err
	}
	for k, p := range x.places {
		if k == len(x.open) && !p.Usable() {
			x.open = append(x.open, nil)
		}
		if k == len(x.open) {
			r, bad := x.t.opener(x.set, x.block)(ctx, Source{x.t.Tree, p.At.Object, p.At.End()}, p.At,
				x.t.cfileOptions())
			if bad != nil {
				r = nil
			}
			x.open = append(x.open, r)
		}
		if x.open[k] == nil {
			continue
		}
		n, exact, bad := x.open[k].Find(ctx, key, false)
		if bad == nil || !Damaged(bad) {
			return n, exact, bad
		}
		if err == nil {
			err = bad
		}
	}
	return 0, false, err
}

// search is find, except that it reads all keys sequentially if the value index is damaged. A LostKey in the error has
// the rows that may have the key.
func (x *keyIndex) search(ctx context.Context, key []byte) (row int64, exact bool, err error) {
	if row, exact, err = x.find(ctx, key); err == nil || !Damaged(err) || x.set.Rows < 0 {
		return row, exact, err
	}
	if x.err != nil && x.t.Stored.NumKeys == 1 {
		return 0, false, err // any row may have the key
	}
	if x.runs == nil {
		if err := x.list(ctx); err != nil {
			return 0, false, err
		}
	}
	var lost *wal.LostKey // covers the runs since the last readable one
	for i := range x.runs {
		r := &x.runs[i]
		switch {
		case r.err != nil && lost == nil:
			lost = &wal.LostKey{Rows: r.rows, Why: r.err}
		case r.err != nil:
			lost.Rows.To = r.rows.To
		case bytes.Compare(r.high, key) < 0:
			lost, row = nil, r.rows.To
		case bytes.Compare(r.low, key) <= 0:
			return x.within(ctx, i, key)
		case lost != nil:
			return lost.Rows.From, false, lost
		default:
			return r.rows.From, false, nil
		}
	}
	if lost != nil {
		return lost.Rows.From, false, lost
	}
	return row, false, nil
}

// within finds a key in run i; the key is between the run's first and last key.
func (x *keyIndex) within(ctx context.Context, i int, key []byte) (row int64, exact bool, err error) {
	r := &x.runs[i]
	if x.at != i {
		if x.keys, err = x.t.keysOf(ctx, x.set, r.rows.From, r.rows.Len()); err != nil {
			return 0, false, err
		}
		x.at = i
	}
	for k, have := range x.keys {
		if c := bytes.Compare(have, key); c >= 0 {
			return r.rows.From + int64(k), c == 0, nil
		}
	}
	return r.rows.To, false, nil
}

// list reads all keys, page by page, into runs.
func (x *keyIndex) list(ctx context.Context) error {
	var before []byte
	for _, rows := range x.pages(ctx) {
		keys, err := x.t.keysOf(ctx, x.set, rows.From, rows.Len())
		for _, k := range keys {
			if err == nil && before != nil && bytes.Compare(before, k) >= 0 {
				err = fault.Corruptf(fault.Span{Object: x.set.Tablet.Object}, "",
					"the keys of rows %d to %d of rowset %d do not ascend", rows.From, rows.To, x.set.ID)
			}
			if err == nil {
				before = k
			}
		}
		switch {
		case err == nil:
			x.runs = append(x.runs, keyRun{rows: rows, low: bytes.Clone(keys[0]), high: bytes.Clone(keys[len(keys)-1])})
		case Damaged(err):
			x.runs = append(x.runs, keyRun{rows: rows, err: err})
		default:
			return err
		}
	}
	return nil
}

// stride is the number of keys that are read together if no index tells which rows share a page.
const stride = 256

// pages returns the row ranges of the file's pages, from the first intact positional index, or else ranges of stride
// rows.
func (x *keyIndex) pages(ctx context.Context) (out []vec.Range) {
	all := vec.Range{To: x.set.Rows}
	for _, r := range x.open {
		if r == nil {
			continue
		}
		out = out[:0]
		c, err := r.Chunk(ctx, all)
		for at := int64(0); err == nil; {
			p, bad := c.Next(ctx)
			switch {
			case bad == io.EOF && at == all.To:
				return out
			case bad != nil || p.Lost != nil || p.First != at || p.Rows <= 0 || p.First+p.Rows > all.To:
				err = io.ErrUnexpectedEOF
			default:
				at += p.Rows
				out = append(out, vec.Range{From: p.First, To: at})
			}
		}
	}
	out = nil
	for at := int64(0); at < all.To; at += stride {
		out = append(out, vec.Range{From: at, To: min(at+stride, all.To)})
	}
	return out
}

// keysOf returns the encoded keys of the rows [first, first+n), from the index or, if that is damaged, from the key
// columns.
func (t *Table) keysOf(ctx context.Context, s *RowSet, first, n int64) (out [][]byte, err error) {
	if b := t.indexOfKeys(s); b.IsNull() {
		err = fault.Corruptf(fault.Span{Object: s.Tablet.Object}, "rowsets.adhoc_index_block",
			"rowset %d has no index of its keys", s.ID)
	} else if out, err = t.valuesOf(ctx, s, b, first, n); err == nil && t.Stored.NumKeys == 1 {
		return t.encodeKeys([][][]byte{out})
	}
	if err == nil || !Damaged(err) || t.Stored.NumKeys == 1 {
		return out, err
	}
	cells := make([][][]byte, t.Stored.NumKeys)
	for i := range cells {
		b, ok := s.Block(t.Stored.Columns[i].ID)
		if !ok {
			return nil, err
		}
		var bad error
		if cells[i], bad = t.valuesOf(ctx, s, b, first, n); bad != nil {
			if !Damaged(bad) {
				err = bad
			}
			return nil, err
		}
	}
	return t.encodeKeys(cells)
}

// encodeKeys encodes keys from cells by column and row.
func (t *Table) encodeKeys(cells [][][]byte) ([][]byte, error) {
	out := make([][]byte, len(cells[0]))
	var err error
	for i := range out {
		for c := range cells {
			if out[i], err = cfile.AppendKey(out[i], t.Stored.Columns[c].Type, cells[c][i],
				c == len(cells)-1); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// valuesOf returns the values [first, first+n) of a block, from the first place where they can be read.
func (t *Table) valuesOf(ctx context.Context, s *RowSet, b meta.BlockRef, first, n int64) ([][]byte, error) {
	places, err := t.places(ctx, s, b)
	for _, p := range places {
		if !p.Usable() {
			continue
		}
		out, bad := t.valuesAt(ctx, s, b, p, first, n)
		if bad == nil || !Damaged(bad) {
			return out, bad
		}
		if err == nil {
			err = bad
		}
	}
	return nil, err
}

func (t *Table) valuesAt(ctx context.Context, s *RowSet, b meta.BlockRef, p fs.Place, first, n int64) ([][]byte,
	error) {
	r, err := t.opener(s, b)(ctx, Source{t.Tree, p.At.Object, p.At.End()}, p.At, t.cfileOptions())
	if err != nil {
		return nil, named(err, p)
	}
	if first+n > r.Len() {
		return nil, fault.Corruptf(r.FooterAt(), "footer.num_values", "expected %d, found %d", first+n, r.Len())
	}
	it, err := r.SeekToOrdinal(ctx, first)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	x := Values{It: it, At: r.At(), width: r.Footer().Type.Width()}
	out := make([][]byte, n)
	for i := range out {
		v, err := x.Next(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = bytes.Clone(v)
	}
	return out, nil
}
