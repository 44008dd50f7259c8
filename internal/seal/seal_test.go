package seal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"stoa/store"
)

var ctx = context.Background()

// tree writes files of random bytes; sizes has the size of each in bytes.
func tree(t testing.TB, seed uint64, sizes map[string]int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	r := rand.New(rand.NewPCG(seed, 1))
	names := make([]string, 0, len(sizes))
	for n := range sizes {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		b := make([]byte, sizes[n])
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		put(t, filepath.Join(dir, n), b)
	}
	return dir
}

func put(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sealed(t testing.TB, parity float64, roots ...string) []byte {
	t.Helper()
	files, err := Places{Roots: roots}.Walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := Write(ctx, &b, Places{Roots: roots}, files, Options{Parity: parity}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func disk(dir string) Places { return Places{Roots: []string{dir}} }

func opened(t testing.TB, b []byte) *Seal {
	t.Helper()
	s, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verify compares roots with a seal and returns a line for each difference, without the directory.
func verify(t testing.TB, b []byte, roots ...string) []string {
	t.Helper()
	var out []string
	err := opened(t, b).Verify(ctx, Places{Roots: roots}, func(d Difference) {
		for _, r := range roots {
			d.File, d.Message = strings.TrimPrefix(d.File, r+"/"), strings.ReplaceAll(d.Message, r+"/", "")
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %d+%d %s", d.What, d.File, d.Off, d.Len, d.Message)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var small = map[string]int{"a": 3*Block + 5, "b": 3*Block + 5, "dir/c": 100, "dir/empty": 0, "z": 10 * Block}

// TestVerifyLocatesChanges: every change of the files is reported, and nothing else.
func TestVerifyLocatesChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(dir string) error
		want []string
	}{
		{"nothing", func(string) error { return nil }, nil},
		{"a bit", func(d string) error { return flip(d+"/z", 5*Block+17) }, []string{"changed z 327680+65536"}},
		{"two blocks side by side", func(d string) error {
			return errors.Join(flip(d+"/z", Block),
				flip(d+"/z", 3*Block-1))
		}, []string{"changed z 65536+131072"}},
		{"the last byte", func(d string) error { return flip(d+"/a", 3*Block+4) }, []string{"changed a 196608+5"}},
		{"cut", func(d string) error { return os.Truncate(d+"/z", 8*Block+3) },
			[]string{"cut z 524291+131069 655360 bytes were sealed, 524291 are there"}},
		{"cut to nothing", func(d string) error { return os.Truncate(d+"/dir/c", 0) },
			[]string{"cut dir/c 0+100 100 bytes were sealed, 0 are there"}},
		{"grown", func(d string) error { return app(d+"/a", 10) },
			[]string{"grown a 196613+10 196613 bytes were sealed, 196623 are there"}},
		{"grown far", func(d string) error { return app(d+"/dir/empty", Block+1) },
			[]string{"grown dir/empty 0+65537 0 bytes were sealed, 65537 are there"}},
		{"removed", func(d string) error { return os.Remove(d + "/dir/c") }, []string{"missing dir/c 0+100"}},
		{"added", func(d string) error { return os.WriteFile(d+"/n", []byte("x"), 0o666) }, []string{"added n 0+1"}},
		{"renamed", func(d string) error { return os.Rename(d+"/z", d+"/y") },
			[]string{"missing z 0+655360", "added y 0+655360 it holds what the seal has as z"}},
		{"exchanged", func(d string) error {
			return errors.Join(os.Rename(d+"/a", d+"/x"), os.Rename(d+"/b", d+"/a"), os.Rename(d+"/x", d+"/b"))
		}, []string{"swapped a 0+196613 it holds what the seal has as b",
			"swapped b 0+196613 it holds what the seal has as a"}},
		{"another version", func(d string) error {
			return os.WriteFile(d+"/z", bytes.Repeat([]byte("x"), 10*Block),
				0o666)
		}, []string{"other z 0+655360 0 of its 10 blocks are unchanged"}},
		{"a link instead", func(d string) error { return errors.Join(os.Remove(d+"/a"), os.Symlink("b", d+"/a")) },
			[]string{"kind a 0+196613 a file was sealed, a link is there"}},
		{"a pipe instead", func(d string) error {
			return errors.Join(os.Remove(d+"/a"),
				syscall.Mkfifo(d+"/a", 0o666))
		}, []string{"kind a 0+196613 a file was sealed, a special is there"}},
	} {
		dir := tree(t, 1, small)
		b := sealed(t, 0, dir)
		if err := c.do(dir); err != nil {
			t.Fatal(err)
		}
		if got := verify(t, b, dir); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func flip(name string, at int64) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 1
	_, err = f.WriteAt(b, at)
	return err
}

func app(name string, n int) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, n))
	return errors.Join(err, f.Close())
}

// TestLinksAndPipes: links and pipes are listed, but neither followed nor read.
func TestLinksAndPipes(t *testing.T) {
	dir := tree(t, 2, small)
	for _, err := range []error{os.Symlink("a", dir+"/link"), os.Symlink("..", dir+"/up"),
		os.Symlink("nowhere", dir+"/dangling"), syscall.Mkfifo(dir+"/pipe", 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b := sealed(t, 0, dir)
	if got := verify(t, b, dir); got != nil {
		t.Errorf("%q", got)
	}
	if err := errors.Join(os.Remove(dir+"/link"), os.Symlink("b", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, b, dir); len(got) != 1 || !strings.Contains(got[0], `it led to "a", and now leads to "b"`) {
		t.Errorf("%q", got)
	}
}

// TestSameInputSameBytes: a seal contains neither the time nor the directory.
func TestSameInputSameBytes(t *testing.T) {
	one, two := tree(t, 3, small), tree(t, 3, small)
	if !bytes.Equal(sealed(t, 5, one), sealed(t, 5, two)) {
		t.Error("two seals of the same files differ")
	}
}

// TestChangedWhileSealed: writing to a file while it is sealed is an error.
func TestChangedWhileSealed(t *testing.T) {
	dir := tree(t, 4, small)
	files, err := disk(dir).Walk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Write(ctx, &onFirstWrite{func() error { return app(dir+"/z", 1) }}, disk(dir), files, Options{})
	if !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

// onFirstWrite is a writer that calls do on the first write.
type onFirstWrite struct{ do func() error }

func (m *onFirstWrite) Write(b []byte) (int, error) {
	if m.do != nil {
		if err := m.do(); err != nil {
			return 0, err
		}
		m.do = nil
	}
	return len(b), nil
}

// TestRepair: as many blocks as the parity covers are restored, wherever they are; with one more in a stripe the error
// is an UnrepairableError, and nothing is written.
func TestRepair(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 9))
		sizes := map[string]int{"a": r.IntN(200) * 1000, "b": 40*Block + r.IntN(Block), "c/d": r.IntN(3 * Block),
			"e": 0}
		if seed == 0 {
			sizes["large"] = (windowBlocks + 30) * Block
		}
		dir := tree(t, seed, sizes)
		b := sealed(t, 10, dir)
		s := opened(t, b)
		was := map[string][]byte{}
		for n := range sizes {
			was[n] = get(t, filepath.Join(dir, n))
		}
		_, stripes, _, parity := s.layout.window(0)
		name, most := dir+"/b", 40
		if seed == 0 {
			name, most = dir+"/large", 1000
		}
		at := r.Int64N(int64(most - stripes*parity)) // a burst that every stripe can restore
		for k := range stripes * parity {
			if err := flip(name, (at+int64(k))*Block+r.Int64N(Block)); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(t.TempDir(), "out")
		m, err := s.Repair(ctx, disk(dir), store.Local{}.Sink(out, nil))
		if err != nil || m.Blocks != int64(stripes*parity) || m.Files != len(sizes) || m.Whole != len(sizes)-1 {
			t.Fatalf("seed %d: %+v, %v", seed, m, err)
		}
		for n, want := range was {
			if !bytes.Equal(get(t, filepath.Join(out, n)), want) {
				t.Errorf("seed %d: %s is not what it was", seed, n)
			}
		}
		if err := flip(name, (at+int64(stripes*parity))*Block); err != nil {
			t.Fatal(err)
		}
		none := filepath.Join(t.TempDir(), "out")
		var lost *UnrepairableError
		if _, err := s.Repair(ctx, disk(dir), store.Local{}.Sink(none, nil)); !errors.As(err, &lost) {
			t.Errorf("seed %d: %v", seed, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(none)); len(left) > 0 {
			t.Errorf("seed %d: %v was written", seed, left)
		}
	}
}

// TestRepairFiles: a missing, a truncated and an exchanged file are restored.
func TestRepairFiles(t *testing.T) {
	dir := tree(t, 5, map[string]int{"a": 100, "b": 2 * Block, "c": 90 * Block, "d": 2 * Block})
	b := sealed(t, 10, dir)
	want := get(t, dir+"/b")
	if err := errors.Join(os.Remove(dir+"/a"), os.Truncate(dir+"/b", 10), os.Rename(dir+"/d", dir+"/e"),
		os.Rename(dir+"/b", dir+"/d"), os.Remove(dir+"/e")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	m, err := opened(t, b).Repair(ctx, disk(dir), store.Local{}.Sink(out, nil))
	if err != nil || m.Blocks != 5 || !bytes.Equal(get(t, out+"/b"), want) {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := verify(t, b, out); got != nil {
		t.Errorf("%q", got)
	}
}

// TestNamesThatAreNotText: names that are not UTF-8 and differ only in those bytes stay distinct, for files and for
// link targets, and are kept when the files are restored.
func TestNamesThatAreNotText(t *testing.T) {
	dir := tree(t, 6, map[string]int{"a\xff": 2 * Block, "a\xfe": 3 * Block, "a\uFFFD": 100})
	if err := os.Symlink("a\xfe", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	b := sealed(t, 100, dir)
	if got := verify(t, b, dir); got != nil {
		t.Errorf("untouched: %q", got)
	}
	want := get(t, dir+"/a\xff")
	if err := errors.Join(os.Remove(dir+"/a\xff"), os.Remove(dir+"/link"),
		os.Symlink("a\xff", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, b, dir); len(got) != 2 {
		t.Errorf("one file is gone and a link leads elsewhere: %q", got)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := opened(t, b).Repair(ctx, disk(dir), store.Local{}.Sink(out, nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(get(t, out+"/a\xff"), want) {
		t.Error("the restored file is another")
	}
}

// TestDamagedSeal: whatever part of a seal is lost, the damage is reported, intact files are not reported as changed,
// and a changed file is still noticed.
func TestDamagedSeal(t *testing.T) {
	dir := tree(t, 6, small)
	b := sealed(t, 5, dir)
	r := rand.New(rand.NewPCG(1, 1))
	if err := flip(dir+"/z", 3*Block); err != nil {
		t.Fatal(err)
	}
	want := []string{"changed z 196608+65536"}
	for i := range 600 {
		damaged := slices.Clone(b)
		switch at := r.IntN(len(b)); i % 3 {
		case 0:
			damaged[at] ^= 1 << r.IntN(8)
		case 1:
			clear(damaged[at:min(len(b), at+200)])
			if bytes.Equal(damaged, b) {
				continue
			}
		case 2:
			damaged = slices.Delete(damaged, at, min(len(b), at+1+r.IntN(100)))
		}
		s, err := Open(bytes.NewReader(damaged), int64(len(damaged)))
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if len(s.Problems) == 0 {
			t.Errorf("%d: the damage is not reported", i)
		}
		if got := verify(t, damaged, dir); !slices.Equal(got, want) {
			t.Errorf("%d: %q", i, got)
		}
	}
	for n := 0; n < len(b); n += 1 + n/3 { // cut
		if s, err := Open(bytes.NewReader(b[:n]), int64(n)); err == nil && len(s.Problems) == 0 {
			t.Errorf("cut to %d bytes: nothing is reported", n)
		}
	}
}

// TestHostileSeal: names that lead elsewhere, wrong counts, and exchanged records are refused or reported, and cost no
// more memory than the seal's size.
func TestHostileSeal(t *testing.T) {
	dir := tree(t, 7, map[string]int{"a": 10})
	h := head{Version: version, Block: Block, Parity: 10, Roots: []string{".."}, Files: 1}
	hostile := func(h head, files ...string) []byte {
		var b bytes.Buffer
		r, err := newRecorder(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.putJSON(kindHead, h); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := r.put(kindFile, []byte(f)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	many := h
	many.Files = 1 << 40
	for what, b := range map[string][]byte{
		"..":       hostile(h, `{"index":0,"root":0,"name":"../x","kind":"file","size":1}`),
		"absolute": hostile(h, `{"index":0,"root":0,"name":"/etc/passwd","kind":"file","size":1}`),
		"no name":  hostile(h, `{"index":0,"root":0,"name":"","kind":"file","size":1}`),
		"root":     hostile(h, `{"index":0,"root":7,"name":"a","kind":"file","size":1}`),
		"negative": hostile(h, `{"index":0,"root":0,"name":"a","kind":"file","size":-1}`),
		"huge":     hostile(h, `{"index":0,"root":0,"name":"a","kind":"file","size":9223372036854775807}`),
		"missing":  hostile(h, `{"index":0,"root":0,"name":"gone","kind":"file","size":1152921504606846976}`),
		"many":     hostile(many),
		"twice": hostile(h, `{"index":0,"root":0,"name":"a","kind":"file","size":10}`,
			`{"index":0,"root":0,"name":"b","kind":"file","size":10}`),
		"nothing": []byte(magic),
	} {
		s, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			continue
		}
		if len(s.Problems) == 0 {
			t.Errorf("%s: nothing is reported", what)
		}
		if err := s.Verify(ctx, disk(dir), func(Difference) {}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		out := filepath.Join(t.TempDir(), "out")
		if _, err := s.Repair(ctx, disk(dir), store.Local{}.Sink(out, nil)); err == nil {
			t.Errorf("%s: Mend reports no error", what)
		}
	}
}

// TestRecordsExchanged: whole records that were moved or doubled keep their checksums, but the tail's digest differs.
func TestRecordsExchanged(t *testing.T) {
	b := sealed(t, 0, tree(t, 8, small))
	first := bytes.Index(b, []byte(marker))
	second := first + headLen + int(binary.LittleEndian.Uint32(b[first+headLen-4:])) + sumLen
	duplicated := slices.Concat(b[:second], b[first:])
	if s := opened(t, duplicated); len(s.Problems) == 0 {
		t.Error("a record is there twice, and nothing is reported")
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, parity := range []float64{0, 5} {
		b.Run(fmt.Sprint("parity ", parity), func(b *testing.B) {
			const size = 256 << 20
			dir := b.TempDir()
			put(b, dir+"/x", make([]byte, size))
			files, err := disk(dir).Walk(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(size)
			for b.Loop() {
				if _, err := Write(ctx, &onFirstWrite{}, disk(dir), files, Options{Parity: parity}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
