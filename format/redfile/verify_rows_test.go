package redfile_test

import (
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
)

// TestRowsOfListPage: verify names the rows of a damaged page of a column that repeats, with and without index pages, and those
// to the end of the row group when two pages are damaged and nobody says how many rows the first has.
func TestRowsOfListPage(t *testing.T) {
	for _, index := range []string{"true", "false"} {
		whole := writeKill(t, 120, map[string]string{"generation": "A", "row-group-rows": "60", "page-size": "40", "sync": "0", "index": index, "compression": "none"})
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		var pages []region.Node // of the list in the second row group
		chunk := ""
		for _, n := range nodes {
			if n.Depth == 0 {
				chunk = n.Name
			}
			if chunk == "row_groups[1].columns[2]" && n.Depth == 1 && strings.HasPrefix(n.Value, "DATA") {
				pages = append(pages, n)
			}
		}
		if len(pages) < 4 {
			t.Fatalf("%d pages", len(pages))
		}
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
				from++ // the row before may go on in the page
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
		if len(two) != 2 || index == "false" && (two[0][1] != 120 || two[1] != two[0]) || index == "true" && (two[0][1] >= two[1][0]) {
			t.Errorf("index=%s, two pages: %v", index, two)
		}
	}
}

// TestSizesOfStoredPage: a page stored without compression has the same size twice in its header. That needs no decoding, so verify
// holds one against the other when it reads checksums only, too.
func TestSizesOfStoredPage(t *testing.T) {
	whole := writeKill(t, 60, map[string]string{"compression": "none", "index": "false"})
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	chunk := ""
	for _, n := range nodes {
		if n.Depth == 0 {
			chunk = n.Name
		}
		if chunk != "row_groups[0].columns[0]" || n.Depth != 1 || !strings.HasPrefix(n.Value, "DATA") {
			continue
		}
		at := n.At.Off // compact protocol: field 1 type, 0, field 2 uncompressed_page_size, zigzag
		if head := whole[at : at+3]; head[0] != 0x15 || head[1] != 0 || head[2] != 0x15 {
			t.Fatalf("the page begins with % x", head)
		}
		b := append([]byte(nil), whole...)
		b[at+3] ^= 2
		told := 0
		o := format.OpenOptions{Depth: format.Sums}
		for f := range redfile.Format.Verify(ctx, target(b), o) {
			if f.Severity == region.Error && f.Code == "redfile.page.damaged" && strings.Contains(f.Path, "uncompressed_page_size") {
				told++
			}
		}
		for f := range redfile.Format.Verify(ctx, target(whole), o) {
			t.Errorf("the whole file: %+v", f)
		}
		if told != 1 {
			t.Errorf("told %d times", told)
		}
		return
	}
	t.Fatal("no data page")
}
