package redfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
)

// namesOf are the names of the columns of a table.
func namesOf(tab *stoa.Table) (names []string) {
	for _, f := range tab.Schema().Fields() {
		names = append(names, f.Name)
	}
	return names
}

// TestNamesOfRowGroups: where only chunks say how columns are called, and two of the first two row groups do not agree,
// nothing opens the file as if they did, whichever of the two is damaged. Recovery gives all rows and reports it; of
// three row groups two are right.
func TestNamesOfRowGroups(t *testing.T) {
	const rows = 120
	b := sampleBatch(0, rows)
	defer b.Release()
	for _, groups := range []int{2, 3} {
		tree := withoutSchema(t, b, "row-group-rows", fmt.Sprint(rows/groups), "sync", "0")
		whole, name := tree.Bytes("f.red"), []byte("\x02id")
		tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: tree})
		if err != nil {
			t.Fatal(err)
		}
		want := namesOf(tab)
		tab.Close()
		if n := bytes.Count(whole, name); n != groups {
			t.Fatalf("the name is there %d times, not %d", n, groups)
		}
		at := 0
		for g := range 2 {
			at += bytes.Index(whole[at:], name) + len(name)
			data := slices.Clone(whole)
			data[at-1] ^= 1
			checkNames(t, fmt.Sprintf("row group %d of %d", g, groups), data, want, rows, groups == 3)
		}
	}
}

// checkNames opens and recovers a file in which a row group names a column otherwise than another. certain: most row
// groups have the right name.
func checkNames(t *testing.T, what string, data []byte, want []string, rows int64, certain bool) {
	t.Helper()
	if _, err := redfile.Format.Open(ctx, target(data), format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%s: opened: %v", what, err)
	}
	if nodes, err := describeAll(target(data)); !errors.Is(err, fault.Corrupt) ||
		nodes[len(nodes)-1].At.End() != int64(len(data)) {
		t.Errorf("%s: not all is described, or without an error: %v", what, err)
	}
	for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
		found := 0
		for f := range redfile.Format.Verify(ctx, target(data), format.OpenOptions{Depth: depth}) {
			if f.Severity == region.Error {
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: verify of depth %s reports nothing", what, depth)
		}
	}
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: target(data).Tree, Recover: true})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer tab.Close()
	n := int64(0)
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		n += b.NumRows()
	}
	if got := namesOf(tab); n != rows || certain && !slices.Equal(got, want) || len(got) != len(want) {
		t.Errorf("%s: %d rows of %q", what, n, got)
	}
	if !slices.ContainsFunc(tab.Findings(), func(f region.Finding) bool {
		return f.Severity == region.Error && strings.HasSuffix(f.Path, "path_in_schema")
	}) {
		t.Errorf("%s: not reported: %+v", what, tab.Findings())
	}
}

// TestUnlistedEncoding: the header of a page has an encoding that the column's metadata does not list: the page is
// damaged, for reading and for verify, also by checksums only, although its values may decode as that.
func TestUnlistedEncoding(t *testing.T) {
	const rows = 60
	want := sampleBatch(0, rows)
	defer want.Release()
	whole := writeSample(t, rows, map[string]string{"crc": "false", "compression": "none", "index": "false",
		"generation": "A"})
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, n := range nodes {
		at := n.At.End() - 1
		if n.Name != "encoding" || whole[at] > 2*8 {
			continue
		}
		data := slices.Clone(whole)
		if data[at] ^= 2 * 3; data[at] > 2*8 { // another one that is known, as a zigzag varint
			continue
		}
		tried++
		lost := scanDamaged(t, data, stoa.SkipRows, nil, want)
		if len(lost) == 0 {
			t.Errorf("%s %s at %d: nothing is lost", n.Name, n.Value, n.At.Off)
		}
		for _, depth := range []format.Depth{format.Sums, format.Deep} {
			reported := false
			for f := range redfile.Format.Verify(ctx, target(data), format.OpenOptions{Depth: depth}) {
				reported = reported || f.Severity == region.Error
			}
			if !reported {
				t.Errorf("%s %s at %d: verify of depth %s reports nothing", n.Name, n.Value, n.At.Off, depth)
			}
		}
	}
	if tried == 0 {
		t.Error("no page has an encoding")
	}
}

// TestNoNonsenseCounts: where the number of rows is not that of the row groups, the number that a part has is unknown:
// nobody takes the damaged number, and what is lost with it, for that of the rows. Its checksum is not compared.
func TestNoNonsenseCounts(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(golden, "red1a/a_plain.red"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(nodes, func(n region.Node) bool { return n.Name == "file_metadata" })
	i += slices.IndexFunc(nodes[i:], func(n region.Node) bool { return n.Name == "num_rows" })
	rowsOf := func(data []byte) int64 {
		r, err := redfile.Format.Open(ctx, target(data), format.OpenOptions{NoVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for p, err := range r.Parts(ctx, format.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			return p.Rows
		}
		return 0
	}
	if n := rowsOf(whole); nodes[i].Value != fmt.Sprint(n) {
		t.Errorf("the whole file: %d rows, %s in its metadata", n, nodes[i].Value)
	}
	for bit := 1; bit < 7; bit++ { // bit 0 is the sign
		data := slices.Clone(whole)
		data[nodes[i].At.End()-1] ^= 1 << bit
		if n := rowsOf(data); n >= 0 {
			t.Errorf("bit %d: the part has %d rows", bit, n)
		}
	}
}
