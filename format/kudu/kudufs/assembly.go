package kudufs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	kudu "stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/store"
)

// The directories of the two servers.
const masterDir, serverDir = "master", "tserver"

// assembly is the format.Assembly. Tables are written for one tablet server, each with block numbers of its own, so
// taking them is renaming their files. The master's directories are written last: its catalogue follows from the
// superblocks.
type assembly struct {
	dir    string
	uuid   string // of the tablet server; "": none is there yet
	kind   string // of block manager
	begun  string // uuid of the tablet server that tables beside it were written for; "": there is none
	next   uint64 // block number that none has
	tables map[string]string
	places map[string]string // of tablets
	sync   func(dir string) error
}

// assemble is format.Format.Assemble.
func assemble(ctx context.Context, dir string) (format.Assembly, error) {
	a := &assembly{dir: dir, next: 1, tables: map[string]string{}, places: map[string]string{}, sync: store.SyncDir}
	begun, err := filepath.Glob(filepath.Join(filepath.Clean(dir), "*", serverDir))
	if err != nil {
		return nil, err
	}
	for _, d := range append([]string{filepath.Join(dir, serverDir)}, begun...) {
		if _, err := os.Stat(d); err != nil {
			continue
		}
		f, tablets, err := a.open(ctx, d)
		if err != nil {
			return nil, err
		}
		a.note(f, tablets)
		if d != filepath.Join(dir, serverDir) {
			a.begun = cmp.Or(a.begun, f.UUID)
		} else {
			for _, t := range tablets {
				a.tables[t.Table], a.places[t.ID] = t.TableID, d
			}
		}
	}
	return a, nil
}

// open reads what a tablet server's directories say of themselves.
func (a *assembly) open(ctx context.Context, dir string) (*kudu.FS, []*meta.Tablet, error) {
	l := kudu.Layout{WALDir: filepath.ToSlash(dir)}
	f, err := kudu.OpenFS(ctx, store.Local{}, l, kudu.FSOptions{})
	if err != nil {
		return nil, nil, err
	}
	tablets, err := f.Tablets(ctx)
	return f, tablets, err
}

// note keeps the server's id, and the block numbers that are taken.
func (a *assembly) note(f *kudu.FS, tablets []*meta.Tablet) {
	a.uuid, a.kind = cmp.Or(a.uuid, f.UUID), cmp.Or(a.kind, f.BlockManager)
	for _, t := range tablets {
		for i := range t.RowSets {
			for _, b := range t.RowSets[i].Blocks() {
				a.next = max(a.next, b.ID+1)
			}
		}
	}
}

func (a *assembly) Options(name string) map[string]string {
	o := map[string]string{"first-block": strconv.FormatUint(a.next, 10), "table": name}
	if a.uuid != "" {
		o["server"] = a.uuid
	}
	return o
}

func (a *assembly) Check(ctx context.Context, dir string) (string, error) {
	f, tablets, err := a.open(ctx, filepath.Join(dir, serverDir))
	if err != nil {
		return "", err
	}
	if len(tablets) == 0 {
		return "", fault.Invalidf("%s: expected a tablet, found none", dir)
	}
	if uuid, kind := cmp.Or(a.uuid, f.UUID), cmp.Or(a.kind, f.BlockManager); uuid != f.UUID || kind != f.BlockManager {
		return "", fault.Invalidf("%s: expected server %s with block manager %s, found %s with %s", dir, uuid, kind,
			f.UUID, f.BlockManager)
	}
	t := tablets[0]
	if _, ok := a.tables[t.Table]; ok {
		return "", fault.Invalidf("another table is named %s: a master has one of a name", t.Table)
	}
	for _, t := range tablets {
		if at, ok := a.places[t.ID]; ok {
			return "", fault.Invalidf("tablet %s is in %s, too", t.ID, at)
		}
	}
	for _, t := range tablets {
		a.places[t.ID] = dir
	}
	a.tables[t.Table] = t.TableID
	a.note(f, tablets)
	return t.Table, nil
}

// Take renames the files of a table's tablet server, superblocks last: without one, the rest is only space. So the
// directories with the rest are on the disk before a superblock has its name there.
func (a *assembly) Take(ctx context.Context, dir string) error {
	from, to := filepath.Join(dir, serverDir), filepath.Join(a.dir, serverDir)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) { // an earlier call has taken all of it
		return os.RemoveAll(dir)
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	rest := []string{kudu.InstanceFile, kudu.DataSubdir, kudu.WalsDir, kudu.ConsensusDir}
	for _, subs := range [][]string{rest, {kudu.TabletMetaDir}} {
		changed := []string{a.dir, to}
		for _, sub := range subs {
			dirs, err := move(ctx, from, to, sub)
			if err != nil {
				return err
			}
			changed = append(changed, dirs...)
		}
		for _, d := range changed {
			if err := a.sync(d); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}

// move renames the files below from/sub to to/sub. It returns all directories there that this call, or one that was
// killed, may have changed.
func move(ctx context.Context, from, to, sub string) (dirs []string, err error) {
	err = filepath.WalkDir(filepath.Join(from, sub), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		if d.IsDir() {
			dirs = append(dirs, dst)
			return os.MkdirAll(dst, 0o777)
		}
		_, err = os.Lstat(dst)
		switch instance := d.Name() == kudu.InstanceFile || d.Name() == kudu.DirInstanceFile; {
		case err == nil && instance:
			return nil // it is the same server's
		case err == nil:
			return &fs.PathError{Op: "rename", Path: dst, Err: fs.ErrExist}
		}
		return os.Rename(name, dst)
	})
	return dirs, err
}

// Own is format.Assembly.Own. The UUID of a master follows from that of the tablet server.
func (a *assembly) Own(ctx context.Context, name string, tables []string) error {
	dir := filepath.Join(a.dir, name)
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0 {
		if name == serverDir && len(tables) > 0 {
			return fault.Invalidf("%s is gone: expected the tables %s", dir, strings.Join(tables, ", "))
		}
		return nil
	}
	if err != nil {
		return err
	}
	f, _, err := a.open(ctx, dir)
	if err != nil {
		return err
	}
	want := cmp.Or(a.begun, a.uuid)
	if name == masterDir {
		want = madeID("master", a.uuid)
	} else if slices.ContainsFunc(tables, func(t string) bool { _, ok := a.tables[t]; return !ok }) {
		return fault.Invalidf("%s lacks tables that were there: expected %s", dir, strings.Join(tables, ", "))
	}
	if f.UUID != "" && f.UUID != want {
		return fault.Invalidf("%s is of server %s: expected %s", dir, f.UUID, want)
	}
	parts := []string{kudu.InstanceFile, kudu.DataSubdir, kudu.WalsDir, kudu.ConsensusDir, kudu.TabletMetaDir}
	for _, e := range all {
		if name == masterDir && !slices.Contains(parts, e.Name()) {
			return fault.Invalidf("%s has a file that is not of a master: %s", dir, e.Name())
		}
	}
	return nil
}

// Finish writes the master's directories: its catalogue has all tables of the tablet server.
func (a *assembly) Finish(ctx context.Context) (err error) {
	f, tablets, err := a.open(ctx, filepath.Join(a.dir, serverDir))
	if err != nil {
		return err
	}
	sink := store.Local{}.Sink(path.Join(filepath.ToSlash(a.dir), masterDir), func(string) bool { return true })
	defer func() { err = errors.Join(err, sink.Abort(ctx)) }()
	now := time.Now()
	m, err := newServer(ctx, sink, "", madeID("master", f.UUID), f.BlockManager, now)
	if err != nil {
		return err
	}
	var entries []catalogEntry
	for len(tablets) > 0 {
		n := slices.IndexFunc(tablets, func(t *meta.Tablet) bool { return t.TableID != tablets[0].TableID })
		if n < 0 {
			n = len(tablets)
		}
		entries, tablets = append(entries, catalogOf(tablets[:n], now.Unix())...), tablets[n:]
	}
	if err := writeCatalog(ctx, m, entries, memory.DefaultAllocator); err != nil {
		return err
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	return sink.Commit(ctx)
}
