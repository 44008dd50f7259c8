package kudu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// attempt reads a damaged directory in every way: there must be no panic, errors must have a class and a place, and the
// answer may differ from want only if verify reports something.
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
		tb, err := stoa.Open(ctx, "#"+table,
			stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts, Tree: tree, Limits: tight,
				Recover: again})
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
	reported := func() bool {
		for x := range kudu.Format.Verify(ctx, format.Target{Tree: tree}, format.OpenOptions{Limits: tight}) {
			if x.Severity >= region.Warning && x.Code != "kudu.wal.missing" {
				return true
			}
		}
		return false
	}
	rows, err := read(stoa.ScanSpec{}, false)
	classed(t, err)
	if err == nil && !slices.Equal(slices.Sorted(slices.Values(rows)), want) && !reported() {
		t.Errorf("a different answer, and verify reports nothing")
	}
	if rows, err = read(stoa.ScanSpec{Damaged: stoa.SkipRows}, false); err == nil && len(rows) > len(want) {
		t.Errorf("%d rows instead of %d", len(rows), len(want))
	}
	if err == nil && !among(rows, want) && !reported() {
		t.Errorf("skipping damage yields rows that were not there before, and verify reports nothing")
	}
	classed(t, err)
	_, err = read(stoa.ScanSpec{Damaged: stoa.NullCells}, true)
	classed(t, err)
	for _, err := range kudu.Format.Describe(ctx, format.Target{Tree: tree},
		format.DescribeOptions{OpenOptions: format.OpenOptions{Limits: tight}}) {
		classed(t, err)
	}
	if ctx.Err() != nil {
		t.Error("it takes too long")
	}
}

// among reports whether rows is a sub-multiset of all.
func among(rows, all []string) bool {
	left := map[string]int{}
	for _, r := range all {
		left[r]++
	}
	for _, r := range rows {
		if left[r]--; left[r] < 0 {
			return false
		}
	}
	return true
}

// classed fails for an error that has no class, is damage without a place, or is a bug of stoa.
func classed(t testing.TB, err error) {
	t.Helper()
	var e *fault.Error
	if err != nil && (!errors.As(err, &e) || e.Class == fault.Bug || e.Class == fault.Corrupt && e.At.Object == "") {
		t.Errorf("error %v", err)
	}
}

// damageOf is files with a byte of one file changed, or, if mask is 0, with the file truncated there.
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

// TestDamagedDirectories changes some bytes of every file of the golden directories, and truncates every file.
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
				attempt(t, files, damageOf(files, names, uint32(i), uint32(size*k/tries+i%7), mask), x.table, x.at,
					want)
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

// FuzzDirectory damages the smaller golden directory: it overwrites bytes of one of its files, or truncates it. With
// again the checksums are updated, so that the patched content is parsed; a different answer is then not a failure.
func FuzzDirectory(f *testing.F) {
	files := load(f, "testdata/file")
	delete(files, "SHA256SUMS")
	names := slices.Sorted(maps.Keys(files))
	want := expected(f, "testdata", "autoinc", "final")
	seals := map[string][]seal{}
	for i, n := range names {
		seals[n] = sealsOf(f, files, n)
		f.Add(uint8(i), uint16(30+i), []byte{1}, false)
		f.Add(uint8(i), uint16(100), []byte{}, false)
		for _, x := range seals[n] {
			f.Add(uint8(i), uint16(x.from), []byte{2, 0xff}, true)
			f.Add(uint8(i), uint16(x.to-2), []byte{1, 0}, true)
		}
	}
	if len(seals[names[0]]) == 0 || len(seals["wal/tablet-meta/70fc465b9c534a739769e6e74c851895"]) == 0 {
		f.Fatal("no checksums were found")
	}
	f.Fuzz(func(t *testing.T, object uint8, off uint16, patch []byte, again bool) {
		defer formattest.Watch(20 * time.Second)()
		name := names[int(object)%len(names)]
		b := bytes.Clone(files[name])
		at := int(off) % len(b)
		if len(patch) == 0 {
			b = b[:at]
		}
		copy(b[at:], patch)
		if !again {
			attempt(t, files, with(files, name, b), "autoinc", "", want)
			return
		}
		for _, x := range seals[name] {
			x.put(b)
		}
		before := formattest.Allocated()
		sealed(t, with(files, name, b), "autoinc", nil)
		if n := formattest.Allocated() - before; n > 256<<20 {
			t.Errorf("%d bytes were allocated", n)
		}
	})
}

// FuzzDeltas patches a small delta file of the directory with history, and updates its checksums. Then the rowset's
// patches are computed as in a scan, but on a table that stays open: scans have targets of their own.
func FuzzDeltas(f *testing.F) {
	files := load(f, "testdata/history")
	fs, tablets := layout(f, store.NewMemory(files))
	blocks := blocksOf(f, fs, tablets, "d_major")
	var names []string
	whole, seals := map[string][]byte{}, map[string][]seal{}
	for _, kind := range []string{"redo", "undo"} {
		for _, at := range blocks[kind] {
			if at.Len > 4000 {
				continue
			}
			names = append(names, at.Object)
			whole[at.Object], seals[at.Object] = bytes.Clone(files[at.Object]), sealsOf(f, files, at.Object)
			for _, x := range seals[at.Object] {
				f.Add(uint8(len(names)-1), uint16(x.from+3), []byte{2, 0xff})
			}
		}
	}
	if len(names) != 3 {
		f.Fatalf("%d delta files", len(names))
	}
	p2, err := strconv.ParseUint(moments["p2"], 10, 64)
	if err != nil {
		f.Fatal(err)
	}
	apply := kudu.Deltas(f, store.NewMemory(files), "d_major",
		format.OpenOptions{Limits: format.Limits{Page: 4 << 20, Metadata: 4 << 20}})
	for _, name := range names {
		p, err := apply(name, p2)
		q, bad := apply(name, math.MaxUint64)
		if err != nil || bad != nil || sound(f, p)+sound(f, q) == 0 {
			f.Fatalf("%s: undamaged, it changes nothing; %v, %v", name, err, bad)
		}
	}
	f.Fuzz(func(t *testing.T, object uint8, off uint16, patch []byte) {
		defer formattest.Watch(20 * time.Second)()
		name := names[int(object)%len(names)]
		b := files[name] // the tree has the same bytes
		defer copy(b, whole[name])
		copy(b[int(off)%len(b):], patch)
		for _, x := range seals[name] {
			x.put(b)
		}
		for _, at := range []uint64{p2, math.MaxUint64} {
			p, err := apply(name, at)
			classed(t, err)
			sound(t, p)
		}
	})
}

// sound checks the invariants of a patch on which the engine relies. It returns the number of dropped rows and set
// cells.
func sound(t testing.TB, p *vec.Patch) (changes int) {
	if p == nil {
		return 0
	}
	if p.Drop != nil {
		changes = p.Drop.Count
	}
	for _, c := range p.Cols {
		if c.Vals.Len() != len(c.Rows) {
			t.Errorf("column %d: %d values for %d rows", c.Col, c.Vals.Len(), len(c.Rows))
		}
		for i, r := range c.Rows {
			if r < 0 || int(r) >= p.N || i > 0 && r <= c.Rows[i-1] {
				t.Fatalf("column %d: row %d of %d after row %d", c.Col, r, p.N, c.Rows[max(0, i-1)])
			}
		}
		changes += len(c.Rows)
	}
	for _, x := range p.Suspect {
		if classed(t, x.Err); x.Err == nil || x.Rows.From < p.First || x.Rows.To > p.First+int64(p.N) {
			t.Errorf("suspect: %+v", x)
		}
	}
	return changes
}

// sealed reads a directory with damaged content whose checksums match.
func sealed(t *testing.T, tree *store.Memory, table string, opts map[string]string) {
	ctx, tight := context.Background(), format.Limits{Page: 4 << 20, Metadata: 4 << 20}
	for x := range kudu.Format.Verify(ctx, format.Target{Tree: tree}, format.OpenOptions{Limits: tight}) {
		if x.Code == "" || x.Message == "" {
			t.Errorf("a finding without a code or a message: %+v", x)
		}
	}
	scanSealed(t, tree, table, opts)
}

func scanSealed(t *testing.T, tree *store.Memory, table string, opts map[string]string) {
	ctx, tight := context.Background(), format.Limits{Page: 4 << 20, Metadata: 4 << 20}
	for _, spec := range []stoa.ScanSpec{{}, {Damaged: stoa.SkipRows}} {
		tb, err := stoa.Open(ctx, "#"+table,
			stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Opts: opts, Tree: tree, Limits: tight,
				Recover: spec.Damaged == stoa.SkipRows})
		classed(t, err)
		if err != nil {
			continue
		}
		rows := int64(0)
		for b, err := range tb.Scan(ctx, spec) {
			if err != nil {
				classed(t, err)
				break
			}
			formattest.Valid(t, b)
			if rows += b.NumRows(); rows > 100_000 {
				break
			}
		}
		tb.Close()
	}
}

// seal is a CRC-32C in a file: over the bytes [from, to), stored at pos.
type seal struct{ pos, from, to int }

func (x seal) sum(b []byte) uint32 {
	return crc32.Checksum(b[x.from:x.to], crc32.MakeTable(crc32.Castagnoli))
}

func (x seal) holds(b []byte) bool {
	return x.from <= x.to && x.to <= len(b) && x.pos+4 <= len(b) && binary.LittleEndian.Uint32(b[x.pos:]) == x.sum(b)
}

// put updates the checksum, if the file is long enough.
func (x seal) put(b []byte) {
	if x.to <= len(b) && x.pos+4 <= len(b) {
		binary.LittleEndian.PutUint32(b[x.pos:], x.sum(b))
	}
}

// sealsOf finds the checksums of a file: after the blocks of a CFile and before its footer; after a container
// file's records.
func sealsOf(t testing.TB, files map[string][]byte, name string) (out []seal) {
	b := files[name]
	add := func(pos, from, to int) {
		if x := (seal{pos, from, to}); x.holds(b) {
			out = append(out, x)
		}
	}
	if bytes.HasPrefix(b, []byte("kuducntr")) {
		for from := 0; from < len(b)-4; from++ { // length, its checksum, the record, its checksum
			if n := int(binary.LittleEndian.Uint32(b[from:])); n > 0 && n < len(b)-from-12 {
				add(from+8+n, from+8, from+8+n)
			}
		}
		return out
	}
	for n, err := range cfile.Format.Describe(t.Context(), format.Target{Tree: store.NewMemory(files), Name: name},
		format.DescribeOptions{}) {
		if err != nil {
			return out // no CFile
		}
		off, end := int(n.At.Off), int(n.At.End())
		if n.Depth != 1 || end-off < 8 {
			continue
		}
		add(end-4, off, end-4)
		for _, to := range []int{end, end - 4, end - 8, end - 12} {
			add(off, off+4, to)
		}
	}
	return out
}
