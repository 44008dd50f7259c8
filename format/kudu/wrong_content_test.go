package kudu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// oneRowSet returns the files of a directory with one table, and the files with the blocks of its largest rowset, by
// kind as in blocksOf.
func oneRowSet(t *testing.T, dir string) (files map[string][]byte, blocks map[string]string) {
	t.Helper()
	files = load(t, dir)
	f, tablets := layout(t, store.NewMemory(files))
	largest := int64(-1)
	for _, tb := range tablets {
		for i := range tb.RowSets {
			mine, rows := map[string]string{}, int64(0)
			for _, b := range tb.RowSets[i].Blocks() {
				p, err := f.PlaceOf(t.Context(), tb, b.BlockRef)
				if err != nil {
					t.Fatal(err)
				}
				kind := b.Kind
				if kind == "column" {
					kind = tb.Schema.NameOf(b.Column)
					rows = reading(t, files[p.At.Object]).Len()
				}
				mine[kind] = p.At.Object
			}
			if rows > largest {
				largest, blocks = rows, mine
			}
		}
	}
	return files, blocks
}

func reading(t *testing.T, b []byte) *cfile.Reader {
	t.Helper()
	r, err := cfile.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// column64 reads a column of 64-bit numbers.
func column64(t *testing.T, b []byte) (out []int64) {
	t.Helper()
	r := reading(t, b)
	it, err := r.SeekToOrdinal(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for int64(len(out)) < r.Len() {
		a, err := it.Next(context.Background(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a.(*array.Int64).Int64Values()...)
		a.Release()
	}
	return out
}

func write64(t *testing.T, values []int64, o cfile.WriterOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := cfile.NewWriter(&out, cfile.Field{Name: "id", Type: cfile.Int64}, o)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewInt64Builder(memory.NewGoAllocator())
	b.AppendValues(values, nil)
	if err := w.Append(b.NewArray()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// key64 returns the encoded key of a number.
func key64(t *testing.T, v int64) []byte {
	t.Helper()
	k, err := cfile.AppendKey(nil, cfile.Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)), true)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// resealed changes bytes of a block and updates its checksum.
func resealed(file []byte, block fault.Span, change func(b []byte)) []byte {
	out := bytes.Clone(file)
	b := out[block.Off:block.End()]
	change(b[:len(b)-4])
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// reportedOf returns the codes of the errors that verify reports for files after a change; each finding must have a
// file.
func reportedOf(t *testing.T, files map[string][]byte, change map[string][]byte, depth format.Depth) string {
	t.Helper()
	all := maps.Clone(files)
	maps.Copy(all, change)
	var out []region.Finding
	for x := range kudu.Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(all)},
		format.OpenOptions{Depth: depth}) {
		if x.Severity < region.Error {
			continue
		}
		if out = append(out, x); x.At.Object == "" || x.Message == "" {
			t.Errorf("got finding %+v without file or message", x)
		}
	}
	return codes(out, region.Error)
}

// TestWrongContentOfBlocks replaces blocks of a real table by intact ones, with matching checksums, whose content is
// wrong.
func TestWrongContentOfBlocks(t *testing.T) {
	files, blocks := oneRowSet(t, "testdata/history")
	if got := reportedOf(t, files, nil, format.Deep); got != "" {
		t.Fatalf("a healthy directory: got errors %s", got)
	}
	keys := column64(t, files[blocks["id"]])
	n := len(keys)
	low, high := key64(t, keys[0]), key64(t, keys[n-1])
	ordered := cfile.WriterOptions{ValueIndex: true, BlockSize: 4096}
	unsorted := append([]int64(nil), keys...)
	unsorted[100], unsorted[101] = unsorted[101], unsorted[100]
	bloomOf := func(without int) []byte {
		var out bytes.Buffer
		w, err := cfile.NewBloomWriter(&out, cfile.BloomOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if i != without {
				if err := w.Add(key64(t, k)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	deltas := func(undo bool, rows ...uint32) []byte {
		var out bytes.Buffer
		w, err := cfile.NewDeltaWriter(&out, undo, cfile.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := uint64(7353330655815053313 + 1<<40) // after all operations of the table
		for _, row := range rows {
			if at--; !undo {
				at += 2
			}
			if err := w.Add(row, at, new(cfile.ChangeList).Update().Set(1,
				binary.LittleEndian.AppendUint32(nil, row))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	id := write64(t, keys, ordered)
	index := rootOf(t, id)
	for what, c := range map[string]struct {
		kind  string
		b     []byte
		depth format.Depth
		want  string // at least one of these is reported
	}{
		"the same keys": {"id", id, format.Deep, ""},
		"keys that do not ascend": {"id",
			write64(t, unsorted, cfile.WriterOptions{BlockSize: 4096, MinKey: low, MaxKey: high}), format.Deep,
			"kudu.keys.order"},
		"a wrong min_key": {"id",
			write64(t, keys, cfile.WriterOptions{ValueIndex: true, MinKey: key64(t, keys[0]-1), MaxKey: high}),
			format.Deep, "cfile.keys.range kudu.keys.range"},
		"a wrong max_key": {"id",
			write64(t, keys, cfile.WriterOptions{ValueIndex: true, MinKey: low, MaxKey: key64(t, keys[n-1]+1)}),
			format.Deep, "cfile.keys.range kudu.keys.range"},
		"a bloom file without a key":           {"bloom", bloomOf(n / 2), format.Deep, "kudu.bloom.disagrees"},
		"a bloom file without the first key":   {"bloom", bloomOf(0), format.Sums, "kudu.bloom.disagrees"},
		"the same bloom file":                  {"bloom", bloomOf(-1), format.Deep, ""},
		"REDO changes that go back in time":    {"redo", deltas(true, 5, 5), format.Deep, "kudu.delta.order"},
		"UNDO changes that go forward in time": {"undo", deltas(false, 5, 5), format.Deep, "kudu.delta.order"},
		"changes past the last row": {"redo", deltas(false, 5, uint32(n)), format.Deep,
			"kudu.delta.damaged"},
		"a key of the value index": {"id", resealed(id, index, func(b []byte) {
			// the second entry: the first seven bytes of a key, which distinguish its block from the previous one
			at := bytes.Index(b, []byte{7, 0x80})
			if at < 0 {
				t.Fatalf("the value index has no such entry: %x", b)
			}
			b[at+7]++
		}), format.Deep, "cfile.index.key cfile.index.disagree"},
	} {
		file := blocks[c.kind]
		if file == "" {
			t.Fatal("no", c.kind)
		}
		got := reportedOf(t, files, map[string][]byte{file: c.b}, c.depth)
		if c.want == "" && got == "" {
			continue
		}
		if c.want == "" || !slices.ContainsFunc(strings.Fields(c.want),
			func(code string) bool { return slices.Contains(strings.Fields(got), code) }) {
			t.Errorf("%s: got errors %q, want one of %q", what, got, c.want)
		}
	}
}

// TestWrongContentOfAdhocIndexes: an intact ad-hoc index in which the key of a row differs from the columns.
func TestWrongContentOfAdhocIndexes(t *testing.T) {
	files, blocks := oneRowSet(t, "testdata/file")
	file := blocks["adhoc-index"]
	r := reading(t, files[file])
	it, _, err := r.SeekAtOrAfter(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var keys [][]byte
	for int64(len(keys)) < r.Len() {
		a, err := it.Next(t.Context(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range a.Len() {
			keys = append(keys, bytes.Clone(a.(*array.Binary).Value(i)))
		}
		a.Release()
	}
	for _, wrong := range []bool{false, true} {
		var out bytes.Buffer
		w, err := cfile.NewAdhocIndexWriter(&out, cfile.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if wrong && i == len(keys)/2 {
				k = append(bytes.Clone(k), 0) // the keys still ascend
			}
			if err := w.Add(k); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "kudu.index.disagrees"}[wrong]
		if got := reportedOf(t, files, map[string][]byte{file: out.Bytes()}, format.Deep); got != want {
			t.Errorf("wrong key %t: got errors %q, want %q", wrong, got, want)
		}
	}
}

// TestVerifyRestOfDamagedRowSet: although a block is damaged, the others of its rowset are compared with the
// superblock.
func TestVerifyRestOfDamagedRowSet(t *testing.T) {
	files, blocks := oneRowSet(t, "testdata/history")
	damaged := blocks["b"]
	// a float64 column in place of an int32 one
	change := map[string][]byte{damaged: flipped(files[damaged], 40), blocks["a"]: files[blocks["c"]]}
	for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
		want := "cfile.block.checksum kudu.rowset.uneven"
		if depth == format.Quick {
			want = "kudu.rowset.uneven"
		}
		if got := reportedOf(t, files, change, depth); got != want {
			t.Errorf("%v: got errors %q, want %q", depth, got, want)
		}
	}
}

// TestUncheckedBlocks: blocks without checksums are reported, like single files without checksums.
func TestUncheckedBlocks(t *testing.T) {
	files, blocks := oneRowSet(t, "testdata/history")
	unchecked := func() string {
		what, err := kudu.Format.Unchecked(t.Context(), format.Target{Tree: store.NewMemory(files)},
			format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return what
	}
	if what := unchecked(); what != "" {
		t.Errorf("with checksums: got %s, want nothing", what)
	}
	files[blocks["id"]] = write64(t, column64(t, files[blocks["id"]]),
		cfile.WriterOptions{ValueIndex: true, NoChecksums: true})
	if what := unchecked(); !strings.HasPrefix(what, "1 of ") || !strings.Contains(what, blocks["id"]) ||
		!strings.Contains(what, "d_major, id") {
		t.Errorf("without: got %q, want the block of id", what)
	}
}

// rootOf returns the root of a file's value index.
func rootOf(t *testing.T, b []byte) (at fault.Span) {
	t.Helper()
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
	for n, err := range cfile.Format.Describe(t.Context(), tg, format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Depth == 1 && strings.HasPrefix(n.Name, "validx") {
			at = n.At
		}
	}
	return at
}
