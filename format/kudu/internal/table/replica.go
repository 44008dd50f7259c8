package table

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/vec"
)

// Several servers may hold replicas of a tablet; one is read. The replicas of a tablet agree on its rows, not on how they are stored:
// each server flushes and compacts for itself. But a copy of a replica, made by Kudu for another server or by hand, has the same rowsets,
// and the blocks of these have the same bytes, if not the same numbers. A rowset of another replica is a twin if it has the same id and
// the same blocks, of the same lengths and with the same footers. What is damaged in a block is then read from its twin: a page, an index, or all of it.

// Choose makes the replica that is read the first: one that is whole, rather than a tombstone or an unfinished copy; of these the one that
// saw the latest operation before the snapshot, in its deltas or in its log; of these one whose log is whole; of these the one with the
// fewest missing blocks, those of bloom files not counted. All but the first are looked at only if deep: that takes reading. What is
// damaged in it is filled from the others; what it did not see is not, so that counts more.
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
		last, holes, err := r.lastTime(ctx, !ro.NoWAL)
		if err != nil {
			return err
		}
		y.last, y.holes = min(last, ro.At), holes
		if y.lost, err = r.missing(ctx); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(b.last, a.last), cmp.Compare(a.holes, b.holes), cmp.Compare(a.lost, b.lost))
	})
	tb.Replica, tb.Others, tb.Told = all[0].Replica, nil, nil
	for _, x := range all[1:] {
		if tb.Others = append(tb.Others, x.Replica); x.last > all[0].last && len(tb.Told) == 0 {
			tb.Told = append(tb.Told, tb.Note("kudu.replica.behind", fault.Span{Object: tb.Object}, fmt.Sprintf("the replica of server %s, which is read, saw operations up to %s; that of server %s (%s) up to %s",
				tb.FS.UUID, TimeText(all[0].last), x.FS.UUID, x.State, TimeText(x.last))))
		}
	}
	return nil
}

// missing is how many blocks that reading needs a replica lacks.
func (r Replica) missing(ctx context.Context) (n int, err error) {
	for i := range r.RowSets {
		for _, b := range r.RowSets[i].Blocks() {
			if b.Kind == "bloom" {
				continue
			}
			if _, err := r.FS.PlaceOf(ctx, r.Tablet, b.BlockRef); errors.As(err, new(*fault.Error)) {
				n++
			} else if err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// lastTime is the hybrid time of the latest change that a replica knows of; 0 if nothing tells. holes is 1 if
// there is no log, 2 if operations before that one are lost.
func (r Replica) lastTime(ctx context.Context, deep bool) (last uint64, holes int, err error) {
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

// twin is a rowset of another replica that has the same bytes.
type twin struct {
	Replica
	set *meta.RowSet
}

// findTwins looks for the twins of a rowset.
func (t *Table) findTwins(ctx context.Context, s *RowSet) error {
	s.twins = nil
	for _, r := range s.Tablet.Others {
		for i := range r.RowSets {
			other := twin{r, &r.RowSets[i]}
			same, err := t.sameBlocks(ctx, s, other)
			if err != nil {
				return err
			}
			if same {
				s.twins = append(s.twins, other)
			}
		}
	}
	return nil
}

// sameBlocks reports whether other has the blocks of s: of the same kinds and lengths, with the same footers, as far as these can be read.
// The first and last keys and the times of the first and last change are in footers; at least one that has such must be readable, unless the
// two are copies of one server and the blocks have the same numbers.
func (t *Table) sameBlocks(ctx context.Context, s *RowSet, other twin) (bool, error) {
	if s.ID != other.set.ID {
		return false, nil
	}
	a, b := s.Blocks(), other.set.Blocks()
	if len(a) != len(b) {
		return false, nil
	}
	telling := s.Tablet.FS.UUID != "" && s.Tablet.FS.UUID == other.FS.UUID // copies of one server, whose blocks never change under their numbers
	for i := range a {
		telling = telling && a[i].ID == b[i].ID
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || a[i].Column != b[i].Column {
			return false, nil
		}
		x, p, err := t.FooterIn(ctx, s.Tablet.Replica, a[i].BlockRef)
		if err != nil {
			return false, err
		}
		y, q, err := t.FooterIn(ctx, other.Replica, b[i].BlockRef)
		if err != nil {
			return false, err
		}
		if p.At.Len != q.At.Len && p.At.Len > 0 && q.At.Len > 0 {
			return false, nil
		}
		if x == nil || y == nil {
			continue
		}
		if x.NumValues != y.NumValues {
			return false, nil
		}
		for _, key := range []string{meta.KeyMin, meta.KeyMax, meta.KeyDeltaStats} {
			v, has := x.Get(key)
			w, hasToo := y.Get(key)
			if has != hasToo || !bytes.Equal(v, w) {
				return false, nil
			}
			telling = telling || has
		}
	}
	return telling, nil
}

// FooterIn reads the footer of a block; nil if it, or the block, is damaged.
func (t *Table) FooterIn(ctx context.Context, r Replica, b meta.BlockRef) (*cfile.Footer, fs.Place, error) {
	p, err := r.FS.PlaceOf(ctx, r.Tablet, b)
	if err != nil {
		if Damaged(err) {
			err = nil
		}
		return nil, fs.Place{}, err
	}
	f, err := cfile.OpenAt(ctx, Source{t.Tree, p.At.Object, p.At.End()}, p.At, t.cfileOptions())
	if err != nil {
		if Damaged(err) {
			err = nil
		}
		return nil, p, err
	}
	footer := f.Footer()
	return &footer, p, nil
}

// places are where a block of a rowset lies: in the replica that is read, and then in twins. The error is why it is not in the first.
func (t *Table) places(ctx context.Context, s *RowSet, b meta.BlockRef) (out []fs.Place, err error) {
	p, err := s.Tablet.FS.PlaceOf(ctx, s.Tablet.Tablet, b)
	if err == nil {
		out = append(out, p)
	} else if !Damaged(err) {
		return nil, err
	}
	if len(s.twins) == 0 {
		return out, err
	}
	n := -1
	for i, x := range s.Blocks() {
		if x.ID == b.ID {
			n = i
		}
	}
	for _, tw := range s.twins {
		if n < 0 {
			break
		}
		q, other := tw.FS.PlaceOf(ctx, tw.Tablet, tw.set.Blocks()[n].BlockRef)
		switch {
		case other == nil:
			out = append(out, q)
		case !Damaged(other):
			return nil, other
		}
	}
	return out, err
}

// OpenBlock opens the CFile of a block: in the first place where that can be done.
func (t *Table) OpenBlock(ctx context.Context, s *RowSet, b meta.BlockRef) (*cfile.Reader, error) {
	r, _, err := opened(ctx, t, s, b, t.opener(s, b))
	return r, err
}

// opened opens a block with open in the first place where that can be done. all are the places, the opened one first.
func opened[R any](ctx context.Context, t *Table, s *RowSet, b meta.BlockRef, open func(context.Context, Source, fault.Span, format.OpenOptions) (R, error)) (r R, all []fs.Place, err error) {
	all, err = t.places(ctx, s, b)
	if len(all) == 0 {
		return r, nil, err
	}
	var first error
	for i, p := range all {
		r, err = open(ctx, Source{t.Tree, p.At.Object, p.At.End()}, p.At, t.cfileOptions())
		if err = named(err, p); err == nil {
			all[0], all[i] = all[i], all[0]
			return r, all, nil
		}
		if first == nil {
			first = err
		}
		if !Damaged(err) {
			break
		}
	}
	return r, nil, first
}

// elsewhere reads the bytes of a page in a twin of the block that begins at base, which has the same bytes.
func (t *Table) elsewhere(at fault.Span, base fs.Place, p fs.Place) ([]byte, fault.Span, error) {
	there := p.At.Sub(at.Off-base.At.Off, at.Len)
	b := make([]byte, at.Len)
	err := format.ReadFull(context.Background(), Source{t.Tree, p.At.Object, p.At.End()}, there, "", b)
	return b, there, err
}

// decodeElsewhere decodes a page from the twins of its block, after err.
func (x *columnChunk) decodeElsewhere(t *format.Task, dst *vec.Vector, err error) error {
	base := slices.IndexFunc(x.places, func(p fs.Place) bool {
		at := t.Page.Spans[0]
		return p.At.Object == at.Object && p.At.Off <= at.Off && at.End() <= p.At.End()
	})
	for i, p := range x.places {
		if base < 0 || i == base {
			continue
		}
		again := *t
		again.Page.Spans, again.Bytes = nil, nil
		var failed error
		for _, at := range t.Page.Spans {
			b, there, bad := x.t.elsewhere(at, x.places[base], p)
			if failed = bad; bad != nil {
				break
			}
			again.Page.Spans, again.Bytes = append(again.Page.Spans, there), append(again.Bytes, b)
		}
		if failed != nil {
			continue
		}
		mark := dst.Mark()
		if x.Chunk.Decode(&again, dst) == nil {
			t.Raw = again.Raw
			return nil
		}
		dst.Rollback(mark)
	}
	return err
}
