package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/vec"
)

// Choose sets tb.Replica to the best replica to read. Replicas are ranked by state, with ready ones before those of
// whose servers no data directory is here, unfinished copies, and tombstones; then those without losses that nothing
// else can make up for are preferred; then by their latest operation before the snapshot, in deltas or log; then
// members of the tablet's newest Raft configuration; then a complete log, and one that ends with nothing undecided;
// then fewer such losses; then fewer missing blocks, not counting bloom files; then more rows. Operations rank above
// other blocks, because damage can be repaired from other replicas but missing operations cannot. Without deep only the
// state counts, and nothing is read.
func (tb *Tablet) Choose(ctx context.Context, deep bool, ro Options) error {
	if len(tb.Others) == 0 {
		return nil
	}
	var all []rank
	for _, r := range tb.Replicas() {
		x := rank{Replica: r, LastChange: NoChange}
		switch {
		case !r.HasData():
			x.state = 3
		case r.State != meta.TabletReady:
			x.state = 2
		case len(r.FS.DataDirs) == 0 && len(r.RowSets) > 0:
			x.state = 1
		}
		if deep {
			var err error
			if x.LastChange, err = r.LastChange(ctx, !ro.NoWAL); err != nil {
				return err
			}
			if x.lost, err = r.missing(ctx, ro.Rebuild); err != nil {
				return err
			}
			if tb.Stranger(r) {
				x.stranger = 1
			}
		}
		all = append(all, x)
	}
	sorted.StablyBy(all, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(min(a.lost.final, 1), min(b.lost.final, 1)),
			cmp.Compare(min(b.Time, ro.At), min(a.Time, ro.At)), cmp.Compare(a.stranger, b.stranger),
			cmp.Compare(a.holes, b.holes), cmp.Compare(len(a.undecided), len(b.undecided)),
			cmp.Compare(a.lost.final, b.lost.final),
			cmp.Compare(a.lost.all, b.lost.all), cmp.Compare(b.rows, a.rows))
	})
	tb.Replica, tb.Others, tb.Findings = all[0].Replica, nil, nil
	for _, x := range all[1:] {
		tb.Others = append(tb.Others, x.Replica)
	}
	if deep {
		tb.tell(all, ro.At)
	}
	return nil
}

// rank is what decides which of several replicas is read.
type rank struct {
	Replica
	LastChange
	state    int
	stranger int // 1: it is one
	lost     losses
}

// tell adds a finding if the first of the replicas, which is read, may not have the tablet's rows.
func (tb *Tablet) tell(all []rank, at uint64) {
	i := slices.IndexFunc(all, func(x rank) bool { return min(x.Time, at) > min(all[0].Time, at) })
	note := func(code, layout string, args ...any) {
		tb.Findings = append(tb.Findings, tb.Note(code, fault.Span{Object: tb.Object}, fmt.Sprintf(layout, args...)))
	}
	switch {
	case i >= 0:
		note("kudu.replica.behind", "the replica of server %s, which is read, has operations up to %s; that of server "+
			"%s (%s) up to %s", tb.FS.UUID, TimeText(min(all[0].Time, at)), all[i].FS.UUID, all[i].State,
			TimeText(min(all[i].Time, at)))
	case all[0].stranger > 0 && all[0].HasData():
		note("kudu.replica.behind", "the replica of server %s, which is read, was evicted: the tablet's newest Raft "+
			"configuration does not have the server", tb.FS.UUID)
	}
	var last []LastChange
	for _, x := range all {
		last = append(last, x.LastChange)
	}
	for i, x := range Undecided(last) {
		if i > 0 && x != nil && all[i].stranger == 0 && at == Latest { // loading reports those of the first
			tb.Findings = append(tb.Findings, *x)
		}
	}
	for _, x := range all[1:] {
		if x.later && !all[0].later {
			note("kudu.replica.behind", "the log of server %s in %s is of a later state of the tablet than any "+
				"superblock that is here, and is not used", x.FS.UUID, x.FS.WALDir)
			break
		}
	}
	for _, x := range all[1:] {
		if why := x.differs(all[0].LastChange); why != "" && x.stranger == 0 {
			note("kudu.replica.differs", "the replica of server %s, which is read, and that of server %s have %s",
				tb.FS.UUID, x.FS.UUID, why)
			break
		}
	}
}

// Stranger reports whether the newest Raft configuration in any replica of the tablet lacks r's server.
func (tb *Tablet) Stranger(r Replica) bool {
	var newest *meta.Consensus
	for _, x := range tb.Replicas() {
		if c := x.Consensus; c != nil && x.HasData() && (newest == nil || c.Index > newest.Index) {
			newest = c
		}
	}
	return newest != nil && r.FS.UUID != "" &&
		!slices.ContainsFunc(newest.Peers, func(p meta.Peer) bool { return p.UUID == r.FS.UUID })
}

// losses counts the missing or damaged blocks of a replica. The final ones are those whose cells fill does not find in
// other replicas: without the keys of rows, nothing can be looked up there.
type losses struct{ final, all int }

// Missing returns how many blocks of a replica, and of its copies, are missing or truncated, not counting bloom
// filters: all, and those of which no other replica has what they hold.
func (r Replica) Missing(ctx context.Context) (final, all int, err error) {
	n, err := r.missing(ctx, false)
	return n.final, n.all, err
}

// missing returns the missing or truncated blocks of a replica, not counting bloom filters: reading does not need them.
// With deep, blocks with a damaged structure count, too, and damaged pages of blocks that are not filled.
func (r Replica) missing(ctx context.Context, deep bool) (n losses, err error) {
	for i := range r.RowSets {
		for _, b := range r.RowSets[i].Blocks() {
			if b.Kind == "bloom" {
				continue
			}
			final := r.final(b)
			_, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef)
			sound := err == nil
			if err != nil && !errors.As(err, new(*fault.Error)) {
				return n, err
			}
			if sound && deep {
				if sound, err = r.sound(ctx, b, final); err != nil {
					return n, err
				}
			}
			for i := 0; i < len(r.FS.Copies) && !sound; i++ {
				if sound, err = (Replica{r.FS.Copies[i], r.Tablet}).sound(ctx, b, deep && final); err != nil {
					return n, err
				}
			}
			if sound {
				continue
			}
			if n.all++; final {
				n.final++
			}
		}
	}
	return n, nil
}

// Unsound returns in how many blocks of a replica, and of its copies, pages are damaged that its latest rows need.
func (r Replica) Unsound(ctx context.Context) (n int, err error) {
	for i := range r.RowSets {
		for _, b := range r.RowSets[i].Blocks() {
			if b.Kind != "column" && b.Kind != "redo" {
				continue
			}
			sound, err := r.sound(ctx, b, true)
			for i := 0; i < len(r.FS.Copies) && !sound && err == nil; i++ {
				sound, err = Replica{r.FS.Copies[i], r.Tablet}.sound(ctx, b, true)
			}
			if err != nil {
				return n, err
			}
			if !sound {
				n++
			}
		}
	}
	return n, nil
}

// final reports whether what a block loses is not found in other replicas: deltas, keys and arrays.
func (r Replica) final(b meta.KindedBlock) bool {
	if b.Kind != "column" {
		return true
	}
	k := r.Schema.Find(b.Column)
	return k >= 0 && (k < r.Schema.NumKeys || r.Schema.Columns[k].Array)
}

// sound reports whether a block has a structure that can be read and, with pages, pages that can.
func (r Replica) sound(ctx context.Context, b meta.KindedBlock, pages bool) (bool, error) {
	p, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef)
	if err != nil {
		return false, unlessDamaged(err)
	}
	o := format.OpenOptions{Limits: r.FS.Options.Limits, NoVerify: r.FS.Options.NoVerify,
		Depth: format.Quick, Opts: map[string]string{"kind": kindOf(b)}}
	if pages {
		o.Depth = format.Sums
	}
	tg := format.Target{Tree: r.FS.Tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
	for x := range cfile.Format.Verify(ctx, tg, o) {
		if x.Severity >= region.Error {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// kindOf is the kind of CFile that a block is.
func kindOf(b meta.KindedBlock) string {
	switch b.Kind {
	case "redo", "undo":
		return "delta"
	case "adhoc-index":
		return "index"
	}
	return "column"
}

// LastTime returns the hybrid time of a replica's latest change, in its deltas or, with deep, its log; 0 if unknown.
// holes is 1 if there is no log, 2 if the log lacks earlier operations; without deep it is 0.
func (r Replica) LastTime(ctx context.Context, deep bool) (last uint64, holes int, err error) {
	l, err := r.LastChange(ctx, deep)
	return l.Time, l.holes, err
}

// LastChange is what a replica knows of its latest change: see LastTime.
type LastChange struct {
	Time  uint64
	holes int
	none  bool  // there is certainly none since its rowsets were written, as its whole log is empty
	rows  int64 // live rows after it, if all of the log was flushed; -1: unknown

	committed, open int64            // indexes of the last such operations in the log
	torn            int64            // index of the last one that may have been in a torn batch; 0: there is none
	undecided       []region.Finding // that operations at its end are not known to be committed
	later           bool             // the log is of a later state than the superblock
}

// Later reports whether the log is of a later state of the tablet than the superblock.
func (l LastChange) Later() bool { return l.later }

// Undecided returns, for each of several replicas, the finding that its log ends with operations of which nothing says
// that they were committed; nil if it has none, or if another replica has committed them, or what came in their places.
func Undecided(last []LastChange) []*region.Finding {
	out, committed := make([]*region.Finding, len(last)), int64(0)
	for _, l := range last {
		committed = max(committed, l.committed)
	}
	for i, l := range last {
		if len(l.undecided) > 0 && max(l.open, l.torn) > committed {
			out[i] = &l.undecided[len(l.undecided)-1]
		}
	}
	return out
}

// NoChange is that of a replica without data.
var NoChange = LastChange{rows: -1}

// differs says how many rows two replicas with the same latest change have, if not the same number; "" otherwise. Then
// one of them is not the tablet's, or from another time, and nothing tells which.
func (l LastChange) differs(o LastChange) string {
	if l.rows < 0 || o.rows < 0 || l.rows == o.rows || l.Time != o.Time {
		return ""
	}
	return fmt.Sprintf("%d and %s, which no operation explains", o.rows, fault.Count(l.rows, "row"))
}

// Unlike returns, for each of Replicas, in what it differs from another member with the same latest operation; "" if it
// does not.
func (tb *Tablet) Unlike(last []LastChange) []string {
	all := tb.Replicas()
	out := make([]string, len(all))
	for i := range all {
		for k := range i {
			if why := last[i].differs(last[k]); why != "" && !tb.Stranger(all[i]) && !tb.Stranger(all[k]) {
				why = fmt.Sprintf("the replicas of servers %s and %s have %s", all[k].FS.UUID, all[i].FS.UUID, why)
				out[i], out[k] = cmp.Or(out[i], why), cmp.Or(out[k], why)
			}
		}
	}
	return out
}

// LastChange reads what a replica knows of its latest change; with deep, its log, too.
func (r Replica) LastChange(ctx context.Context, deep bool) (l LastChange, err error) {
	l = NoChange
	if !r.HasData() {
		return l, nil
	}
	t := &Table{Tree: r.FS.Tree, Limits: r.FS.Options.Limits.WithDefaults(), NoVerify: r.FS.Options.NoVerify}
	tb := &Tablet{Replica: r}
	if !deep {
		l.Time, err = t.Flushed(ctx, tb, tb.RowSets)
		return l, err
	}
	log, last, err := t.readLog(ctx, tb, wal.Nowhere)
	if err != nil {
		return l, err
	}
	switch {
	case log.Lost:
		l.holes = 2
	case log.Missing:
		l.holes = 1
	case log.Ops == 0 && r.State == meta.TabletReady:
		l.rows = r.Rows()
	}
	l.Time = max(last, log.LastWrite)
	l.committed, l.open = log.Last.Index, log.Open.Index
	if x := log.Torn; x != nil && !x.Commit {
		l.torn = cmp.Or(x.To, log.Received.Index+x.More)
	}
	for _, x := range log.Findings {
		if x.Code == "kudu.wal.torn" || x.Code == "kudu.wal.uncommitted" {
			l.undecided = append(l.undecided, x)
		}
	}
	l.later = log.Later
	l.none = log.Empty && l.holes == 0 && l.Time == 0
	return l, nil
}
