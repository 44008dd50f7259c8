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

// namesOf returns the names of the columns of a table.
func namesOf(tab *stoa.Table) (names []string) {
	for _, f := range tab.Schema().Fields() {
		names = append(names, f.Name)
	}
	return names
}

// TestNamesOfRowGroups: if only chunks have the names of columns, and the first two row groups disagree, no verb reads
// the file as if they agreed, whichever of the two is damaged. Recovery returns all rows and reports the contradiction;
// with three row groups the majority is right, and only the row group of the other name is not read.
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

// checkNames opens and recovers a file in which row groups have different names for a column. certain: most row groups
// have the right name.
func checkNames(t *testing.T, what string, data []byte, want []string, rows int64, certain bool) {
	t.Helper()
	r, err := redfile.Format.Open(ctx, target(data), format.OpenOptions{})
	if certain && err == nil {
		_, errs := readerContent(r, target(data))
		err = errors.Join(errs...)
		if found := r.(interface{ Findings() []region.Finding }).Findings(); len(found) == 0 {
			t.Errorf("%s: opening reports nothing", what)
		}
	}
	if !errors.Is(err, fault.Corrupt) {
		t.Errorf("%s: opened and read: %v", what, err)
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

// TestUnlistedEncoding: if the header of a page has an encoding that the column's metadata does not list, the page is
// damaged for reading and for verify, even at the depth of checksums only, although its values may decode under that
// encoding.
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

// TestNoNonsenseCounts: if the number of rows differs from that of the row groups, the number of rows of a part is
// unknown: the damaged number, or a loss computed from it, is never used as the number of rows. Its checksum is not
// compared.
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

// TestReadingFindsNoMore: for any flipped bit of a file, verify reports damage if reading does, although it decodes
// only pages that are not completely covered by checksums. Page headers never are, and before generation E only pages
// are.
func TestReadingFindsNoMore(t *testing.T) {
	files := map[string][]byte{
		"A, group varint": writeSample(t, 20, map[string]string{"generation": "A", "encoding": "group-varint"}),
		"A, no index":     writeSample(t, 20, map[string]string{"generation": "A", "index": "false", "sync": "0"}),
		"E, no Arrow schema": writeSample(t, 20, map[string]string{"arrow-schema": "false", "compression": "none",
			"index": "false", "encoding": "group-varint"}),
	}
	for _, name := range []string{"red1a/a_plain.red", "red1a/a_crc_zero.red", "red1a/a_gzip.red"} {
		whole, err := os.ReadFile(filepath.Join(golden, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = whole
	}
	for name, whole := range files {
		step, bits, found := 1, 8, 0
		if len(whole) > 500 {
			step, bits = 1+len(whole)/1500, 1
		}
		for i := 0; i < len(whole); i += step {
			for bit := range bits {
				bit = (bit + i) % 8
				if testing.Short() && (bit+i)%3 > 0 {
					continue
				}
				data := slices.Clone(whole)
				data[i] ^= 1 << bit
				failed := readAll(data)
				if !errors.Is(failed, fault.Corrupt) && !errors.Is(failed, fault.Unsupported) {
					continue
				}
				found++
				if !reports(data, format.Sums) || !reports(data, format.Deep) {
					t.Errorf("%s: bit %d of byte %d of %d: reading reports %v, verify nothing", name, bit, i,
						len(whole), failed)
				}
			}
		}
		if found < 100 && !testing.Short() || found < 30 {
			t.Errorf("%s: only %d changes were found", name, found)
		}
	}
}

// readAll returns the error of reading all rows.
func readAll(data []byte) error {
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: target(data).Tree, From: "redfile"})
	if err != nil {
		return err
	}
	defer tab.Close()
	for _, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// reports reports whether verify of that depth has an error.
func reports(data []byte, depth format.Depth) bool {
	for f, err := range stoa.Verify(ctx, "f.red", stoa.OpenOptions{Tree: target(data).Tree, From: "redfile",
		Depth: depth}) {
		if err != nil || f.Severity == region.Error {
			return true
		}
	}
	return false
}

// TestTypesThatContradict: for any flipped bit in the type of a chunk, even one that yields an unknown type, the schema
// determines the right type: opening, reading and verifying the file report damage.
func TestTypesThatContradict(t *testing.T) {
	whole := writeSample(t, 20, map[string]string{"crc": "false", "sync": "0", "arrow-schema": "false"})
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	tried, inGroups := 0, false
	for _, n := range nodes {
		inGroups = inGroups || n.Name == "row_groups"
		for bit := 1; inGroups && n.Name == "type" && bit < 7; bit++ { // bit 0 is the sign
			tried++
			data := slices.Clone(whole)
			data[n.At.End()-1] ^= 1 << bit
			if err := readAll(data); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s at %d, bit %d: reading: %v", n.Value, n.At.Off, bit, err)
			}
			for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
				if !reports(data, depth) {
					t.Errorf("%s at %d, bit %d: verify of depth %s reports nothing", n.Value, n.At.Off, bit, depth)
				}
			}
		}
	}
	if tried < 12 {
		t.Errorf("%d bits were tried", tried)
	}
}
