package cluster

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/sorted"
	"stoa/region"
)

// States of replicas in a census, and of parts of tables without a replica.
const (
	StateWhole     = "whole"     // no error is visible without reading rows
	StateBehind    = "behind"    // another replica has later operations
	StateDamaged   = "damaged"   // an error is visible without reading rows
	StateCopying   = "copying"   // its copying, or its deletion, was not finished
	StateTombstone = "tombstone" // it was deleted from the server
	StateEvicted   = "stranger"  // evicted: its server is not in the tablet's newest Raft configuration
	StateMissing   = "missing"   // a tablet that must exist but is not here
	StateUncovered = "uncovered" // a range that no tablet here holds; the table may have been created without it
	StateLost      = "lost"      // a tablet without a readable superblock
	StateUnclaimed = "unclaimed" // blocks with rows that no superblock names
)

// CensusLine describes a replica of a tablet, or what is known of one that is not here.
type CensusLine struct {
	Table, TableID    string
	Tablet, Partition string // "": unknown
	Server, Place     string // UUID, and metadata directory
	State, Why        string
	Last              uint64   // hybrid time of the replica's last operation; 0: unknown
	Complete          bool     // whether each tablet of the table has a replica in StateWhole
	LaterLog          string   // directory of a log of a later state, which is not joined with the replica; "": none
	Rows              int64    // in unclaimed blocks; -1: not known
	MayBeOf           []string // ids of the tables that unclaimed blocks may be of
}

// lacks reports whether the state alone means that rows are missing, regardless of other replicas.
func (l *CensusLine) lacks() bool {
	return l.State == StateMissing || l.State == StateLost || l.State == StateUnclaimed
}

// Census lists the replicas of all tables of which there is any trace in superblocks, the master's catalogue, logs,
// consensus metadata or unclaimed blocks. If tg names a table, only its replicas are listed.
// owners get unclaimed blocks when all tables are recovered.
func (s *Servers) Census(ctx context.Context, tg format.Target, owners Owners) (out []CensusLine, err error) {
	for _, ts := range s.tablesNamed(tg.Table) {
		if ts[0].ID == meta.SystemCatalogID {
			continue
		}
		lines, err := s.censusOf(ctx, ts)
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
	}
	if tg.Table != "" {
		return out, nil
	}
	out = append(out, s.absentTables()...)
	for _, b := range s.lost() {
		out = append(out, CensusLine{Table: b.Table, TableID: b.TableID, Tablet: b.ID, Place: b.Object,
			State: StateLost, Why: "only a log, consensus metadata or a damaged superblock is left"})
	}
	loose, err := s.unclaimed(ctx, owners)
	for _, x := range loose {
		l := CensusLine{Table: x.owner.name, TableID: x.owner.tableID, Place: x.At.Object, Server: x.Part,
			State: StateUnclaimed, Why: x.Message, Rows: x.rows, MayBeOf: x.maybe}
		at := len(out) // or after the lines of its table
		for i := range out {
			if l.TableID != "" && out[i].TableID == l.TableID && out[i].Table == l.Table {
				at = i + 1
			}
		}
		out = slices.Insert(out, at, l)
	}
	return out, err
}

// censusOf returns the census of a table of which tablets are here.
func (s *Servers) censusOf(ctx context.Context, ts []*table.Tablet) (out []CensusLine, err error) {
	top := table.Newest(ts)
	base := CensusLine{Table: s.NameOf(ts), TableID: top.TableID}
	complete := true
	for _, tb := range ts {
		lines, whole, err := s.replicas(ctx, base, tb)
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
		complete = complete && whole
	}
	missing, uncovered, more := s.Missing(ts)
	for _, g := range missing {
		l := base
		l.Tablet, l.Partition = g.id, g.what
		l.State, l.Why = s.absence(g.id, "no server here holds it")
		out = append(out, l)
	}
	if more > 0 {
		l := base
		l.State, l.Why = StateMissing, fault.Count(more, "more tablet")
		out = append(out, l)
	}
	for _, g := range uncovered {
		l := base
		l.Partition, l.State = g, StateUncovered
		l.Why = "no tablet here holds the range; the table may have been created without it"
		out = append(out, l)
	}
	complete = complete && len(missing) == 0 && more == 0
	for i := range out {
		out[i].Complete = complete
		if s.catalog != nil && s.catalog.tables[top.TableID].id == "" && out[i].Why == "" {
			out[i].Why = "the master's catalogue does not have the table"
		}
	}
	return out, nil
}

// replicas returns the lines of a tablet. whole reports whether one replica is in StateWhole.
func (s *Servers) replicas(ctx context.Context, base CensusLine, tb *table.Tablet) (out []CensusLine, whole bool,
	err error) {
	base.Tablet = tb.ID
	base.Partition = cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows")
	newest := uint64(0)
	var last []table.LastChange
	for _, r := range tb.Replicas() {
		l := base
		l.Server, l.Place = r.FS.UUID, r.FS.MetaDir
		x, err := s.judge(ctx, &l, tb, r)
		if err != nil {
			return nil, false, err
		}
		last = append(last, x)
		newest = max(newest, l.Last)
		out = append(out, l)
	}
	unlike, undecided := tb.Unlike(last), table.Undecided(last)
	beside, err := s.logBeside(ctx, tb, newest)
	if err != nil {
		return nil, false, err
	}
	for i := range out {
		l := &out[i]
		if l.State == StateWhole && unlike[i] != "" {
			l.State, l.Why = StateDamaged, unlike[i]
		}
		if l.State == StateWhole && l.Last < newest {
			l.State = StateBehind
			l.Why = "its last operation is at " + table.TimeText(l.Last)
		}
		if beside != "" && l.State != StateTombstone && l.State != StateCopying {
			l.LaterLog = beside
		}
		if l.State == StateWhole && beside != "" {
			l.State, l.Why = StateBehind, "a log without a superblock has later operations"
		}
		if x := undecided[i]; l.State == StateWhole && x != nil {
			l.Why = "its log ends with what may not be committed: " + x.Message
		}
		whole = whole || l.State == StateWhole
	}
	return slices.CompactFunc(out, func(a, b CensusLine) bool { // copies may share a directory of superblocks
		return a.Server == b.Server && a.Place == b.Place && a.State == b.State && a.Why == b.Why
	}), whole, nil
}

// logBeside returns the directory of a log without a superblock that has later operations than the replicas of its
// tablet, which is at newest; "" if there is none.
func (s *Servers) logBeside(ctx context.Context, tb *table.Tablet, newest uint64) (dir string, err error) {
	if s.noWAL || !slices.ContainsFunc(s.broken, func(b *meta.Tablet) bool { return b.ID == tb.ID }) {
		return "", nil
	}
	for _, f := range s.All {
		_, log, err := logAlone(ctx, f, tb.ID)
		if err != nil && !table.Damaged(err) {
			return "", err
		}
		if err == nil && log != nil && log.LastWrite > newest {
			dir, newest = path.Join(f.WALDir, fs.WalsDir, tb.ID), log.LastWrite
		}
	}
	return dir, nil
}

// judge determines the state of a replica from its own files and the tablet's Raft configuration.
func (s *Servers) judge(ctx context.Context, l *CensusLine, tb *table.Tablet, r table.Replica) (
	last table.LastChange, err error) {
	switch {
	case !r.HasData():
		l.State, l.Why = StateTombstone, "it was deleted from this server"
		return table.NoChange, nil
	case r.State != meta.TabletReady:
		l.State, l.Why = StateCopying, "its state is "+r.State.String()
		return table.NoChange, nil
	}
	last, err = r.LastChange(ctx, !s.noWAL)
	if err != nil && !table.Damaged(err) {
		return last, err
	}
	l.Last = last.Time
	found, err := s.quickHealthOf(ctx, &table.Tablet{Replica: r})
	if err != nil && !errors.As(err, new(*fault.Error)) {
		return last, err
	}
	if last.Later() {
		l.LaterLog = path.Join(r.FS.WALDir, fs.WalsDir, r.ID)
	}
	bad := slices.IndexFunc(found, func(x region.Finding) bool { return x.Severity >= region.Error })
	switch {
	case err != nil:
		l.State, l.Why = StateDamaged, err.Error()
	case last.Later():
		l.State, l.Why = StateDamaged, "its log is of a later state than its superblock"
	case bad >= 0:
		l.State, l.Why = StateDamaged, found[bad].Message
	case tb.Stranger(r):
		l.State, l.Why = StateEvicted, "the tablet's newest Raft configuration does not have this server: evicted"
	default:
		l.State = StateWhole
	}
	return last, nil
}

// absence is the state of a tablet that is not here, and why, in a census.
func (s *Servers) absence(id, why string) (state, reason string) {
	if s.isBroken(id) {
		return StateLost, "only a log, consensus metadata or a damaged superblock is left"
	}
	return StateMissing, why
}

// absentTables returns the lines for tables that only the master's catalogue lists.
func (s *Servers) absentTables() (out []CensusLine) {
	if s.catalog == nil {
		return nil
	}
	for id, e := range s.catalog.tables {
		if e.gone || s.holds(id) {
			continue
		}
		l := CensusLine{Table: e.name, TableID: id, State: StateMissing,
			Why: "the master's catalogue has it, but no server here holds it"}
		for _, tb := range s.catalog.absent(id, nil) {
			l.Tablet = tb.id
			l.State, l.Why = s.absence(tb.id, "the master's catalogue has it, but no server here holds it")
			out = append(out, l)
		}
		if l.Tablet == "" {
			out = append(out, l)
		}
	}
	sorted.By(out, func(a, b CensusLine) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.TableID, b.TableID), cmp.Compare(a.Tablet, b.Tablet))
	})
	return out
}

// Broken reports whether rows are missing: the line's tablet is not here, or some tablet of its table has no replica in
// StateWhole.
func (l *CensusLine) Broken() bool { return l.lacks() || !l.Complete && l.State != StateUncovered }
