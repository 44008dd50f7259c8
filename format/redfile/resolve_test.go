package redfile_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/internal/effort"
	"stoa/region"
)

// counts returns the offsets of the numbers of values in the headers of data pages.
func counts(t *testing.T, file []byte) (at []int64) {
	t.Helper()
	data := false
	for n, err := range redfile.Format.Describe(ctx, target(file), format.DescribeOptions{Pages: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Depth == 1 {
			data = strings.HasPrefix(n.Value, "DATA")
		}
		if data && n.Depth > 2 && strings.HasSuffix(n.Name, "num_values") {
			for i := range n.At.Len {
				at = append(at, n.At.Off+i)
			}
		}
	}
	return at
}

// TestDamagedValueCounts: no checksum covers page headers, and without an index page only headers locate rows.
// Whichever bit of a page's number of values flips, in columns of every kind, all rows outside the reported loss are as
// written, and verify reports it at any depth.
func TestDamagedValueCounts(t *testing.T) {
	const rows = 120
	want := sampleBatch(0, rows)
	defer want.Release()
	pool := stoa.NewPool()
	for _, opts := range []map[string]string{{"crc": "false"}, {"crc": "false", "generation": "A"},
		{"crc": "true", "encoding": "group-varint"}, {"crc": "false", "sync": "0", "compression": "none"}} {
		opts["row-group-rows"], opts["page-size"], opts["index"] = "60", "40", "false"
		whole := writeSample(t, rows, opts)
		places, few := counts(t, whole), 0
		if len(places) < 20 {
			t.Fatalf("%v: %d pages", opts, len(places))
		}
		for i, at := range places {
			if i%effort.Step(2, 4) > 0 {
				continue
			}
			for _, bit := range []int{i % 8, (i + 3) % 8} { // all bits in all headers take a minute
				b := slices.Clone(whole)
				b[at] ^= 1 << bit
				for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
					lost := scanDamaged(t, b, policy, pool, want)
					if len(lost) == 0 {
						t.Errorf("%v, bit %d at %d: nothing is reported", opts, bit, at)
					} else if lost[0][1]-lost[0][0] < 60 {
						few++
					}
				}
				for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
					reported := false
					for f := range redfile.Format.Verify(ctx, target(b), format.OpenOptions{Depth: depth}) {
						reported = reported || f.Severity == region.Error
					}
					if !reported {
						t.Errorf("%v, bit %d at %d: verify reports nothing at depth %s", opts, bit, at, depth)
					}
				}
				if t.Failed() {
					return
				}
			}
		}
		if few == 0 {
			t.Errorf("%v: every change takes the whole row group", opts)
		}
		t.Logf("%v: %d of %d scans lose less than a row group", opts, few, 4*len(places))
	}
}

// TestNoRowsNoPages: the file has a row group without rows, whose chunks have no pages, and the same start offsets as
// those of the next row group. It was made by an encoder written from the documents alone.
func TestNoRowsNoPages(t *testing.T) {
	b, err := os.ReadFile("testdata/no_rows_no_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	if found := findings(target(b)); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if _, errs := content(target(b)); len(errs) > 0 {
		t.Error(errs)
	}
	r, err := redfile.Format.Open(t.Context(), target(b), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	groups, err := r.RowGroups(t.Context(), format.Part{}, format.Query{})
	if err != nil || len(groups) != 2 || groups[0].Rows != 0 || groups[1].Rows != 40 {
		t.Errorf("%+v, %v", groups, err)
	}
}
