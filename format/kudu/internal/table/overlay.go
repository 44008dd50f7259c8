package table

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/vec"
)

// Overlay returns the changes that turn a rowset's base rows into those of the snapshot T, in this order:
//
//	UNDO deltas of T and later: the newest file first; within a row, files have the newest delta first
//	REDO deltas before T: the oldest file first
//	changes before T that only the log has
//
// An update sets cells, a delete makes the row a ghost, a reinsertion makes it live again and sets cells. A file may
// have the same row and time twice; both are applied, in order. Key columns never change.
//
// Damage makes everything suspect that lost changes may have altered: for a damaged block, the rows from its first
// delta to that of the next block; for a damaged index or footer, all rows; for a change in the log whose row is
// unknown, the rows that may have its key. If the file's statistics, or the change itself, rule out deletions and
// reinsertions, only cells of the columns that are set are suspect.
func (t *Table) Overlay(ctx context.Context, g format.RowGroup, cols []int) (format.Overlay, error) {
	_, s, err := t.set(ctx, g)
	if err != nil || s == nil {
		return nil, err
	}
	o, err := t.ChangesOf(ctx, s, cols, t.Opts.At)
	if err != nil || o == nil {
		return nil, err
	}
	return o, nil
}

// ChangesOf returns the overlay of a rowset for the snapshot at a hybrid time and the given columns; nil if nothing
// changes.
func (t *Table) ChangesOf(ctx context.Context, s *RowSet, cols []int, at uint64) (*overlay, error) {
	o := &overlay{t: t, set: s, at: at, cols: cols, slots: map[uint32]int{}, touched: make([]bool, len(cols))}
	for i, c := range cols {
		if !t.Stored.Columns[c].Key {
			o.slots[uint32(t.Stored.Columns[c].ID)] = i
		}
	}
	if s.contradiction != nil {
		if err := o.suspect(wal.EveryRow, nil, s.contradiction); err != nil {
			return nil, err
		}
	}
	if at != Latest {
		for _, b := range s.Undo {
			if err := o.add(ctx, b, true); err != nil {
				return nil, err
			}
		}
	}
	for _, b := range s.Redo {
		if err := o.add(ctx, b, false); err != nil {
			return nil, err
		}
	}
	if err := o.addUnplaced(s.unplaced); err != nil {
		return nil, err
	}
	if err := o.addLogged(s.Changes); err != nil {
		return nil, err
	}
	if len(o.doubts) == 0 && len(o.files) == 0 && len(o.logged) == 0 {
		return nil, nil
	}
	return o, nil
}

// overlay is the changes of one rowset. It is not safe for concurrent use.
type overlay struct {
	t       *Table
	set     *RowSet
	at      uint64
	cols    []int          // physical columns that are read
	slots   map[uint32]int // column id: index into cols
	touched []bool         // by index into cols: cells may change
	drops   bool           // rows may be deleted
	files   []*deltaFile
	logged  []wal.LoggedChange // ascending by row
	doubts  []doubt            // changes known to be lost before any block is read

	state state
}

// doubt is a range of rows whose changes are lost: all changes, or only new values of some columns.
type doubt struct {
	rows  vec.Range
	slots []int // indexes into overlay.cols; nil: rows may also have been deleted
	err   error
}

// deltaFile is a delta file that is read.
type deltaFile struct {
	file   *cfile.DeltaFile
	places []fs.Place // places of the block that is read and of its twins
	undo   bool
	slots  []int // indexes into overlay.cols of columns that its deltas may set; nil: they may also delete or reinsert
	blocks []cfile.DeltaBlock
	dec    cfile.DeltaDecoder
	kept   kept // block decoded last, which the next range of rows may need again
	other  bool // it has rows that its rowset lacks, so it is another rowset's
}

// kept is a decoded block, reduced to the deltas that concern the snapshot and the columns that are read.
type kept struct {
	block   int // index into blocks; -1: none
	changes []change
	cells   []deltaCell
	bytes   []byte
}

// change is a delta: cells[from:to] are set.
type change struct {
	row      int64
	op       cfile.DeltaOp
	from, to int32
}

// deltaCell is a new value: kept.bytes[from:to], for column overlay.cols[slot]; from < 0 is NULL.
type deltaCell struct {
	slot     int32
	from, to int32
}

// add adds a delta file if it may concern the snapshot and the columns.
func (o *overlay) add(ctx context.Context, b meta.BlockRef, undo bool) error {
	d, places, err := o.t.OpenDelta(ctx, o.set, b)
	if err != nil {
		return o.suspect(wal.EveryRow, nil, err)
	}
	if err := o.foreign(ctx, d, places[0].At); err != nil {
		return o.suspect(wal.EveryRow, nil, err)
	}
	stats, _ := d.Stats()
	if !o.concerns(&stats, undo) {
		return nil
	}
	f := &deltaFile{file: d, places: places, undo: undo, slots: []int{}}
	for id := range stats.Updates {
		if i, ok := o.slots[id]; ok {
			f.slots = append(f.slots, i)
		}
	}
	o.drops = o.drops || stats.Deletes > 0
	o.touch(f.slots)
	if stats.Deletes+stats.Reinserts > 0 {
		f.slots = nil
	}
	f.kept.block = -1
	if err = f.list(ctx, o.t); err != nil {
		return o.suspect(wal.EveryRow, f.slots, err)
	}
	if n := len(f.blocks); n > 0 && o.set.Rows >= 0 && f.blocks[n-1].First >= o.set.Rows {
		last := f.blocks[n-1]
		return o.suspect(wal.EveryRow, nil,
			fault.Corruptf(last.At, "row", "%d, but the rowset has %s: the file is another rowset's", last.First,
				fault.Count(o.set.Rows, "row")))
	}
	o.files = append(o.files, f)
	return nil
}

// foreign returns an error if a delta file is another rowset's: the changes in the right file are then unknown, and all
// rows are suspect. Its last rows are checked here only in recovery, because that costs reading a block; otherwise they
// are checked when their block is decoded.
func (o *overlay) foreign(ctx context.Context, d *cfile.DeltaFile, at fault.Span) error {
	why := o.set.otherColumn(d)
	if why == "" && o.t.Recovered != nil {
		var err error
		if why, err = o.set.otherRows(ctx, d); unlessDamaged(err) != nil {
			return err
		}
	}
	if why == "" {
		return nil
	}
	return fault.Corruptf(at, "", "the delta file is another rowset's: %s", why)
}

// touch records that columns may change; nil means all columns.
func (o *overlay) touch(slots []int) {
	if slots == nil {
		for i := range o.touched {
			o.touched[i] = true
		}
	}
	for _, i := range slots {
		o.touched[i] = true
	}
}

// list finds the file's blocks, through the index of a twin if its own is damaged; twins have the same bytes.
func (f *deltaFile) list(ctx context.Context, t *Table) error {
	var err error
	if f.blocks, err = f.file.Blocks(ctx, vec.Range{To: math.MaxInt64}); err == nil || !Damaged(err) {
		return err
	}
	for k, p := range f.places[1:] {
		if !p.Usable() {
			continue
		}
		d, bad := cfile.OpenDeltaAt(ctx, Source{t.Tree, p.At.Object, p.At.End()}, p.At, t.cfileOptions())
		if bad != nil {
			continue
		}
		if blocks, bad := d.Blocks(ctx, vec.Range{To: math.MaxInt64}); bad == nil {
			f.file, f.blocks = d, blocks
			f.places[0], f.places[k+1] = f.places[k+1], f.places[0]
			return nil
		}
	}
	return err
}

// concerns reports whether a file with these statistics has deltas on the snapshot's side of time, that delete
// or reinsert rows or set columns that are read. (The statistics count the columns that a reinsertion sets as
// updates.)
func (o *overlay) concerns(s *cfile.DeltaStats, undo bool) bool {
	if at := o.at; undo && s.MaxTimestamp < at || !undo && s.MinTimestamp >= at {
		return false
	}
	if s.Deletes > 0 || s.Reinserts > 0 {
		return true
	}
	for id := range s.Updates {
		if _, ok := o.slots[id]; ok {
			return true
		}
	}
	return false
}

// suspect records that changes are lost because of err. It returns errors that are not damage.
func (o *overlay) suspect(rows vec.Range, slots []int, err error) error {
	if !Damaged(err) {
		return err
	}
	o.drops = o.drops || slots == nil
	o.touch(slots)
	o.doubts = append(o.doubts, doubt{rows, slots, err})
	return nil
}

// addUnplaced adds doubts for changes of the log whose row is unknown.
func (o *overlay) addUnplaced(unplaced []wal.UnplacedChange) error {
	for _, u := range unplaced {
		slots, any := []int{}, false
		for _, x := range u.Changes {
			if x.Time >= o.at {
				continue
			}
			op, set, err := cfile.ParseChanges(x.List, fault.Span{Object: o.set.Tablet.Object}, "log.change", nil)
			if err != nil {
				return err
			}
			any = any || op != cfile.DeltaUpdate
			for _, c := range set {
				if i, ok := o.slots[c.Column]; ok && !slices.Contains(slots, i) {
					slots = append(slots, i)
				}
			}
		}
		if any {
			slots = nil
		} else if len(slots) == 0 {
			continue
		}
		if err := o.suspect(u.Rows, slots, u.Err); err != nil {
			return err
		}
	}
	o.doubts = merged(o.doubts)
	return nil
}

// merged merges doubts about the same range of rows.
func merged(all []doubt) (out []doubt) {
	for _, d := range all {
		i := slices.IndexFunc(out, func(x doubt) bool { return x.rows == d.rows })
		switch {
		case i < 0:
			out = append(out, d)
		case d.slots == nil:
			out[i].slots = nil
		case out[i].slots != nil:
			for _, k := range d.slots {
				if !slices.Contains(out[i].slots, k) {
					out[i].slots = append(out[i].slots, k)
				}
			}
		}
	}
	return out
}

// addLogged adds the changes of the log before the snapshot.
func (o *overlay) addLogged(changes []wal.LoggedChange) error {
	var cells []cfile.DeltaChange
	for _, x := range changes {
		if x.Time >= o.at {
			continue
		}
		op, set, err := cfile.ParseChanges(x.List, fault.Span{Object: o.set.Tablet.Object}, "log.change", cells)
		if err != nil {
			return err
		}
		cells = set
		o.drops = o.drops || op == cfile.DeltaDelete
		for _, c := range set {
			if i, ok := o.slots[c.Column]; ok {
				o.touched[i] = true
			}
		}
		o.logged = append(o.logged, x)
	}
	return nil
}

// Drops reports whether rows may be deleted.
func (o *overlay) Drops() bool { return o.drops }

// Touches reports whether cells of a column may change. For a column that is not read this is unknown.
func (o *overlay) Touches(col int) bool {
	for i, c := range o.cols {
		if c == col {
			return o.touched[i]
		}
	}
	return !o.t.Stored.Columns[col].Key
}

// needed returns the blocks of f that may have deltas of rows, as indexes [from, to) into f.blocks.
func (f *deltaFile) needed(rows vec.Range) (from, to int) {
	from = sort.Search(len(f.blocks), func(i int) bool { return f.blocks[i].Last >= rows.From })
	to = from + sort.Search(len(f.blocks)-from, func(i int) bool { return f.blocks[from+i].First >= rows.To })
	return from, to
}

// Spans returns the blocks that Patch will decode: the needed ones, except for the first of a file if it is kept.
func (o *overlay) Spans(rows vec.Range) (out []fault.Span) {
	for _, f := range o.files {
		from, to := f.needed(rows)
		for i := from; i < to; i++ {
			if i != from || i != f.kept.block {
				out = append(out, f.blocks[i].At)
			}
		}
	}
	return out
}

// Patch computes the net change of rows. bytes are the bytes of Spans.
func (o *overlay) Patch(_ context.Context, rows vec.Range, bytes [][]byte) (*vec.Patch, error) {
	st := &o.state
	st.reset(rows, len(o.cols))
	doubts := slices.Clone(o.doubts)
	for _, f := range o.files {
		from, to := f.needed(rows)
		for i := from; i < to; i++ {
			if i != from || i != f.kept.block {
				if len(bytes) == 0 {
					return nil, fault.Bugf("kudu: a block of deltas was not fetched")
				}
				err := f.decodeAny(o, i, bytes[0])
				bytes = bytes[1:]
				if err != nil && !Damaged(err) {
					return nil, err
				}
				if err != nil {
					d := doubt{vec.Range{From: f.blocks[i].First, To: f.blocks[i].Last + 1}, f.slots, err}
					if f.other {
						d = doubt{wal.EveryRow, nil, err}
						o.doubts = append(o.doubts, d) // also applies to later rows
					}
					doubts = append(doubts, d)
					continue
				}
			}
			st.applyBlock(&f.kept)
		}
	}
	if err := o.applyLogged(rows); err != nil {
		return nil, err
	}
	p, err := st.patch(o)
	if err != nil {
		return nil, err
	}
	for _, d := range doubts {
		p.Suspect = o.suspects(p.Suspect, d, rows)
	}
	return p, nil
}

// suspects appends the rows and cells, within rows, that d makes suspect.
func (o *overlay) suspects(out []vec.Suspect, d doubt, rows vec.Range) []vec.Suspect {
	part := d.rows.Intersect(rows)
	switch {
	case part.Len() == 0:
	case d.slots == nil:
		out = append(out, vec.Suspect{Rows: part, Col: -1, Err: d.err})
	default:
		for _, i := range d.slots {
			out = append(out, vec.Suspect{Rows: part, Col: o.cols[i], Err: d.err})
		}
	}
	return out
}

// decodeAny decodes block i, or that of a twin if it is damaged.
func (f *deltaFile) decodeAny(o *overlay, i int, bytes []byte) error {
	err := f.decode(o, i, bytes)
	for k := 1; err != nil && Damaged(err) && k < len(f.places); k++ {
		if !f.places[k].Usable() {
			continue
		}
		if b, _, bad := o.t.elsewhere(f.blocks[i].At, f.places[0], f.places[k]); bad == nil &&
			f.decode(o, i, b) == nil {
			return nil
		}
	}
	return err
}

// decode decodes block i into f.kept.
func (f *deltaFile) decode(o *overlay, i int, bytes []byte) error {
	k := &f.kept
	k.block, k.changes, k.cells, k.bytes, f.other = -1, k.changes[:0], k.cells[:0], k.bytes[:0], false
	err := f.dec.Decode(f.file, f.blocks[i], bytes, func(d cfile.Delta) error {
		if d.Row >= o.set.Rows && o.set.Rows >= 0 {
			f.other = true
			return fault.Rel(0, 0, "row", "%d, but the rowset has %s", d.Row, fault.Count(o.set.Rows, "row"))
		}
		if seen := d.Timestamp < o.at; seen == f.undo {
			return nil
		}
		x := change{row: d.Row, op: d.Op, from: int32(len(k.cells))}
		for _, c := range d.Changes {
			slot, ok := o.slots[c.Column]
			if !ok {
				continue // not read, or dropped in the meantime
			}
			at := int32(len(k.bytes))
			if c.Value == nil {
				k.cells = append(k.cells, deltaCell{int32(slot), -1, -1})
				continue
			}
			k.bytes = append(k.bytes, c.Value...)
			k.cells = append(k.cells, deltaCell{int32(slot), at, int32(len(k.bytes))})
		}
		x.to = int32(len(k.cells))
		k.changes = append(k.changes, x)
		return nil
	})
	if err == nil {
		k.block = i
	}
	return err
}

func (o *overlay) applyLogged(rows vec.Range) error {
	from := sort.Search(len(o.logged), func(i int) bool { return o.logged[i].Row >= rows.From })
	var scratch []cfile.DeltaChange
	for _, x := range o.logged[from:] {
		if x.Row >= rows.To {
			break
		}
		op, cells, err := cfile.ParseChanges(x.List, fault.Span{Object: o.set.Tablet.Object}, "log.change", scratch)
		if err != nil {
			return err
		}
		scratch = cells
		o.state.turn(x.Row, op)
		for _, c := range cells {
			if slot, ok := o.slots[c.Column]; ok {
				o.state.setCell(slot, x.Row, c.Value)
			}
		}
	}
	return nil
}

// state accumulates the net change of a range of rows.
type state struct {
	rows vec.Range
	dead []byte // bitmap of deleted rows
	any  bool   // a bit of dead was set
	sets [][]newCell
	held []byte // copies of values, because the next block is decoded into the same memory
}

// newCell is a cell's new value: state.held[from:to]; NULL if from < 0.
type newCell struct {
	row      int32 // from the range's first
	from, to int32
}

func (st *state) reset(rows vec.Range, cols int) {
	st.rows, st.any, st.held = rows, false, st.held[:0]
	n := int(rows.Len()+7) / 8
	st.dead = slices.Grow(st.dead[:0], n)[:n]
	clear(st.dead)
	if st.sets == nil {
		st.sets = make([][]newCell, cols)
	}
	for i := range st.sets {
		st.sets[i] = st.sets[i][:0]
	}
}

// turn marks a row as dead or live, as op states.
func (st *state) turn(row int64, op cfile.DeltaOp) {
	i := row - st.rows.From
	switch op {
	case cfile.DeltaDelete:
		st.dead[i>>3] |= 1 << (i & 7)
		st.any = true
	case cfile.DeltaReinsert:
		st.dead[i>>3] &^= 1 << (i & 7)
	}
}

func (st *state) setCell(slot int, row int64, value []byte) {
	x := newCell{int32(row - st.rows.From), -1, -1}
	if value != nil {
		x.from = int32(len(st.held))
		st.held = append(st.held, value...)
		x.to = int32(len(st.held))
	}
	st.sets[slot] = append(st.sets[slot], x)
}

// applyBlock applies the deltas of a block that lie in the range.
func (st *state) applyBlock(k *kept) {
	from := sort.Search(len(k.changes), func(i int) bool { return k.changes[i].row >= st.rows.From })
	for _, x := range k.changes[from:] {
		if x.row >= st.rows.To {
			break
		}
		st.turn(x.row, x.op)
		for _, c := range k.cells[x.from:x.to] {
			var v []byte
			if c.from >= 0 {
				v = k.bytes[c.from:c.to:c.to]
			}
			st.setCell(int(c.slot), x.row, v)
		}
	}
}

// patch returns the result: the deleted rows, and the last value of each cell that was set.
func (st *state) patch(o *overlay) (*vec.Patch, error) {
	n := int(st.rows.Len())
	p := &vec.Patch{First: st.rows.From, N: n}
	if st.any {
		p.Drop = vec.NewSel(slices.Clone(st.dead), n)
	}
	for slot, set := range st.sets {
		if len(set) == 0 {
			continue
		}
		byRow := func(a, b newCell) int { return cmp.Compare(a.row, b.row) }
		if !slices.IsSortedFunc(set, byRow) {
			slices.SortStableFunc(set, byRow)
		}
		var rows []int32
		var values [][]byte
		for i, x := range set {
			if i+1 < len(set) && set[i+1].row == x.row {
				continue
			}
			var v []byte
			if x.from >= 0 {
				v = st.held[x.from:x.to:x.to]
			}
			rows, values = append(rows, x.row), append(values, v)
		}
		v, err := o.t.Stored.Columns[o.cols[slot]].Vector(values)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: o.set.Tablet.Object}, false, "deltas")
		}
		p.Cols = append(p.Cols, vec.ColPatch{Col: o.cols[slot], Rows: rows, Vals: v})
	}
	return p, nil
}
