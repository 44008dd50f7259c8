package kudu_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// attempt reads a damaged directory in every way there is. What must hold: no panic, errors that are classed and placed, and no other
// answer than before unless verify says something.
func attempt(t testing.TB, files map[string][]byte, tree *store.Memory, table, at string, want []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tight := format.Limits{Page: 8 << 20, Metadata: 4 << 20}
	opts := map[string]string{}
	if at != "" {
		opts["at"] = at
	}
	read := func(spec stoa.ScanSpec, again bool) (rows []string, err error) {
		tb, err := stoa.Open(ctx, "#"+table, stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts, Tree: tree, Limits: tight, Recover: again})
		if err != nil {
			return nil, err
		}
		defer tb.Close()
		for b, err := range tb.Scan(ctx, spec) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, lines(b)...)
		}
		return rows, nil
	}
	spoken := func() bool {
		for x := range kudu.Format.Verify(ctx, format.Target{Tree: tree}, format.OpenOptions{Limits: tight}) {
			if x.Severity >= region.Warning && x.Code != "kudu.wal.missing" {
				return true
			}
		}
		return false
	}
	rows, err := read(stoa.ScanSpec{}, false)
	classed(t, err)
	if err == nil && !slices.Equal(slices.Sorted(slices.Values(rows)), want) && !spoken() {
		t.Errorf("another answer, and nobody speaks")
	}
	if rows, err = read(stoa.ScanSpec{Damaged: stoa.SkipRows}, false); err == nil && len(rows) > len(want) {
		t.Errorf("%d rows instead of %d", len(rows), len(want))
	}
	classed(t, err)
	_, err = read(stoa.ScanSpec{Damaged: stoa.NullCells}, true)
	classed(t, err)
	for _, err := range kudu.Format.Describe(ctx, format.Target{Tree: tree}, format.DescribeOptions{OpenOptions: format.OpenOptions{Limits: tight}}) {
		classed(t, err)
	}
	if ctx.Err() != nil {
		t.Error("it takes too long")
	}
}

// classed fails for an error that does not say whose fault it is, or is ours.
func classed(t testing.TB, err error) {
	t.Helper()
	var e *fault.Error
	if err != nil && (!errors.As(err, &e) || e.Class == fault.Bug || e.Class == fault.Corrupt && e.At.Object == "") {
		t.Errorf("error %v", err)
	}
}

// damageOf is files with a byte of one object changed, or the object cut there.
func damageOf(files map[string][]byte, names []string, object, off uint32, mask byte) *store.Memory {
	name := names[int(object)%len(names)]
	b := files[name]
	if len(b) == 0 {
		return store.NewMemory(maps.Clone(files))
	}
	at := int64(off) % int64(len(b))
	if mask == 0 {
		return with(files, name, b[:at:at])
	}
	out := flipped(b, at)
	out[at] = b[at] ^ mask
	return with(files, name, out)
}

// Bytes of every object of the golden directories are changed, and the objects cut.
func TestDamagedDirectories(t *testing.T) {
	for _, x := range []struct{ dir, table, at, phase string }{
		{"testdata/file", "autoinc", "", "final"}, {"testdata/history", "d_major", moments["p2"], "p2"},
	} {
		files := load(t, x.dir)
		delete(files, "SHA256SUMS")
		names := slices.Sorted(maps.Keys(files))
		want := expected(t, "testdata", x.table, x.phase)
		n := 0
		for i, name := range names {
			size := len(files[name])
			for k, tries := 0, max(3, min(size/600, 5)); k < tries; k++ {
				mask := []byte{1, 0x80, 0, 0xff}[(i+k)%4]
				attempt(t, files, damageOf(files, names, uint32(i), uint32(size*k/tries+i%7), mask), x.table, x.at, want)
				n++
				if t.Failed() {
					t.Fatalf("%s, byte %d, mask %#x", name, size*k/tries+i%7, mask)
				}
			}
		}
		t.Logf("%s: %d attempts", x.dir, n)
		if n < 3*len(names) {
			t.Error("too few")
		}
	}
}

// FuzzDirectory damages the golden directory.
func FuzzDirectory(f *testing.F) {
	files := load(f, "testdata/history")
	names := slices.Sorted(maps.Keys(files))
	want := expected(f, "testdata", "d_major", "p2")
	for i := range names {
		f.Add(uint32(i), uint32(30+i), byte(1))
		f.Add(uint32(i), uint32(100), byte(0))
	}
	f.Fuzz(func(t *testing.T, object, off uint32, mask byte) {
		attempt(t, files, damageOf(files, names, object, off, mask), "d_major", moments["p2"], want)
	})
}
