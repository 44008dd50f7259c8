package redfile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// TestSkippedPages: a page with a damaged type is skipped, like a page of an unknown type. If the values of the
// chunk are then incomplete because a later header is also damaged, no row after that page is returned as if no page
// had been skipped.
func TestSkippedPages(t *testing.T) {
	const rows = 60
	for _, index := range []string{"false", "true"} {
		whole := writeSample(t, rows, map[string]string{"sync": "0", "compression": "none", "page-size": "120",
			"crc": "false", "index": index})
		want, err := rowsBefore(whole)
		if err != nil || len(want) != rows {
			t.Fatalf("%d rows, %v", len(want), err)
		}
		for _, pages := range pageTypes(t, whole) {
			for i := range len(pages) - 1 {
				for _, bit := range []int{1, 2, 5} { // an index page, and unknown types; bit 0 is the sign
					data := slices.Clone(whole)
					data[pages[i]] ^= 1 << bit
					for _, later := range []int{i + 1, len(pages) - 1} {
						both := slices.Clone(data)
						both[pages[later]+1] ^= 0x55
						got, err := rowsBefore(both)
						if !errors.Is(err, fault.Corrupt) {
							t.Errorf("index %s, types at %d and after %d, bit %d: %v", index, pages[i], pages[later],
								bit, err)
						}
						if len(got) > rows || !slices.Equal(got, want[:len(got)]) {
							t.Errorf("index %s, types at %d and after %d, bit %d: %d rows, and not the first", index,
								pages[i], pages[later], bit, len(got))
						}
					}
				}
			}
		}
	}
}

// pageTypes returns the offsets of the types of the data pages of each chunk.
func pageTypes(t *testing.T, data []byte) (chunks [][]int) {
	t.Helper()
	nodes, err := describeAll(target(data))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, node := range nodes {
		switch {
		case strings.HasPrefix(node.Name, "row_groups[") && strings.Contains(node.Name, "columns["):
			chunks = append(chunks, nil)
		case node.Name == "type" && node.Value == "DATA_PAGE" && i > 0 && len(chunks) > 0:
			chunks[len(chunks)-1] = append(chunks[len(chunks)-1], int(node.At.End()-1))
			n++
		}
	}
	if n < 12 {
		t.Fatalf("only %d data pages", n)
	}
	return chunks
}

// rowsBefore returns the rows that are read before an error, in small batches, and the error.
func rowsBefore(data []byte) (rows []string, err error) {
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: target(data).Tree, From: "redfile"})
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Batch: 1}) {
		if err != nil {
			return rows, err
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for _, c := range b.Columns() {
				cells = append(cells, c.ValueStr(i))
			}
			rows = append(rows, fmt.Sprint(cells))
		}
	}
	return rows, nil
}

// TestUnnamedPart: metadata of a split table that is older than parts beside it, and does not list them, is reported,
// whether the parts that it lists exist, are missing, or belong to the newer table. A file of another table is not
// reported.
func TestUnnamedPart(t *testing.T) {
	for _, gen := range []string{"E", "A"} {
		opts := func() map[string]string { return map[string]string{"generation": gen} }
		newer, older := splitTable(t, opts()), splitTableFrom(t, 3, "row-group", opts())
		const meta, last = "out/_metadata.red", "out/part-00004.red"
		says := func(what string, objects map[string][]byte, want bool) {
			t.Helper()
			tg := format.Target{Tree: store.NewMemory(objects), Name: meta}
			got := slices.ContainsFunc(findings(tg), func(f region.Finding) bool {
				return f.Code == "redfile.part.other" && f.Severity == region.Error &&
					strings.Contains(f.Message, "part-00004.red")
			})
			if got != want {
				t.Errorf("generation %s, %s: reported: %v", gen, what, got)
			}
		}
		says("whole", newer, false)
		newer[last] = older["out/part-00000.red"]
		says("a part of another table beside", newer, false)
		newer[last] = newer["out/part-00002.red"]
		says("a part of the table beside", newer, true)
		newer[meta] = older[meta]
		says("the metadata of another table", newer, true)
		newer["out/part-00003.red"] = older["out/part-00003.red"]
		says("the metadata and a part of another table", newer, true)
	}
}
