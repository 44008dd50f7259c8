package redfile_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/internal/effort"
	"stoa/region"
)

// TestMovedBytes: if bytes are inserted into a file without checksums, or removed from it, at any place, reading
// returns no value that was not there, and verify has an error.
func TestMovedBytes(t *testing.T) {
	for name, opts := range map[string]map[string]string{
		"index": {"crc": "false", "page-size": "300", "compression": "none"},
		"bare":  {"crc": "false", "page-size": "300", "compression": "none", "index": "false", "sync": "0"},
		"A":     {"crc": "false", "page-size": "300", "compression": "none", "generation": "A"},
	} {
		data := writeSample(t, 20, opts)
		right, errs := content(target(data))
		if len(errs) > 0 {
			t.Fatal(name, errs)
		}
		reported, step := 0, effort.Step(3, 7)
		for at := 0; at < len(data); at += step {
			for _, n := range []int{-8, -1, 1, 8} {
				bad := movedBytes(data, at, n)
				if bad == nil {
					continue
				}
				got, errs := content(target(bad))
				if len(errs) == 0 && got != right {
					t.Errorf("%s: %d bytes at %d: other values and no error: %s", name, n, at,
						firstDifference(right, got))
				}
				if len(errs) == 0 {
					continue
				}
				if reported++; !slices.ContainsFunc(findings(target(bad)),
					func(f region.Finding) bool { return f.Severity == region.Error }) {
					t.Errorf("%s: %d bytes at %d: verify has no error, reading has: %v", name, n, at, errs[0])
				}
			}
		}
		if reported < len(data)/step {
			t.Errorf("%s: only %d changes of %d bytes were reported", name, reported, len(data))
		}
	}
}

// TestMovedHeaders: if any number of bytes is inserted into a page without a checksum, or removed from it, the bytes at
// the offset of the next structure are not taken for that structure: the rest of a page header may look like the header
// of a page of another type. So the preceding pages are in doubt, in files with many values and with one byte per page.
func TestMovedHeaders(t *testing.T) {
	for name, opts := range map[string]map[string]string{
		"index": {"crc": "false", "compression": "none"},
		"bare":  {"crc": "false", "compression": "none", "index": "false", "sync": "0"},
		"A":     {"crc": "false", "compression": "none", "generation": "A"},
	} {
		b := bools(8)
		defer b.Release()
		for of, data := range map[string][]byte{"sample": writeSample(t, 40, opts), "bools": writeTable(t, opts, b)} {
			right, errs := content(target(data))
			nodes, err := describeAll(target(data))
			if len(errs) > 0 || err != nil {
				t.Fatal(name, of, errs, err)
			}
			pages := 0
			for _, n := range nodes {
				if n.Name != "page[0]" {
					continue
				}
				pages++
				end := int(n.At.Off + n.At.Len)
				for k := 1; k <= min(24, int(n.At.Len)); k++ {
					for _, bad := range [][]byte{movedBytes(data, end-k, -k), movedBytes(data, end-k, k)} {
						if bad == nil {
							continue
						}
						if got, errs := content(target(bad)); len(errs) == 0 && got != right {
							t.Errorf("%s, %s: %d bytes at the end of %v: other values and no error: %s", name, of, k,
								n.At, firstDifference(right, got))
						}
					}
				}
			}
			if pages != 3 {
				t.Errorf("%s, %s: %d pages were harmed, expected one of each of three columns", name, of, pages)
			}
		}
	}
}

// bools returns three columns of n values each, one bit per value.
func bools(n int) arrow.RecordBatch {
	var fields []arrow.Field
	for _, name := range []string{"a", "b", "c"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.FixedWidthTypes.Boolean})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for k, f := range b.Fields() {
		for i := range n {
			f.(*array.BooleanBuilder).Append((i+k)%3 == 0)
		}
	}
	return b.NewRecordBatch()
}

// movedBytes repeats n bytes of the file at an offset, or removes -n; nil if there are not enough.
func movedBytes(data []byte, at, n int) []byte {
	switch {
	case n > 0 && at+n <= len(data):
		return slices.Insert(bytes.Clone(data), at, data[at:at+n]...)
	case n < 0 && at-n <= len(data):
		return slices.Delete(bytes.Clone(data), at, at-n)
	}
	return nil
}

// TestPagesOfAnotherPlace: if as many bytes are removed before a chunk as one of its pages has, another page with a
// valid checksum begins at the offset of the chunk. No cell is returned in a wrong row, even if so many bytes are
// removed that chunks would begin beyond the end.
func TestPagesOfAnotherPlace(t *testing.T) {
	for name, opts := range map[string]map[string]string{
		"index": {"page-size": "300"},
		"bare":  {"page-size": "300", "index": "false", "sync": "0"},
	} {
		data := writeSample(t, 150, opts)
		nodes, err := describeAll(target(data))
		if err != nil {
			t.Fatal(err)
		}
		var first []fault.Span // pages of the chunks
		for _, n := range nodes {
			if n.Name == "page[0]" {
				first = append(first, n.At)
			}
		}
		lost := []int{len(data) / 3, len(data) / 2}
		for _, page := range first[1:] {
			lost = append(lost, int(page.Len))
		}
		for _, n := range lost {
			bad := movedBytes(data, int(first[0].Off)+20, -n)
			for _, recover := range []bool{false, true} {
				if recover && name == "bare" {
					continue // no chunk is where the metadata states: it is taken for that of an inner file
				}
				if rows, _ := rowsLeft(t, bad, stoa.NullCells, recover); rows != 150 {
					t.Errorf("%s: %d bytes less: %d rows of 150 came out", name, n, rows)
				}
			}
		}
	}
}

// TestLastPageOfAnotherChunk: over the beginning of each page lies a whole page with a correct checksum, the short last
// one of another row group. No row of that other one comes out in its place. (A real file of generation A.)
func TestLastPageOfAnotherChunk(t *testing.T) {
	whole, err := os.ReadFile("../../corpus/redfile/red1a/a_optional_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	var pages [9][]fault.Span // by chunk
	chunk := -1
	for _, n := range nodes {
		switch {
		case strings.HasPrefix(n.Name, "row_groups[") && n.Depth == 0:
			chunk++
		case strings.HasPrefix(n.Name, "page[") && n.Depth == 1:
			pages[chunk] = append(pages[chunk], n.At)
		}
	}
	tried := 0
	for col, name := range []string{"i", "l", "s"} {
		want, _ := rowTexts(t, whole, name)
		for group := range 3 {
			for _, page := range pages[3*group+col][1:3] {
				other := pages[(3*group+col+3)%9]
				last := other[len(other)-1]
				if last.Len >= page.Len {
					continue
				}
				tried++
				data := slices.Clone(whole)
				copy(data[page.Off:], whole[last.Off:last.End()])
				got, lost := rowTexts(t, data, name)
				if len(lost) == 0 {
					t.Errorf("%s, row group %d, page at %d: nothing is lost", name, group, page.Off)
				}
				for i := range want {
					if i < len(got) && got[i] != want[i] && !lost[i] {
						t.Errorf("%s, row group %d, page at %d: row %d is %s, was %s", name, group, page.Off, i, got[i],
							want[i])
					}
				}
			}
		}
	}
	if tried != 18 {
		t.Errorf("%d pages were overwritten", tried)
	}
}
