package redfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// writeBlobs writes a table of 40 attachments of size bytes, four of which are inner.
func writeBlobs(t *testing.T, size int, inner []byte, opts map[string]string) []byte {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "blob", Type: arrow.BinaryTypes.Binary, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range 40 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		blob := bytes.Repeat([]byte("x"), size)
		if i%10 == 7 {
			blob = inner
		}
		b.Field(1).(*array.BinaryBuilder).Append(blob)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	file := writeTable(t, opts, batch)
	formattest.Sound(t, &redfile.Format, target(file).Tree, "f.red")
	return file
}

// TestFileWithinFile: RedFiles stored in the pages of a RedFile have metadata and magic of their own. Wherever the
// outer file is truncated, recovery finds its row groups and never those of the inner files.
func TestFileWithinFile(t *testing.T) {
	inners := map[string][]byte{
		"E with sync blocks":    writeSample(t, 5, map[string]string{"sync": "1", "row-group-rows": "2"}),
		"E without sync blocks": writeSample(t, 5, map[string]string{"sync": "0", "compression": "none"}),
		"A":                     writeSample(t, 5, map[string]string{"sync": "0", "generation": "A"}),
		"empty":                 writeSample(t, 0, map[string]string{"sync": "0"}),
	}
	for name, inner := range inners {
		for _, opts := range []map[string]string{{"sync": "2"}, {"sync": "1", "generation": "A"}, {"sync": "0"},
			{"sync": "0", "generation": "A"}} {
			opts["compression"], opts["row-group-rows"] = "none", "5"
			whole := writeBlobs(t, 50, inner, opts)
			ends := groupEnds(t, whole)
			for cut := len(whole) - 1; cut > 8; cut -= 397 {
				checkWithin(t, name, opts, whole, cut, ends)
			}
			for at := 0; ; at++ { // and where one of them ends
				i := bytes.Index(whole[at:], inner)
				if i < 0 {
					break
				}
				at += i
				checkWithin(t, name, opts, whole, at+len(inner), ends)
			}
		}
	}
}

// TestOffsetsOfInnerFile: the offsets of an inner file may coincide with those of structures of the outer file, or of
// its own, wherever it lies. The checksums, which vary in encoded size, and the sizes of the other attachments shift
// everything.
func TestOffsetsOfInnerFile(t *testing.T) {
	defer redfile.SetRandom(rand.NewChaCha8([32]byte{7}))()
	cuts, times := 0, 120
	if testing.Short() {
		times = 30
	}
	for k := range times {
		inner := writeSample(t, 5, map[string]string{"sync": strconv.Itoa(k % 3), "row-group-rows": "2"})
		opts := map[string]string{"sync": "0", "compression": "none", "row-group-rows": "5",
			"generation": "AE"[k%2:][:1]}
		whole := writeBlobs(t, 1+k*3, inner, opts)
		ends := groupEnds(t, whole)
		for cut := len(whole) - 1 - k; cut > 8; cut -= 1 + len(whole)/11 {
			checkWithin(t, "marker "+strconv.Itoa(k), opts, whole, cut, ends)
			cuts++
		}
	}
	t.Logf("%d cut files", cuts)
}

// groupEnds returns the offsets at which the row groups of a file of writeBlobs end.
func groupEnds(t *testing.T, whole []byte) (ends []int64) {
	t.Helper()
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Depth == 0 && strings.HasSuffix(n.Name, ".columns[1]") {
			ends = append(ends, n.At.End())
		}
	}
	if len(ends) != 8 {
		t.Fatalf("%d row groups", len(ends))
	}
	return ends
}

func checkWithin(t *testing.T, name string, opts map[string]string, whole []byte, cut int, ends []int64) {
	t.Helper()
	tg := target(whole[:cut])
	want := 0
	for _, e := range ends {
		if e <= int64(cut) {
			want += 5
		}
	}
	r, _, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{})
	if err != nil {
		if want > 0 {
			t.Errorf("%s, %v, cut at %d: %v, %d rows were whole", name, opts, cut, err, want)
		}
		return
	}
	defer r.Close()
	if want > 0 && (r.Schema().NumFields() != 2 || r.Schema().Field(1).Name != "blob") {
		t.Errorf("%s, %v, cut at %d: the schema is %v", name, opts, cut, r.Schema())
		return
	}
	if got := rowsRecovered(t, tg.Tree); got < want {
		t.Errorf("%s, %v, cut at %d: %d rows, %d were whole", name, opts, cut, got, want)
	}
}

// TestHostileRecover: bytes crafted to look like very many footers or chunks do not stall recovery.
func TestHostileRecover(t *testing.T) {
	const size = 1 << 20
	patterns := map[string]func(b []byte) []byte{
		"footers that begin at the beginning": func(b []byte) []byte {
			b = append(b, 0x15, 2, 0x18, 0xff, 0xff, 0xff, 0x7f)
			for len(b) < size {
				b = append(binary.LittleEndian.AppendUint32(b, uint32(len(b)-4)), "RED1"...)
			}
			return b
		},
		"footers that begin with nothing": func(b []byte) []byte {
			for len(b) < size {
				b = append(binary.LittleEndian.AppendUint32(b, uint32(len(b)-4)), "RED1"...)
			}
			return b
		},
		"metadata that goes on": func(b []byte) []byte {
			for len(b) < size {
				b = append(b, 0x15, 2, 0x18, 0xff, 0xff, 0x70, 'R', 'E', 'D', '1')
			}
			return b
		},
		"columns that go on": func(b []byte) []byte {
			for len(b) < size {
				b = append(b, 0x15, 2, 0x19, 0x15, 0, 0x19, 0x18, 0xff, 0xff, 0x70)
			}
			return b
		},
		"headers that go on": func(b []byte) []byte {
			for len(b) < size {
				b = append(b, 0x15, 0, 0x15, 2, 0x15, 2, 0x58, 0xff, 0xff, 0x70)
			}
			return b
		},
		"columns with names of their own": func(b []byte) []byte {
			for k := 0; len(b) < size; k++ {
				b = append(b, 0x15, 2, 0x19, 0x15, 0, 0x19, 0x18, 4, byte('a'+k&15), byte('a'+k>>4&15),
					byte('a'+k>>8&15), byte('a'+k>>12&15), 0x15, 0, 0x16, 0, 0)
			}
			return b
		},
		"columns with names that come backwards": func(b []byte) []byte {
			for k := 0; len(b) < size; k++ {
				n := k
				if k >= 1<<15 {
					n = -k
				}
				b = append(b, 0x15, 2, 0x19, 0x15, 0, 0x19, 0x18, 4, byte('a'+n&15), byte('a'+n>>4&15),
					byte('a'+n>>8&15), byte('a'+n>>12&15), 0x15, 0, 0x16, 0, 0)
			}
			return b
		},
	}
	for name, make := range patterns {
		b := make([]byte("RED1"))
		b = append(b, 0xff) // no metadata at the end
		begin := time.Now()
		r, found, err := redfile.Format.Recover(ctx, target(b), format.OpenOptions{})
		if err == nil {
			r.Close()
		}
		took := time.Since(begin)
		t.Logf("%s: %v, %d findings, %v", name, took.Round(time.Millisecond), len(found), err)
		if took > 10*time.Second { // about a second; without limits it takes minutes
			t.Errorf("%s: %v for %d bytes", name, took, len(b))
		}
		// each is as long as everything before it
		if strings.HasPrefix(name, "footers") && !slices.ContainsFunc(found, func(f region.Finding) bool {
			return f.Code == "redfile.recover.limit" && f.Severity == region.Warning && f.At.Len == int64(len(b))
		}) {
			t.Errorf("%s: that recovery reads no more on suspicion is not reported: %+v", name, found)
		}
	}
}

// splitTable writes 40 rows as four parts, and returns all objects.
func splitTable(t *testing.T, opts map[string]string) map[string][]byte {
	t.Helper()
	return splitTableAs(t, "row-group", opts)
}

func splitTableAs(t *testing.T, split string, opts map[string]string) map[string][]byte {
	t.Helper()
	return splitTableFrom(t, 0, split, opts)
}

func splitTableFrom(t *testing.T, from int, split string, opts map[string]string) map[string][]byte {
	t.Helper()
	opts["split"], opts["row-group-rows"] = split, "10"
	mem := store.NewMemory(nil)
	w, err := redfile.Format.Create(ctx, mem.Sink("out"), sampleSchema, format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	b := sampleBatch(from, 40)
	defer b.Release()
	if err := w.Write(ctx, b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	objects := map[string][]byte{}
	for _, name := range mem.Names() {
		objects[name] = mem.Bytes(name)
	}
	return objects
}

// TestSwappedPart: a part in place of another, of the same table or of a similar one, is not read in its place.
func TestSwappedPart(t *testing.T) {
	for _, gen := range []string{"E", "A"} {
		whole := splitTable(t, map[string]string{"generation": gen, "compression": "none"})
		other := splitTable(t, map[string]string{"generation": gen, "compression": "none"})
		for what, part := range map[string][]byte{"the part before": whole["out/part-00001.red"],
			"that of another table": other["out/part-00002.red"]} {
			objects := maps.Clone(whole)
			objects["out/part-00002.red"] = part
			tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
			r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
			if err != nil || len(groups) != 4 {
				t.Fatal(err, len(groups))
			}
			for _, g := range groups {
				for col := range r.Columns() {
					_, err := chunkText(r, tg, g, col)
					if bad := err != nil; bad != (g.Index == 2) || bad && !strings.Contains(err.Error(), "another") {
						t.Errorf("generation %s, %s: row group %d, column %d: %v", gen, what, g.Index, col, err)
					}
				}
			}
			r.Close()
			reported := 0
			for f := range redfile.Format.Verify(ctx, tg, format.OpenOptions{}) {
				if f.Severity == region.Error && strings.Contains(f.Message, "another") && f.Column != "" {
					reported++
				}
			}
			if reported != 3 {
				t.Errorf("generation %s, %s: verify reports it for %d chunks of 3", gen, what, reported)
			}
		}
	}
}

// TestPartEnds: a part that has lost its own end is read through the table's metadata, and reported; intact parts are
// not.
func TestPartEnds(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"}} {
		whole := splitTable(t, opts)
		if found := findings(format.Target{Tree: store.NewMemory(whole), Name: "out"}); len(found) > 0 {
			t.Errorf("%v: %+v", opts, found)
		}
		last := whole["out/part-00003.red"]
		zeros := slices.Clone(last)
		clear(zeros[len(zeros)-20:])
		for what, b := range map[string][]byte{"cut": last[:len(last)-3], "zeros": zeros,
			"more": append(slices.Clone(last), "more"...)} {
			objects := maps.Clone(whole)
			objects["out/part-00003.red"] = b
			found := findings(format.Target{Tree: store.NewMemory(objects), Name: "out"})
			if len(found) != 1 || found[0].Code != "redfile.part.end" || found[0].Severity != region.Warning ||
				found[0].At.Object != "out/part-00003.red" || found[0].Lost != 0 {
				t.Errorf("%v, %s: %+v", opts, what, found)
			}
		}
	}
}

// TestLostSplitMetadata: the parts of a split table are complete files: without its metadata they are joined again, and
// a part that is also damaged is left out and reported.
func TestLostSplitMetadata(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"}, {"generation": "A", "sync": "0"}} {
		objects := splitTable(t, opts)
		meta := objects["out/_metadata.red"]
		objects["out/_metadata.red"] = meta[:len(meta)-9]
		tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
		if n := checkRecovered(t, tg.Tree, "out"); n != 40 {
			t.Errorf("%v: %d rows of 40", opts, n)
		}
		last := objects["out/part-00003.red"]
		objects["out/part-00003.red"] = last[:len(last)-3] // its row group is complete
		tg = format.Target{Tree: store.NewMemory(objects), Name: "out"}
		if n := checkRecovered(t, tg.Tree, "out"); n != 40 {
			t.Errorf("%v: %d rows of 40, of which the last part has lost its end", opts, n)
		}
		objects["out/part-00003.red"] = last[:len(last)/4]
		tg = format.Target{Tree: store.NewMemory(objects), Name: "out"}
		if n := checkRecovered(t, tg.Tree, "out"); n != 30 {
			t.Errorf("%v: %d rows of 30", opts, n)
		}
		_, found, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{})
		if err != nil || !slices.ContainsFunc(found,
			func(f region.Finding) bool { return f.Code == "redfile.rows.lost" }) {
			t.Errorf("%v: %v, %+v", opts, err, found)
		}
	}
}

// TestLostMetadataOfOneFile: a table whose metadata is a separate file is recovered from its only data file, which is
// also complete by itself.
func TestLostMetadataOfOneFile(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"},
		{"sync": "0", "crc": "false", "index": "false"}} {
		objects := splitTableAs(t, "metadata", opts)
		meta := objects["out/_metadata.red"]
		for n := 0; n < len(meta); n += 7 {
			objects["out/_metadata.red"] = meta[:n]
			if n < 12 { // nothing identifies it as a RedFile
				continue
			}
			if n := checkRecovered(t, store.NewMemory(objects), "out"); n != 40 {
				t.Fatalf("%v: %d rows of 40", opts, n)
			}
		}
		data := objects["out/data.red"]
		objects["out/data.red"] = data[:len(data)-3]
		if n := checkRecovered(t, store.NewMemory(objects), "out"); n != 40 {
			t.Errorf("%v: %d rows of 40, of which the data file has lost its end", opts, n)
		}
	}
}

// TestMetadataOfAnotherTable: the parts beside the metadata of another table are recovered without it.
func TestMetadataOfAnotherTable(t *testing.T) {
	for _, split := range []string{"row-group", "metadata"} {
		for _, opts := range []map[string]string{{"generation": "A"}, {}, {"generation": "A", "sync": "0"},
			{"sync": "0"}, {"sync": "0", "crc": "false", "index": "false"}} {
			others := maps.Clone(opts)
			others["compression"] = "gzip"
			objects, foreign := splitTableAs(t, split, opts), splitTableAs(t, split, others)
			objects["out/_metadata.red"] = foreign["out/_metadata.red"]
			tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
			if n := checkRecovered(t, tg.Tree, "out"); n != 40 {
				t.Errorf("%s, %v: %d rows of 40", split, opts, n)
			}
			if _, found, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{}); err != nil ||
				len(found) == 0 || found[0].Code != "redfile.footer.damaged" {
				t.Errorf("%s, %v: reported %+v, %v", split, opts, found, err)
			}
		}
	}
}

// TestGapBetweenParts: if the metadata of a split table and a part are missing, the parts next to it report the gap.
func TestGapBetweenParts(t *testing.T) {
	for _, gen := range []string{"E", "A"} {
		objects := splitTable(t, map[string]string{"generation": gen})
		delete(objects, "out/_metadata.red")
		for missing, want := range map[string]string{"": "", "out/part-00000.red": "out/part-00001.red",
			"out/part-00002.red": "out/part-00003.red"} {
			left := maps.Clone(objects)
			delete(left, missing)
			tree := store.NewMemory(left)
			for _, name := range tree.Names() {
				tg := format.Target{Tree: tree, Name: name}
				r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				reported := slices.ContainsFunc(r.(format.Finder).Findings(),
					func(f region.Finding) bool {
						return f.Code == "redfile.part.missing" &&
							f.Severity == region.Error
					})
				r.Close()
				verified := slices.ContainsFunc(findings(tg),
					func(f region.Finding) bool { return f.Code == "redfile.part.missing" })
				if reported != (name == want) || verified != reported {
					t.Errorf("generation %s without %q: %s reports %v, verify %v", gen, missing, name, reported,
						verified)
				}
			}
		}
		alone := format.Target{Tree: store.NewMemory(
			map[string][]byte{"part-00002.red": objects["out/part-00002.red"]}), Name: "part-00002.red"}
		if found := findings(alone); len(found) > 0 {
			t.Errorf("generation %s: a part alone: %+v", gen, found)
		}
	}
}

// TestRepeatedPart: if the metadata of a split table is missing, a part that is a copy of another, in place of a third
// or in addition, is reported, and recovery reads it once.
func TestRepeatedPart(t *testing.T) {
	for _, gen := range []string{"E", "A"} {
		whole := splitTable(t, map[string]string{"generation": gen})
		meta := whole["out/_metadata.red"]
		delete(whole, "out/_metadata.red")
		for _, c := range [][2]int{{1, 2}, {3, 4}, {0, 1}} { // the part, also in place
			objects := maps.Clone(whole)
			copied := fmt.Sprintf("out/part-%05d.red", c[1])
			objects[copied] = objects[fmt.Sprintf("out/part-%05d.red", c[0])]
			tree := store.NewMemory(objects)
			for _, name := range tree.Names() {
				reported := slices.ContainsFunc(findings(format.Target{Tree: tree, Name: name}),
					func(f region.Finding) bool {
						return f.Code == "redfile.part.repeated" &&
							f.Severity == region.Error
					})
				if reported != (name == copied) {
					t.Errorf("generation %s, copy at %s: %s reports %v", gen, copied, name, reported)
				}
			}
			objects["out/_metadata.red"] = meta[:len(meta)-9]
			tree = store.NewMemory(objects)
			want := 40
			if c[1] < 4 {
				want = 30
			}
			back, found, err := redfile.Format.Recover(ctx, format.Target{Tree: tree, Name: "out"},
				format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			groups, err := back.RowGroups(ctx, format.Part{}, format.Query{})
			for _, g := range groups {
				rows += int(g.Rows)
			}
			back.Close()
			if err != nil || rows != want ||
				!slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == "redfile.part.repeated" }) {
				t.Errorf("generation %s, copy at %s: %d rows recovered of %d, %v, %v", gen, copied, rows, want,
					found, err)
			}
		}
	}
}

// TestPartOfAnotherTable: if the metadata of a split table is missing, a part of another table with the same columns is
// reported by its marker.
func TestPartOfAnotherTable(t *testing.T) {
	for _, gen := range []string{"E", "A"} {
		objects := splitTable(t, map[string]string{"generation": gen})
		delete(objects, "out/_metadata.red")
		other := splitTable(t, map[string]string{"generation": gen, "compression": "gzip"})
		reported := func() (names []string) {
			for name := range objects {
				if slices.ContainsFunc(findings(format.Target{Tree: store.NewMemory(objects), Name: name}),
					func(f region.Finding) bool {
						return f.Code == "redfile.part.other" && f.Severity == region.Error
					}) {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return names
		}
		if names := reported(); names != nil {
			t.Errorf("generation %s: of the parts of one table %v are reported", gen, names)
		}
		objects["out/part-00001.red"] = other["out/part-00001.red"]
		if names := reported(); !slices.Equal(names, []string{"out/part-00001.red", "out/part-00002.red"}) {
			t.Errorf("generation %s: %v are reported", gen, names)
		}
	}
}

// TestMissingPart: a file that contains chunks of a split RedFile is missing. That is damage of these chunks.
func TestMissingPart(t *testing.T) {
	for _, gen := range []string{"E", "A"} {
		objects := splitTable(t, map[string]string{"generation": gen})
		delete(objects, "out/part-00001.red")
		tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
		for _, open := range []func() (format.Reader, error){
			func() (format.Reader, error) { return redfile.Format.Open(ctx, tg, format.OpenOptions{}) },
			func() (format.Reader, error) {
				r, _, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{})
				return r, err
			},
		} {
			r, err := open()
			if err != nil {
				t.Fatalf("generation %s: %v", gen, err)
			}
			groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
			if err != nil || len(groups) != 4 {
				t.Fatalf("generation %s: %v, %d row groups", gen, err, len(groups))
			}
			bad := 0
			for _, g := range groups {
				for col := range r.Columns() {
					_, err := chunkText(r, tg, g, col)
					if err == nil {
						continue
					}
					bad++
					if e := new(fault.Error); !errors.As(err, &e) || e.Class != fault.Corrupt || e.At.Len == 0 ||
						!strings.HasSuffix(e.Path, ".file_path") {
						t.Errorf("generation %s: row group %d: %v", gen, g.Index, err)
					}
				}
			}
			if bad != len(r.Columns()) {
				t.Errorf("generation %s: %d chunks are lost, %d are missing", gen, bad, len(r.Columns()))
			}
			r.Close()
		}
		n := 0
		for f := range redfile.Format.Verify(ctx, tg, format.OpenOptions{}) {
			if f.Severity < region.Error {
				continue
			}
			if n++; f.Column == "" || f.Rows[1]-f.Rows[0] != 10 || f.Rows[0]%10 != 0 ||
				!strings.Contains(f.Message, "missing") {
				t.Errorf("generation %s: %+v", gen, f)
			}
		}
		if n != 3 {
			t.Errorf("generation %s: verify reports %d errors, 3 chunks are missing", gen, n)
		}
	}
}

// TestTrailing: bytes after a RedFile hide its metadata from readers that start at the end. Recovery finds it, even if
// a page header before it is damaged and the metadata of columns is nowhere else, as in the files of 2013.
func TestTrailing(t *testing.T) {
	n := 0
	for _, cf := range corpusFiles(t, golden) {
		whole, err := os.ReadFile(filepath.Join(golden, cf.File))
		if err != nil {
			t.Fatal(err)
		}
		want, errs := content(target(whole))
		if len(errs) > 0 {
			continue
		}
		n++
		tries := [][]byte{append(slices.Clone(whole), "trailing"...)}
		if strings.Contains(want, "[][") { // there are pages, the first of them at the front
			tries = append(tries, append(append([]byte("RED1\xff"), whole[5:]...), "trailing"...))
		}
		for _, b := range tries {
			r, _, err := redfile.Format.Recover(ctx, target(b), format.OpenOptions{})
			if err != nil {
				t.Errorf("%s: %v", cf.File, err)
				continue
			}
			got, _ := readerContent(r, target(b))
			if b[4] == whole[4] && !reflect.DeepEqual(got, want) {
				t.Errorf("%s: other rows", cf.File)
			}
			if f, err := redfile.Format.Open(ctx, target(whole), format.OpenOptions{}); err != nil ||
				!f.Schema().Equal(r.Schema()) {
				t.Errorf("%s: %v, the schema is %v", cf.File, err, r.Schema())
			}
			r.Close()
		}
	}
	if n == 0 {
		t.Error("no file")
	}
	t.Logf("%d files", n)
}

// columnMetadata returns the locations of the column metadata after the pages, in file order.
func columnMetadata(t *testing.T, file []byte) (metas []fault.Span) {
	t.Helper()
	nodes, err := describeAll(target(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Name == "column_metadata" {
			metas = append(metas, n.At)
		}
	}
	return metas
}

// TestRecoverSeparatesRowGroups: without sync blocks only their paths show which chunks form a row group. The metadata
// of all columns of a row group but the first is lost, and that of the next one's first column: the remains of both
// have each path once, but are no row group.
func TestRecoverSeparatesRowGroups(t *testing.T) {
	data := writeSample(t, 150, map[string]string{"row-group-rows": "30", "sync": "0", "index": "false"})
	metas := columnMetadata(t, data)
	k := len(metas) / 5 // columns
	if k < 3 || len(metas)%5 != 0 {
		t.Fatalf("%d columns", len(metas))
	}
	for _, at := range metas[1 : k+1] {
		clear(data[at.Off:at.End()])
	}
	clear(data[metas[5*k-1].End():])
	tab, err := stoa.Open(t.Context(), "f.red", stoa.OpenOptions{Tree: target(data).Tree, Recover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	rows := 0
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows}) {
		if err != nil {
			t.Fatal(err)
		}
		ids, lists := b.Column(0).(*array.Int64), b.Column(2).(*array.List)
		for i := range ids.Len() {
			row := int32((ids.Value(i) + 7) / 1000003)
			from, to := lists.ValueOffsets(i)
			if n := to - from; lists.IsNull(i) != (row%7 == 0) || lists.IsValid(i) && n != int64(row%4) {
				t.Errorf("row %d has a list of %d items, null %v", row, n, lists.IsNull(i))
			}
			rows++
		}
	}
	if rows != 90 {
		t.Errorf("%d rows came out, 90 are whole", rows)
	}
}

// TestRecoverLostBeginning: without metadata at the end, and with all columns of the first row group lost except the
// last, that column is not joined with columns of the next row group; not even if the remaining bytes of the others
// include a copy of their metadata, which has no pages before it.
func TestRecoverLostBeginning(t *testing.T) {
	for _, n := range []int{35, 45, 65, 150} { // some have a last row group that is much smaller than the others
		whole := writeSample(t, n, map[string]string{"row-group-rows": "30", "sync": "0", "index": "false"})
		metas := columnMetadata(t, whole)
		k := len(metas) / ((n + 29) / 30)
		for _, copied := range []bool{false, true} {
			data := slices.Clone(whole)
			clear(data[4:metas[k-2].End()])
			clear(data[metas[len(metas)-1].End():])
			if m := metas[0]; copied {
				copy(data[34:], whole[m.Off:m.End()])
			}
			for policy, want := range map[stoa.Damaged]int{stoa.SkipRows: n - 30, stoa.NullCells: n} {
				if rows, _ := recoveredRows(t, data, policy); rows != want {
					t.Errorf("%d rows, copied %v: %d came out under policy %v, want %d", n, copied, rows, policy, want)
				}
			}
		}
	}
}

// TestRecoverSingleChunks: of two row groups, all chunks are lost except the first columns of one and the last column
// of the other. Each path occurs once, but they are no row group: the gap between them is as large as one.
func TestRecoverSingleChunks(t *testing.T) {
	data := writeSample(t, 60, map[string]string{"row-group-rows": "30", "sync": "0", "index": "false"})
	metas := columnMetadata(t, data)
	k := len(metas) / 2
	clear(data[metas[k-2].End():metas[2*k-2].End()])
	clear(data[metas[2*k-1].End():])
	for policy, want := range map[stoa.Damaged]int{stoa.SkipRows: 0, stoa.NullCells: 60} {
		if rows, _ := recoveredRows(t, data, policy); rows != want {
			t.Errorf("%d rows came out under policy %v, want %d", rows, policy, want)
		}
	}
}

// TestRecoverColumnsOfLostRowGroup: only some columns of a row group in the middle are left; if only the list is left,
// only the list itself gives the number of rows. Whatever is left, the row groups around it are read, and under
// NullCells also the remaining columns.
func TestRecoverColumnsOfLostRowGroup(t *testing.T) {
	whole := writeSample(t, 90, map[string]string{"row-group-rows": "30", "sync": "0", "index": "false"})
	metas := columnMetadata(t, whole)
	k := len(metas) / 3
	if k < 3 || len(metas)%3 != 0 {
		t.Fatalf("%d columns", len(metas))
	}
	for left := range k {
		data := slices.Clone(whole)
		for i, at := range metas[k : 2*k] {
			if i != left {
				clear(data[at.Off:at.End()])
			}
		}
		clear(data[metas[3*k-1].End():])
		for policy, want := range map[stoa.Damaged]int{stoa.SkipRows: 60, stoa.NullCells: 90} {
			rows, lists := recoveredRows(t, data, policy)
			if rows != want {
				t.Errorf("column %d is left: %d rows came out under policy %v, want %d", left, rows, policy, want)
			}
			if listed := policy == stoa.NullCells && left == 2; listed != (lists > 60*6/7+1) {
				t.Errorf("column %d is left: %d lists under policy %v", left, lists, policy)
			}
		}
	}
}

// recoveredRows returns how many rows of the table of the killed writers recovery returns, and how many of them have a
// list; the ids and lists returned are as written.
func recoveredRows(t *testing.T, data []byte, policy stoa.Damaged) (rows, listed int) {
	t.Helper()
	return rowsLeft(t, data, policy, true)
}

// rowsLeft is recoveredRows, or, without recover, the same for the file opened normally.
func rowsLeft(t *testing.T, data []byte, policy stoa.Damaged, recover bool) (rows, listed int) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "f.red", stoa.OpenOptions{Tree: target(data).Tree, Recover: recover})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: policy}) {
		if err != nil {
			t.Fatal(err)
		}
		ids, lists := b.Column(0).(*array.Int64), b.Column(2).(*array.List)
		for i := range ids.Len() {
			row := rows
			if ids.IsValid(i) {
				row = int((ids.Value(i) + 7) / 1000003)
			}
			from, to := lists.ValueOffsets(i)
			if n := to - from; lists.IsValid(i) && (row%7 == 0 || n != int64(row%4)) {
				t.Errorf("row %d has a list of %d items", row, n)
			}
			if lists.IsValid(i) {
				listed++
			}
			rows++
		}
	}
	return rows, listed
}
