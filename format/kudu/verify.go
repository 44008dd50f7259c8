package kudu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/check"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// verify checks everything, or less by format.Depth: the directories' own files; that no tablet is missing; every
// block, as package cfile verifies it; that the blocks of a rowset fit together: the same number of rows in each
// column, the columns' keys in the ad-hoc index and the bloom filter, deltas of existing rows with values of the
// columns' types, and the number of live rows in the superblock; and the log.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		tg, err := plain(ctx, tg, o.Opts)
		v := &verifier{Reporter: check.New(ctx, tg.Name, codes.Codes, yield), ctx: ctx, tree: tg.Tree, o: o,
			reported: map[region.Finding]bool{}}
		if err == nil {
			err = v.all(tg)
		}
		if err != nil {
			v.Emit(codes.Finding("kudu.read", err, tg.Name))
		}
	}
}

// unchecked is format.Format.Unchecked: Kudu's servers can be configured to write no checksums, and the first version
// had none.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	tg, err := plain(ctx, tg, o.Opts)
	if err != nil {
		return "", err
	}
	ro, err := table.ParseOptions(o.Opts)
	if err != nil {
		return "", err
	}
	o.Opts, o.Tracer = nil, nil
	s, err := cluster.OpenAgain(ctx, tg, o, ro)
	if err != nil {
		return "", err
	}
	tables := s.Tables()
	if tg.Table != "" {
		one, err := s.Pick(ctx, tg, ro.Tablet)
		if err != nil {
			return "", err
		}
		tables = [][]*table.Tablet{one}
	}
	ro.At, ro.Partial = table.Latest, true
	var withoutSums, all int
	first := ""
	for _, tb := range slices.Concat(tables...) {
		for _, r := range tb.Replicas() {
			t, err := table.New(tg.Tree, []*table.Tablet{{Replica: r}}, o, ro)
			if err != nil || !r.HasData() {
				continue // verify reports it
			}
			for i := range r.RowSets {
				for _, b := range r.RowSets[i].Blocks() {
					f, p, err := t.FooterIn(ctx, r, b.BlockRef)
					if err != nil || f == nil {
						continue
					}
					if all++; !f.Checksums() {
						if withoutSums++; first == "" {
							first = fmt.Sprintf("%s of table %s, %s", p.At, r.Table,
								cmp.Or(r.Schema.NameOf(b.Column), b.Kind))
						}
					}
				}
			}
		}
	}
	if withoutSums == 0 {
		return "", ctx.Err()
	}
	return fmt.Sprintf("%d of %d blocks have no checksums, the first is %s", withoutSums, all, first), ctx.Err()
}

// verifier verifies directories.
type verifier struct {
	*check.Reporter
	ctx      context.Context
	tree     store.Tree
	o        format.OpenOptions
	reported map[region.Finding]bool // findings reported when the directories were opened
	idle     map[uint64]bool         // damaged blocks of a tablet on which no row depends
	decided  bool                    // another replica has committed what the end of the replica's log leaves open
}

// met reports damage, and returns other errors.
func (v *verifier) met(code string, err error) error {
	if err == nil {
		return v.ctx.Err()
	}
	if !errors.As(err, new(*fault.Error)) {
		return err
	}
	v.Emit(codes.Finding(code, err, v.Part))
	return nil
}

// all verifies everything that the target names.
func (v *verifier) all(tg format.Target) error {
	ro, err := table.ParseOptions(v.o.Opts)
	if err != nil {
		return err
	}
	at := v.o.Opts["at"]
	v.o.Opts, v.o.Tracer = nil, nil
	s, err := cluster.OpenAnew(v.ctx, tg, v.o, ro)
	if errors.Is(err, fault.Unsupported) {
		f := codes.Finding("kudu.unsupported", err, tg.Name)
		f.Class = fault.Unsupported
		v.Emit(f)
		return nil
	}
	if err != nil {
		return err
	}
	tables := s.Tables()
	name := map[string]string{} // name of a tablet's table
	for _, ts := range tables {
		for _, tb := range ts {
			name[tb.ID] = s.NameOf(ts)
		}
	}
	for _, x := range s.Findings {
		v.reported[x] = true
		if x.Table = name[x.Part]; x.Table == "" || ro.Schema == "" { // else it is about blocks of no table
			v.Emit(x)
		}
	}
	if tg.Table != "" {
		one, err := s.Pick(v.ctx, tg, ro.Tablet)
		if err != nil {
			return err
		}
		tables = [][]*table.Tablet{one}
		if err := v.unclaimed(s, one, tg.Table, ro); err != nil {
			return err
		}
	} else if at != "" && len(tables) > 1 { // a moment means something different for each; see TestVerifyMoment
		return fault.Invalidf("%s holds %d tables: name the one to verify as it was at %s", tg.Name, len(tables), at)
	} else if err := v.unnamed(s, ro.Blocks); err != nil || ro.Schema != "" { // that table is of unnamed blocks only
		return err
	}
	if tables = only(tables, ro.Tablet); len(tables) == 0 && ro.Tablet != "" {
		return fault.Invalidf("%s has no tablet %s", tg.Name, ro.Tablet)
	}
	for _, ts := range tables {
		v.Table = s.NameOf(ts)
		if !ro.Partial && cluster.Whole(ts, tg.Table, ro) {
			v.missing(s, ts)
		}
		for _, tb := range ts {
			if err := v.replicas(tb, ro); err != nil || v.Stopped() {
				return err
			}
		}
	}
	return nil
}

// only restricts tables to the tablet with this id and drops tables without it; "" keeps all tables.
func only(tables [][]*table.Tablet, id string) (out [][]*table.Tablet) {
	if id == "" {
		return tables
	}
	for _, ts := range tables {
		if i := slices.IndexFunc(ts, func(t *table.Tablet) bool { return t.ID == id }); i >= 0 {
			out = append(out, ts[i:i+1])
		}
	}
	return out
}

// unclaimed reports blocks that may be left over from a tablet of the named table, as reading the table does.
func (v *verifier) unclaimed(s *cluster.Servers, ts []*table.Tablet, what string, ro table.Options) error {
	if ro.Blocks || !cluster.Whole(ts, what, ro) {
		return nil
	}
	found, err := s.UnclaimedOf(v.ctx, ts, true)
	for _, x := range found {
		v.Emit(x)
	}
	return err
}

// unnamed reports blocks that no superblock names; known states that blocks with rows are expected among them.
func (v *verifier) unnamed(s *cluster.Servers, known bool) error {
	v.Part = ""
	for _, f := range s.All {
		found, err := s.Loose(v.ctx, f)
		if err != nil {
			return err
		}
		for _, x := range found {
			what := fmt.Sprintf("block %d", x.ID)
			if x.ID == 0 {
				what = "a block without a record"
			}
			if x.Err != nil {
				v.Report("kudu.block.unnamed", x.At, "", "%s: no superblock names it, and it cannot be read: %v",
					what, x.Err)
				continue
			}
			v.Report("kudu.block.unnamed", x.At, "", "%s: no superblock names it; a %s, %s, %s", what, x.Kind,
				meta.TypeName(x.Typ), fault.Count(x.Rows, "value"))
		}
		for _, x := range cluster.Nested(v.ctx, f) {
			v.Emit(x)
		}
		if x := cluster.Unclaimed(f, found); x != nil && !known && f.MetaDir != "" {
			v.Emit(*x)
		}
	}
	if known {
		return nil
	}
	found, err := s.Unread(v.ctx)
	for _, x := range found {
		v.Emit(x)
	}
	return err
}

// missing reports tablets that the table must have.
func (v *verifier) missing(s *cluster.Servers, ts []*table.Tablet) {
	v.Part = s.NameOf(ts)
	gaps, _, more := s.Missing(ts)
	at := s.WhereTablets()
	for _, g := range gaps {
		v.Report("kudu.tablet.missing", at, "", "table %s: no directory here holds the tablet for %s",
			s.NameOf(ts), g)
	}
	if more > 0 {
		v.Report("kudu.tablet.missing", at, "", "%s: not here: %s", s.NameOf(ts), fault.Count(more, "more tablet"))
	}
}

// tablet verifies one replica.
func (v *verifier) tablet(r table.Replica, ro table.Options) error {
	v.Part = r.ID
	if !r.HasData() {
		v.Report("kudu.tablet.tombstone", r.At, "", "the tablet was deleted from this server: its state is %s", r.State)
		return nil
	}
	tb, at := &table.Tablet{Replica: r}, ro.At
	ro.At, ro.Partial = table.Latest, true
	t, err := table.New(v.tree, []*table.Tablet{tb}, v.o, ro)
	if err != nil {
		return v.met("kudu.superblock.odd", err)
	}
	t.Vote, v.idle = true, map[uint64]bool{}
	damaged := make([]map[uint64]bool, len(r.RowSets))
	for i := range r.RowSets {
		if damaged[i], err = v.blocks(t, tb, &r.RowSets[i]); err != nil || v.Stopped() {
			return err
		}
	}
	if err := v.met("kudu.rowset.damaged", t.Load(v.ctx, tb)); err != nil || !tb.Loaded || v.Stopped() {
		return err
	}
	for _, x := range t.Findings() {
		if v.decided && (x.Code == "kudu.wal.torn" || x.Code == "kudu.wal.uncommitted") {
			x.Severity, x.Message = region.Note, x.Message+"; another replica has them, or what came in their places"
		}
		if tb.Later(x, at) {
			x.Severity, x.Message = region.Note, x.Message+"; they are later than the moment that is read"
		}
		if !v.reported[x] {
			v.Emit(x)
		}
	}
	for i, s := range tb.Sets {
		if consistent, err := v.columns(t, s, damaged[i]); err != nil || v.Stopped() {
			return err
		} else if !consistent || len(damaged[i]) > 0 {
			continue // the reason has been reported
		}
		check := v.light
		if v.o.Depth == format.Deep {
			check = v.rowset
		}
		if err := check(t, s); err != nil || v.Stopped() {
			return err
		}
	}
	return nil
}

func unlessDamage(err error) error {
	if fault.NotOfFile(err) {
		return err
	}
	return nil
}

// bloom checks whether a bloom filter can belong to its rowset.
func (v *verifier) bloom(t *table.Table, s *table.RowSet) error {
	if s.Bloom.IsNull() || v.idle[s.Bloom.ID] {
		return nil
	}
	b, err := t.Bloom(v.ctx, s)
	if err == nil {
		err = t.CheckBloom(v.ctx, s, b)
	}
	var e *fault.Error
	if !errors.As(err, &e) || e.At.Object == s.Tablet.Object { // it is whole, and another's
		return v.met("kudu.bloom.disagrees", err)
	}
	x := codes.Finding("kudu.bloom.disagrees", err, v.Part)
	idle(&x)
	v.Emit(x)
	return nil
}

// idle makes the finding about a block on which no row depends a warning, unless it is not about damage.
func idle(x *region.Finding) {
	if x.Severity >= region.Error && x.Class == 0 {
		x.Severity, x.Lost = region.Warning, 0
		x.Message += "; no row depends on this file, the rows are whole: only a Kudu server looks keys up in it"
	}
}

// blocks verifies each block of a rowset on its own. damaged has the ids of the blocks with errors. Rows are read
// without bloom filters and ad-hoc indexes: damage in these is a warning.
func (v *verifier) blocks(t *table.Table, tb *table.Tablet, s *meta.RowSet) (damaged map[uint64]bool, err error) {
	damaged = map[uint64]bool{}
	for _, b := range s.Blocks() {
		name := tb.Schema.NameOf(b.Column)
		p, err := tb.FS.PlaceOf(v.ctx, tb.Tablet, b.BlockRef)
		if err != nil {
			if !errors.As(err, new(*fault.Error)) {
				return nil, err
			}
			x := codes.Finding(fs.LostCode(p), err, tb.ID)
			x.Column = name
			if b.Idle() {
				v.idle[b.ID] = true
				idle(&x)
			} else {
				damaged[b.ID] = true
			}
			v.Emit(x)
			continue
		}
		o := v.o
		o.Opts = map[string]string{"kind": map[string]string{"column": "column", "redo": "delta", "undo": "delta",
			"bloom": "bloom", "adhoc-index": "index"}[b.Kind]}
		tg := format.Target{Tree: v.tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
		for x := range cfile.Format.Verify(v.ctx, tg, o) {
			x.Part, x.Column = tb.ID, name
			x.Path = fault.JoinPath("rowset "+strconv.FormatUint(s.ID, 10)+"/"+b.Kind, x.Path)
			switch {
			case x.Severity < region.Error || x.Class != 0:
			case b.Idle():
				v.idle[b.ID] = true
				idle(&x)
			default:
				damaged[b.ID] = true
				v.allRows(&x, b.Kind, t, tb, s)
			}
			if v.Emit(x); v.Stopped() {
				return damaged, nil
			}
		}
	}
	return damaged, nil
}

// columns compares the footers of a rowset's blocks with the superblock and each other. sound reports whether all
// agree. Disagreement of harmed blocks is not reported, because their errors have already been reported.
func (v *verifier) columns(t *table.Table, s *table.RowSet, damaged map[uint64]bool) (consistent bool, err error) {
	consistent = true
	for _, b := range s.Blocks() {
		switch b.Kind {
		case "column", "adhoc-index":
			_, err = t.OpenBlock(v.ctx, s, b.BlockRef)
		case "redo", "undo":
			var f *cfile.Footer
			var p fs.Place
			f, p, err = t.FooterIn(v.ctx, s.Tablet.Replica, b.BlockRef)
			if f != nil && err == nil {
				if _, ok := f.Get(meta.KeyDeltaStats); !ok {
					err = fault.Corruptf(p.At, "footer.metadata", "no %s: the block is not a delta file",
						meta.KeyDeltaStats)
				}
			}
		default:
			continue
		}
		if err == nil || v.idle[b.ID] && errors.As(err, new(*fault.Error)) {
			continue
		}
		x := codes.Finding("kudu.rowset.uneven", err, s.Tablet.ID)
		if consistent = false; !errors.As(err, new(*fault.Error)) {
			return false, err
		}
		if damaged[b.ID] {
			continue
		}
		x.Column = s.Tablet.Schema.NameOf(b.Column)
		v.Emit(x)
	}
	return consistent, v.ctx.Err()
}

// rowset compares the files of a rowset with each other.
func (v *verifier) rowset(t *table.Table, s *table.RowSet) error {
	if err := v.met("kudu.keys.damaged", v.keys(t, s)); err != nil || v.Stopped() {
		return err
	}
	if foreign, err := v.foreign(t, s); err != nil || foreign || v.Stopped() {
		return err // the reason has been reported
	}
	for i, b := range slices.Concat(s.Redo, s.Undo) {
		if err := v.met("kudu.delta.damaged", v.direction(t, s, b, i >= len(s.Redo))); err != nil ||
			v.Stopped() {
			return err
		}
	}
	live, err := v.deltas(t, s)
	if err != nil {
		return v.met("kudu.delta.damaged", err)
	}
	reported := slices.ContainsFunc(s.Tablet.Findings, func(x region.Finding) bool {
		return x.Code == "kudu.rowset.live" && strings.HasPrefix(x.Message, fmt.Sprintf("rowset %d ", s.ID))
	})
	if s.Tablet.CountsLive && s.LiveRows >= 0 && live != s.LiveRows && !reported {
		v.Report("kudu.rowset.live", s.Tablet.At, "", "rowset %d has %d live rows, %d by its superblock",
			s.ID, live, s.LiveRows)
	}
	return nil
}

// light is the part of rowset that decodes no values.
func (v *verifier) light(t *table.Table, s *table.RowSet) error {
	if err := v.bloom(t, s); err != nil || v.Stopped() || v.o.Depth == format.Quick {
		return err
	}
	_, err := v.foreign(t, s)
	return err
}

// foreign reports delta files of other rowsets; true if there are any.
func (v *verifier) foreign(t *table.Table, s *table.RowSet) (bool, error) {
	found, err := t.Foreigners(v.ctx, s, true, true)
	for _, x := range found {
		if !v.reported[x] {
			v.reported[x] = true
			v.Emit(x)
		}
	}
	return len(found) > 0, err
}

// deltas applies all deltas of a rowset, UNDO and REDO, and counts the rows that are live in the latest state.
func (v *verifier) deltas(t *table.Table, s *table.RowSet) (live int64, err error) {
	cols := make([]int, len(t.Cols))
	for i := range cols {
		cols[i] = i
	}
	for _, at := range []uint64{0, table.Latest} {
		flushed := *s
		flushed.Changes = nil // the superblock's number does not include changes that only the log has
		o, err := t.ChangesOf(v.ctx, &flushed, cols, at)
		if err != nil {
			return 0, err
		}
		live = s.Rows
		if o == nil {
			continue
		}
		const step = 64 << 10
		for from := int64(0); from < s.Rows; from += step {
			p, err := t.PatchAll(v.ctx, o, vec.Range{From: from, To: min(from+step, s.Rows)})
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
