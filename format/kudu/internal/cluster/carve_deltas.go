package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/sorted"
)

// A delta file does not name its rowset; only the superblock does. What else tells it:
//
//   - Block numbers ascend with time. A flush or a merging compaction creates the columns of a rowset, its bloom file
//     and its ad-hoc index, then the rowset's UNDO file and its first REDO file, one number after another. A major
//     delta compaction creates columns, then, as they are needed, an UNDO file with the old values of these columns and
//     a REDO file with what else it has read. All other delta files are REDO files, later than their rowset.
//   - The rows: a rowset has at least as many as the last row of its delta file.
//   - The columns and the width of their values.
//   - Time within a row: it ascends in a REDO file, and descends in an UNDO file.
//   - A deleted row is not changed or deleted again, unless it was inserted again.
//
// A file is applied if only one of the rowsets is left, and none that could not be assembled might be its own. Any
// other is reported with the number of its deletions and changes: its deleted rows are in the output.

// looseDeltas is a delta file that no superblock names.
type looseDeltas struct {
	*loose
	stats    cfile.DeltaStats
	last     int64 // the last row that it changes; -1: none
	up, down bool  // some row has changes at ascending, or descending, times
	foreign  bool  // a value has not the width of its column, or a key column is changed
}

// carvedSet is a rowset that was assembled or, if index is negative, blocks with as many rows, some or all of one that
// could not be.
type carvedSet struct {
	index   int // into meta.Tablet.RowSets
	rows    int64
	first   uint64   // lowest block number; 0: numbers are not known
	open    []uint64 // last block number of each run of blocks whose UNDO file is not found
	dead    map[int64]uint64
	revived bool // a REDO file inserts rows again
	apart   bool // the number of some column is not known, so neither is which UNDO file was written with it
}

// undoReach is the distance in block numbers within which an UNDO file may follow the columns that were written with
// it, if other threads of the server created blocks meanwhile.
const undoReach = 64

// attribute assigns the delta files among a server's loose blocks to the rowsets assembled from them, which are the
// tablet's from number from on. It reads each delta file at least once.
func (c *carving) attribute(ctx context.Context, f *fs.FS, found []*loose, sets [][]*loose, from int) error {
	files, err := c.looseDeltas(ctx, f, found)
	if err != nil || len(files) == 0 {
		return err
	}
	byID := map[uint64]*looseDeltas{}
	for _, d := range files {
		if d.seq > 0 {
			byID[d.seq] = d
		}
	}
	kinds := map[uint64]cfile.Kind{}
	for _, x := range found {
		kinds[x.seq] = x.Kind
	}
	var all []*carvedSet
	for i, set := range sets {
		s := &carvedSet{index: from + i, rows: set[0].Rows, dead: map[int64]uint64{},
			apart: slices.ContainsFunc(set, func(x *loose) bool { return x.seq == 0 })}
		for _, run := range runs(set) {
			if err := c.besideRun(ctx, f, s, set, run, kinds, byID); err != nil {
				return err
			}
		}
		all = append(all, s)
	}
	all = append(all, leftSets(found, sets)...)
	return c.byElimination(ctx, f, all, files)
}

// looseDeltas reads the delta files among found.
func (c *carving) looseDeltas(ctx context.Context, f *fs.FS, found []*loose) (out []*looseDeltas, err error) {
	for _, x := range found {
		if x.Kind != cfile.KindDelta || x.Err != nil {
			continue
		}
		d := &looseDeltas{loose: x, last: -1}
		if err := c.survey(ctx, f, d); err != nil {
			if !table.Damaged(err) {
				return nil, err
			}
			x.taken = true
			c.unapplied(d, nil, "it is damaged: "+err.Error())
			continue
		}
		out = append(out, d)
	}
	return out, nil
}

// eachDelta calls yield for each delta of a file.
func eachDelta(ctx context.Context, f *fs.FS, x *loose, yield func(cfile.Delta)) (stats cfile.DeltaStats, err error) {
	d, err := cfile.OpenDeltaAt(ctx, table.NewSource(f.Tree, x.At.Object, x.At.End()), x.At,
		format.OpenOptions{Limits: f.Options.Limits, NoVerify: f.Options.NoVerify})
	if err != nil {
		return stats, err
	}
	stats, _ = d.Stats()
	all, err := d.All(ctx)
	for err == nil {
		var one cfile.Delta
		if one, err = all.Next(ctx); err == nil {
			yield(one)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return stats, err
}

// survey reads a delta file and notes what tells its rowset. The statistics are counted, not taken from the footer.
func (c *carving) survey(ctx context.Context, f *fs.FS, d *looseDeltas) error {
	sc := &c.tablet.Schema
	before := uint64(0)
	n := cfile.DeltaStats{Updates: map[uint32]int64{}}
	stats, err := eachDelta(ctx, f, d.loose, func(x cfile.Delta) {
		if x.Row == d.last {
			d.up, d.down = d.up || x.Timestamp > before, d.down || x.Timestamp < before
		}
		d.last, before = x.Row, x.Timestamp
		switch x.Op {
		case cfile.DeltaDelete:
			n.Deletes++
		case cfile.DeltaReinsert:
			n.Reinserts++
		}
		for _, v := range x.Changes {
			n.Updates[v.Column]++
			if i, ok := sc.ByID[int32(v.Column)]; ok {
				col := &sc.Columns[i]
				d.foreign = d.foreign || col.Key || v.Value == nil && !col.Nullable ||
					v.Value != nil && !col.Array && !col.Type.IsBinary() && len(v.Value) != max(1, col.Type.Width())
			}
		}
	})
	d.stats = stats
	if err != nil {
		return err
	}
	d.foreign = d.foreign || d.up && d.down
	n.MinTimestamp, n.MaxTimestamp = stats.MinTimestamp, stats.MaxTimestamp
	d.stats = n
	return nil
}

// runs returns the blocks of a rowset in runs of consecutive numbers; those without numbers are in none.
func runs(set []*loose) (out [][]*loose) {
	byNumber := slices.Clone(set)
	sorted.By(byNumber, func(a, b *loose) int { return cmp.Compare(a.seq, b.seq) })
	for _, x := range byNumber {
		n := len(out)
		switch {
		case x.seq == 0:
		case n > 0 && x.seq == out[n-1][len(out[n-1])-1].seq+1:
			out[n-1] = append(out[n-1], x)
		default:
			out = append(out, []*loose{x})
		}
	}
	return out
}

// besideRun takes the delta files that were created together with a run of a rowset's columns. With the key, the run is
// that of a flush or of a merging compaction, without it that of a major delta compaction.
func (c *carving) besideRun(ctx context.Context, f *fs.FS, s *carvedSet, set, run []*loose,
	kinds map[uint64]cfile.Kind, byID map[uint64]*looseDeltas) error {
	end := run[len(run)-1].seq
	if s.first == 0 || run[0].seq < s.first {
		s.first = run[0].seq
	}
	whole := slices.Contains(run, set[0])
	after := run[0].seq + uint64(len(set)) // if a major delta compaction has replaced columns of the run
	if k := kinds[after]; whole && after > end && (k == cfile.KindBloom || k == cfile.KindIndex) {
		end = after
	}
	for k := kinds[end+1]; whole && (k == cfile.KindBloom || k == cfile.KindIndex); k = kinds[end+1] {
		end++
	}
	of := map[uint32]bool{}
	for i, x := range set {
		of[uint32(c.tablet.Schema.Columns[i].ID)] = slices.Contains(run, x)
	}
	undone := false
	for at := end + 1; at <= end+2; at++ {
		d := byID[at]
		if d == nil || d.taken || d.foreign || d.last >= s.rows {
			continue
		}
		undo := !undone && !d.up && (whole && at == end+1 || !whole && d.onlyOldValues(of))
		redo := !d.down && (whole && at == end+2 || !whole && d.noneOf(of))
		switch {
		case undo:
			undone, d.taken = true, true
			set := &c.tablet.RowSets[s.index]
			set.Undo = slices.Insert(set.Undo, 0, c.ref(d.loose)) // the newest first
		case redo:
			if err := c.apply(ctx, f, s, d); err != nil {
				return err
			}
		}
	}
	if !undone {
		s.open = append(s.open, end)
	}
	return nil
}

// onlyOldValues reports whether the deltas set nothing but columns of a major delta compaction.
func (d *looseDeltas) onlyOldValues(of map[uint32]bool) bool {
	for id := range d.stats.Updates {
		if !of[id] {
			return false
		}
	}
	return d.stats.Deletes == 0 && d.stats.Reinserts == 0
}

// noneOf reports whether the deltas set no column of a major delta compaction, which would have applied them.
func (d *looseDeltas) noneOf(of map[uint32]bool) bool {
	for id := range d.stats.Updates {
		if of[id] {
			return false
		}
	}
	return true
}

// leftSets returns the rowsets that may be missing: column blocks that are in none, by their number of rows.
func leftSets(found []*loose, sets [][]*loose) (out []*carvedSet) {
	byRows := map[int64]*carvedSet{}
	in := map[*loose]bool{}
	for _, x := range slices.Concat(sets...) {
		in[x] = true
	}
	for _, x := range found {
		if x.Kind != cfile.KindColumn || in[x] || x.Err != nil {
			continue
		}
		s := byRows[x.Rows]
		if s == nil {
			s = &carvedSet{index: -1, rows: x.Rows, first: x.seq}
			byRows[x.Rows], out = s, append(out, s)
		}
		s.first = min(s.first, x.seq)
	}
	return out
}

// byElimination assigns the files that are left to the only rowset that each can belong to. Every deletion that is
// assigned may exclude a rowset for another file.
func (c *carving) byElimination(ctx context.Context, f *fs.FS, all []*carvedSet, files []*looseDeltas) error {
	may := map[*looseDeltas][]*carvedSet{}
	for again := true; again; {
		again = false
		for _, d := range files {
			if d.taken || d.down { // an UNDO file does not concern the latest state
				continue
			}
			sets, err := c.canHave(ctx, f, all, d)
			if err != nil {
				return err
			}
			if may[d] = sets; len(sets) == 1 && c.sure(d, sets[0]) == "" {
				if err := c.apply(ctx, f, sets[0], d); err != nil {
					return err
				}
				again = true
			}
		}
	}
	for _, d := range files {
		if !d.taken && !d.down {
			c.unapplied(d, may[d], c.whyNot(d, may[d]))
		}
	}
	return nil
}

// canHave returns the rowsets that a delta file can be of.
func (c *carving) canHave(ctx context.Context, f *fs.FS, all []*carvedSet, d *looseDeltas) (out []*carvedSet,
	err error) {
	for _, s := range all {
		if d.last < s.rows && (d.seq == 0 || s.first < d.seq) {
			out = append(out, s)
		}
	}
	if d.foreign {
		return nil, nil
	}
	if len(out) < 2 || !slices.ContainsFunc(out, func(s *carvedSet) bool { return len(s.dead) > 0 }) {
		return out, nil
	}
	impossible := map[*carvedSet]bool{}
	_, err = eachDelta(ctx, f, d.loose, func(x cfile.Delta) {
		for _, s := range out {
			if at, ok := s.dead[x.Row]; ok && x.Timestamp > at && x.Op != cfile.DeltaReinsert && !s.revived {
				impossible[s] = true
			}
		}
	})
	return slices.DeleteFunc(out, func(s *carvedSet) bool { return impossible[s] }), err
}

// sure returns why it is not certain that a file is a REDO file of the only rowset that it can be of; "" if it is.
func (c *carving) sure(d *looseDeltas, s *carvedSet) string {
	near := func(end uint64) bool { return d.seq == 0 || d.seq > end && d.seq-end <= undoReach }
	open := s.apart || slices.ContainsFunc(s.open, near)
	updates := len(d.stats.Updates) > 0
	switch {
	case s.index < 0:
		return fmt.Sprintf("it may belong to a rowset of %d rows that could not be assembled", s.rows)
	case updates && !c.ids:
		return "the schema does not give the ids of the columns (stoa.column_id), by which it names them"
	case !d.up && open:
		return fmt.Sprintf("it may be an UNDO file of rowset %d, for which none is known", s.index)
	}
	return ""
}

// whyNot returns why a delta file is not applied.
func (c *carving) whyNot(d *looseDeltas, sets []*carvedSet) string {
	switch len(sets) {
	case 0:
		return "no rowset that was assembled can be its own"
	case 1:
		return c.sure(d, sets[0])
	}
	var names []string
	for _, s := range sets[:min(len(sets), 8)] {
		if s.index < 0 {
			names = append(names, fmt.Sprintf("one of %d rows that could not be assembled", s.rows))
			continue
		}
		names = append(names, fmt.Sprint(s.index))
	}
	if len(sets) > len(names) {
		names = append(names, "…")
	}
	return "it may belong to any of the rowsets " + strings.Join(names, ", ")
}

// apply makes a delta file a REDO file of a rowset.
func (c *carving) apply(ctx context.Context, f *fs.FS, s *carvedSet, d *looseDeltas) error {
	if len(d.stats.Updates) > 0 && !c.ids {
		return nil // byElimination says so
	}
	d.taken = true
	for id := range d.stats.Updates {
		if _, ok := c.tablet.Schema.ByID[int32(id)]; !ok {
			c.tablet.SchemaVersion = 1 // the table has had other columns
		}
	}
	c.redo[s.index] = append(c.redo[s.index], d)
	c.applied.add(d)
	s.revived = s.revived || d.stats.Reinserts > 0
	if d.stats.Deletes == 0 {
		return nil
	}
	_, err := eachDelta(ctx, f, d.loose, func(x cfile.Delta) {
		if x.Op == cfile.DeltaDelete {
			s.dead[x.Row] = x.Timestamp
		}
	})
	return err
}

// finishDeltas gives the rowsets their REDO files, oldest first, and reports them.
func (c *carving) finishDeltas() {
	for i, files := range c.redo {
		sorted.StablyBy(files, func(a, b *looseDeltas) int {
			return cmp.Or(cmp.Compare(a.stats.MinTimestamp, b.stats.MinTimestamp),
				cmp.Compare(a.stats.MaxTimestamp, b.stats.MaxTimestamp), cmp.Compare(a.seq, b.seq))
		})
		for _, d := range files {
			c.tablet.RowSets[i].Redo = append(c.tablet.RowSets[i].Redo, c.ref(d.loose))
		}
	}
	if c.applied.files > 0 {
		c.note("kudu.carve.applied", c.at, "the deltas of %s are applied (%s, %s), each to the rowset that block "+
			"numbers, rows and times tell: no superblock confirms it", fault.Count(c.applied.files, "file"),
			fault.Count(c.applied.deletes, "deletion"), fault.Count(c.applied.cells, "changed cell"))
	}
	if c.dropped.files > 0 {
		c.note("kudu.carve.deltas", c.at, "in all, the deltas of %s are not applied: up to %s may be there again, and "+
			"up to %s may have older values", fault.Count(c.dropped.files, "file"),
			fault.Count(c.dropped.deletes, "deleted row"), fault.Count(c.dropped.cells, "cell"))
	}
}

// deltaCount counts delta files, and what they do.
type deltaCount struct{ files, deletes, cells int64 }

func (n *deltaCount) add(d *looseDeltas) {
	n.files++
	n.deletes += d.stats.Deletes
	for _, k := range d.stats.Updates {
		n.cells += k
	}
}

// unapplied reports a delta file that is not applied, though it can be one of some rowsets.
func (c *carving) unapplied(d *looseDeltas, of []*carvedSet, why string) {
	one := deltaCount{}
	one.add(d)
	if len(of) == 0 || slices.ContainsFunc(of, func(s *carvedSet) bool { return s.index >= 0 }) {
		c.dropped.add(d) // otherwise its rows are not in the output at all
	}
	var columns []string
	for _, id := range slices.Sorted(maps.Keys(d.stats.Updates)) {
		name := c.tablet.Schema.NameOf(int32(id))
		if name = cmp.Or(name, fmt.Sprint(id)); d.stats.Updates[id] > 0 {
			columns = append(columns, name)
		}
	}
	what := fault.Count(one.deletes, "deletion")
	if len(columns) > 0 {
		what += " and " + fault.Count(one.cells, "changed cell") + " of " + strings.Join(columns, ", ")
	}
	c.note("kudu.carve.deltas", d.At, "delta file %d is not applied: %s; %s, from %s to %s", d.ID, why, what,
		table.TimeText(d.stats.MinTimestamp), table.TimeText(d.stats.MaxTimestamp))
}

// counted returns a number with a word, in the plural if need be.
// ref makes a loose block one of the synthetic server's.
func (c *carving) ref(x *loose) meta.BlockRef {
	id := uint64(len(c.dirs.Containers) + 1)
	c.dirs.Blocks[id] = fs.Placed{Off: x.At.Off, Len: x.At.Len, Container: int32(len(c.dirs.Containers))}
	c.dirs.Containers = append(c.dirs.Containers, &fs.Container{Data: x.At.Object})
	return meta.BlockRef{ID: id}
}

// notReplayed reports the logs of lost tablets, which carving does not apply: what of them was flushed is not known.
// Those in done are, and those that cannot be of the table of tb are left out.
func (s *Servers) notReplayed(ctx context.Context, c *carving, tb *meta.Tablet, done map[string]bool) error {
	for _, b := range s.broken {
		if tb != nil && !b.MayBeOf(tb) {
			continue
		}
		for i := 0; i < len(s.All) && !done[b.ID] && s.byID[b.ID] == nil; i++ {
			f := s.All[i]
			t, log, err := logAlone(ctx, f, b.ID)
			if err != nil {
				return err
			}
			if log == nil || log.LastWrite == 0 {
				continue
			}
			more := "what of them had not been flushed is not in the output"
			if log.First.Index == firstIndex && !log.Lost {
				more += "; stoa recover " + c.at.Object + "#" + b.ID + " -o OUT.parquet replays the whole log"
			}
			done[b.ID] = true
			c.note("kudu.carve.log", fault.Span{Object: t.Object}, "the log of tablet %s, operations %s to %s, "+
				"the last change at %s, is not applied: %s", b.ID, log.First, log.Last,
				table.TimeText(log.LastWrite), more)
		}
	}
	return nil
}
