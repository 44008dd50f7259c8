package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// Besides readable tablets, a server's directories may hold tablets of which only a log, consensus metadata or a
// damaged superblock is left, and blocks with rows that no superblock claims. Both are reported wherever tables are
// listed or verified.
//
// Some blocks that Kudu leaves behind are not losses: blocks that a superblock lists as orphaned, blocks that their
// records mark as deleted, and delta files and bloom filters of a killed flush. But a column block that no superblock
// names is left over from a tablet whose superblock, log and consensus metadata are gone or, rarely, from a flush or
// compaction that ended between writing its blocks and its superblock; nothing in the block tells which.

// UnclaimedName is the name, in lists, of the blocks that no superblock claims.
const UnclaimedName = "?"

// errLost is the cause of errors about tablets that are lost, and blocks that no tablet claims.
var errLost = errors.New("with the table's schema, rows can be assembled from the blocks: option schema=FILE " +
	"(as stoa schema -f json prints it)")

// Unclaimed returns a finding if there are blocks with rows among found, the blocks of a server that no superblock
// names.
func Unclaimed(f *fs.FS, found []*loose) *region.Finding {
	if x := strayIn(f, found, ""); x != nil {
		return &x.Finding
	}
	return nil
}

// stray is a finding about blocks with rows that no superblock names.
type stray struct {
	region.Finding
	rows  int64    // in them, those of a rowset once; -1: not known
	maybe []string // ids of the tables that they may be of
	owner claimant // the table that gets them when it is recovered; none: the zero value
}

// Owners are the tables that get blocks, by block.
type Owners map[fault.Span]claimant

// claimant is a table that the catalogue lists and of which no superblock is here, or a lost tablet of none of them.
type claimant struct {
	id, name string // of the table, or of the tablet; name is the one under which it is read
	tableID  string
	tablets  []string
	schema   *meta.Schema
}

// strayIn returns a finding about the blocks with rows among found; nil if there are none. owner is the name of the
// table that gets them, "" if none does.
func strayIn(f *fs.FS, found []*loose, owner string) *stray {
	var columns []*loose
	rows, last := int64(0), &loose{Rows: -1}
	about, what := "about", "no superblock claims them: they may be all that is left of tablets"
	of := map[int64]bool{} // numbers of rows of blocks whose order is not known
	for _, x := range found {
		if x.Err != nil || x.Kind != cfile.KindColumn || x.Rows == 0 {
			continue
		}
		// The columns of a rowset were written one after another, and have the same rows.
		columns = append(columns, x)
		again := x.seq == last.seq+1 && x.Rows == last.Rows
		if x.seq == 0 {
			again, of[x.Rows], about = of[x.Rows], true, "at least"
			what = "no record says which they are: superblocks may name them, or they are all that is left of tablets"
		}
		if last = x; !again {
			rows += x.Rows
		}
	}
	if len(columns) == 0 {
		return nil
	}
	if owner != "" {
		what = "no superblock claims them: if all tables are recovered, they are read with " + owner
	}
	first := columns[0]
	x := codes.Codes.Finding("kudu.block.unclaimed", first.At, cmp.Or(f.UUID, first.At.Object),
		fmt.Sprintf("%d blocks hold columns of %s %s, and %s; unclaimed=true if that is expected", len(columns),
			about, fault.Count(rows, "row"), what))
	return &stray{Finding: x, rows: rows}
}

// Unclaimed returns the findings about blocks with rows that no superblock claims, at most one per server.
func (s *Servers) Unclaimed(ctx context.Context) (out []region.Finding, err error) {
	all, err := s.unclaimed(ctx, nil)
	for _, x := range all {
		out = append(out, x.Finding)
	}
	return out, err
}

// unclaimed returns the blocks with rows that no superblock claims, those of each owner apart. Those that several
// copies of a server have are there once.
func (s *Servers) unclaimed(ctx context.Context, owners Owners) (out []stray, err error) {
	seen := map[string]bool{}
	servers, readable, err := s.allLoose(ctx)
	if err != nil {
		return out, err
	}
	for _, f := range s.All {
		if f.MetaDir == "" && owners == nil {
			continue // without superblocks nothing is claimed: see Incomplete
		}
		found := servers[f]
		found = slices.DeleteFunc(found, func(x *loose) bool {
			key := fmt.Sprint(f.UUID, x.ID, x.Kind, x.Typ, x.Rows, x.At.Len)
			again := f.UUID != "" && x.ID != 0 && x.Err == nil && seen[key]
			seen[key] = true
			return again
		})
		var all []stray
		for _, x := range Nested(ctx, f) {
			all = append(all, stray{Finding: x, rows: -1})
		}
		var of []claimant
		parts := map[string][]*loose{}
		for _, x := range found {
			c := owners[x.At]
			if parts[c.id] == nil {
				of = append(of, c)
			}
			parts[c.id] = append(parts[c.id], x)
		}
		for _, c := range of {
			if x := strayIn(f, parts[c.id], c.name); x != nil {
				x.maybe, x.owner = s.having(f, parts[c.id]), c
				all = append(all, *x)
			}
		}
		if x := unreadable(f, found, readable); x != nil && owners != nil {
			x.maybe = s.having(f, nil)
			all = append(all, *x)
		}
		for _, x := range all {
			if !slices.ContainsFunc(out, func(y stray) bool { return y.Finding == x.Finding }) {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// allLoose returns the blocks of each server that no superblock claims, and which of them some copy of it can read.
func (s *Servers) allLoose(ctx context.Context) (servers map[*fs.FS][]*loose, readable map[string]bool, err error) {
	servers, readable = map[*fs.FS][]*loose{}, map[string]bool{}
	for _, f := range s.All {
		if servers[f], err = s.Loose(ctx, f); err != nil {
			return servers, readable, err
		}
		for _, x := range servers[f] {
			readable[fmt.Sprint(f.UUID, x.ID)] = readable[fmt.Sprint(f.UUID, x.ID)] || x.Err == nil
		}
	}
	return servers, readable, nil
}

// Unread returns the findings about blocks that no superblock claims and that no copy can read, one per server.
func (s *Servers) Unread(ctx context.Context) (out []region.Finding, err error) {
	servers, readable, err := s.allLoose(ctx)
	for _, f := range s.All {
		if x := unreadable(f, servers[f], readable); x != nil && !slices.Contains(out, x.Finding) {
			out = append(out, x.Finding)
		}
	}
	return out, err
}

// unreadable returns a finding about blocks that cannot be read, of which no copy of the server can; nil if there are
// none. They may be deltas or bloom filters, or have rows of any table.
func unreadable(f *fs.FS, found []*loose, readable map[string]bool) *stray {
	n, first := int64(0), (*loose)(nil)
	for _, x := range found {
		if x.Err == nil || f.UUID != "" && x.ID != 0 && readable[fmt.Sprint(f.UUID, x.ID)] {
			continue
		}
		n, first = n+1, cmp.Or(first, x)
	}
	if n == 0 {
		return nil
	}
	return &stray{rows: -1, Finding: codes.Codes.Finding("kudu.block.unclaimed", first.At,
		cmp.Or(f.UUID, first.At.Object), fmt.Sprintf("%s that no superblock claims cannot be read, and may have "+
			"rows: %v", fault.Count(n, "block"), first.Err))}
}

// having returns the ids of the tables that unclaimed blocks of a server may be of, because their superblocks may be of
// an earlier time than the blocks; nil blocks: those that could have any. The replicas of other servers have the rows
// of a tablet that this server holds as well; two of them are enough if its superblock here is lost.
func (s *Servers) having(f *fs.FS, found []*loose) (ids []string) {
	all := runsOf(found)
	for _, ts := range s.Tables() {
		top := table.Newest(ts)
		alone := slices.ContainsFunc(ts, func(tb *table.Tablet) bool {
			servers, peer := map[string]bool{}, false
			for _, r := range tb.Replicas() {
				if servers[r.FS.UUID] = true; r.Consensus != nil {
					for _, p := range r.Consensus.Peers {
						peer = peer || p.UUID == f.UUID
					}
				}
			}
			peer = peer || servers[f.UUID]
			delete(servers, f.UUID)
			return len(servers) == 0 || len(servers) == 1 && !peer
		})
		if top.ID != meta.SystemCatalogID && alone &&
			(found == nil || slices.ContainsFunc(all, func(run []*loose) bool { return mayHave(&top.Schema, run) })) {
			ids = append(ids, ts[0].TableID)
		}
	}
	return ids
}

// runsOf returns column blocks with rows in runs of consecutive numbers with the same number of rows.
func runsOf(found []*loose) (out [][]*loose) {
	for _, x := range found {
		switch n := len(out); {
		case x.Err != nil || x.Kind != cfile.KindColumn || x.Rows == 0:
		case n > 0 && x.follows(out[n-1][len(out[n-1])-1]):
			out[n-1] = append(out[n-1], x)
		default:
			out = append(out, []*loose{x})
		}
	}
	return out
}

// mayHave reports whether a run of blocks may be of a rowset or several under a schema, or part of one, or of one to
// which columns have been added since: each block has the type of some column, or the first have those of all of them.
func mayHave(sc *meta.Schema, run []*loose) bool {
	part, later := true, len(run) > len(sc.Columns)
	for i, x := range run {
		one := func(c meta.Column) bool { return x.hasType(&c) }
		part = part && slices.ContainsFunc(sc.Columns, one)
		later = later && (i >= len(sc.Columns) || one(sc.Columns[i]))
	}
	return part || later
}

// Nested returns findings about directories of servers among a server's block files and below those of its logs, as far
// as these have been listed.
func Nested(ctx context.Context, f *fs.FS) (out []region.Finding) {
	for dir := range f.Strange.Range {
		if found, err := fs.FindServers(ctx, f.Tree, dir.(string), f.Options); err == nil && len(found) > 0 {
			out = append(out, codes.Codes.Finding("kudu.block.unclaimed", fault.Span{Object: dir.(string)},
				dir.(string), "among the server's blocks or logs are directories of another, which are not read: move "+
					"them elsewhere, or read them alone"))
		}
	}
	return out
}

// UnclaimedOf returns the findings about unclaimed blocks that may be left over from a tablet of the table. If the
// table was named, only blocks that fit its schema are reported, and only if a tablet is missing or a range is
// uncovered. Option partial has no effect: that a tablet is elsewhere tells nothing about blocks here.
func (s *Servers) UnclaimedOf(ctx context.Context, ts []*table.Tablet, named bool) (out []region.Finding, err error) {
	if !named {
		return s.Unclaimed(ctx)
	}
	if missing, uncovered, _ := s.Missing(ts); len(missing)+len(uncovered) == 0 {
		return nil, nil
	}
	for _, f := range s.All {
		found, err := s.Loose(ctx, f)
		if err != nil {
			return out, err
		}
		matching := slices.Concat(group(found, &table.Newest(ts).Schema)...)
		if x := Unclaimed(f, matching); x != nil {
			out = append(out, *x)
		}
	}
	return out, nil
}

// lost returns the tablets of which there are traces but no readable replica. Tablets of a table that has other tablets
// here, or that the catalogue lists, are excluded; they are reported as missing from that table.
func (s *Servers) lost() (out []*meta.Tablet) {
	for _, b := range s.broken {
		here := slices.ContainsFunc(s.Tablets,
			func(tb *table.Tablet) bool { return tb.HasData() && (tb.ID == b.ID || tb.TableID == b.TableID) })
		again := slices.ContainsFunc(out, func(o *meta.Tablet) bool { return o.ID == b.ID })
		if !here && !again && b.ID != meta.SystemCatalogID &&
			!(s.catalog != nil && s.catalog.tables[b.TableID].id != "") {
			out = append(out, b)
		}
	}
	return out
}

// LostEntries returns list entries for lost tablets or, if there are none, for unclaimed blocks, which belong to no
// table.
func (s *Servers) LostEntries(what string, unclaimed []region.Finding) (out []format.Entry) {
	for _, b := range s.lost() {
		if what != "" && what != b.ID {
			continue
		}
		e := format.Entry{Table: b.ID, Kind: "lost tablet", Rows: -1, Bytes: -1, Findings: ToList(s.Findings)}
		if b.Table != "" {
			e.Meta = append(e.Meta, table.Fact("table", "%s", b.Table))
		}
		e.Meta = append(e.Meta, table.Fact("state", "LOST"))
		out = append(out, e)
	}
	if len(out) == 0 && len(unclaimed) > 0 && (what == "" || what == UnclaimedName) {
		e := format.Entry{Table: UnclaimedName, Kind: "unclaimed blocks", Rows: -1, Bytes: -1, Findings: unclaimed}
		out = append(out, e)
	}
	return out
}

// lostTable returns the error for opening an entry of LostEntries; nil if name is not such an entry.
func (s *Servers) lostTable(ctx context.Context, name string) error {
	for _, b := range s.lost() {
		if b.ID == name {
			err := fault.Corruptf(fault.Span{Object: b.Object}, "superblock",
				"tablet %s has no readable superblock", b.ID)
			err.Cause = errLost
			return err
		}
	}
	if name != UnclaimedName {
		return nil
	}
	found, err := s.Unclaimed(ctx)
	if err != nil || len(found) == 0 {
		return err
	}
	lost := fault.Corruptf(found[0].At, "", "%s", found[0].Message)
	lost.Cause = errLost
	return lost
}
