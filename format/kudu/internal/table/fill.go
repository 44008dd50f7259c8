package table

import (
	"bytes"
	"context"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/vec"
)

// Cells whose page is damaged, in all twins as well, are searched for elsewhere:
//
//   - cells of a compound key's columns, in the ad-hoc index of the same rowset, which has the whole key of each row;
//   - cells of other columns, in other replicas, by key. However its rows are stored, a replica has the same value for
//     a key at the same time, provided that it has all operations of the replica that is read. The row's own changes
//     are then applied to the filled-in cell as well, and lead to the same value.
//
// The keys come from the rowset itself. A row that no other replica has must be deleted at the snapshot; otherwise the
// page stays lost.

// mayFill reports whether cells of a column may be found elsewhere.
func (t *Table) mayFill(s *RowSet, col int) bool {
	c := &t.Stored.Columns[col]
	if c.Array || s.Rows < 0 {
		return false
	}
	if c.Key {
		return t.Stored.NumKeys > 1 && !s.Adhoc.IsNull()
	}
	return len(s.Tablet.Others) > 0 && !t.Opts.NoWAL // without their logs, replicas differ
}

// fill appends the cells [first, first+n) of a column, which it finds elsewhere. If it does not find them, it returns
// why, the error that made filling necessary.
func (t *Table) fill(s *RowSet, col int, first, n int64, dst *vec.Vector, why error) error {
	if !t.mayFill(s, col) || n < 0 || first < 0 || first+n > s.Rows {
		return why
	}
	ctx := context.Background()
	keys, err := t.keysOf(ctx, s, first, n)
	if err != nil {
		return why
	}
	c := &t.Stored.Columns[col]
	var cells [][]byte
	if c.Key {
		cells, err = t.keyCells(keys, col)
	} else {
		cells, err = t.replicaCells(ctx, s, col, first, keys)
	}
	if err != nil || cells == nil {
		return why
	}
	v, err := c.Vector(cells)
	if err != nil {
		return why
	}
	defer v.Release()
	return dst.Append(v, 0, v.Len(), nil)
}

// keyCells extracts the cells of a key column from keys.
func (t *Table) keyCells(keys [][]byte, col int) ([][]byte, error) {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		parts, err := cfile.DecodeKey(k, t.Stored.KeyTypes())
		if err != nil {
			return nil, err
		}
		out[i] = parts[col]
	}
	return out, nil
}

// replicaCells returns the cells of a column for keys, which ascend, from another replica; nil if no replica has them
// all.
func (t *Table) replicaCells(ctx context.Context, s *RowSet, col int, first int64, keys [][]byte) ([][]byte, error) {
	gone, err := t.gone(ctx, s, vec.Range{From: first, To: first + int64(len(keys))})
	if err != nil {
		return nil, err
	}
	c := &t.Stored.Columns[col]
	for _, r := range s.Tablet.Others {
		f, err := t.fallback(ctx, s, r)
		if err != nil || f == nil {
			continue
		}
		found, err := f.cells(ctx, r.ID, c.ID, keys)
		if err != nil {
			continue
		}
		out := make([][]byte, len(keys))
		whole := true
		for i, k := range keys {
			v, ok := found[string(k)]
			switch {
			case ok && (v != nil || c.Nullable):
				out[i] = v
			case gone.Has(i): // its value does not matter
				if out[i] = make([]byte, meta.StoredWidth(c.Type)); c.Nullable {
					out[i] = nil
				}
			default:
				whole = false
			}
		}
		if whole {
			return out, nil
		}
	}
	return nil, nil
}

// gone returns the rows that are deleted at the snapshot.
func (t *Table) gone(ctx context.Context, s *RowSet, rows vec.Range) (*vec.Sel, error) {
	none := vec.None(int(rows.Len()))
	o, err := t.ChangesOf(ctx, s, nil, t.Opts.At)
	if err != nil || o == nil {
		return none, err
	}
	p, err := t.PatchAll(ctx, o, rows)
	if err != nil || p.Drop == nil {
		return none, err
	}
	return p.Drop, nil
}

// fallback opens another replica; nil if its log is damaged, or if it lacks operations before the snapshot that the
// replica being read has, or if sound bytes of the rowset are others there.
func (t *Table) fallback(ctx context.Context, s *RowSet, r Replica) (*fallback, error) {
	tb := s.Tablet
	x := &tb.filler
	x.mu.Lock()
	defer x.mu.Unlock()
	if !r.HasData() || r.State != meta.TabletReady {
		return nil, nil
	}
	if !x.known {
		var err error
		if x.last, err = tb.LastChange(ctx, true); err != nil {
			return nil, err
		}
		x.known, x.open = true, map[*fs.FS]*fallback{}
	}
	f, ok := x.open[r.FS]
	if !ok {
		last, err := r.LastChange(ctx, true)
		if err != nil {
			return nil, err
		}
		other := &Tablet{Replica: r}
		ro := t.Opts
		ro.Partial = true
		f = &fallback{last: last, alike: map[*RowSet]bool{}}
		if f.t, err = New(t.Tree, []*Tablet{other}, format.OpenOptions{Limits: t.Limits, NoVerify: t.NoVerify},
			ro); err != nil {
			return nil, err
		}
		x.open[r.FS] = f
	}
	a, b := x.last, f.last
	same := false
	for i := range s.twins {
		if s.twins[i].FS == r.FS {
			if same = s.twins[i].proof.Holds(); !same {
				return nil, nil
			}
		}
	}
	if a.none && b.none { // both are as they were written, and no operation tells whether that is the same
		alike, known := f.alike[s]
		if !same && !known {
			alike = t.alike(ctx, s, f, r.ID)
			f.alike[s] = alike
		}
		if same || alike {
			return f, nil
		}
		return nil, nil
	}
	if b.holes == 2 || b.holes > a.holes || b.Time == 0 || b.Time < a.Time && b.Time < t.Opts.At {
		return nil, nil
	}
	return f, nil
}

// alike reports whether a replica has the rows of a rowset with the same cells, as far as both can be read.
func (t *Table) alike(ctx context.Context, s *RowSet, f *fallback, id string) bool {
	const step = 1024
	for first := int64(0); first < s.Rows; first += step {
		n := min(step, s.Rows-first)
		keys, err := t.keysOf(ctx, s, first, n)
		if err != nil {
			continue
		}
		for i := t.Stored.NumKeys; i < len(t.Stored.Columns); i++ {
			c := &t.Stored.Columns[i]
			b, ok := s.Block(c.ID)
			if !ok || c.Array {
				continue
			}
			own, err := t.valuesOf(ctx, s, b, first, n)
			if err != nil {
				continue
			}
			theirs, err := f.cells(ctx, id, c.ID, keys)
			for k := 0; err == nil && k < len(keys); k++ {
				v, has := theirs[string(keys[k])]
				if !has || (v == nil) != (own[k] == nil) || !bytes.Equal(v, own[k]) {
					return false
				}
			}
		}
	}
	return true
}

// cells returns, by key, the replica's cells of a column for live rows with keys between the first and the last of
// keys.
func (f *fallback) cells(ctx context.Context, id string, column int32, keys [][]byte) (map[string][]byte, error) {
	t := f.t
	tb := t.byID[id]
	col := t.Stored.Find(column)
	if tb == nil || col < 0 || len(keys) == 0 {
		return nil, fault.Invalidf("the replica has no such column")
	}
	if err := t.Load(ctx, tb); err != nil {
		return nil, err
	}
	if m := tb.logged; m != nil && m.lost {
		return nil, fault.Invalidf("the replica lacks changes")
	}
	if tb.TooOld(t.Opts.At, f.last.Time) != nil {
		return nil, fault.Invalidf("the replica may lack history")
	}
	span := keySpan{low: keys[0], high: append(bytes.Clone(keys[len(keys)-1]), 0)}
	out := map[string][]byte{}
	for _, s := range tb.Sets {
		if span.misses(s.Low, s.High) {
			continue
		}
		if err := f.setCells(ctx, s, col, span, out); err != nil {
			return nil, err
		}
	}
	if m := tb.logged; m != nil && !t.Opts.NoWAL {
		r := m.between(span)
		for i := r.From; i < r.To; i++ {
			out[string(m.keys[i])] = bytes.Clone(meta.CellOf(m.cells[col], int(i), &t.Stored.Columns[col]))
		}
	}
	return out, nil
}

// setCells adds the cells of one rowset to out: see cells.
func (f *fallback) setCells(ctx context.Context, s *RowSet, col int, span keySpan, out map[string][]byte) error {
	t := f.t
	rows, err := t.between(ctx, s, span)
	if err != nil || rows.Len() == 0 {
		return err
	}
	if x, err := t.checkHistory(ctx, s); err != nil {
		return err
	} else if x != nil {
		return fault.Invalidf("%s", x.Message)
	}
	keys, err := t.keysOf(ctx, s, rows.From, rows.Len())
	if err != nil {
		return err
	}
	c := &t.Stored.Columns[col]
	var p *vec.Patch
	o, err := t.ChangesOf(ctx, s, []int{col}, t.Opts.At)
	if err == nil && o != nil {
		p, err = t.PatchAll(ctx, o, rows)
	}
	if err != nil {
		return err
	}
	var base *Values
	if b, ok := s.Block(c.ID); ok {
		r, err := t.OpenBlock(ctx, s, b)
		if err != nil {
			return err
		}
		it, err := r.SeekToOrdinal(ctx, rows.From)
		if err != nil {
			return err
		}
		defer it.Close()
		base = &Values{It: it, At: r.At(), width: r.Footer().Type.Width()}
	}
	next := 0
	for i, k := range keys {
		cell := c.ReadDefault
		if base != nil {
			if cell, err = base.Next(ctx); err != nil {
				return err
			}
			cell = bytes.Clone(cell)
		}
		if p != nil && len(p.Cols) > 0 && next < len(p.Cols[0].Rows) && int(p.Cols[0].Rows[next]) == i {
			cell = bytes.Clone(meta.CellOf(p.Cols[0].Vals, next, c))
			next++
		}
		if p == nil || p.Drop == nil || !p.Drop.Has(i) {
			out[string(k)] = cell
		}
	}
	return nil
}

// filledChunk is a column whose block is missing or cannot be opened; its cells may be found elsewhere.
type filledChunk struct {
	t    *Table
	set  *RowSet
	col  int
	why  error
	rows vec.Range
}

// fillRows is the number of rows of a page of a filledChunk. Cells that are not found elsewhere are lost page by page.
const fillRows = 256

func (x *filledChunk) Next(context.Context) (format.Page, error) {
	x.rows.From = max(x.rows.From, 0)
	end := min(x.rows.To, x.set.Rows)
	if x.rows.From >= end {
		return format.Page{}, io.EOF
	}
	n := min(fillRows, end-x.rows.From)
	p := format.Page{Ordinal: int(x.rows.From), First: x.rows.From, Rows: n, Entries: n}
	x.rows.From += n
	return p, nil
}

func (x *filledChunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (x *filledChunk) Decode(t *format.Task, dst *vec.Vector) error {
	return x.t.fill(x.set, x.col, t.Page.First, t.N, dst, x.why)
}
