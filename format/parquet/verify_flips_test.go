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

// TestVerifyKnowsWhatScansMeet turns bits all over files with checksums. Where reading all rows meets an error,
// verify has one, too, at the depth of checksums: the footer and the headers of pages have none.
func TestVerifyKnowsWhatScansMeet(t *testing.T) {
	step, files := 331, []string{"fixed-gzip.v1", "codec-zstd.small.v2"}
	if os.Getenv("STOA_LONG") != "" {
		step, files = 1, append(files, "enc-delta.v1", "enc-dict.v2")
	}
	for _, file := range files {
		whole := golden(t, "testdata/"+file+".parquet").Bytes("t")
		want, err := allRows(t, whole)
		if err != nil {
			t.Fatal(file, err)
		}
		bare := withoutSums(t, file)
		failed, silent := 0, 0
		for k := 0; k < 8*len(bare); k += step {
			b, at := bytes.Clone(whole), bare[k/8]
			b[at] ^= 1 << (k % 8)
			got, err := allRows(t, b)
			if err == nil && got == want {
				continue
			}
			told := false
			for f := range Format.Verify(t.Context(),
				targetOf(b),
				format.OpenOptions{Depth: format.Sums}) {
				told = told || f.Severity == region.Error
			}
			switch {
			case err == nil && !told:
				silent++
			case err != nil:
				if failed++; !told {
					t.Errorf("%s: bit %d of byte %d of %d: %v; verify says nothing", file, k%8, at, len(whole), err)
				}
			}
		}
		if failed == 0 {
			t.Errorf("%s: no bit made reading fail", file)
		}
		t.Logf("%s: %d of %d bits make reading fail, %d change what is read and nothing tells", file, failed,
			8*len(bare)/step, silent)
	}
}

// withoutSums are the bytes of a golden file that no checksum is over.
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

// allRows is the text of all rows and columns, with the schema.
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

// TestOverwrittenBeginning: a file whose magic at the end is there is one of Parquet; verify tells of its beginning.
func TestOverwrittenBeginning(t *testing.T) {
	b := bytes.Clone(golden(t, "testdata/codec-zstd.small.v2.parquet").Bytes("t"))
	copy(b, "\xff\xff\xff\xff")
	tree := store.NewMemory(map[string][]byte{"t": b})
	if m, err := Format.Probe(t.Context(), format.Target{Tree: tree, Name: "t"}); m != format.Likely || err != nil {
		t.Errorf("probed as %d, %v", m, err)
	}
	if s := codesIn(findings(b)); s != "parquet.magic" {
		t.Errorf("verify tells %q", s)
	}
}
