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
	"regexp"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/internal/glob"
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
	recordsDir = glob.RecordsDir
	unfinished = ".unfinished"
)

// Build returns the sink of a table in a directory; nil if there is something that is no unfinished table.
func Build(ctx context.Context, t *remote.Tree, name string, single bool) (*Building, error) {
	b := &Building{kept: map[string]bool{}, run: rand.Text()[:8]}
	name = strings.TrimRight(name, "/")
	if !remote.Is(name) {
		b.out = name
		if list, err := os.ReadDir(name); len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		name += unfinished
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
	held, err := b.Held(ctx)
	for _, err := range home.tree.List(ctx, home.name("")) {
		if !errors.Is(err, fs.ErrNotExist) && !held {
			return nil, err
		}
		break
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

// Held reports whether an earlier run has left records.
func (b *Building) Held(ctx context.Context) (bool, error) {
	names, err := b.recorded(ctx)
	return len(names) > 0, err
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

// recorded returns the names of the records, in order.
func (b *Building) recorded(ctx context.Context) (names []string, err error) {
	for info, err := range b.home.tree.List(ctx, b.home.name(recordsDir)) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if base := path.Base(info.Name); strings.HasSuffix(base, ".json") {
			names = append(names, path.Join(recordsDir, base))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Resume passes the states that earlier runs have recorded of the same table to accept, in order. A record whose files
// are not as they were written is left out, and accept can leave out others.
func (b *Building) Resume(ctx context.Context, of string, accept func(state []byte) (bool, error)) error {
	names, err := b.recorded(ctx)
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
		err = b.home.replace(ctx, fmt.Sprintf("%s/%08d-%s.json", recordsDir, b.records, b.run), text)
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
	for _, h := range b.held {
		write := b.home.commit
		if b.out != "" || path.Ext(h.name) != ".json" { // a local table appears with its directory
			write = b.home.replace
		}
		if err := write(ctx, h.name, h.Bytes()); err != nil {
			return err
		}
	}
	err := b.sweep(ctx) // not before: another run may have been faster, whose files these are
	b.keep()
	if err = errors.Join(err, b.forget(ctx)); b.out == "" || err != nil {
		return err
	}
	if err := b.home.remove(ctx, recordsDir); err != nil {
		return err
	}
	b.Release()                                // not every system renames an open directory
	if st, err := os.Stat(b.out); err == nil { // it is empty
		if err := errors.Join(os.Chmod(b.home.dir, st.Mode().Perm()), os.Remove(b.out)); err != nil {
			return err
		}
	}
	return os.Rename(b.home.dir, b.out)
}

// ours matches the names of data files, manifests and their lists.
var ours = regexp.MustCompile(`(^|/)\d{5}-[0-9a-f]{8}\.parquet$|^metadata/[^/]*\.avro$`)

// sweep removes what killed runs have left: files in none of the records.
func (b *Building) sweep(ctx context.Context) error {
	made := maps.Clone(b.kept)
	for _, name := range b.done {
		made[name] = true
	}
	for _, h := range b.held {
		made[h.name] = true
	}
	return b.sweepDir(ctx, "", made)
}

func (b *Building) sweepDir(ctx context.Context, dir string, made map[string]bool) error {
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
			err = b.sweepDir(ctx, rel, made)
		case b.out == "" && !ours.MatchString(rel): // others may put their files at an address
		default:
			err = b.home.remove(ctx, rel)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Abort removes the files, unless an earlier state is recorded from which another run can go on.
func (b *Building) Abort(ctx context.Context) error {
	defer b.Release()
	held, err := b.Held(ctx)
	if err == nil && held && b.out == "" && b.finished(ctx) {
		err = b.forget(ctx)
	}
	if held || err != nil {
		return errors.Join(err, b.abortUnrecorded(ctx))
	}
	return b.Discard(ctx)
}

// finished reports whether another run has made the table at the address.
func (b *Building) finished(ctx context.Context) bool {
	kinds, err := b.home.Kinds(ctx)
	return len(kinds) > 0 && err == nil
}

// forget removes the records.
func (b *Building) forget(ctx context.Context) error {
	names, err := b.recorded(ctx)
	for _, name := range names {
		err = errors.Join(err, b.home.remove(ctx, name))
	}
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
	if b.out != "" {
		return errors.Join(b.adding.Abort(ctx), os.RemoveAll(b.home.dir))
	}
	held, err := b.Held(ctx)
	if held && err == nil {
		err = b.forget(ctx)
	}
	if held && err == nil && !b.finished(ctx) {
		err = b.home.replace(ctx, recordsDir+"/00000000.json", []byte("{}"))
	}
	return errors.Join(err, b.abortUnrecorded(ctx))
}
