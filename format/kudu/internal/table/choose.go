package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/vec"
)

// Choose sets tb.Replica to the best replica to read. Replicas are ranked by state, with ready ones before
// unfinished copies, those of whose servers no data directory is here, and tombstones; then by their latest
// operation before the snapshot, in deltas or log; then a complete log is preferred; then fewer losses that nothing
// else can make up for; then fewer missing blocks, not counting bloom files. Operations rank above blocks, because
// damage can be repaired from other replicas but missing operations cannot. Without deep only the state counts, and
// nothing is read.
func (tb *Tablet) Choose(ctx context.Context, deep bool, ro Options) error {
	if len(tb.Others) == 0 {
		return nil
	}
	type rank struct {
		Replica
		state, holes int
		gone         int // 1: rows are lost
		lost         losses
		last         uint64
	}
	var all []rank
	for _, r := range append([]Replica{tb.Replica}, tb.Others...) {
		x := rank{Replica: r}
		switch {
		case !r.HasData():
			x.state = 2
		case r.State != meta.TabletReady, len(r.FS.DataDirs) == 0 && len(r.RowSets) > 0:
			x.state = 1
		}
		if all = append(all, x); !deep {
			continue
		}
		y := &all[len(all)-1]
		last, holes, err := r.LastTime(ctx, !ro.NoWAL)
		if err != nil {
			return err
		}
		y.last, y.holes = min(last, ro.At), holes
		if y.lost, err = r.missing(ctx, ro.Rebuild); err != nil {
			return err
		}
		y.gone = min(y.lost.final, 1)
	}
	sorted.StablyBy(all, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.gone, b.gone), cmp.Compare(b.last, a.last),
			cmp.Compare(a.holes, b.holes), cmp.Compare(a.lost.final, b.lost.final), cmp.Compare(a.lost.all, b.lost.all))
	})
	tb.Replica, tb.Others, tb.Findings = all[0].Replica, nil, nil
	for _, x := range all[1:] {
		if tb.Others = append(tb.Others, x.Replica); x.last > all[0].last && len(tb.Findings) == 0 {
			tb.Findings = append(tb.Findings, tb.Note("kudu.replica.behind", fault.Span{Object: tb.Object},
				fmt.Sprintf("the replica of server %s, which is read, has operations up to %s; that of server "+
					"%s (%s) up to %s",
					tb.FS.UUID, TimeText(all[0].last), x.FS.UUID, x.State, TimeText(x.last))))
		}
	}
	return nil
}

// losses counts the missing or damaged blocks of a replica. The final ones are those whose cells fill does not find in
// other replicas: without the keys of rows, nothing can be looked up there.
type losses struct{ final, all int }

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
		Depth: format.Quick, Opts: map[string]string{"kind": "column"}}
	if pages {
		o.Depth = format.Sums
	}
	switch b.Kind {
	case "redo", "undo":
		o.Opts["kind"] = "delta"
	case "adhoc-index":
		o.Opts["kind"] = "index"
	}
	tg := format.Target{Tree: r.FS.Tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
	for x := range cfile.Format.Verify(ctx, tg, o) {
		if x.Severity >= region.Error {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// LastTime returns the hybrid time of a replica's latest change, in its deltas or, with deep, its log; 0 if unknown.
// holes is 1 if there is no log, 2 if the log lacks earlier operations; without deep it is 0.
func (r Replica) LastTime(ctx context.Context, deep bool) (last uint64, holes int, err error) {
	l, err := r.lastChange(ctx, deep)
	return l.time, l.holes, err
}

// lastChange is what a replica knows of its latest change: see LastTime.
type lastChange struct {
	time  uint64
	holes int
	none  bool // there is certainly none since its rowsets were written, as its whole log is empty
}

func (r Replica) lastChange(ctx context.Context, deep bool) (l lastChange, err error) {
	if !r.HasData() {
		return l, nil
	}
	t := &Table{Tree: r.FS.Tree, Limits: r.FS.Options.Limits.WithDefaults(), NoVerify: r.FS.Options.NoVerify}
	tb := &Tablet{Replica: r}
	if !deep {
		l.time, err = t.Flushed(ctx, tb, tb.RowSets)
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
	}
	l.time = max(last, log.LastWrite)
	l.none = log.Empty && l.holes == 0 && l.time == 0
	return l, nil
}
