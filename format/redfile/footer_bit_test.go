package redfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/formattest"
	"stoa/internal/effort"
	"stoa/region"
)

// TestFooterBit: whichever bit of the metadata flips, recovery yields the rows as written, or none and reports it.
func TestFooterBit(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"sync": "0"}, {"sync": "0", "arrow-schema": "false"},
		{"generation": "A"}, {"generation": "A", "sync": "0"}} {
		whole := writeSample(t, 40, opts)
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(nodes, func(n region.Node) bool { return n.Depth == 0 && n.Name == "file_metadata" })
		from := int(nodes[i].At.Off)
		right, _ := recoveredLines(t, whole)
		for bit := 8 * from; bit < 8*len(whole); bit += effort.Step(3, 7) {
			data := slices.Clone(whole)
			data[bit/8] ^= 1 << (bit % 8)
			got, reported := recoveredLines(t, data)
			if got != right && (got != "" || !reported) {
				t.Errorf("%v, bit %d of byte %d of %d: reported %t: %.300s", opts, bit%8, bit/8, len(whole), reported,
					got)
			}
		}
	}
}

// recoveredLines returns the schema and the rows that are recovered from a file; reported: there is an error.
func recoveredLines(t *testing.T, data []byte) (lines string, reported bool) {
	t.Helper()
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: target(data).Tree, From: "redfile", Recover: true})
	if err != nil {
		return "", true
	}
	defer tab.Close()
	var out []string
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Damaged: stoa.SkipRows,
		Lost: func(region.Loss) { reported = true }}) {
		if err != nil {
			return "", true
		}
		out = append(out, formattest.Lines(b)...)
	}
	for _, f := range tab.Findings() {
		reported = reported || f.Severity == region.Error
	}
	if len(out) == 0 {
		return "", reported
	}
	return fmt.Sprint(tab.Schema(), strings.Join(out, "\n")), reported
}
