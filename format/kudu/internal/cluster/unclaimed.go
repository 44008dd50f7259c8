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

// What a server's directories hold beside the tablets that can be read: tablets of which only a log, consensus
// metadata or a superblock that cannot be read is left, and blocks with rows that no superblock claims. Both
// are reported wherever tables are listed or verified.
//
// Kudu leaves blocks behind that are no loss: those that a superblock lists as orphaned, those whose records
// say that they were deleted, files of deltas and bloom filters of a flush that was killed. A block that holds
// a column and that no superblock names at all is another matter: it is what is left of a tablet whose
// superblock, log and consensus metadata are gone, or, seldom, of a flush or compaction that ended between its
// blocks and its superblock; nothing in the block says which.

// UnclaimedName is the name under which List gives the blocks that no superblock claims.
const UnclaimedName = "?"

// errLost is the cause of errors about tablets that are lost, and blocks that no tablet claims.
var errLost = errors.New("with a table's schema their rows are put together from the blocks: --schema FILE " +
	"(what stoa schema -f json prints)")

// Unclaimed is a finding if blocks with rows lie in a server's directories that no superblock claims; found are
// all that none names.
func Unclaimed(f *fs.FS, found []*loose) *region.Finding {
	var columns []*loose
	rows, last := int64(0), &loose{Rows: -1}
	for _, x := range found {
		if x.Err != nil || x.Kind != cfile.KindColumn || x.Rows == 0 {
			continue
		}
		// The columns of a rowset were written one after the other.
		if columns = append(columns, x); x.ID != last.ID+1 || x.Rows != last.Rows || x.ID == 0 {
			rows += x.Rows
		}
		last = x
	}
	if len(columns) == 0 {
		return nil
	}
	first := columns[0]
	x := codes.Codes.Finding("kudu.block.unclaimed", first.At, cmp.Or(f.UUID, first.At.Object),
		fmt.Sprintf("%d blocks hold columns of about %d rows, and no superblock claims them: they may be all that "+
			"is left of tablets; unclaimed=true says that this is known", len(columns), rows))
	return &x
}

// Unclaimed are the findings about blocks with rows that no superblock claims, a server each.
func (s *Servers) Unclaimed(ctx context.Context) (out []region.Finding, err error) {
	for _, f := range s.All {
		if f.MetaDir == "" {
			continue // without superblocks nothing is claimed: see halves
		}
		found, err := s.Loose(ctx, f)
		if err != nil {
			return out, err
		}
		if x := Unclaimed(f, found); x != nil {
			out = append(out, *x)
		}
	}
	return out, nil
}

// UnclaimedOf are the findings about blocks that no superblock claims and that may be what is left of a tablet
// of the table: if it was named, only those that fit its schema, where a range has no tablet, or a tablet is missing.
// That a tablet is known to be elsewhere (partial=true) says nothing of what lies here.
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

// lost are the tablets of which there are signs, and no replica that can be read; not those of a table of which
// there are others, which is told to miss them.
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

// LostEntries are the entries of List for what is not in a table: tablets that are lost, and, if there are
// none, the blocks that nothing claims.
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

// lostTable is the error of who opens what LostEntries gives; nil if name is none of that.
func (s *Servers) lostTable(ctx context.Context, name string) error {
	for _, b := range s.lost() {
		if b.ID == name {
			err := fault.Corruptf(fault.Span{Object: b.Object}, "superblock",
				"tablet %s has no superblock that can be read", b.ID)
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
