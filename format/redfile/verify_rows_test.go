package redfile_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestRowsOfListPage: verify reports the rows of a damaged page of a repeated column, with and without index pages, and
// all rows to the end of the row group if two pages are damaged and the number of rows of the first is unknown.
func TestRowsOfListPage(t *testing.T) {
	for _, index := range []string{"true", "false"} {
		whole := writeSample(t, 120, map[string]string{"generation": "A", "row-group-rows": "60", "page-size": "40",
			"sync": "0", "index": index, "compression": "none"})
		pages := listPages(t, whole, "row_groups[1].columns[2]")
		rows := func(damaged ...int) (out [][2]int64) {
			b := append([]byte(nil), whole...)
			for _, i := range damaged {
				b[pages[i].At.End()-1] ^= 0xff
			}
			for _, f := range findings(target(b)) {
				out = append(out, f.Rows)
			}
			return out
		}
		at := int64(60)
		for i := range pages { // together they are the row group
			got := rows(i)
			if len(got) != 1 {
				t.Fatalf("index=%s, page %d: %v", index, i, got)
			}
			from, to := got[0][0], got[0][1]
			if index == "false" && i > 0 {
				from++ // the row before may continue in the page
			}
			if from != at || to <= from {
				t.Errorf("index=%s, page %d: rows %v, it begins at %d", index, i, got[0], at)
			}
			at = to
		}
		if at != 120 {
			t.Errorf("index=%s: the pages end at row %d of 120", index, at)
		}
		two := rows(1, 3)
		if len(two) != 2 || index == "false" && (two[0][1] != 120 || two[1] != two[0]) || index == "true" &&
			(two[0][1] >= two[1][0]) {
			t.Errorf("index=%s, two pages: %v", index, two)
		}
	}
}

// TestSizesOfPage: a page has its raw size in its header, and compressed bytes repeat it; a page stored uncompressed
// has the same size twice. Comparing them needs no decoding, so verify also does it when it checks only checksums.
func TestSizesOfPage(t *testing.T) {
	for _, codec := range []string{"none", "snappy", "gzip"} {
		whole := writeSample(t, 60, map[string]string{"compression": codec, "index": "false"})
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		o := format.OpenOptions{Depth: format.Sums}
		for f := range redfile.Format.Verify(ctx, target(whole), o) {
			t.Errorf("the whole file: %+v", f)
		}
		i := slices.IndexFunc(nodes, func(n region.Node) bool {
			return n.Depth == 1 &&
				strings.HasPrefix(n.Value, "DATA")
		})
		at := nodes[i].At.Off // compact protocol: field 1 type, 0, field 2 uncompressed_page_size, zigzag
		if head := whole[at : at+3]; head[0] != 0x15 || head[1] != 0 || head[2] != 0x15 {
			t.Fatalf("the page begins with % x", head)
		}
		b := append([]byte(nil), whole...)
		b[at+3] ^= 2
		reported := 0
		for f := range redfile.Format.Verify(ctx, target(b), o) {
			if f.Severity == region.Error && f.Code == "redfile.page.damaged" {
				reported++
			}
		}
		if reported != 1 {
			t.Errorf("%s: reported %d times", codec, reported)
		}
	}
}

// TestVerifyContinues: after a page with a damaged header, verify continues at the next page in the index, as reading
// does, and both report the same rows.
func TestVerifyContinues(t *testing.T) {
	const rows = 120
	want := sampleBatch(0, rows)
	defer want.Release()
	whole := writeSample(t, rows, map[string]string{"row-group-rows": "60", "page-size": "40", "sync": "0",
		"compression": "none"})
	for _, chunk := range []string{"row_groups[1].columns[0]", "row_groups[1].columns[2]"} {
		pages := listPages(t, whole, chunk)
		for i := range pages[:len(pages)-1] {
			for k := range int64(9) { // bytes of the header
				b := append([]byte(nil), whole...)
				b[pages[i].At.Off+k] ^= 0x42
				b[pages[i+1].At.End()-1] ^= 0xff
				var reported [][2]int64
				for _, f := range findings(target(b)) {
					if f.Severity == region.Error && f.Column != "" {
						reported = append(reported, [2]int64{f.Rows[0] - 60, f.Rows[1] - 60})
					}
				}
				if lost := scanDamaged(t, b, stoa.NullCells, nil, want); !slices.Equal(reported, lost) {
					t.Errorf("%s: byte %d of page %d: verify reports rows %v, reading loses %v", chunk, k, i, reported,
						lost)
				}
			}
		}
	}
}

// TestMetadataIsAPart: a copy of a part in place of a split table's _metadata.red can be opened, and has rows; verify
// and reading report that it is not the metadata.
func TestMetadataIsAPart(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"}} {
		objects := splitTable(t, opts)
		objects["out/_metadata.red"] = objects["out/part-00002.red"]
		tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
		found := findings(tg)
		if len(found) != 1 || found[0].Code != "redfile.metadata.other" || found[0].Severity != region.Error ||
			found[0].At.Object != "out/_metadata.red" || found[0].At.Len == 0 {
			t.Errorf("%v: %+v", opts, found)
		}
		r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if reported := r.(format.Finder).Findings(); len(reported) != 1 ||
			reported[0].Code != "redfile.metadata.other" {
			t.Errorf("%v: the reader: %+v", opts, reported)
		}
		r.Close()
	}
}

// TestRecoverMetadataIsAPart: a part in place of the metadata is read at its own position, and no row twice.
func TestRecoverMetadataIsAPart(t *testing.T) {
	const meta, part = "out/_metadata.red", "out/part-00002.red"
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"}} {
		for how, put := range map[string]func(o map[string][]byte){
			"exchanged": func(o map[string][]byte) { o[meta], o[part] = o[part], o[meta] },
			"copied":    func(o map[string][]byte) { o[meta] = o[part] },
			"moved":     func(o map[string][]byte) { o[meta] = o[part]; delete(o, part) },
			"last moved": func(o map[string][]byte) {
				o[meta] = o["out/part-00003.red"]
				delete(o, "out/part-00003.red")
			},
		} {
			objects := splitTable(t, maps.Clone(opts))
			put(objects)
			tree := store.NewMemory(objects)
			want := 40
			if how == "last moved" && opts["sync"] == "0" { // without sync blocks it could be a modified copy
				want = 30
			}
			if n := checkRecovered(t, tree, "out"); n != want {
				t.Errorf("%v, %s: %d rows, want %d", opts, how, n, want)
			}
			_, found, err := redfile.Format.Recover(ctx, format.Target{Tree: tree, Name: "out"}, format.OpenOptions{})
			if err != nil || !slices.ContainsFunc(found,
				func(f region.Finding) bool { return f.Code == "redfile.metadata.other" && f.At.Object == meta }) {
				t.Errorf("%v, %s: reported %+v, %v", opts, how, found, err)
			}
		}
	}
}

// TestRecoverDamagedStandIn: a damaged copy of a part in place of the metadata adds no row, and the parts are
// recovered.
func TestRecoverDamagedStandIn(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"}} {
		objects := splitTable(t, opts)
		part := objects["out/part-00002.red"]
		for i := 0; i < len(part); i += 4 {
			objects["out/_metadata.red"] = slices.Clone(part)
			objects["out/_metadata.red"][i] ^= 0x55
			if n := checkRecovered(t, store.NewMemory(objects), "out"); n != 40 {
				t.Errorf("%v, byte %d of %d: %d rows of 40", opts, i, len(part), n)
			}
		}
	}
}

// TestInsertedBytes: bytes inserted into a page without a checksum move everything after them, and reading continues
// without an error: verify warns of the bytes that nothing claims.
func TestInsertedBytes(t *testing.T) {
	for _, cf := range corpusFiles(t, golden) {
		whole, err := os.ReadFile(filepath.Join(golden, cf.File))
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		pages := slices.DeleteFunc(nodes,
			func(n region.Node) bool { return n.Depth != 1 || !strings.HasPrefix(n.Value, "DATA") })
		if len(pages) == 0 {
			continue // a page without rows
		}
		last := pages[len(pages)-1].At // what follows is located from the end, or is metadata that is not needed
		b := slices.Insert(slices.Clone(whole), int(last.End())-1, make([]byte, 49)...)
		if found := findings(target(b)); len(found) == 0 {
			t.Errorf("%s: nothing is reported of 49 bytes put in before %d", cf.File, last.End()-1)
		}
	}
}

// TestPagesInOtherOrder: verify reports without decoding what reading reports of a chunk with intact pages in another
// order than in the page index.
func TestPagesInOtherOrder(t *testing.T) {
	refused := 0
	for _, o := range []map[string]string{
		{"generation": "A", "compression": "none", "page-size": "40"},
		{"generation": "E", "compression": "none", "page-size": "40", "crc": "false"},
		{"generation": "E", "compression": "none", "page-size": "40"},
	} {
		whole := writeSample(t, 60, o)
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		chunk, pages := "", map[string][]region.Node{}
		for _, n := range nodes {
			if n.Depth == 0 {
				chunk = n.Name
			}
			if n.Depth == 1 && strings.HasPrefix(n.Value, "DATA") {
				pages[chunk] = append(pages[chunk], n)
			}
		}
		for name, list := range pages {
			for i := 1; i < len(list); i++ { // they begin with page i
				b, at := slices.Clone(whole), list[0].At.Off
				for _, p := range slices.Concat(list[i:], list[:i]) {
					at += int64(copy(b[at:], whole[p.At.Off:p.At.End()]))
				}
				if _, errs := content(target(b)); len(errs) == 0 {
					continue
				}
				refused++
				for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
					reported := false
					for f := range redfile.Format.Verify(ctx, target(b), format.OpenOptions{Depth: depth}) {
						reported = reported || f.Severity == region.Error
					}
					if !reported {
						t.Errorf("%v, %s from page %d on, depth %v: not read, and verify reports nothing", o, name, i,
							depth)
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: nothing was tested")
	}
}

// TestDescribeAndVerify: if describe meets damage in a file, verify, deep or not, reports an error, whichever byte of a
// page header, index pages included, is changed.
func TestDescribeAndVerify(t *testing.T) {
	met := 0
	for _, generation := range []string{"A", "E"} {
		whole := writeSample(t, 20, map[string]string{"generation": generation, "compression": "none"})
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Depth != 1 || !strings.HasPrefix(n.Name, "page[") {
				continue
			}
			for at := n.At.Off; at < n.At.Off+20; at++ {
				for _, bits := range []byte{1, 2, 4, 16, 0x5A} {
					b := slices.Clone(whole)
					b[at] ^= bits
					if _, err := describeAll(target(b)); err == nil {
						continue
					}
					met++
					for _, depth := range []format.Depth{format.Sums, format.Deep} {
						reported := false
						for f := range redfile.Format.Verify(ctx, target(b), format.OpenOptions{Depth: depth}) {
							reported = reported || f.Severity == region.Error
						}
						if !reported {
							t.Errorf("%s, byte %d of %s, %v: described with an error, and verify has none", generation,
								at-n.At.Off, n.Name, depth)
						}
					}
				}
			}
		}
	}
	if met == 0 {
		t.Error("no damage was met: nothing was tested")
	}
}
