package fs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strconv"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Place is the location of a block.
type Place struct {
	ID  uint64
	At  fault.Span // the file, and the range in it
	Dir int        // data directory: index into FS.DataDirs; -1 if the block was found in none

	Proof *Proof // that it is a copy of the block that was asked for; nil: it is that block
}

// Proof tells whether a rowset of another replica, or of another copy of the server, is a copy. The answer costs
// reading both, and is found when it is needed.
type Proof struct {
	once  sync.Once
	Check func() bool
	holds bool
}

// Usable reports whether the bytes at the place may stand for the block.
func (p *Place) Usable() bool { return p.Proof == nil || p.Proof.Holds() }

// Holds reports whether it is a copy.
func (p *Proof) Holds() bool {
	p.once.Do(func() { p.holds = p.Check() })
	return p.holds
}

// placed returns the place of a block of the log block manager. If the block is not (completely) there, the error is
// Corrupt, and the Place holds what is known about it.
func (f *FS) placed(id uint64, x Placed) (Place, error) {
	c := f.Containers[x.Container]
	p := Place{ID: id, At: fault.Span{Object: cmp.Or(c.Data, path.Join(f.DataDirs[c.Dir].Dir, c.Name+DataSuffix)),
		Off: x.Off, Len: x.Len}, Dir: c.Dir}
	switch {
	case x.lost && c.Data == "":
		return p, fault.Corruptf(p.At, "", "block %d: the container's data file is missing", id)
	case x.lost:
		return p, fault.Corruptf(p.At, "", "block %d reaches past the end of the container (%d)", id, c.Size)
	}
	return p, nil
}

func (f *FS) anyDataDir() string {
	if len(f.DataDirs) == 0 {
		return ""
	}
	return f.DataDirs[0].Dir
}

// PlaceOf finds a block that a superblock names. An error has the block's span, or that of the reference in the
// superblock if nothing is known of the block.
func (f *FS) PlaceOf(ctx context.Context, t *meta.Tablet, b meta.BlockRef) (Place, error) {
	p, err := f.blockOf(ctx, t, b.ID)
	if e, ok := err.(*fault.Error); ok && p.At.Object == "" {
		e.At = fault.Span{Object: t.Object, Off: b.Off, Len: int64(b.Len)}
	}
	return p, err
}

// BlockPath returns the path of a block of the file block manager, relative to its data directory.
func BlockPath(id uint64) string {
	return fmt.Sprintf("%02x/%02x/%02x/%016d", byte(id>>40), byte(id>>32), byte(id>>24), id)
}

// fileOf finds a tablet's block of the file block manager: first in the data directory that its id names, then in the
// others, whose indexes may be unknown or wrong.
func (f *FS) fileOf(ctx context.Context, t *meta.Tablet, id uint64) (Place, error) {
	name := BlockPath(id)
	var tried string
	var err error
	for pass := range 2 {
		for i := range f.DataDirs {
			d := &f.DataDirs[i]
			if (uint64(d.Index) == id>>48 && d.Index >= 0) != (pass == 0) {
				continue
			}
			at := path.Join(d.Dir, name)
			info, gone := f.Tree.Stat(ctx, at)
			switch own := f.owns(t, i); {
			case Gone(gone) && own:
				tried = cmp.Or(tried, at)
			case Gone(gone):
			case gone != nil:
				return Place{ID: id, Dir: i}, gone
			case !own:
				_, err = elsewhere(id)
			case info.Dir:
				return Place{ID: id, Dir: -1}, fault.Corruptf(fault.Span{Object: at}, "",
					"a directory stands where the file of block %d must be", id)
			default:
				return Place{ID: id, At: fault.Span{Object: at, Len: info.Size}, Dir: i}, nil
			}
		}
	}
	if err == nil {
		err = fault.Corruptf(fault.Span{Object: tried}, "", "the file of block %d is missing", id)
	}
	return Place{ID: id, Dir: -1}, err
}

// AllBlocks iterates over all live blocks, including those that no superblock names. With the file block manager it
// walks the data directories; a directory that cannot be listed yields an error, and the walk continues.
func (f *FS) AllBlocks(ctx context.Context) iter.Seq2[Place, error] {
	return func(yield func(Place, error) bool) {
		if f.BlockManager == FileManager {
			for i := range f.DataDirs {
				if !f.walk(ctx, i, f.DataDirs[i].Dir, 0, yield) {
					return
				}
			}
			return
		}
		for n, c := range f.Containers {
			for _, x := range c.Live {
				if first := f.Blocks[x.ID].Container; first != int32(n) && !f.DataDirs[c.Dir].foreign &&
					!f.DataDirs[f.Containers[first].Dir].foreign {
					continue // it is counted with the first container that has the id
				}
				if !yield(Place{ID: x.ID, At: fault.Span{Object: c.Data, Off: x.Off, Len: x.Len}, Dir: c.Dir}, nil) {
					return
				}
			}
		}
	}
}

// walk yields the blocks below a directory at a depth of 0 to 3 in data directory dir, and notes directories that are
// not the block manager's. It returns false if yield did.
func (f *FS) walk(ctx context.Context, dir int, at string, depth int, yield func(Place, error) bool) bool {
	for info, err := range f.Tree.List(ctx, at) {
		name := path.Base(info.Name)
		switch {
		case err != nil:
			if !yield(Place{Dir: dir, At: fault.Span{Object: at}}, err) {
				return false
			}
		case info.Dir && depth > 0 && (depth == 3 || !isHexByte(name)):
			f.odd(at)
		case depth < 3:
			if info.Dir && isHexByte(name) && !f.walk(ctx, dir, info.Name, depth+1, yield) {
				return false
			}
		case !info.Dir:
			id, err := strconv.ParseUint(name, 10, 64)
			if err != nil || id == 0 || path.Join(f.DataDirs[dir].Dir, BlockPath(id)) != info.Name {
				continue // a temporary file
			}
			if !yield(Place{ID: id, At: fault.Span{Object: info.Name, Len: info.Size}, Dir: dir}, nil) {
				return false
			}
		}
	}
	return true
}

// Unnamed returns the blocks that none of the tablets names or lists as orphaned, sorted by id: they are left over from
// a crash, or from tablets whose superblock is lost. The error is the first one; with an error the list is incomplete.
func (f *FS) Unnamed(ctx context.Context, tablets []*meta.Tablet) ([]Place, error) {
	named := map[uint64]*meta.Tablet{}
	for _, t := range tablets {
		for i := range t.RowSets {
			for _, b := range t.RowSets[i].Blocks() {
				named[b.ID] = t
			}
		}
		for _, b := range t.Orphaned {
			named[b.ID] = t
		}
	}
	var out []Place
	var first error
	for p, err := range f.AllBlocks(ctx) {
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if t := named[p.ID]; t == nil || !f.owns(t, p.Dir) {
			out = append(out, p)
		}
	}
	sorted.By(out, func(a, b Place) int { return cmp.Compare(a.ID, b.ID) })
	return out, first
}

// OpenBlock opens a block as a source whose offset 0 is the block's first byte and whose size is the block's.
func (f *FS) OpenBlock(ctx context.Context, p Place) (store.Source, error) {
	src, err := f.Tree.Open(ctx, p.At.Object)
	if err != nil {
		return nil, err
	}
	if p.At.Off < 0 || p.At.Len < 0 || p.At.End() > src.Size() {
		src.Close()
		return nil, fault.Corruptf(p.At, "", "block %d reaches past the end of the object (%d)", p.ID, src.Size())
	}
	return &section{src, p.At}, nil
}

// section is a store.Source over part of another.
type section struct {
	src store.Source
	at  fault.Span
}

func (s *section) Size() int64  { return s.at.Len }
func (s *section) Close() error { return s.src.Close() }
func (s *section) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off >= s.at.Len {
		return 0, io.EOF
	}
	if int64(len(p)) <= s.at.Len-off {
		return s.src.ReadAt(ctx, p, s.at.Off+off)
	}
	n, err := s.src.ReadAt(ctx, p[:s.at.Len-off], s.at.Off+off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// LostCode returns the code of the finding about a block that cannot be found; it depends on what is known of its
// place.
func LostCode(p Place) string {
	if p.At.Object != "" {
		return "kudu.block.truncated"
	}
	return "kudu.block.missing"
}

// rebase converts the offset in an error, which is relative to a block, to an offset in the file that has the block at
// the span at.
func rebase(err error, at fault.Span) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.At.Object != at.Object {
		return err
	}
	out := *e
	out.At.Off += at.Off
	return &out
}

// BlockBytes returns the total size of a tablet's blocks; -1 if it is unknown without asking the file system, as with
// the file block manager.
func (f *FS) BlockBytes(t *meta.Tablet) (n int64) {
	if f.BlockManager == FileManager {
		return -1
	}
	for i := range t.RowSets {
		for _, b := range t.RowSets[i].Blocks() {
			n += f.Blocks[b.ID].Len
		}
	}
	return n
}

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
	tg := format.Target{Tree: f.Tree, Name: p.At.Object}
	tg.At.From, tg.At.To = p.At.Off, p.At.End()
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

// Same reports whether two blocks have the same bytes, except in spans, which count from where a block begins.
func (f *FS) Same(ctx context.Context, p, q Place, except ...fault.Span) (bool, error) {
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
		for _, x := range except {
			if from, to := max(0, x.Off-off), min(n, x.End()-off); from < to {
				clear(a[from:to])
				clear(b[from:to])
			}
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// footerFacts are the parts of a CFile's footer that are listed.
type footerFacts struct {
	dataType, encoding, compression string
	nullable                        bool
	values                          int64
	incompatible, compatible        uint32
	get                             func(key string) ([]byte, bool)
	at                              fault.Span // of the footer, for errors about its metadata
}

// readFooter reads the footer of the CFile in a block.
func (f *FS) readFooter(ctx context.Context, p Place) (footerFacts, error) {
	src, err := f.OpenBlock(ctx, p)
	if err != nil {
		return footerFacts{}, err
	}
	defer src.Close()
	r, err := cfile.OpenReader(ctx, src, p.At.Object,
		format.OpenOptions{Limits: f.Options.Limits, NoVerify: f.Options.NoVerify})
	if err != nil {
		return footerFacts{}, rebase(err, p.At)
	}
	t := r.Footer()
	x := footerFacts{typeText(t.Type, t.Array()), meta.EncodingName(t.Encoding), meta.CompressionName(t.Compression),
		t.Nullable, t.NumValues, t.Incompatible, t.Compatible, t.Get, p.At}
	return x, nil
}

func typeText(t cfile.Type, array bool) string {
	if array {
		return meta.TypeName(t) + " 1d-array"
	}
	return meta.TypeName(t)
}

// of reports whether the CFile can be a block of column c.
func (x *footerFacts) of(c *meta.Column) bool {
	return x.dataType == typeText(c.Type, c.Array) && (c.Array || x.nullable == c.Nullable)
}
