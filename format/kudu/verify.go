package kudu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// verify reads everything (see format.Depth for less) and tells what is wrong: the directories' own files; of each tablet its place in the table; every block, as
// package cfile verifies it; and whether the blocks of a rowset fit each other: as many rows in each column; in the ad-hoc index and the
// bloom file the keys that the columns have; deltas of rows that there are, and values of the columns' types; as many live rows as the
// superblock says; and the log.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{ctx: ctx, tree: tg.Tree, o: o, yield: yield}
		if err := v.all(tg); err != nil && !v.stopped && ctx.Err() == nil {
			v.give(findingOf("kudu.read", err, tg.Name))
		}
	}
}

// unchecked is format.Format.Unchecked: Kudu's servers can be told to write no checksums, and those of the first version had none.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	ro, err := parseOptions(o.Opts)
	if err != nil {
		return "", err
	}
	o.Opts, o.Tracer = nil, nil
	s, err := openServers(ctx, tg, o, ro)
	if err != nil {
		return "", err
	}
	tables := s.tables()
	if tg.Table != "" {
		one, err := s.pick(ctx, tg, ro.tablet)
		if err != nil {
			return "", err
		}
		tables = [][]*tablet{one}
	}
	ro.at, ro.partial = latest, true
	var bare, all int
	first := ""
	for _, tb := range slices.Concat(tables...) {
		for _, r := range append([]replica{tb.replica}, tb.others...) {
			t, err := newTable(tg.Tree, []*tablet{{replica: r}}, o, ro)
			if err != nil || !r.HasData() {
				continue // verify tells
			}
			for i := range r.RowSets {
				for _, b := range r.RowSets[i].Blocks() {
					f, p, err := t.footerIn(ctx, r, b.BlockRef)
					if err != nil || f == nil {
						continue
					}
					if all++; !f.Checksums() {
						if bare++; first == "" {
							first = fmt.Sprintf("%s of table %s, %s", p.At, r.Table, cmp.Or(r.Schema.NameOf(b.Column), b.Kind))
						}
					}
				}
			}
		}
	}
	if bare == 0 {
		return "", ctx.Err()
	}
	return fmt.Sprintf("%d of %d blocks have no checksums, the first is %s", bare, all, first), ctx.Err()
}

// verifier verifies directories.
type verifier struct {
	ctx     context.Context
	tree    store.Tree
	o       format.OpenOptions
	yield   func(region.Finding) bool
	stopped bool
	told    map[region.Finding]bool // that were met while the directories were opened
}

// give tells a finding.
func (v *verifier) give(x region.Finding) {
	if x.Rows == [2]int64{} {
		x.Rows, x.Lost = [2]int64{-1, -1}, -1
	}
	if x.Severity = severity(x.Code); x.Severity < region.Error {
		x.Lost = 0
	}
	if !v.stopped && v.ctx.Err() == nil {
		v.stopped = !v.yield(x)
	}
}

func (v *verifier) tell(code string, at fault.Span, part, layout string, args ...any) {
	v.give(region.Finding{Code: code, At: at, Part: part, Message: fmt.Sprintf(layout, args...)})
}

// met tells damage, and gives other errors back.
func (v *verifier) met(code string, err error, part string) error {
	if err == nil {
		return v.ctx.Err()
	}
	if !errors.As(err, new(*fault.Error)) {
		return err
	}
	v.give(findingOf(code, err, part))
	return nil
}

func (v *verifier) all(tg format.Target) error {
	ro, err := parseOptions(v.o.Opts)
	if err != nil {
		return err
	}
	v.o.Opts, v.o.Tracer = nil, nil
	s, err := openServers(v.ctx, tg, v.o, ro)
	if errors.Is(err, fault.Unsupported) {
		v.give(findingOf("kudu.unsupported", err, tg.Name))
		return nil
	}
	if err != nil {
		return err
	}
	v.told = map[region.Finding]bool{}
	for _, x := range s.findings {
		v.told[x] = true
		v.give(x)
	}
	tables := s.tables()
	if tg.Table != "" {
		one, err := s.pick(v.ctx, tg, ro.tablet)
		if err != nil {
			return err
		}
		tables = [][]*tablet{one}
	} else if err := v.unnamed(s, ro.gaps); err != nil {
		return err
	}
	for _, ts := range tables {
		if !ro.partial && (len(ts) > 1 || ro.tablet == "" && tg.Table != ts[0].ID) {
			v.missing(s, ts)
		}
		for _, tb := range ts {
			for _, r := range append([]replica{tb.replica}, tb.others...) {
				if err := v.tablet(r, ro); err != nil || v.stopped {
					return err
				}
			}
		}
	}
	return nil
}

// unnamed tells of blocks that no superblock names; known: those with rows were expected.
func (v *verifier) unnamed(s *servers, known bool) error {
	for _, f := range s.all {
		found, err := s.loose(v.ctx, f)
		if err != nil {
			return err
		}
		for _, x := range found {
			what := fmt.Sprintf("block %d", x.ID)
			if x.ID == 0 {
				what = "a block without a record"
			}
			if x.err != nil {
				v.tell("kudu.block.unnamed", x.At, "", "%s: no superblock names it, and it cannot be read: %v", what, x.err)
				continue
			}
			v.tell("kudu.block.unnamed", x.At, "", "%s: no superblock names it; a %s, %s, %d values", what, x.kind, typeName(x.typ), x.rows)
		}
		if x := unclaimed(f, found); x != nil && !known && f.MetaDir != "" {
			v.give(*x)
		}
	}
	return nil
}

// missing tells of tablets that the table must have.
func (v *verifier) missing(s *servers, ts []*tablet) {
	gaps, _, more := s.missing(ts)
	at := s.whereTablets()
	for _, g := range gaps {
		v.tell("kudu.tablet.missing", at, s.nameOf(ts), "table %s: no directory here holds the tablet of %s", s.nameOf(ts), g)
	}
	if more > 0 {
		v.tell("kudu.tablet.missing", at, s.nameOf(ts), "table %s: %d more tablets are not here", s.nameOf(ts), more)
	}
}

// tablet verifies one replica.
func (v *verifier) tablet(r replica, ro readOptions) error {
	if !r.HasData() {
		v.tell("kudu.tablet.tombstone", r.At, r.ID, "the tablet was deleted from this server: its state is %s", r.State)
		return nil
	}
	tb := &tablet{replica: r}
	ro.at, ro.partial = latest, true
	t, err := newTable(v.tree, []*tablet{tb}, v.o, ro)
	if err != nil {
		return v.met("kudu.superblock.odd", err, r.ID)
	}
	t.vote = true
	harmed := make([]map[uint64]bool, len(r.RowSets))
	for i := range r.RowSets {
		if harmed[i], err = v.blocks(t, tb, &r.RowSets[i]); err != nil || v.stopped {
			return err
		}
	}
	if err := v.met("kudu.rowset.damaged", t.load(v.ctx, tb), r.ID); err != nil || !tb.loaded || v.stopped {
		return err
	}
	for _, x := range t.Findings() {
		if !v.told[x] {
			v.give(x)
		}
	}
	for i, s := range tb.sets {
		if sound, err := v.columns(t, s, harmed[i]); err != nil || v.stopped {
			return err
		} else if !sound || len(harmed[i]) > 0 {
			continue // why was told
		}
		check := v.light
		if v.o.Depth == format.Deep {
			check = v.rowset
		}
		if err := check(t, s); err != nil || v.stopped {
			return err
		}
	}
	return nil
}

// bloom looks whether a rowset's bloom file can be its own.
func (v *verifier) bloom(t *table, s *rowSet) error {
	if s.Bloom.IsNull() {
		return nil
	}
	b, err := t.bloom(v.ctx, s)
	if err == nil {
		err = t.checkBloom(v.ctx, s, b)
	}
	return v.met("kudu.bloom.disagrees", err, s.tablet.ID)
}

// blocks verifies the files of a rowset, each by itself, and says which are not sound.
func (v *verifier) blocks(t *table, tb *tablet, s *RowSet) (harmed map[uint64]bool, err error) {
	harmed = map[uint64]bool{}
	for _, b := range s.Blocks() {
		name := tb.Schema.NameOf(b.Column)
		p, err := tb.fs.PlaceOf(v.ctx, tb.Tablet, b.BlockRef)
		if err != nil {
			if !errors.As(err, new(*fault.Error)) {
				return nil, err
			}
			x := findingOf(lostCode(p), err, tb.ID)
			x.Column = name
			v.give(x)
			harmed[b.ID] = true
			continue
		}
		o := v.o
		o.Opts = map[string]string{"kind": map[string]string{"column": "column", "redo": "delta", "undo": "delta", "bloom": "bloom", "adhoc-index": "index"}[b.Kind]}
		tg := format.Target{Tree: v.tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
		for x := range cfile.Format.Verify(v.ctx, tg, o) {
			x.Part, x.Column = tb.ID, name
			x.Path = fault.JoinPath("rowset "+strconv.FormatUint(s.ID, 10)+"/"+b.Kind, x.Path)
			if x.Severity >= region.Error {
				harmed[b.ID] = true
			}
			if v.stopped = v.stopped || !v.yield(x); v.stopped {
				return harmed, nil
			}
		}
	}
	return harmed, nil
}

// columns holds the footers of a rowset's blocks against the superblock and each other, and says whether all agree. Those of harmed blocks, of which it was
// told, too; but what cannot be opened is not told again.
func (v *verifier) columns(t *table, s *rowSet, harmed map[uint64]bool) (sound bool, err error) {
	sound = true
	for _, b := range s.Blocks() {
		switch b.Kind {
		case "column", "adhoc-index":
			_, err = t.openBlock(v.ctx, s, b.BlockRef)
		case "redo", "undo":
			var f *cfile.Footer
			var p Place
			f, p, err = t.footerIn(v.ctx, s.tablet.replica, b.BlockRef)
			if f != nil && err == nil {
				if _, told := f.Get(metaDeltaStats); !told {
					err = fault.Corruptf(p.At, "footer.metadata", "no %s: the block is no delta file", metaDeltaStats)
				}
			}
		default:
			continue
		}
		if err == nil {
			continue
		}
		x := findingOf("kudu.rowset.uneven", err, s.tablet.ID)
		if sound = false; !errors.As(err, new(*fault.Error)) {
			return false, err
		}
		if harmed[b.ID] {
			continue
		}
		x.Column = s.tablet.Schema.NameOf(b.Column)
		v.give(x)
	}
	return sound, v.ctx.Err()
}

// rowset holds the files of a rowset against each other.
func (v *verifier) rowset(t *table, s *rowSet) error {
	if err := v.met("kudu.keys.damaged", v.keys(t, s), s.tablet.ID); err != nil || v.stopped {
		return err
	}
	if foreign, err := v.foreign(t, s); err != nil || foreign || v.stopped {
		return err // why was told
	}
	for i, b := range slices.Concat(s.Redo, s.Undo) {
		if err := v.met("kudu.delta.damaged", v.direction(t, s, b, i >= len(s.Redo)), s.tablet.ID); err != nil || v.stopped {
			return err
		}
	}
	live, err := v.deltas(t, s)
	if err != nil {
		return v.met("kudu.delta.damaged", err, s.tablet.ID)
	}
	told := slices.ContainsFunc(s.tablet.notes, func(x region.Finding) bool {
		return x.Code == "kudu.rowset.live" && strings.HasPrefix(x.Message, fmt.Sprintf("rowset %d ", s.ID))
	})
	if s.tablet.CountsLive && s.LiveRows >= 0 && live != s.LiveRows && !told {
		v.tell("kudu.rowset.live", s.tablet.At, s.tablet.ID, "rowset %d has %d live rows, its superblock says %d", s.ID, live, s.LiveRows)
	}
	return nil
}

// light is the part of rowset that decodes no values.
func (v *verifier) light(t *table, s *rowSet) error {
	if err := v.bloom(t, s); err != nil || v.stopped || v.o.Depth == format.Quick {
		return err
	}
	_, err := v.foreign(t, s)
	return err
}

// foreign tells of delta files that are another rowset's, and says whether there are some.
func (v *verifier) foreign(t *table, s *rowSet) (bool, error) {
	found, err := t.foreigners(v.ctx, s, true, true)
	for _, x := range found {
		if !v.told[x] {
			v.told[x] = true
			v.give(x)
		}
	}
	return len(found) > 0, err
}

// keys holds the keys that the columns have against the ad-hoc index and the bloom file, and looks whether they rise.
func (v *verifier) keys(t *table, s *rowSet) error {
	var columns []*values
	for i := range t.schema.Keys() {
		b, ok := s.Block(t.schema.Columns[i].ID)
		if !ok {
			return fault.Corruptf(fault.Span{Object: s.tablet.Object}, "rowsets.columns", "rowset %d has no block for column %q of the primary key", s.ID, t.schema.Columns[i].Name)
		}
		x, err := t.values(v.ctx, s, b)
		if err != nil {
			return err
		}
		defer x.it.Close()
		columns = append(columns, x)
	}
	var index *values
	var filter *cfile.Bloom
	var err error
	if !s.Adhoc.IsNull() {
		if index, err = t.values(v.ctx, s, s.Adhoc); err != nil {
			return err
		}
		defer index.it.Close()
	}
	if !s.Bloom.IsNull() {
		if filter, err = t.bloom(v.ctx, s); err != nil {
			return err
		}
	}
	at := fault.Span{Object: s.tablet.Object}
	var key, last []byte
	absent, strays := 0, int64(0)
	parting := newParting(s.tablet.Tablet)
	cells := make([][]byte, len(columns))
	for row := int64(0); row < s.rows; row++ {
		key = key[:0]
		for i, x := range columns {
			cell, err := x.next(v.ctx)
			if err == nil {
				key, err = cfile.AppendKey(key, t.schema.Columns[i].Type, cell, i == len(columns)-1)
			}
			if err != nil {
				return err
			}
			cells[i] = cell
		}
		if why := parting.outside(cells); why != "" {
			if strays++; strays == 1 {
				defer func(row int64) {
					v.tell("kudu.keys.partition", columns[0].at, s.tablet.ID, "rowset %d: row %d, and %d more, %s", s.ID, row, strays-1, why)
				}(row)
			}
		}
		if row > 0 && bytes.Compare(last, key) >= 0 {
			v.tell("kudu.keys.order", columns[0].at, s.tablet.ID, "rowset %d: the key of row %d is not greater than the one before", s.ID, row)
			return nil
		}
		last = append(last[:0], key...)
		if index != nil {
			indexed, err := index.next(v.ctx)
			if err != nil {
				return err
			}
			if !bytes.Equal(indexed, key) {
				v.tell("kudu.index.disagrees", index.at, s.tablet.ID, "rowset %d: the ad-hoc index has another key for row %d than the columns", s.ID, row)
				return nil
			}
		}
		if filter != nil {
			may, err := filter.MayContain(v.ctx, key)
			if err != nil {
				return err
			}
			if !may {
				absent++
			}
		}
		if row == 0 && s.low != nil && !bytes.Equal(s.low, key) || row == s.rows-1 && s.high != nil && !bytes.Equal(s.high, key) {
			v.tell("kudu.keys.range", at, s.tablet.ID, "rowset %d: its first or last key is another one than its metadata says", s.ID)
		}
	}
	if absent > 0 {
		v.tell("kudu.bloom.disagrees", at, s.tablet.ID, "rowset %d: the bloom file says of %d keys that they are not there", s.ID, absent)
	}
	return nil
}

// direction looks whether the changes of each row go forward in time in a REDO file, and back in an UNDO file: nothing in the file says which it is, and either
// order is sound there.
func (v *verifier) direction(t *table, s *rowSet, b BlockRef, undo bool) error {
	d, places, err := t.openDelta(v.ctx, s, b)
	if err != nil {
		return err
	}
	all, err := d.All(v.ctx)
	if err != nil {
		return err
	}
	row, ts := int64(-1), uint64(0)
	for {
		x, err := all.Next(v.ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if x.Row == row && x.Timestamp != ts && (x.Timestamp < ts) != undo {
			what := map[bool]string{false: "REDO", true: "UNDO"}[undo]
			v.tell("kudu.delta.order", places[0].At, s.tablet.ID, "rowset %d: this %s file, block %d, has a change of row %d at %s, and behind it one at %s", s.ID, what, b.ID, row, timeText(ts), timeText(x.Timestamp))
			return nil
		}
		row, ts = x.Row, x.Timestamp
	}
}

// deltas applies all deltas of a rowset, forwards and backwards, and counts the rows that are live at the end.
func (v *verifier) deltas(t *table, s *rowSet) (live int64, err error) {
	cols := make([]int, len(t.columns))
	for i := range cols {
		cols[i] = i
	}
	for _, at := range []uint64{0, latest} {
		flushed := *s
		flushed.changes = nil // what only the log has is not in the superblock's number
		o, err := t.changesOf(v.ctx, &flushed, cols, at)
		if err != nil {
			return 0, err
		}
		live = s.rows
		if o == nil {
			continue
		}
		const step = 64 << 10
		for from := int64(0); from < s.rows; from += step {
			p, err := t.patchAll(v.ctx, o, vec.Range{From: from, To: min(from+step, s.rows)})
			if err != nil {
				return 0, err
			}
			if p.Drop != nil {
				live -= int64(p.Drop.Count)
			}
		}
	}
	return live, nil
}
