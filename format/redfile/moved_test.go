package redfile_test

import (
	"bytes"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
)

// TestMovedBytes: bytes that were put into a file without checksums, or taken out of it, wherever that was, give no
// value that was not there, and verify has an error.
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
		reported, step := 0, 1
		if testing.Short() {
			step = 7
		}
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

// movedBytes puts n bytes that were there once more at a place, or takes -n out; nil if there are not so many.
func movedBytes(data []byte, at, n int) []byte {
	switch {
	case n > 0 && at+n <= len(data):
		return slices.Insert(bytes.Clone(data), at, data[at:at+n]...)
	case n < 0 && at-n <= len(data):
		return slices.Delete(bytes.Clone(data), at, at-n)
	}
	return nil
}

// TestPagesOfAnotherPlace: where as many bytes are taken out before a chunk as one of its pages has, a page begins
// where the chunk should, its checksum is right, and it is another: no cell comes out that was in another row. Nor
// where so many are that chunks would begin after the end.
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
					continue // no chunk is where the metadata says: it is taken for that of a file within the file
				}
				if rows, _ := rowsLeft(t, bad, stoa.NullCells, recover); rows != 150 {
					t.Errorf("%s: %d bytes less: %d rows of 150 came out", name, n, rows)
				}
			}
		}
	}
}
