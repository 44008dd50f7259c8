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
	"stoa/region"
	"stoa/vec"
)

// Choose sets tb.Replica to the best replica to read. Replicas are ranked by state, with ready ones before unfinished
// copies and tombstones; then by their latest operation before the snapshot, in deltas or log; then a complete log is
// preferred; then fewer missing blocks, not counting bloom filters. Operations rank above blocks, because damage can be
// repaired from other replicas but missing operations cannot. Without deep only the state counts, and nothing is read.
func (tb *Tablet) Choose(ctx context.Context, deep bool, ro Options) error {
	if len(tb.Others) == 0 {
		return nil
	}
	type rank struct {
		Replica
		state, holes, lost int
		last               uint64
	}
	var all []rank
	for _, r := range append([]Replica{tb.Replica}, tb.Others...) {
		x := rank{Replica: r}
		switch {
		case !r.HasData():
			x.state = 2
		case r.State != meta.TabletReady:
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
	}
	slices.SortStableFunc(all, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(b.last, a.last), cmp.Compare(a.holes, b.holes),
			cmp.Compare(a.lost, b.lost))
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

// missing returns the number of missing or truncated blocks of a replica, not counting bloom filters, which reading
// does not need. With deep, damaged deltas count, too, which are not found elsewhere, and blocks without footers.
func (r Replica) missing(ctx context.Context, deep bool) (n int, err error) {
	for i := range r.RowSets {
		for _, b := range r.RowSets[i].Blocks() {
			if b.Kind == "bloom" {
				continue
			}
			if _, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef); errors.As(err, new(*fault.Error)) {
				n++
			} else if err != nil {
				return 0, err
			} else if deep {
				sound, err := r.sound(ctx, b)
				if err != nil {
					return 0, err
				}
				if !sound {
					n++
				}
			}
		}
	}
	return n, nil
}

// sound reports whether a block has a structure that can be read and, if it has deltas, pages that can.
func (r Replica) sound(ctx context.Context, b meta.KindedBlock) (bool, error) {
	p, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef)
	if err != nil {
		return false, unlessDamaged(err)
	}
	o := format.OpenOptions{Limits: r.FS.Options.Limits, NoVerify: r.FS.Options.NoVerify,
		Depth: format.Quick, Opts: map[string]string{"kind": "column"}}
	switch b.Kind {
	case "redo", "undo":
		o.Depth, o.Opts["kind"] = format.Sums, "delta"
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
	if !r.HasData() {
		return 0, 0, nil
	}
	t := &Table{Tree: r.FS.Tree, Limits: r.FS.Options.Limits.WithDefaults(), NoVerify: r.FS.Options.NoVerify}
	tb := &Tablet{Replica: r}
	if !deep {
		last, err = t.Flushed(ctx, tb, tb.RowSets)
		return last, 0, err
	}
	log, last, err := t.readLog(ctx, tb, wal.Nowhere)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case log.Lost:
		holes = 2
	case log.Missing:
		holes = 1
	}
	return max(last, log.LastWrite), holes, nil
}
