package fs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
	"stoa/vec"
)

// A block is found by its id, which a server gives once. Where files of several servers were mixed, or files were
// copied, other blocks have the id, too. A tablet's blocks are in the data directories that its superblock lists: what
// has their ids elsewhere is another tablet's. Blocks of the same id in those directories are compared.

// owns reports whether blocks of a tablet may be in a data directory. A superblock lists all directories in which Kudu
// has written blocks of the tablet; those of old versions list none.
func (f *FS) owns(t *meta.Tablet, dir int) bool {
	if dir < 0 || len(t.DataDirs) == 0 {
		return true
	}
	id := f.DataDirs[dir].UUID
	return id == "" || slices.Contains(t.DataDirs, id)
}

// findForeign marks and reports the data directories that cannot be the server's: no superblock lists one, and no
// directory that a superblock lists knows of it, or it of them.
func (f *FS) findForeign(tablets []*meta.Tablet) {
	own := map[string]bool{}
	for _, t := range tablets {
		for _, id := range t.DataDirs {
			own[id] = true
		}
	}
	if len(own) == 0 {
		return
	}
	for range f.DataDirs { // a directory may be known to one that is known to another
		for i := range f.DataDirs {
			d := &f.DataDirs[i]
			if own[d.UUID] || slices.ContainsFunc(d.All, func(id string) bool { return own[id] }) {
				for _, id := range append(d.All, d.UUID) {
					own[id] = true
				}
			}
		}
	}
	for i := range f.DataDirs {
		if d := &f.DataDirs[i]; d.UUID != "" && !own[d.UUID] {
			d.foreign = true
			f.Note("kudu.datadir.foreign", fault.Span{Object: d.Instance}, d.UUID, fmt.Sprintf("no superblock of the "+
				"server lists data directory %s, nor does a directory that one lists: its blocks are not the server's",
				d.UUID))
		}
	}
}

// decision is which of several blocks with an id is a tablet's.
type decision struct {
	place Place
	err   error
}

// blockOf finds a block that a tablet names. If it is missing or reaches beyond the end of its container, the error is
// Corrupt, and the Place holds what is known about it.
func (f *FS) blockOf(ctx context.Context, t *meta.Tablet, id uint64) (p Place, err error) {
	if f.BlockManager == FileManager && f.found == nil {
		return f.fileOf(ctx, t, id)
	}
	x, ok := f.Blocks[id]
	switch {
	case f.BlockManager == FileManager: // for one table, which asks often
	case !ok:
		return Place{ID: id, Dir: -1}, fault.Corruptf(fault.Span{Object: f.anyDataDir()}, "",
			"no container holds block %d", id)
	case len(f.again[id]) > 0:
	case !f.owns(t, f.Containers[x.Container].Dir):
		return elsewhere(id)
	default:
		return f.placed(id, x)
	}
	key := t.ID + strconv.FormatUint(id, 16)
	if d, ok := f.found.Load(key); ok {
		return d.(decision).place, d.(decision).err
	}
	if f.BlockManager == FileManager {
		if p, err = f.fileOf(ctx, t, id); err != nil {
			return p, err
		}
	} else if p, err = f.decide(ctx, t, id); err != nil && fault.NotOfFile(err) {
		return p, err
	}
	f.found.Store(key, decision{p, err})
	return p, err
}

// elsewhere is the result for a block that is only in directories that are not the tablet's.
func elsewhere(id uint64) (Place, error) {
	return Place{ID: id, Dir: -1}, fault.Corruptf(fault.Span{}, "",
		"block %d is only in data directories that the superblock does not list: it is another tablet's", id)
}

// decide chooses among the blocks of several containers that have the id of a tablet's block: the one that fits the
// superblock. If several do, and differ, none is read.
func (f *FS) decide(ctx context.Context, t *meta.Tablet, id uint64) (Place, error) {
	var all, fit []Place
	for _, x := range append([]Placed{f.Blocks[id]}, f.again[id]...) {
		if p, err := f.placed(id, x); err == nil && f.owns(t, p.Dir) {
			all = append(all, p)
		}
	}
	for _, p := range all {
		ok, err := f.Fits(ctx, t, id, p)
		if err != nil {
			return p, err
		}
		if ok {
			fit = append(fit, p)
		}
	}
	switch {
	case len(all) == 0:
		return elsewhere(id)
	case len(fit) == 0:
		return all[0], nil // its damage is reported where it is read
	}
	for _, p := range fit[1:] {
		same, err := f.Same(ctx, fit[0], p)
		if err != nil {
			return p, err
		}
		if !same {
			return Place{ID: id, Dir: -1}, fault.Corruptf(fault.Span{}, "", "%s and %s both hold block %d, with "+
				"different bytes, and nothing tells which is the tablet's", fit[0].At, p.At, id)
		}
	}
	return fit[0], nil
}

// Fits reports whether a block is sound and agrees with what a superblock, and the other blocks of its rowset, tell of
// the block with its id.
func (f *FS) Fits(ctx context.Context, t *meta.Tablet, id uint64, p Place) (bool, error) {
	o := format.OpenOptions{Limits: f.Options.Limits, NoVerify: f.Options.NoVerify, Depth: format.Sums}
	tg := format.Target{Tree: f.Tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
	for x := range cfile.Format.Verify(ctx, tg, o) {
		if x.Severity >= region.Error {
			return false, ctx.Err()
		}
	}
	foot, err := f.readFooter(ctx, p)
	if err != nil {
		if fault.NotOfFile(err) {
			return false, err
		}
		return false, nil
	}
	for i := range t.RowSets {
		s := &t.RowSets[i]
		k := slices.IndexFunc(s.Blocks(), func(b meta.KindedBlock) bool { return b.ID == id })
		if k < 0 {
			continue
		}
		b := s.Blocks()[k]
		_, delta := foot.get(meta.KeyDeltaStats)
		if (b.Kind == "redo" || b.Kind == "undo") != delta {
			return false, nil
		}
		if c := t.Schema.Find(b.Column); c >= 0 && !foot.of(&t.Schema.Columns[c]) {
			return false, nil
		}
		for key, want := range map[string][]byte{meta.KeyMin: s.MinKey, meta.KeyMax: s.MaxKey} {
			if v, ok := foot.get(key); ok && want != nil && !bytes.Equal(v, want) {
				return false, nil
			}
		}
		rows := f.rowsOf(ctx, t, s)
		return delta || b.Kind == "bloom" || rows < 0 || rows == foot.values, ctx.Err()
	}
	return true, nil
}

// rowsOf returns the number of rows of a rowset, by a column that is in one place only; -1 if there is none.
func (f *FS) rowsOf(ctx context.Context, t *meta.Tablet, s *meta.RowSet) int64 {
	for _, b := range s.Columns {
		if len(f.again[b.ID]) > 0 {
			continue
		}
		if p, err := f.blockOf(ctx, t, b.ID); err == nil {
			if foot, err := f.readFooter(ctx, p); err == nil {
				return foot.values
			}
		}
	}
	return -1
}

// Same reports whether two blocks have the same bytes.
func (f *FS) Same(ctx context.Context, p, q Place) (bool, error) {
	if p.At.Len != q.At.Len {
		return false, nil
	}
	x, err := f.OpenBlock(ctx, p)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := f.OpenBlock(ctx, q)
	if err != nil {
		return false, err
	}
	defer y.Close()
	const step = 256 << 10
	a, b := make([]byte, min(step, p.At.Len)), make([]byte, min(step, p.At.Len))
	for off := int64(0); off < p.At.Len; off += step {
		n := min(step, p.At.Len-off)
		if _, err := x.ReadAt(ctx, a[:n], off); err != nil && err != io.EOF {
			return false, err
		}
		if _, err := y.ReadAt(ctx, b[:n], off); err != nil && err != io.EOF {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}
