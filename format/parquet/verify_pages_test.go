package parquet

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"
)

// TestVerifySizes: as the header of a page has no checksum, verify compares its raw size with the body, even at depth
// Sums.
func TestVerifySizes(t *testing.T) {
	files, _ := filepath.Glob("testdata/codec-*.parquet")
	more, _ := filepath.Glob("testdata/fixed-[bz]*.v2.parquet")
	for _, file := range append(files, more...) {
		intact := golden(t, file).Bytes("t")
		sums := func(b []byte) (out []region.Finding) {
			o := format.OpenOptions{Depth: format.Sums}
			for f := range Format.Verify(t.Context(),
				targetOf(b), o) {
				out = append(out, f)
			}
			return out
		}
		if fs := sums(intact); len(fs) > 0 {
			t.Errorf("%s: got findings %+v, want none", file, fs)
		}
		r := openGolden(t, file)
		pages := 0
		for p, err := range r.Pages(t.Context(), 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			b := bytes.Clone(intact)
			b[p.Header.Off+3] ^= 2 // field 1, an i32, type; field 2, an i32, uncompressed_page_size, zigzag
			fs := sums(b)
			if !slices.ContainsFunc(fs, func(f region.Finding) bool {
				return f.Code == "parquet.page" &&
					f.Severity == region.Error
			}) {
				t.Errorf("%s: page %d: got %+v, want parquet.page", file, pages, fs)
			}
			pages++
		}
		if pages == 0 {
			t.Errorf("%s: got no pages", file)
		}
	}
}

// TestVerifyAfterDamagedHeader: after a page with a damaged header verify continues by the offset index. It also
// reports the last page, which is damaged, and all rows that reading loses.
func TestVerifyAfterDamagedHeader(t *testing.T) {
	const file = "testdata/enc-delta.v1.parquet"
	intact := golden(t, file).Bytes("t")
	r := openGolden(t, file)
	for _, column := range []string{"s", "ls", "f64", "fix"} {
		field := r.Shown.FieldIndices(column)[0]
		leaf := r.FieldLeaves[field][0]
		var pages []meta.Page
		for p, err := range r.Pages(t.Context(), 0, leaf) {
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, p)
		}
		if len(pages) < 2 {
			t.Fatalf("%s: got %d pages, want 2 or more", column, len(pages))
		}
		last := pages[len(pages)-1]
		for i, p := range pages[:len(pages)-1] {
			for k := range int64(6) {
				b := bytes.Clone(intact)
				b[p.Header.Off+k] ^= 0x42
				b[last.Body.Off+last.Body.Len/2] ^= 0x10
				reported, end := make([]bool, 70), false
				for _, f := range findings(b) {
					for row := max(0, f.Rows[0]); f.Severity == region.Error && f.Column == column &&
						row < min(70, f.Rows[1]); row++ {
						reported[row] = true
					}
					end = end || f.At == last.Body
				}
				if !end {
					t.Errorf("%s: byte %d of page %d: got %+v, want the last page reported", column, k, i, findings(b))
				}
				for row, lost := range lostOf(t, b, field) {
					if lost && !reported[row] {
						t.Errorf("%s: byte %d of page %d: got %+v, want the lost row %d reported", column, k, i,
							findings(b), row)
						break
					}
				}
			}
		}
	}
}

// lostOf reports which rows of the first row group cannot be read in a field.
func lostOf(t *testing.T, b []byte, field int) []bool {
	t.Helper()
	r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]bool, 70)
	spec := scan.Spec{Columns: []string{r.Shown.Field(field).Name}, Damaged: scan.SkipRows, Rows: vec.Range{To: 70}}
	spec.Lost = func(l region.Loss) {
		for row := max(0, l.Rows[0]); row < l.Rows[1] && row < 70 && l.Group == 0; row++ {
			out[row] = true
		}
	}
	for _, err := range scanned(t.Context(), r, spec) {
		if err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
			t.Fatal(err)
		}
	}
	return out
}
