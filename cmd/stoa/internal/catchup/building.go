package catchup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/store"
	"stoa/store/remote"
)

// Building is the sink of a new table of Iceberg or Delta whose writer may be killed and resumed: data files appear
// when they are complete, those that make them a table at the commit. A local table is built beside its directory.
type Building struct {
	adding
	out     string   // the local directory that the table gets; "": it is at an address
	lock    *os.File // of the local directory in which it is built
	held    []*heldFile
	kept    map[string]bool // files of earlier runs
	records int             // the number of the last one
	fresh   []object        // that have appeared since then
	bytes   int64           // written
	run     string          // part of the names of records: several runs may write at one address
	begun   bool            // the mark was there before this run
	gone    bool            // it was discarded
}

// heldFile is a file that makes other files a table.
type heldFile struct {
	bytes.Buffer
	name string
}

func (*heldFile) Close() error { return nil }

// object is a file of a record.
type object struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	Stamp string `json:"stamp"`
}

// record says what an earlier run has written.
type record struct {
	Sum     string          `json:"sum"` // SHA-256 of the record without it
	Of      string          `json:"of"`  // what the files depend on
	Objects []object        `json:"objects"`
	State   json.RawMessage `json:"state"`
}

const (
	recordsDir = store.RecordsDir
	mark       = recordsDir + "/" + store.RecordsMark // at an address it tells the objects of a run without records
	recordExt  = store.RecordExt
	maxRecord  = 1 << 30 // bytes
)

// Unfinished is the suffix of the name of a table's directory until all of its files are complete.
const Unfinished = ".unfinished"

// Build returns the sink of a table in a directory; nil if there is something that is no unfinished table.
func Build(ctx context.Context, t *remote.Tree, name string, single bool) (*Building, error) {
	b := &Building{kept: map[string]bool{}, run: rand.Text()[:8]}
	name = strings.TrimRight(name, "/")
	if !remote.Is(name) {
		b.out = name
		if list, err := os.ReadDir(name); len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		name += Unfinished
		if err := b.acquire(name); err != nil {
			return nil, err
		}
	}
	home, err := At(ctx, t, name, single)
	if err != nil {
		return nil, err
	}
	b.home = home
	if b.out != "" {
		return b, nil
	}
	if kinds, err := home.Kinds(ctx); len(kinds) > 0 || err != nil {
		return nil, err
	}
	_, err = home.tree.Stat(ctx, home.name(mark))
	if b.begun = err == nil; b.begun {
		return b, nil
	}
	for _, err = range home.tree.List(ctx, home.name("")) {
		if err == nil {
			return nil, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return b, err
}

// acquire makes the local directory, and keeps other runs out. One that is there is that of an earlier run.
func (b *Building) acquire(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "create", Path: b.out, Err: fs.ErrNotExist}
	}
	if errors.Is(err, fs.ErrExist) {
		list, listErr := os.ReadDir(dir)
		own := len(list) == 0 || slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == recordsDir })
		if st, err := os.Lstat(dir); err != nil || listErr != nil || !st.IsDir() || !own {
			return fault.Invalidf("%s, where the table is to be built, is there already, and no run of stoa has left "+
				"it", dir)
		}
	} else if err != nil {
		return err
	}
	if b.lock, err = os.Open(dir); err != nil {
		return err
	}
	if !store.TryLock(b.lock) {
		b.lock.Close()
		return fmt.Errorf("%s: another run is writing there", dir)
	}
	if err = os.Mkdir(filepath.Join(dir, recordsDir), 0o777); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

// name returns the name of a file of the directory in its tree.
func (h Home) name(rel string) string { return path.Join(filepath.ToSlash(h.dir), rel) }

// Held reports whether an earlier run has begun the table at an address, or another run can go on with what is
// recorded.
func (b *Building) Held(ctx context.Context) (bool, error) {
	names, err := b.list(ctx)
	return b.begun || len(names) > 0, err
}

// Bytes returns how many bytes were written to files.
func (b *Building) Bytes() int64 { return b.bytes }

// Release lets other runs in.
func (b *Building) Release() {
	if b.lock != nil {
		b.lock.Close()
	}
}

// Place is where the table is built.
func (b *Building) Place() string { return remote.Shown(b.home.dir) }

// list returns the names of the records, in order.
func (b *Building) list(ctx context.Context) (names []string, err error) {
	for info, err := range b.home.tree.List(ctx, b.home.name(recordsDir)) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if base := path.Base(info.Name); path.Ext(base) == recordExt {
			names = append(names, path.Join(recordsDir, base))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Resume passes the states that earlier runs have recorded of the same table to accept, in order. A record whose files
// are not as they were written is left out, and accept can leave out others.
func (b *Building) Resume(ctx context.Context, of string, accept func(state []byte) (bool, error)) error {
	names, err := b.list(ctx)
	if err == nil && b.out == "" {
		err = b.home.replace(ctx, mark, nil)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		r, ok, err := b.read(ctx, name)
		if err != nil {
			return err
		}
		_, _ = fmt.Sscanf(path.Base(name), "%d", &b.records)
		if ok && r.Of == of {
			if ok, err = accept(r.State); err != nil {
				return err
			}
		}
		if !ok || r.Of != of {
			if err := b.home.remove(ctx, name); err != nil {
				return err
			}
			continue
		}
		for _, o := range r.Objects {
			b.kept[o.Name] = true
		}
	}
	return nil
}

// read reads a record. It is not ok if one of its files is missing or has changed.
func (b *Building) read(ctx context.Context, name string) (r record, ok bool, err error) {
	src, err := b.home.tree.Open(ctx, b.home.name(name))
	if err != nil {
		return r, false, err
	}
	defer src.Close()
	if src.Size() > maxRecord {
		return r, false, nil
	}
	text := make([]byte, src.Size())
	if n, err := src.ReadAt(ctx, text, 0); n < len(text) && err != nil && !errors.Is(err, io.EOF) {
		return r, false, err
	}
	if json.Unmarshal(text, &r) != nil {
		return r, false, nil
	}
	if sum := r.Sum; sum != r.sum() {
		return r, false, nil
	}
	for _, o := range r.Objects {
		info, err := b.home.tree.Stat(ctx, b.home.name(o.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, false, err
		}
		if err != nil || info.Size != o.Size || info.Stamp != o.Stamp {
			return r, false, nil
		}
	}
	return r, true, nil
}

// Record records the state in which another run can go on, with the files that have appeared since the last record.
func (b *Building) Record(ctx context.Context, of string, state []byte) error {
	b.records++
	r := record{Of: of, Objects: b.fresh, State: state}
	r.Sum = r.sum()
	text, err := json.Marshal(r)
	if err == nil {
		err = b.home.replace(ctx, fmt.Sprintf("%s/%08d-%s"+recordExt, recordsDir, b.records, b.run), text)
	}
	for _, o := range b.fresh {
		b.kept[o.Name] = true
	}
	b.fresh = nil
	return err
}

func (r record) sum() string {
	r.Sum = ""
	text, _ := json.Marshal(r)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Forget leaves the files that have appeared since the last record out of the next one.
func (b *Building) Forget() { b.fresh = nil }

// Create implements store.Sink.
func (b *Building) Create(ctx context.Context, name string) (store.Object, error) {
	dir, base, _ := strings.Cut(name, "/")
	if dir == "_delta_log" || dir == "metadata" && path.Ext(base) != ".avro" {
		h := &heldFile{name: name}
		b.held = append(b.held, h)
		return h, nil
	}
	o, err := b.adding.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &appearing{o, b, ctx, name}, nil
}

// appearing is a file that appears when it is closed.
type appearing struct {
	store.Object
	b    *Building
	ctx  context.Context
	name string
}

func (o *appearing) Write(p []byte) (int, error) {
	n, err := o.Object.Write(p)
	o.b.bytes += int64(n)
	return n, err
}

func (o *appearing) Close() error {
	err := o.Object.Close()
	if err == nil {
		err = o.b.adding.Commit(o.ctx)
	}
	if err != nil {
		return err
	}
	info, err := o.b.home.tree.Stat(o.ctx, o.b.home.name(o.name))
	o.b.fresh = append(o.b.fresh, object{o.name, info.Size, info.Stamp})
	return err
}

// Peek implements store.Peeker.
func (b *Building) Peek() (store.Tree, string) {
	home := b.home
	for _, h := range b.held {
		home.tree = home.with(h.name, h.Bytes())
	}
	return home.tree, home.name("")
}

// Commit makes the files a table.
func (b *Building) Commit(ctx context.Context) error {
	if b.out != "" {
		if list, _ := os.ReadDir(b.out); len(list) > 0 {
			return fault.Invalidf("%s: another run has written there meanwhile", b.out)
		}
	}
	files := b.files()
	if err := b.announce(ctx); err != nil {
		return err
	}
	for i, h := range b.held {
		write := b.home.commit
		if b.out != "" || path.Ext(h.name) != ".json" { // a local table appears with its directory
			write = b.home.replace
		}
		err := write(ctx, h.name, h.Bytes())
		if i > 0 || err == nil || uncertain(err) {
			b.keep() // the files are a table's, or may be
		}
		if err != nil {
			return err
		}
	}
	err := b.sweep(ctx, "", files) // not before: another run may have been faster, whose files these are
	if err = errors.Join(err, b.forget(ctx)); err != nil && b.out == "" {
		return fmt.Errorf("%s: the table was made, and what was left of interrupted runs was not removed: %w",
			b.Place(), err)
	}
	if b.out == "" || err != nil {
		return err
	}
	if err := b.home.remove(ctx, recordsDir); err != nil {
		return err
	}
	b.Release() // not every system renames an open directory

	if st, err := os.Stat(b.out); err == nil { // it is empty
		if err := errors.Join(os.Chmod(b.home.dir, st.Mode().Perm()), os.Remove(b.out)); err != nil {
			return err
		}
	}
	return os.Rename(b.home.dir, b.out)
}

// announce writes the name of what makes the second catalogue to the mark at an address: who finds the first one alone
// can tell that it is missing.
func (b *Building) announce(ctx context.Context) error {
	last := len(b.held) - 1
	if b.out != "" || last < 1 || !strings.HasPrefix(b.held[last].name, "_delta_log/") {
		return nil
	}
	return b.home.replace(ctx, mark, []byte(b.held[last].name))
}

// files returns the names of the files of the table.
func (b *Building) files() map[string]bool {
	made := maps.Clone(b.kept)
	for _, name := range b.done {
		made[name] = true
	}
	for _, h := range b.held {
		made[h.name] = true
	}
	return made
}

// sweep removes from a directory what killed runs have left: files that are not the table's.
func (b *Building) sweep(ctx context.Context, dir string, made map[string]bool) error {
	var infos []store.Info
	for info, err := range b.home.tree.List(ctx, b.home.name(dir)) {
		if err != nil {
			return err
		}
		infos = append(infos, info)
	}
	for _, info := range infos {
		rel := path.Join(dir, path.Base(info.Name))
		var err error
		switch {
		case rel == recordsDir || made[rel]:
		case info.Dir:
			err = b.sweep(ctx, rel, made)
		case b.out == "" && !store.TableFile(rel): // others may put their files at an address
		default:
			err = b.home.remove(ctx, rel)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Abort removes the files, unless a state is recorded from which another run can go on.
func (b *Building) Abort(ctx context.Context) error {
	if b.gone {
		return nil
	}
	names, err := b.list(ctx)
	switch {
	case err == nil && len(names) == 0:
		return b.Discard(ctx)
	case err == nil && b.out == "" && b.finished(ctx):
		err = b.forget(ctx)
	}
	return errors.Join(err, b.abortUnrecorded(ctx))
}

// finished reports whether another run has made the table at the address.
func (b *Building) finished(ctx context.Context) bool {
	kinds, err := b.home.Kinds(ctx)
	return len(kinds) > 0 && err == nil
}

// Forget removes what runs that made the table have recorded.
func (h Home) Forget(ctx context.Context) error {
	b := &Building{adding: adding{home: h}}
	return b.forget(ctx)
}

// forget removes the records, so that no run goes on.
func (b *Building) forget(ctx context.Context) error {
	names, err := b.list(ctx)
	for _, name := range append(names, mark) {
		err = errors.Join(err, b.home.remove(ctx, name))
	}
	b.begun = false
	return err
}

// abortUnrecorded removes the files of this run that are in no record.
func (b *Building) abortUnrecorded(ctx context.Context) error {
	b.done = slices.DeleteFunc(b.done, func(name string) bool { return b.kept[name] })
	return b.adding.Abort(ctx)
}

// Discard sees to it that no run goes on with the files. At an address, what was recorded is not removed: another run
// may have made it part of its table, which must not lose it. The next run that is resumed begins anew, and removes it.
func (b *Building) Discard(ctx context.Context) error {
	b.gone = true
	if b.out != "" {
		return errors.Join(b.adding.Abort(ctx), os.RemoveAll(b.home.dir))
	}
	err := errors.Join(b.abortUnrecorded(ctx), b.forget(ctx))
	if len(b.kept) > 0 && err == nil && !b.finished(ctx) {
		err = b.home.replace(ctx, mark, nil)
	}
	return err
}
