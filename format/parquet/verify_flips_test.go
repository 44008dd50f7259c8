package parquet

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// TestVerifyFlips flips bits of files in places without checksums, the footer and page headers: if reading all rows
// fails, verify also reports an error at depth Sums.
func TestVerifyFlips(t *testing.T) {
	step, files := 331, []string{"fixed-gzip.v1", "codec-zstd.small.v2"}
	if testing.Short() {
		step = 997
	}
	if os.Getenv("STOA_LONG") != "" {
		step, files = 1, append(files, "enc-delta.v1", "enc-dict.v2")
	}
	for _, file := range files {
		intact := golden(t, "testdata/"+file+".parquet").Bytes("t")
		want, err := allRows(t, intact)
		if err != nil {
			t.Fatal(file, err)
		}
		unsummed := withoutSums(t, file)
		failed, unnoticed := 0, 0
		for k := 0; k < 8*len(unsummed); k += step {
			b, at := bytes.Clone(intact), unsummed[k/8]
			b[at] ^= 1 << (k % 8)
			got, err := allRows(t, b)
			if err == nil && got == want {
				continue
			}
			reported := false
			for f := range Format.Verify(t.Context(),
				targetOf(b),
				format.OpenOptions{Depth: format.Sums}) {
				reported = reported || f.Severity == region.Error
			}
			switch {
			case err == nil && !reported:
				unnoticed++
			case err != nil:
				if failed++; !reported {
					t.Errorf("%s: bit %d of byte %d of %d: verify: got no error, reading %v", file, k%8, at,
						len(intact), err)
				}
			}
		}
		if failed == 0 {
			t.Errorf("%s: reading failed for no bit, want some", file)
		}
		t.Logf("%s: reading fails for %d of %d bits, %d silently change the result", file, failed,
			8*len(unsummed)/step, unnoticed)
	}
}

// withoutSums returns the offsets of the bytes of a golden file without a checksum.
func withoutSums(t *testing.T, file string) (out []int) {
	r := openGolden(t, "testdata/"+file+".parquet")
	for g := range r.Footer.RowGroups {
		for leaf := range r.Footer.RowGroups[g].Columns {
			for p, err := range r.Pages(t.Context(), g, leaf) {
				if err != nil || !p.HasCRC {
					t.Fatal(file, err)
				}
				for at := range p.Header.Len {
					out = append(out, int(p.Header.Off+at))
				}
			}
		}
	}
	for at := range r.FooterAt.Len {
		out = append(out, int(r.FooterAt.Off+at))
	}
	return out
}

// allRows returns the text of all rows and columns, with the schema.
func allRows(t *testing.T, b []byte) (string, error) {
	t.Helper()
	r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
	if err != nil {
		return "", err
	}
	defer r.Close()
	var out strings.Builder
	fmt.Fprintln(&out, r.Schema().Fields())
	var first error
	for g := range r.Footer.RowGroups {
		for rec, err := range batchesOf(t.Context(), r, format.RowGroup{Index: g}, format.Query{Cols: r.tops()},
			vec.Range{}, memory.NewGoAllocator()) {
			if err != nil {
				first = err
				break
			}
			fmt.Fprintln(&out, rec)
		}
	}
	return out.String(), first
}

func (r *reader) tops() (out []int) {
	for i := range r.FieldLeaves {
		out = append(out, i)
	}
	return out
}

// TestOverwrittenBeginning: a file with the magic at its end is likely Parquet; verify reports the wrong magic at its
// beginning.
func TestOverwrittenBeginning(t *testing.T) {
	b := bytes.Clone(golden(t, "testdata/codec-zstd.small.v2.parquet").Bytes("t"))
	copy(b, "\xff\xff\xff\xff")
	tree := store.NewMemory(map[string][]byte{"t": b})
	if m, err := Format.Probe(t.Context(), format.Target{Tree: tree, Name: "t"}); m != format.Likely || err != nil {
		t.Errorf("Probe: got %d, %v, want %d", m, err, format.Likely)
	}
	if s := codesIn(findings(b)); s != "parquet.magic" {
		t.Errorf("verify: got %q, want parquet.magic", s)
	}
}
