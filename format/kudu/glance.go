package kudu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/region"
)

// What `stoa ls` tells of a tablet's health. It reads no rows: it looks whether the blocks are there, and whether the log begins and ends as
// it must, and reaches as far as the newest rowsets do. Damage within a block, or within a log that is not small, is found by those who read it.

// glanceSets is how many rowsets, the newest, are held against the end of the log.
const glanceSets = 16

// glanceBytes is how large a log may be that is read as a whole.
var glanceBytes int64 = 1 << 20

// glance are the errors that can be told of a tablet at a glance; none if one of its replicas is without.
func (s *servers) glance(ctx context.Context, tb *tablet) (out []region.Finding, err error) {
	for i, r := range append([]replica{tb.replica}, tb.others...) {
		if !r.HasData() {
			continue
		}
		found, err := s.glanceAt(ctx, &tablet{replica: r})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		if i == 0 {
			out = found
		}
	}
	return out, nil
}

// glanceAt is glance of a replica.
func (s *servers) glanceAt(ctx context.Context, tb *tablet) (out []region.Finding, err error) {
	if x, err := tb.lostBlocks(ctx); err != nil {
		return nil, err
	} else if x != nil {
		out = append(out, *x)
	}
	if s.noWAL {
		return out, nil
	}
	log, err := tb.fs.glanceLog(ctx, tb.Tablet)
	if err != nil {
		return nil, err
	}
	told := len(out)
	for _, x := range log.Findings {
		if x.Severity >= region.Error {
			out = append(out, x)
		}
	}
	if log.Missing || len(out) > told {
		return out, nil
	}
	t := &table{tree: tb.fs.tree, limits: tb.fs.o.Limits.WithDefaults(), noVerify: tb.fs.o.NoVerify}
	newest := slices.Clone(tb.RowSets)
	slices.SortFunc(newest, func(a, b RowSet) int { return cmp.Compare(b.ID, a.ID) })
	flushed, err := t.flushed(ctx, tb, newest[:min(len(newest), glanceSets)])
	if err != nil {
		return out, err
	}
	if x := tb.short(log, flushed); x != nil {
		out = append(out, *x)
	}
	return out, nil
}

// lostBlocks is a finding if blocks of a tablet are missing or cut.
func (tb *tablet) lostBlocks(ctx context.Context) (*region.Finding, error) {
	var first region.Finding
	all, lost := 0, 0
	for i := range tb.RowSets {
		for _, b := range tb.RowSets[i].Blocks() {
			all++
			p, err := tb.fs.PlaceOf(ctx, tb.Tablet, b.BlockRef)
			switch {
			case err == nil:
				continue
			case !errors.As(err, new(*fault.Error)):
				return nil, err
			}
			if lost++; lost == 1 {
				first = findingOf(lostCode(p), err, tb.ID)
			}
		}
	}
	if lost == 0 {
		return nil, nil
	}
	x := tb.note(first.Code, first.At, fmt.Sprintf("%d of %d blocks are missing or cut: %s", lost, all, first.Message))
	return &x, nil
}

// lostCode is the kind of finding of a block that cannot be found at a place.
func lostCode(p Place) string {
	if p.At.Object != "" {
		return "kudu.block.truncated"
	}
	return "kudu.block.missing"
}

// glanceLog looks at the ends of a tablet's segments. Of what it gives only Missing, Empty, LastTime and Findings count.
func (f *FS) glanceLog(ctx context.Context, t *Tablet) (*Logged, error) {
	x := newReplay(t, nil)
	segments, err := f.logSegments(ctx, t.ID)
	if err != nil || len(segments) == 0 {
		x.none(ctx, f)
		return x.out, err
	}
	if f.logBytes(ctx, t.ID) <= glanceBytes {
		log, err := f.Replay(ctx, t, nowhere)
		if err == nil {
			log.Findings = slices.DeleteFunc(log.Findings, func(x region.Finding) bool { return x.Code == "kudu.wal.change.lost" })
		}
		return log, err
	}
	for i, s := range segments {
		r, err := x.open(ctx, f, s, i == 0, i == len(segments)-1)
		if err != nil {
			return nil, err
		}
		if r != nil {
			r.src.Close()
		}
	}
	committed := map[OpID]bool{}
	for i, s := range slices.Backward(segments) {
		last, err := x.lastOf(ctx, f, s.Name, i == len(segments)-1, committed)
		if err != nil {
			return nil, err
		}
		if x.out.LastTime = last; last > 0 {
			return x.out, nil
		}
	}
	x.out.Empty = len(committed) == 0 && x.last == OpID{}
	return x.out, nil
}

// nowhere looks a key up without a look.
func nowhere(context.Context, uint64, []byte) (int64, bool, error) { return 0, false, nil }

// lastOf is the hybrid time of the last operation in a segment that was committed there or, as committed tells, in later ones; 0 if there is
// none. Batches before it are passed over by what their headers say.
func (x *replay) lastOf(ctx context.Context, f *FS, name string, newest bool, committed map[OpID]bool) (last uint64, err error) {
	src, err := f.tree.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	r, _, err := openWAL(ctx, src, name, f.o.pbc(), cmp.Or(x.codec, cfile.LZ4))
	switch {
	case r == nil && errors.As(err, new(*fault.Error)):
		return 0, nil // told by open
	case r == nil:
		return 0, err
	}
	r.step = 4 << 10 // batches are large
	var batches []int64
	for {
		off := r.pos
		skipped, err := r.skip(ctx)
		if err == nil && !skipped {
			_, err = r.next(ctx)
		}
		switch {
		case err == io.EOF:
			return x.lastIn(ctx, r, batches, committed)
		case err == nil:
			batches = append(batches, off)
		case isTorn(err) && newest: // what a crash leaves
		case errors.Is(err, fault.Corrupt):
			x.fault("kudu.wal.damaged", err)
		default:
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// skip goes behind the batch at hand, if its header is as it should be.
func (r *walReader) skip(ctx context.Context) (ok bool, err error) {
	n := r.headLen()
	if r.end-r.pos < n {
		return false, nil
	}
	head, err := r.bytes(ctx, r.pos, n)
	if err != nil {
		return false, err
	}
	h, ok := r.plausible(head)
	if !ok || h.stored > r.end-r.pos-n {
		return false, nil
	}
	r.pos += n + h.stored
	return true, nil
}

// lastIn is lastOf for the batches that begin at the given places. A commit comes behind its operation, so it was seen before.
func (x *replay) lastIn(ctx context.Context, r *walReader, batches []int64, committed map[OpID]bool) (last uint64, err error) {
	for _, off := range slices.Backward(batches) {
		b, err := r.batch(ctx, off)
		if err != nil && !errors.As(err, new(*fault.Error)) {
			return 0, err
		}
		if err != nil {
			continue
		}
		var ops []*replicateMsg
		parseBatch(b.cursor, false, func(e walEntry) {
			if e.commit != nil {
				committed[e.commit.id] = true
			} else {
				ops = append(ops, e.replicate)
			}
		})
		for _, m := range slices.Backward(ops) {
			x.last = m.id
			if committed[m.id] {
				return m.time, nil
			}
		}
	}
	return 0, nil
}
