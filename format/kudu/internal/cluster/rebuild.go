package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
	"stoa/store"
)

// A tablet without a superblock can be recovered. If its log begins with the tablet's first operation, replaying the
// log yields all of its rows, as of any moment. Otherwise the blocks that no superblock names are assembled according
// to the tablet's schema, which the log or the master's catalogue still has.

// rebuilt opens a table none of whose tablets has a superblock; why is the error of opening it without rebuilding.
func rebuilt(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options, why error) (*table.Table,
	error) {
	s, err := Open(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	ids, sc, name, owner := s.lostParts(tg.Table)
	var ts []*table.Tablet
	var found []region.Finding
	gone := false
	for _, id := range ids {
		tb, x, err := s.fromLog(ctx, id, name, noSuperblock)
		if err != nil {
			return nil, err
		}
		if tb == nil {
			gone = true
			continue
		}
		ts, found = append(ts, tb), append(found, x...)
	}
	if len(ts) > 0 && !gone && !ro.NoWAL {
		t, err := table.New(tg.Tree, ts, o, ro)
		if err != nil {
			return nil, err
		}
		t.Noticed = slices.Concat(s.Findings, found)
		return t, nil
	}
	if sc == nil || len(sc.Columns) == 0 {
		return nil, why
	}
	ro.NoWAL, ro.At = true, table.Latest
	cl, err := s.claimed(ctx, tg, o, sc)
	if err != nil {
		return nil, err
	}
	all, rivals := cl.of(owner)
	t, err := s.carve(ctx, tg, o, ro, sc, true, cmp.Or(name, tg.Table), all, rivals)
	if errors.Is(err, fault.Unsupported) {
		return nil, why
	}
	if err != nil {
		return nil, err
	}
	t.Noticed = append(t.Noticed, codes.Codes.Finding("kudu.tablet.rebuilt", fault.Span{Object: tg.Name}, tg.Table,
		"the rows are those of blocks that no superblock names, as they were flushed, with the deltas that are "+
			"certain to be theirs"))
	return t, nil
}

// lostParts returns the tablets without superblocks that a name selects: those of a table that only the catalogue
// lists, or one tablet. sc is the schema as far as it is known without the log; nil if unknown. owner is the id of the
// claimant that gets their blocks.
func (s *Servers) lostParts(what string) (ids []string, sc *meta.Schema, name, owner string) {
	if s.catalog != nil {
		for id, e := range s.catalog.tables {
			if ids = s.catalog.named(e, id, what); !e.gone && ids != nil {
				e.schema.Index()
				return ids, &e.schema, e.name, id
			}
		}
	}
	for _, b := range s.lost() {
		if b.ID == what {
			return []string{b.ID}, &b.Schema, b.Table, b.ID
		}
	}
	return nil, nil, "", ""
}

const noSuperblock = "the tablet has no superblock that can be read"

// fromLog rebuilds a tablet from its log; nil if no log begins with the tablet's first operation and has all operations
// after it. If several servers have such a log, the one with the latest operation is used.
// why says what is gone.
func (s *Servers) fromLog(ctx context.Context, id, name, why string) (tb *table.Tablet,
	found []region.Finding, err error) {
	last := meta.OpID{}
	for _, f := range s.All {
		t, log, err := logAlone(ctx, f, id)
		if err != nil {
			return nil, nil, err
		}
		if log == nil || log.First.Index != firstIndex || log.Lost || log.Last.Index <= last.Index {
			continue
		}
		last = log.Last
		t.Schema, t.SchemaVersion, t.Table = *log.Schema, log.Version, cmp.Or(name, log.Table, id)
		tb = &table.Tablet{Replica: table.Replica{FS: f, Tablet: t}, LogTo: log.LastTime}
		found = []region.Finding{tb.Note("kudu.tablet.rebuilt", fault.Span{Object: t.Object}, fmt.Sprintf("%s: "+
			"its rows are those that its log makes, from the first operation to %s at %s", why, log.Last,
			table.TimeText(log.LastTime)))}
	}
	return tb, found, ctx.Err()
}

// moreFromLogs returns the tablets of a table that have no superblock but whose logs are complete from the first
// operation on. They are added if a whole table is recovered, and if the catalogue, or what is left of a superblock,
// assigns them to it.
func (s *Servers) moreFromLogs(ctx context.Context, tg format.Target, ts []*table.Tablet, ro table.Options) (
	more []*table.Tablet, found []region.Finding, err error) {
	if !ro.Rebuild || ro.NoWAL || !Whole(ts, tg.Table, ro) {
		return nil, nil, nil
	}
	top := table.Newest(ts)
	at := map[string]meta.Partition{}
	for _, b := range s.broken {
		if b.TableID == top.TableID {
			at[b.ID] = b.Partition
		}
	}
	for _, e := range s.catalog.absent(top.TableID, ts) {
		at[e.id] = e.partition
	}
	for _, tb := range ts {
		if tb.HasData() {
			delete(at, tb.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(at)) {
		tb, x, err := s.fromLog(ctx, id, top.Table, noSuperblock)
		if err != nil {
			return nil, nil, err
		}
		if tb != nil {
			tb.TableID, tb.Partitioning, tb.Partition = top.TableID, top.Partitioning, at[id]
			more, found = append(more, tb), append(found, x...)
		}
	}
	return bound(tg.Tree, more), found, nil
}

// withoutBlocks replaces tablets of which blocks are gone or damaged, that no replica makes up for, or which a log
// alone brings further, by what their logs make, if these begin with the first operation and reach as far as the blocks
// that are left: the rest of a log alone would take changes of rows that are lost for rows.
func (s *Servers) withoutBlocks(ctx context.Context, tree store.Tree, ts []*table.Tablet, ro table.Options) (
	out []*table.Tablet, found []region.Finding, err error) {
	for _, tb := range ts {
		if ro.Rebuild && !ro.NoWAL && !tb.Rebuilt {
			x, notes, err := s.byLog(ctx, tree, tb)
			if err != nil {
				return nil, nil, err
			}
			if x != nil {
				tb, found = x, slices.Concat(found, notes)
			}
		}
		out = append(out, tb)
	}
	return out, found, nil
}

// byLog returns a tablet as its log makes it, if that is more than what is read of its blocks; nil if it is not.
func (s *Servers) byLog(ctx context.Context, tree store.Tree, tb *table.Tablet) (*table.Tablet, []region.Finding,
	error) {
	why, reach, err := goneBlocks(ctx, tb)
	if err != nil {
		return nil, nil, err
	}
	newest, behind, later := uint64(0), slices.ContainsFunc(tb.Findings, isBehind), false
	apart := slices.ContainsFunc(s.broken, func(b *meta.Tablet) bool { return b.ID == tb.ID })
	for _, r := range tb.Replicas() {
		last, err := r.LastChange(ctx, true)
		if err != nil && !table.Damaged(err) {
			return nil, nil, err
		}
		newest, later = max(newest, last.Time), later || last.Later()
	}
	if why == "" && later {
		why, reach = "the superblock is of an earlier state than a log", newest
	} else if why == "" && behind {
		why, reach = "another replica has later operations, in its log alone", newest
	} else if why == "" {
		why, reach, err = hurtBlocks(ctx, tb)
	}
	if why == "" && apart {
		why, reach = "a replica without a superblock has later operations, in its log", newest+1
	}
	if why == "" || err != nil {
		return nil, nil, err
	}
	x, notes, err := s.fromLog(ctx, tb.ID, tb.Table, why)
	if x == nil || err != nil || x.LogTo < reach {
		return nil, nil, err
	}
	x.TableID, x.Partitioning, x.Partition = tb.TableID, tb.Partitioning, tb.Partition
	known := slices.DeleteFunc(slices.Clone(tb.Findings), func(f region.Finding) bool {
		return isBehind(f) && x.LogTo >= newest
	})
	return bound(tree, []*table.Tablet{x})[0], slices.Concat(known, notes), nil
}

func isBehind(f region.Finding) bool { return f.Code == "kudu.replica.behind" }

// hurtBlocks says that blocks of a tablet are damaged, if it has other replicas and none of them has its blocks, and up
// to which hybrid time the blocks reach; "" otherwise. Recovery loses only what is in the damaged pages of a tablet
// that has no other replica.
func hurtBlocks(ctx context.Context, tb *table.Tablet) (why string, flushed uint64, err error) {
	others := 0
	for _, r := range tb.Others {
		if whole, err := hasBlocks(ctx, r); whole || err != nil {
			return "", 0, err
		}
		if r.HasData() {
			others++
		}
	}
	if others == 0 {
		return "", 0, nil
	}
	n, err := tb.Unsound(ctx)
	if n == 0 || err != nil {
		return "", 0, err
	}
	last, err := tb.LastChange(ctx, false)
	if err != nil && !table.Damaged(err) {
		return "", 0, err
	}
	return "damage in " + fault.Count(int64(n), "block") + " of the tablet, which no other replica has", last.Time, nil
}

// goneBlocks says that blocks of a tablet are gone, as far as no replica makes up for them, and up to which hybrid time
// those that are left reach; "" if none is.
func goneBlocks(ctx context.Context, tb *table.Tablet) (why string, flushed uint64, err error) {
	gone, err := noBlocks(ctx, tb)
	if err != nil || gone {
		return "none of the tablet's blocks is here", 0, err
	}
	final, all, err := tb.Missing(ctx)
	for i := 0; i < len(tb.Others) && final == 0 && all > 0 && err == nil; i++ {
		var whole bool
		if whole, err = hasBlocks(ctx, tb.Others[i]); whole {
			all = 0 // it may have the cells
		}
	}
	if err != nil || all == 0 {
		return "", 0, err
	}
	last, err := tb.LastChange(ctx, false)
	if err != nil && !table.Damaged(err) {
		return "", 0, err
	}
	return fault.Count(all, "block") + " of the tablet cannot be found", last.Time, nil
}

// hasBlocks reports whether a replica has data, and all of its blocks are here.
func hasBlocks(ctx context.Context, r table.Replica) (bool, error) {
	for i := range r.RowSets {
		for _, b := range r.RowSets[i].Blocks() {
			if _, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef); fault.NotOfFile(err) {
				return false, err
			} else if err != nil {
				return false, nil
			}
		}
	}
	return r.HasData(), nil
}

// noBlocks reports whether a tablet must have blocks, and none of them is here.
func noBlocks(ctx context.Context, tb *table.Tablet) (bool, error) {
	any := false
	for _, r := range tb.Replicas() {
		for i := range r.RowSets {
			for _, b := range r.RowSets[i].Blocks() {
				any = true
				if _, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef); err == nil || fault.NotOfFile(err) {
					return false, err
				}
			}
		}
	}
	return any, nil
}
