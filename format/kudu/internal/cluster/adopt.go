package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/sorted"
	"stoa/region"
)

// A tablet without a superblock leaves blocks that no superblock names. If other tablets of its table are here, they
// tell which parts of the table are missing: a rowset made of such blocks is the table's if it fits the schema, and all
// of its keys lie in one of these parts. It is read when the table is recovered.

// adoption is what tables with missing parts get of the blocks that no superblock names.
type adoption struct {
	found map[*fs.FS][]*loose
	of    map[string][]*adopted // by table id
	by    map[fault.Span]string // id of the table that gets a block, or has it from another replica
}

// adopted are the rowsets that a server's loose blocks make under the schema of a table.
type adopted struct {
	*carving
	parts []*meta.Tablet // the missing part of the table that has a rowset; nil: none
	of    map[*meta.Tablet]int64
}

// adoptions finds the blocks that belong to tables with missing parts, once.
func (s *Servers) adoptions(ctx context.Context, tg format.Target, o format.OpenOptions) (*adoption, error) {
	if a, ok := s.memo["adoptions"].(*adoption); ok {
		return a, nil
	}
	a := &adoption{map[*fs.FS][]*loose{}, map[string][]*adopted{}, map[fault.Span]string{}}
	for _, ts := range s.Tables() {
		parts := s.missingParts(ts)
		for _, f := range s.All {
			if len(parts) == 0 {
				break
			}
			if _, ok := a.found[f]; !ok {
				found, err := s.Loose(ctx, f)
				if err != nil {
					return nil, err
				}
				a.found[f] = found
			}
			x, err := a.judge(ctx, tg, o, f, parts)
			if err != nil {
				return nil, err
			}
			a.of[ts[0].TableID] = append(a.of[ts[0].TableID], x)
		}
		if err := s.logged(ctx, tg, o, a.of[ts[0].TableID], parts); err != nil {
			return nil, err
		}
	}
	s.memo["adoptions"] = a
	return a, nil
}

// missingParts returns the parts of a table that no tablet here holds and whose keys are known, as tablets without
// blocks. Those whose id is not known get one.
func (s *Servers) missingParts(ts []*table.Tablet) (out []*meta.Tablet) {
	top := table.Newest(ts)
	var parts []catalogEntry
	if s.catalog != nil && s.catalog.tables[top.TableID].id != "" {
		parts = s.catalog.absent(top.TableID, ts)
	} else {
		var have []*meta.Tablet
		for _, tb := range ts {
			have = append(have, tb.Tablet)
		}
		sure, perhaps, _ := meta.Missing(have)
		for _, g := range append(sure, perhaps...) {
			for _, p := range top.Partitioning.Tablets(&top.Schema, g.Partition) {
				sum := sha256.Sum256(fmt.Appendf(nil, "%s %v %x", top.TableID, p.Buckets, p.Start))
				parts = append(parts, catalogEntry{id: hex.EncodeToString(sum[:16]), partition: p})
			}
		}
	}
	for _, e := range parts {
		p := *top.Tablet
		p.ID, p.Partition, p.RowSets, p.Orphaned, p.Consensus = e.id, e.partition, nil, nil, nil
		p.State, p.CountsLive, p.Rebuilt = meta.TabletReady, false, true
		if meta.NewPartitionFilter(&p) != nil {
			out = append(out, &p)
		}
	}
	return out
}

// judge makes rowsets of a server's loose blocks, and finds out which of the parts they are of.
func (a *adoption) judge(ctx context.Context, tg format.Target, o format.OpenOptions, f *fs.FS,
	parts []*meta.Tablet) (*adopted, error) {
	top := parts[0]
	x := &adopted{carving: newCarving(tg, o, &top.Schema, top.Object), of: map[*meta.Tablet]int64{}}
	x.ids = true
	all := again(a.found[f])
	sets := group(all, &top.Schema)
	for _, set := range sets {
		x.add(set)
	}
	if err := x.attribute(ctx, f, all, sets, 0); err != nil {
		return nil, err
	}
	x.finishDeltas()
	tb := &table.Tablet{Replica: table.Replica{FS: x.dirs, Tablet: x.tablet}}
	t, err := table.New(tg.Tree, []*table.Tablet{tb}, o, table.Options{At: table.Latest, Partial: true, NoWAL: true})
	if err != nil {
		return x, nil // reported when the table is opened
	}
	for i, set := range sets {
		part, err := partOf(ctx, t, &table.RowSet{RowSet: &x.tablet.RowSets[i], Tablet: tb, Rows: set[0].Rows}, parts)
		if err != nil {
			return nil, err
		}
		if other := a.by[set[0].At]; part != nil && other != "" && other != top.TableID {
			x.note("kudu.carve.mixed", set[0].At, "rows that may be of table %s are read with table %s, which has the "+
				"same columns and lacks the same part", top.Table, other)
			part = nil
		}
		for _, b := range set {
			if part != nil {
				a.by[b.At] = top.TableID
			}
		}
		x.parts = append(x.parts, part)
		x.of[part] += set[0].Rows
	}
	return x, nil
}

// partOf returns the part that has all keys of a rowset, as far as they can be read; nil if none has.
func partOf(ctx context.Context, t *table.Table, set *table.RowSet, parts []*meta.Tablet) (*meta.Tablet, error) {
	columns := make([]*table.Values, t.Stored.NumKeys)
	for i := range columns {
		b, _ := set.Block(t.Stored.Columns[i].ID)
		var err error
		if columns[i], err = t.Values(ctx, set, b); err != nil {
			return nil, onlyDamage(err)
		}
		defer columns[i].It.Close()
	}
	cells := make([][]byte, len(columns))
	for row := int64(0); row < set.Rows; row++ {
		for i, x := range columns {
			var err error
			if cells[i], err = x.Next(ctx); err != nil {
				if row == 0 || !table.Damaged(err) {
					return nil, onlyDamage(err)
				}
				return parts[0], nil
			}
		}
		if parts = having(parts, cells); len(parts) == 0 {
			return nil, nil
		}
	}
	if set.Rows < 1 {
		return nil, nil
	}
	return parts[0], nil
}

// having returns the parts that have a key.
func having(parts []*meta.Tablet, cells [][]byte) (out []*meta.Tablet) {
	for _, p := range parts {
		if meta.NewPartitionFilter(p).Outside(cells) == "" {
			out = append(out, p)
		}
	}
	return out
}

func onlyDamage(err error) error {
	if table.Damaged(err) {
		return nil
	}
	return err
}

// errEnough ends an iteration.
var errEnough = errors.New("enough")

// logged removes the rowsets of parts whose tablets are recovered by their own ids, from logs that have all of their
// operations.
func (s *Servers) logged(ctx context.Context, tg format.Target, o format.OpenOptions, all []*adopted,
	parts []*meta.Tablet) error {
	for _, b := range s.lost() {
		if len(all) == 0 || b.TableID != "" || !b.MayBeOf(parts[0]) {
			continue
		}
		tb, _, err := s.fromLog(ctx, b.ID, "", noSuperblock)
		if err != nil {
			return err
		}
		if tb == nil {
			continue
		}
		t, err := table.New(tg.Tree, []*table.Tablet{tb}, o, table.Options{At: table.Latest, Partial: true})
		if err != nil {
			continue
		}
		err = t.Each(ctx, tb, func(cells [][]byte) error {
			for _, p := range having(parts, cells) {
				for _, x := range all {
					delete(x.of, p)
				}
			}
			return errEnough
		})
		if err != nil && err != errEnough && !table.Damaged(err) {
			return err
		}
	}
	return nil
}

// more returns the tablets of a table that are recovered without their superblocks.
func (s *Servers) more(ctx context.Context, tg format.Target, o format.OpenOptions, ts []*table.Tablet,
	ro table.Options) (more []*table.Tablet, found []region.Finding, err error) {
	more, logs, err := s.moreFromLogs(ctx, tg, ts, ro)
	if err == nil {
		more, found, err = s.moreFromBlocks(ctx, tg, o, ts, more, ro)
	}
	return more, append(logs, found...), err
}

// moreFromBlocks adds to more the missing parts of a table, as far as blocks that no superblock names have them; not
// those in more, which logs have. Of the replicas of a part, the one with the most rows is read.
func (s *Servers) moreFromBlocks(ctx context.Context, tg format.Target, o format.OpenOptions, ts,
	more []*table.Tablet, ro table.Options) (out []*table.Tablet, found []region.Finding, err error) {
	if !ro.Rebuild || ro.Blocks || ro.At != table.Latest || ro.End != "" || !Whole(ts, tg.Table, ro) ||
		len(s.missingParts(ts)) == 0 {
		return more, nil, nil
	}
	a, err := s.adoptions(ctx, tg, o)
	if err != nil {
		return nil, nil, err
	}
	of := map[*meta.Tablet]*table.Tablet{}
	done := map[string]bool{} // lost tablets whose logs are replayed, and their parts
	for _, tb := range more {
		done[tb.ID], done[keyOfPart(tb.Tablet)] = true, true
	}
	rows := int64(0)
	for _, x := range a.of[ts[0].TableID] {
		before := len(out)
		for i, p := range x.parts {
			if x.of[p] == 0 || p == nil || done[keyOfPart(p)] || a.better(x, p) {
				continue
			}
			if of[p] == nil {
				one := *p
				one.SchemaVersion = max(one.SchemaVersion, x.tablet.SchemaVersion)
				of[p] = &table.Tablet{Replica: table.Replica{FS: x.dirs, Tablet: &one}}
				out = append(out, of[p])
			}
			of[p].RowSets = append(of[p].RowSets, x.tablet.RowSets[i])
			rows += x.rows[i]
		}
		if len(out) > before {
			found = append(found, x.findings...)
		}
	}
	if rows == 0 {
		return more, nil, nil
	}
	c := newCarving(tg, o, &out[0].Schema, "")
	c.note("kudu.tablet.rebuilt", c.at, "%s of %s come from blocks that no superblock names, as they were flushed, "+
		"with the deltas that are certain to be theirs: their keys lie in parts that no tablet here holds",
		fault.Count(rows, "row"), fault.Count(int64(len(out)), "tablet"))
	err = s.notReplayed(ctx, c, out[0].Tablet, done)
	return append(more, out...), append(found, c.findings...), err
}

func keyOfPart(p *meta.Tablet) string { return fmt.Sprint(p.Partition.Buckets, p.Partition.Lower()) }

// better reports whether another server has more rows of a part, or as many and comes first.
func (a *adoption) better(x *adopted, p *meta.Tablet) bool {
	before := true
	for _, y := range a.of[p.TableID] {
		if before = before && y != x; y.of[p] > x.of[p] || before && y.of[p] == x.of[p] {
			return true
		}
	}
	return false
}

// Several tables may have lost their superblocks, and blocks may fit the schemas of some of them. Each block is given
// to one: first to the tables of which other tablets are here (see adoptions), then to the others, in the order of
// their ids, those that the catalogue lists first. What is left is unclaimed.

// claims is what claimants with columns of the same types get.
type claims struct {
	all   []claimant
	sets  map[string][]*assembly // by id
	by    map[fault.Span]string  // the id of the table or claimant that gets a block
	blame map[string][]string    // by id, the names of others that the blocks fit
}

// of returns what a claimant gets, and the others that these blocks fit.
func (c *claims) of(id string) ([]*assembly, []string) { return c.sets[id], c.blame[id] }

// claimants returns the tables and tablets that can be put together from blocks alone, as far as their schemas are
// known.
func (s *Servers) claimants() (out []claimant) {
	if s.catalog != nil {
		for id, e := range s.catalog.tables {
			if e.gone || len(s.tablesNamed(id)) > 0 {
				continue
			}
			e.schema.Index()
			c := claimant{id: id, name: e.name, tableID: id, schema: &e.schema}
			for _, tb := range s.catalog.absent(id, nil) {
				c.tablets = append(c.tablets, tb.id)
			}
			out = append(out, c)
		}
	}
	sorted.By(out, func(a, b claimant) int { return cmp.Compare(a.id, b.id) })
	lost := len(out)
	for _, b := range s.lost() {
		out = append(out, claimant{b.ID, b.ID, b.TableID, []string{b.ID}, &b.Schema})
	}
	sorted.By(out[lost:], func(a, b claimant) int { return cmp.Compare(a.id, b.id) })
	return slices.DeleteFunc(out, func(c claimant) bool { return len(c.schema.Columns) == 0 })
}

// shapeOf returns the types of a schema's columns, in no order.
func shapeOf(sc *meta.Schema) string {
	var types []string
	for i := range sc.Columns {
		c := &sc.Columns[i]
		types = append(types, fmt.Sprint(c.Type, c.Nullable, c.Array))
	}
	slices.Sort(types)
	return fmt.Sprint(types)
}

// claimed distributes the blocks that no superblock names among the claimants with columns of the types that sc has.
// Those that are rebuilt from their logs need none.
func (s *Servers) claimed(ctx context.Context, tg format.Target, o format.OpenOptions, sc *meta.Schema) (*claims,
	error) {
	a, err := s.adoptions(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	c := &claims{sets: map[string][]*assembly{}, by: map[fault.Span]string{}, blame: map[string][]string{}}
	for _, x := range s.claimants() {
		if shapeOf(x.schema) != shapeOf(sc) {
			continue
		}
		logged, err := s.allLogged(ctx, x.tablets)
		if err != nil {
			return nil, err
		}
		if !logged {
			c.all = append(c.all, x)
		}
	}
	for _, f := range s.All {
		found, err := s.Loose(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			x.taken = a.by[x.At] != ""
		}
		for _, x := range c.all {
			sets := group(found, x.schema)
			for _, b := range slices.Concat(sets...) {
				c.by[b.At] = x.id
			}
			c.sets[x.id] = append(c.sets[x.id], &assembly{f, found, sets})
		}
	}
	for _, x := range c.all {
		for _, y := range c.all {
			if x.id != y.id && slices.ContainsFunc(c.sets[x.id], func(z *assembly) bool { return z.fits(y.schema) }) {
				c.blame[x.id] = append(c.blame[x.id], y.name)
			}
		}
	}
	return c, nil
}

// fits reports whether a rowset fits another schema.
func (x *assembly) fits(sc *meta.Schema) bool {
	return slices.ContainsFunc(x.sets, func(set []*loose) bool {
		free := again(set)
		for _, b := range free {
			b.taken = false
		}
		return len(group(free, sc)) > 0
	})
}

// allLogged reports whether tablets are rebuilt from their logs, all of them.
func (s *Servers) allLogged(ctx context.Context, ids []string) (bool, error) {
	if s.noWAL {
		return false, nil
	}
	for _, id := range ids {
		if tb, _, err := s.fromLog(ctx, id, "", noSuperblock); tb == nil || err != nil {
			return false, err
		}
	}
	return len(ids) > 0, nil
}

// Owners returns the tables that get blocks which no superblock names when all are recovered, by block.
func (s *Servers) Owners(ctx context.Context, tg format.Target, o format.OpenOptions) (Owners, error) {
	a, err := s.adoptions(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	out, done := Owners{}, map[string]bool{}
	for at, id := range a.by {
		out[at] = claimant{id: id, name: s.NameOf(s.tablesNamed(id)[0]), tableID: id}
	}
	for _, x := range s.claimants() {
		if done[shapeOf(x.schema)] {
			continue
		}
		done[shapeOf(x.schema)] = true
		c, err := s.claimed(ctx, tg, o, x.schema)
		if err != nil {
			return nil, err
		}
		for _, y := range c.all {
			for at, id := range c.by {
				if id == y.id {
					out[at] = y
				}
			}
		}
	}
	return out, nil
}
