package carbon_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestVerifyBounds narrows each minimum and maximum of blocklets and pages of a real file by one step, so that scans
// would leave out rows: verify reports it. Swapped bounds, which scans ignore, are reported, too.
func TestVerifyBounds(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "v3/allprim_zstd/table"))
	file := ""
	for _, n := range tree.Names() {
		if strings.HasSuffix(n, ".carbondata") {
			file = n
		}
	}
	whole := tree.Bytes(file)
	stated := func(b []byte) (out []string) {
		for f := range carbon.Format.Verify(t.Context(),
			format.Target{Tree: store.NewMemory(map[string][]byte{file: b}), Name: file}, format.OpenOptions{}) {
			if f.Severity == region.Error {
				out = append(out, f.Code)
			}
		}
		return out
	}
	if s := stated(whole); s != nil {
		t.Fatal(s)
	}
	tried, booleans := 0, 0
	var under []string // names of the enclosing nodes
	for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: file},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		under = append(under[:min(n.Depth, len(under))], n.Name)
		k := len(under) - 2
		if k < 0 || under[k] != "min_values" && under[k] != "max_values" || n.Kind != region.Data || n.At.Len < 1 {
			continue
		}
		at := n.At.End() - 1 // of a binary, whose length comes first
		up := under[k] == "min_values"
		if value := whole[n.At.Off+1 : n.At.End()]; bytes.Equal(value, []byte{0, 0, 0, 1}) {
			continue // of dates null
		} else if name := strings.Join(under, "/"); len(value) == 8 && value[0] >= 0xC0 &&
			(strings.Contains(name, "/c_float/") || strings.Contains(name, "/c_double/") ||
				strings.HasSuffix(name, "/[11]") || strings.HasSuffix(name, "/[12]")) {
			up = !up // a negative number
		}
		b := bytes.Clone(whole)
		switch {
		case up && b[at] < 0xFF:
			b[at]++
		case !up && b[at] > 0:
			b[at]--
		default:
			continue
		}
		if n.At.Len == 2 && whole[at] < 2 {
			booleans++
		}
		tried++
		if len(stated(b)) == 0 {
			t.Errorf("%s at %d, %x: verify: got no findings, want some", strings.Join(under, "/"), at,
				whole[n.At.Off:n.At.End()])
		}
	}
	if tried < 20 || booleans < 2 {
		t.Errorf("got %d bounds tried, %d of booleans", tried, booleans)
	}
	t.Logf("%d bounds tried, %d of booleans or the like", tried, booleans)
}

// TestVerifyZeroSchema: a schema file of zeros is damage, not a schema without columns.
func TestVerifyZeroSchema(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed_del"))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	tree.Put("t/Metadata/schema", make([]byte, len(tree.Bytes("t/Metadata/schema"))))
	refused(t, "a schema of zeros", tree, "carbon.schema.damaged")
	if rows, found, err := recovered(t, tree, "t"); err != nil || differ(rows, right, true) != "" ||
		!has(found, "carbon.schema.damaged") {
		t.Errorf("%v, %d rows of %d, %v", err, len(rows), len(right), found)
	}
}
