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
	"stoa/region"
	"stoa/vec"
)

// Several servers may hold replicas of a tablet; one replica is read. Replicas agree on the rows but not on how they
// are stored, because each server flushes and compacts on its own. But a copy of a replica, made by Kudu for another
// server or by hand, has the same rowsets, whose blocks have the same bytes although their ids may differ. A rowset of
// another replica is a twin if it has the same id, and blocks of the same kinds, lengths and footers. If a page, an
// index or a whole block is damaged, its twin is read, provided that all that is sound in both is the same: see proof.

// findTwins finds the twins of a rowset.
func (t *Table) findTwins(ctx context.Context, s *RowSet) error {
	s.twins = nil
	for _, r := range s.Tablet.Others {
		for i := range r.RowSets {
			other := twin{Replica: r, set: &r.RowSets[i]}
			same, err := t.sameBlocks(ctx, s, other)
			if err != nil {
				return err
			}
			if same {
				other.proof = t.proof(ctx, s, other)
				s.twins = append(s.twins, other)
			}
		}
	}
	return nil
}

// CopiesOf returns the places of each block of rowset i of a tablet, in the order of its Blocks: in the replica that is
// read, if it is there, then in its twins.
func (tb *Tablet) CopiesOf(ctx context.Context, t *Table, i int) (out [][]fs.Place, err error) {
	s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb, Rows: -1}
	if err := t.findTwins(ctx, s); err != nil {
		return nil, err
	}
	for _, b := range s.Blocks() {
		all, err := t.places(ctx, s, b.BlockRef)
		if err != nil && !Damaged(err) {
			return nil, err
		}
		out = append(out, all)
	}
	return out, nil
}

// sameBlocks reports whether other has the blocks of s: of the same kinds and lengths, with the same footers, as far as
// these can be read. At least one readable footer must have a first and last key, or delta statistics, which identify
// it. This is not required if the two are copies of one server and the blocks have the same ids.
func (t *Table) sameBlocks(ctx context.Context, s *RowSet, other twin) (bool, error) {
	if s.ID != other.set.ID {
		return false, nil
	}
	a, b := s.Blocks(), other.set.Blocks()
	if len(a) != len(b) {
		return false, nil
	}
	// in copies of one server's directories, blocks with the same id are the same
	copies := s.Tablet.FS.UUID != "" && s.Tablet.FS.UUID == other.FS.UUID
	identified := copies
	for i := range a {
		identified = identified && a[i].ID == b[i].ID
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
		if x == nil || y == nil { // missing, damaged or cut short
			continue
		} else if p.At.Len != q.At.Len || x.NumValues != y.NumValues {
			if note := s.Tablet.Note("kudu.replica.differs", q.At, fmt.Sprintf("block %d has other content in another "+
				"copy of server %s, at %s, and both can be read", a[i].ID, other.FS.UUID, p.At)); copies &&
				a[i].ID == b[i].ID && !slices.Contains(s.Tablet.Findings, note) {
				s.Tablet.Findings = append(s.Tablet.Findings, note)
			}
			return false, nil
		}
		for _, key := range []string{meta.KeyMin, meta.KeyMax, meta.KeyDeltaStats} {
			v, has := x.Get(key)
			w, hasToo := y.Get(key)
			if has != hasToo || !bytes.Equal(v, w) {
				return false, nil
			}
			identified = identified || has
		}
	}
	return identified, nil
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

// places returns the places of a block of a rowset: in the replica that is read, then in its twins. The error tells why
// the block is not in the former.
func (t *Table) places(ctx context.Context, s *RowSet, b meta.BlockRef) (out []fs.Place, err error) {
	p, err := s.Tablet.FS.PlaceOf(ctx, s.Tablet.Tablet, b)
	if err == nil {
		out = append(out, p)
	} else if !Damaged(err) {
		return nil, err
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
			q.Proof = tw.proof
			out = append(out, q)
		case !Damaged(other):
			return nil, other
		}
	}
	for _, c := range s.Tablet.FS.Copies {
		if q, same, other := t.copyOf(ctx, s, c, b); other != nil {
			return nil, other
		} else if same {
			q.Proof = t.proof(ctx, s, twin{Replica: Replica{c, s.Tablet.Tablet}, set: s.RowSet})
			out = append(out, q)
		}
	}
	return out, err
}

// copyOf finds a block of a rowset in another copy of the server's directories, in which the rowset is no twin because
// the copy is from another time.
func (t *Table) copyOf(ctx context.Context, s *RowSet, c *fs.FS, b meta.BlockRef) (q fs.Place, same bool, err error) {
	is := func(tw twin) bool { return tw.FS.MetaDir == c.MetaDir && tw.FS.WALDir == c.WALDir }
	if slices.ContainsFunc(s.twins, is) {
		return q, false, nil
	}
	x, p, err := t.FooterIn(ctx, s.Tablet.Replica, b)
	if err != nil {
		return q, false, err
	}
	y, q, err := t.FooterIn(ctx, Replica{c, s.Tablet.Tablet}, b)
	if err != nil || y == nil || x != nil {
		return q, x != nil && y != nil && x.NumValues == y.NumValues && p.At.Len == q.At.Len, err
	}
	same, err = c.Fits(ctx, s.Tablet.Tablet, b.ID, q)
	return q, same, err
}

// OpenBlock opens the CFile of a block, at the first of its places where that succeeds.
func (t *Table) OpenBlock(ctx context.Context, s *RowSet, b meta.BlockRef) (*cfile.Reader, error) {
	r, _, err := opened(ctx, t, s, b, t.opener(s, b))
	return r, err
}

// opened opens a block with open, at the first of its places where that succeeds. all has the places, with that one
// first. The error is that of the first place.
func opened[R any](ctx context.Context, t *Table, s *RowSet, b meta.BlockRef,
	open func(context.Context, Source, fault.Span, format.OpenOptions) (R, error)) (r R, all []fs.Place, err error) {
	all, err = t.places(ctx, s, b)
	if len(all) == 0 {
		return r, nil, err
	}
	first := err
	for i, p := range all {
		if !p.Usable() {
			continue
		}
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

// proof compares a rowset with one that has the same footers: it is a copy if nothing that is sound in both has other
// bytes. Exports of a table at two moments may have the same footers, too.
func (t *Table) proof(ctx context.Context, s *RowSet, other twin) *fs.Proof {
	ctx = context.WithoutCancel(ctx)
	return &fs.Proof{Check: func() bool {
		theirs := other.set.Blocks()
		for i, b := range s.Blocks() {
			p, bad := s.Tablet.FS.PlaceOf(ctx, s.Tablet.Tablet, b.BlockRef)
			q, worse := other.FS.PlaceOf(ctx, other.Tablet, theirs[i].BlockRef)
			if cmp.Or(bad, worse) != nil || p.At.Len != q.At.Len || b.Kind == "bloom" {
				continue
			}
			f := s.Tablet.FS
			if same, err := f.Same(ctx, p, q); err != nil || !same && t.contradict(ctx, f, b, p, q) {
				return false
			}
		}
		return true
	}}
}

// contradict reports whether bytes that differ in two places of a block are sound in both. A block whose structure
// cannot be read tells nothing.
func (t *Table) contradict(ctx context.Context, f *fs.FS, b meta.KindedBlock, p, q fs.Place) bool {
	var bad []fault.Span
	for _, x := range []fs.Place{p, q} {
		for _, depth := range []format.Depth{format.Quick, format.Sums} {
			o := format.OpenOptions{Limits: t.Limits, Depth: depth, Opts: map[string]string{"kind": kindOf(b)}}
			tg := format.Target{Tree: t.Tree, Name: x.At.Object, At: vec.Range{From: x.At.Off, To: x.At.End()}}
			for f := range cfile.Format.Verify(ctx, tg, o) {
				if f.Severity < region.Error {
					continue
				}
				if depth == format.Quick {
					return false
				}
				bad = append(bad, fault.Span{Off: f.At.Off - x.At.Off, Len: f.At.Len})
			}
		}
	}
	same, err := f.Same(ctx, p, q, bad...)
	return !same && err == nil
}

// elsewhere reads the page at a span of the block at base from its twin at p. It returns the bytes and their span.
func (t *Table) elsewhere(at fault.Span, base fs.Place, p fs.Place) ([]byte, fault.Span, error) {
	there := p.At.Sub(at.Off-base.At.Off, at.Len)
	b := make([]byte, at.Len)
	err := format.ReadFull(context.Background(), Source{t.Tree, p.At.Object, p.At.End()}, there, "", b)
	return b, there, err
}

// unlessDamaged returns err, or nil if err is damage.
func unlessDamaged(err error) error {
	if Damaged(err) {
		return nil
	}
	return err
}

// named turns an Invalid error about a file of a kind other than the superblock implies into damage of the block at p.
func named(err error, p fs.Place) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Class == fault.Invalid {
		return fault.Corruptf(e.At, e.Path, "block %d: %s", p.ID, e.Reason)
	}
	return err
}
