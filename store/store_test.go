package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"stoa/store"
)

var ctx = context.Background()

// sinks returns all kinds of sinks, each with a function that returns the existing files.
func sinks(t *testing.T) map[string]func() (s store.Sink, see func() map[string]string) {
	return map[string]func() (store.Sink, func() map[string]string){
		"local": func() (store.Sink, func() map[string]string) {
			dir := t.TempDir()
			return store.Local{}.Sink(filepath.Join(dir, "out"), nil), func() map[string]string {
				all := map[string]string{}
				filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						b, _ := os.ReadFile(p)
						rel, _ := filepath.Rel(dir, p)
						all[filepath.ToSlash(rel)] = string(b)
					}
					return err
				})
				return all
			}
		},
		"memory": func() (store.Sink, func() map[string]string) {
			m := store.NewMemory(nil)
			return m.Sink("out"), func() map[string]string {
				all := map[string]string{}
				for _, n := range m.Names() {
					all[n] = string(m.Bytes(n))
				}
				return all
			}
		},
	}
}

func write(t *testing.T, s store.Sink, name, text string) {
	t.Helper()
	o, err := s.Create(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, text); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCommitMakesVisibleAtOnce(t *testing.T) {
	for kind, open := range sinks(t) {
		s, see := open()
		write(t, s, "", "one file")
		for n := range see() {
			if !strings.HasPrefix(n, store.TempPrefix) {
				t.Errorf("%s: %s is visible before Commit", kind, n)
			}
		}
		if err := s.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if got := see(); len(got) != 1 || got["out"] != "one file" {
			t.Errorf("%s: %v", kind, got)
		}
		if err := s.Abort(ctx); err != nil || see()["out"] != "one file" {
			t.Errorf("%s: Abort after Commit: %v, %v", kind, err, see())
		}

		s, see = open()
		write(t, s, "a", "A")
		write(t, s, "sub/b", "B")
		if err := s.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if got := see(); len(got) != 2 || got["out/a"] != "A" || got["out/sub/b"] != "B" {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	for kind, open := range sinks(t) {
		for _, name := range []string{"", "a"} {
			s, see := open()
			write(t, s, name, "x")
			sc, err := s.Scratch(ctx)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(sc, "scratch")
			b := make([]byte, 4)
			if _, err := sc.ReadAt(b, 3); err != nil || string(b) != "atch" {
				t.Errorf("%s: scratch file reads %q, %v, want \"atch\"", kind, b, err)
			}
			if err := errors.Join(sc.Close(), s.Abort(ctx)); err != nil {
				t.Fatal(err)
			}
			if got := see(); len(got) != 0 {
				t.Errorf("%s: %v was not removed", kind, got)
			}
		}
	}
}

func TestLocalSinkReplacesWithCare(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	try := func(name string, replace func(string) bool) error {
		s := store.Local{}.Sink(out, replace)
		o, err := s.Create(ctx, name)
		if err != nil {
			return err
		}
		return errors.Join(o.Close(), s.Commit(ctx), s.Abort(ctx))
	}
	// A directory that is not empty is replaced only if replace allows it.
	os.MkdirAll(filepath.Join(out, "precious"), 0o755)
	if err := try("a", nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("an unknown directory: %v", err)
	}
	if err := try("", nil); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if err := try("a", func(d string) bool { return d == out }); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(out, "precious")); err == nil {
		t.Error("the old directory is still there")
	}
	// A file is not replaced by a directory; a link stays a link; a device is refused.
	os.RemoveAll(out)
	os.WriteFile(out, []byte("old"), 0o600)
	if err := try("a", nil); err == nil {
		t.Error("a file was replaced by a directory")
	}
	real := filepath.Join(dir, "real")
	os.Rename(out, real)
	os.Symlink(real, out)
	if err := try("", nil); err != nil {
		t.Error(err)
	}
	if st, err := os.Lstat(out); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
	if st, err := os.Stat(real); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the mode of what was replaced is not kept: %v %v", st.Mode(), err)
	}
	if b, _ := os.ReadFile(real); len(b) != 0 {
		t.Errorf("the file that the link leads to still holds %q", b)
	}
	os.Remove(out)
	os.Symlink(os.DevNull, out)
	if err := try("", nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, store.TempPrefix+"*")); len(names) != 0 {
		t.Errorf("%v was not removed", names)
	}
}

func TestErrorsNameTheOutput(t *testing.T) {
	place := filepath.Join(t.TempDir(), "nowhere", "out")
	for _, name := range []string{"", "a"} {
		_, err := store.Local{}.Sink(place, nil).Create(ctx, name)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), place) ||
			strings.Contains(err.Error(), store.TempPrefix) {
			t.Errorf("%v", err)
		}
	}
}

func TestNamesOutsideAreRefused(t *testing.T) {
	s := store.Local{}.Sink(filepath.Join(t.TempDir(), "out"), nil)
	defer s.Abort(ctx)
	if _, err := s.Create(ctx, "../x"); err == nil {
		t.Error("../x was created")
	}
}

func TestTreesListInOrder(t *testing.T) {
	dir := t.TempDir()
	m := store.NewMemory(nil)
	for _, n := range []string{"b", "a", "d/x", "c"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o755)
		os.WriteFile(filepath.Join(dir, n), []byte(n), 0o644)
		m.Put("root/"+n, []byte(n))
	}
	os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling"))
	os.Symlink("..", filepath.Join(dir, "up")) // a link to a parent directory is not listed
	os.Symlink("loop", filepath.Join(dir, "loop"))
	os.Symlink(os.DevNull, filepath.Join(dir, "null"))
	var odd []string
	for o := range store.IrregularIn(ctx, store.NewCounter(store.Local{}), dir) {
		odd = append(odd, fmt.Sprintf("%s %v", filepath.Base(o.Name), o.Link))
	}
	if want := []string{"dangling true", "loop true", "null false", "up false"}; !slices.Equal(odd, want) {
		t.Errorf("irregular entries: %v", odd)
	}
	if s, err := (store.Local{}).Open(ctx, filepath.Join(dir, "null")); err == nil {
		t.Errorf("a device is opened: %v", s)
	}
	for root, tree := range map[string]store.Tree{dir: store.Local{}, "root": m} {
		var got []string
		for info, err := range tree.List(ctx, root) {
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(info.Name, root+"/")
			if info.Dir {
				name += "/"
			} else if info.Size != int64(len(name)) || info.Stamp == "" {
				t.Errorf("%+v", info)
			}
			got = append(got, name)
		}
		if want := []string{"a", "b", "c", "d/"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v", root, got)
		}
		if _, err := tree.Stat(ctx, root+"/nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if _, err := tree.Open(ctx, root+"/nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
}

func TestCacheReadsABlockOnce(t *testing.T) {
	body := make([]byte, 300_000)
	for i := range body {
		body[i] = byte(i * 7 >> 3)
	}
	counter := store.NewCounter(store.NewMemory(map[string][]byte{"f": body}))
	c := store.NewCache(counter, 1<<20)
	s, err := c.Open(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	read := func(off, n int) {
		t.Helper()
		b := make([]byte, n)
		k, err := s.ReadAt(ctx, b, int64(off))
		want := body[min(off, len(body)):min(off+n, len(body))]
		if !bytes.Equal(b[:k], want) || (k < n) != (err == io.EOF) || k == n && err != nil {
			t.Fatalf("%d bytes at %d: %d, %v", n, off, k, err)
		}
	}
	for range 3 {
		read(0, 10)
		read(65530, 20)
		read(299_990, 10)
		read(299_990, 20)
		read(0, 300_000)
		read(400_000, 5)
	}
	seen := map[store.Read]int{}
	for _, r := range counter.Reads() {
		if seen[r]++; seen[r] > 1 && r.Off < 300_000 {
			t.Errorf("%+v was read twice", r)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestCacheStaysWithinItsLimit(t *testing.T) {
	body := make([]byte, 1<<20)
	counter := store.NewCounter(store.NewMemory(map[string][]byte{"f": body}))
	c := store.NewCache(counter, 128<<10)
	s, _ := c.Open(ctx, "f")
	b := make([]byte, 1)
	for off := int64(0); off < 1<<20; off += 64 << 10 {
		s.ReadAt(ctx, b, off)
	}
	counter.Reset()
	s.ReadAt(ctx, b, 0)
	if len(counter.Reads()) != 1 {
		t.Error("an evicted block was still cached")
	}
}

// TestPastTheCache: data that is read past the cache is not cached.
func TestPastTheCache(t *testing.T) {
	counter := store.NewCounter(store.NewMemory(map[string][]byte{"f": []byte("0123456789")}))
	s, _ := store.NewCache(counter, 1<<20).Open(ctx, "f")
	b := make([]byte, 3)
	for range 2 {
		if _, err := store.Uncached(s).ReadAt(ctx, b, 4); err != nil || string(b) != "456" {
			t.Fatal(string(b), err)
		}
	}
	if reads := counter.Reads(); len(reads) != 2 || reads[0].Off != 4 || reads[0].Len != 3 {
		t.Errorf("%v", reads)
	}
	if plain, _ := counter.Open(ctx, "f"); store.Uncached(plain) != plain {
		t.Error("Uncached changes a source that is not cached")
	}
}

// slow returns at most 1,000 bytes per read, and counts the reads.
type slow struct {
	left, given int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), s.left, 1000)
	for i := range n {
		p[i] = byte((s.given + i) % 251)
	}
	s.left -= n
	s.given += n
	return n, nil
}

func TestSpoolReadsNoFurtherThanAsked(t *testing.T) {
	for _, memory := range []int64{0, 1500, 1 << 20} {
		in := &slow{left: 10_000}
		m := store.NewMemory(nil).Sink("x")
		sp := store.Spool(in, memory, func() (store.Scratch, error) { return m.Scratch(ctx) })
		if !store.Unsized(sp) {
			t.Error("a stream is sized")
		}
		b := make([]byte, 700)
		for _, off := range []int{0, 1200, 300, 2900} {
			if _, err := sp.ReadAt(ctx, b, int64(off)); err != nil {
				t.Fatal(err)
			}
			for i := range b {
				if b[i] != byte((off+i)%251) {
					t.Fatalf("memory %d: byte %d is %d", memory, off+i, b[i])
				}
			}
		}
		if in.given > 4600 {
			t.Errorf("%d bytes were read for 3600", in.given)
		}
		if n, err := sp.ReadAt(ctx, b, 9_900); n != 100 || err != io.EOF {
			t.Errorf("at the end: %d, %v", n, err)
		}
		if sp.Size() != 10_000 {
			t.Errorf("size %d", sp.Size())
		}
		sp.Close()
	}
}

func TestOpenLimiter(t *testing.T) {
	m := store.NewMemory(nil)
	for i := range 20 {
		m.Put(fmt.Sprint("f", i), []byte(fmt.Sprint("content ", i)))
	}
	live := &liveTree{Tree: m}
	limited := store.NewOpenLimiter(live, 3)
	ctx := context.Background()
	var all []store.Source
	for i := range 20 {
		s, err := limited.Open(ctx, fmt.Sprint("f", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for round := range 3 {
		for i, s := range all {
			b := make([]byte, s.Size())
			if _, err := s.ReadAt(ctx, b, 0); err != nil || string(b) != fmt.Sprint("content ", i) {
				t.Fatalf("round %d: %q, %v", round, b, err)
			}
		}
	}
	if live.peak > 4 || live.now > 3 {
		t.Fatalf("up to %d sources were open, %d still are; the limit is 3", live.peak, live.now)
	}
	m.Put("f0", []byte("longer than it was before"))
	if _, err := all[0].ReadAt(ctx, make([]byte, 1), 0); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Fatalf("a changed file: %v", err)
	}
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if live.now != 0 {
		t.Fatalf("%d sources are still open", live.now)
	}
	if _, err := all[1].ReadAt(ctx, make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("read after Close: %v", err)
	}
}

// liveTree counts open sources.
type liveTree struct {
	store.Tree
	now, peak int
}

func (l *liveTree) Open(ctx context.Context, name string) (store.Source, error) {
	s, err := l.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	l.now++
	l.peak = max(l.peak, l.now)
	return &liveSource{s, l}, nil
}

type liveSource struct {
	store.Source
	l *liveTree
}

func (s *liveSource) Close() error {
	s.l.now--
	return s.Source.Close()
}

// TestSweep: the next run removes what killed runs left, keeps what another process still writes, and restores a table
// that a killed run had moved aside.
func TestSweep(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files cannot be locked here")
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	other := store.Local{}.Sink(out, nil) // still writing
	o, err := other.Create(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	working := names()[0]
	for _, left := range []string{store.TempPrefix + "1-out", store.TempPrefix + "3-another"} {
		os.WriteFile(filepath.Join(dir, left), []byte("half"), 0o644)
	}
	os.MkdirAll(filepath.Join(dir, store.TempPrefix+"2-out", "sub"), 0o755)
	s := store.Local{}.Sink(out, nil)
	write(t, s, "", "new")
	if err := s.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{store.TempPrefix + "3-another", working, "out"}
	slices.Sort(want)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := errors.Join(o.Close(), other.Commit(ctx)); err != nil {
		t.Errorf("the other: %v", err)
	}

	dir = t.TempDir()
	out = filepath.Join(dir, "out")
	aside := filepath.Join(dir, store.TempPrefix+"7-out.stoa-old")
	os.MkdirAll(aside, 0o755)
	os.WriteFile(filepath.Join(aside, "a"), []byte("old"), 0o644)
	s = store.Local{}.Sink(out, nil)
	if _, err := s.Create(ctx, "b"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("the table that was moved aside: %v", err)
	}
	if b, _ := os.ReadFile(filepath.Join(out, "a")); string(b) != "old" {
		t.Errorf("the table that was moved aside is not restored: %v", names())
	}
}
