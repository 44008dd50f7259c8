package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/ipc/sample"
	"stoa/format/parquet/internal/meta"
	"stoa/region"
	"stoa/store"
)

func findings(b []byte) (out []region.Finding) {
	tree := store.NewMemory(map[string][]byte{"t": b})
	for f := range Format.Verify(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		out = append(out, f)
	}
	return out
}

func codesIn(fs []region.Finding) string {
	var out []string
	for _, f := range fs {
		if !slices.Contains(out, f.Code) {
			out = append(out, f.Code)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestVerifyOurMetadata: verify reports wrong statistics and indexes in stoa's files, although nothing needed for
// reading is damaged.
func TestVerifyOurMetadata(t *testing.T) {
	const high = 0x1122334455667788 // is in the page, twice in the statistics, and in the column index
	sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range 100 {
		x, f := int64(i+1)<<33, float64(i)
		if i == 50 {
			x, f = high, math.NaN()
		}
		b.Field(0).(*array.Int64Builder).Append(x)
		b.Field(1).(*array.Float64Builder).Append(f)
	}
	tree := written(t, map[string]string{"compression": "none", "dictionary": "false"}, b.NewRecordBatch())
	intact := tree.Bytes("t")
	if fs := findings(intact); len(fs) != 0 {
		t.Fatalf("a healthy file: got findings %+v", fs)
	}
	r, err := openReader(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mark := binary.LittleEndian.AppendUint64(nil, high)
	less := binary.LittleEndian.AppendUint64(nil, high-1)
	chunk, footer := r.ChunkSpan(0, 0), r.FooterAt
	change := func(from, to int64) []byte {
		out := bytes.Clone(intact)
		n := bytes.Count(out[from:to], mark)
		if n == 0 {
			t.Fatal("the value is not in the range")
		}
		copy(out[from:to], bytes.ReplaceAll(out[from:to], mark, less))
		if to == footer.End() { // wrong, but with a matching checksum
			copy(out[bytes.LastIndex(out, []byte(meta.SealKey))+len(meta.SealKey)+2:], meta.SealPlaceholder)
			meta.Seal(out[from:to])
		}
		return out
	}
	for what, c := range map[string]struct {
		b    []byte
		want string
	}{
		"the statistics":   {change(footer.Off, footer.End()), "parquet.statistics"},
		"the column index": {change(chunk.End(), footer.Off), "parquet.index.bounds"},
	} {
		if got := codesIn(findings(c.b)); got != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	for name, want := range map[string]string{"offset_index": "parquet.index",
		"column_index": "parquet.index parquet.index.bounds"} {
		out := bytes.Clone(intact)
		x := r.Footer.RowGroups[0].Columns[0]
		at, n := *x.OffsetIndexOffset, int64(*x.OffsetIndexLength)
		if name == "column_index" {
			at, n = *x.ColumnIndexOffset, int64(*x.ColumnIndexLength)
		}
		clear(out[at : at+n])
		if got := codesIn(findings(out)); got != want && got != "parquet.index parquet.layout" &&
			got != "parquet.index" {
			t.Errorf("%s cleared: got %q, want %q", name, got, want)
		}
	}
}

// TestVerifySeesEveryFlip flips bits in a file with page checksums: if the rows change, or cannot be read, verify has
// findings.
func TestVerifySeesEveryFlip(t *testing.T) {
	intact := golden(t, "testdata/codec-zstd.parquet").Bytes("t")
	want, err := rowsOf(intact)
	if err != nil {
		t.Fatal(err)
	}
	r, err := openReader(context.Background(),
		format.Target{Tree: golden(t, "testdata/codec-zstd.parquet"), Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed, step := 0, 3
	if testing.Short() {
		step = 11
	}
	for i := 4; i < int(r.FooterAt.Off); i += step {
		b := bytes.Clone(intact)
		b[i] ^= 1 << (i % 8)
		got, err := rowsOf(b)
		if err == nil && got == want {
			continue
		}
		changed++
		if len(findings(b)) == 0 {
			t.Errorf("byte %d: rows differ (%v): verify: got no findings, want some", i, err)
		}
	}
	if changed < 50 {
		t.Errorf("got %d flips with an effect, want 50 or more", changed)
	}
}

func rowsOf(b []byte) (string, error) {
	_, got, err := readAll(store.NewMemory(map[string][]byte{"t": b}), nil, rangeAll)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, g := range got {
		for _, c := range g.Columns() {
			j, err := c.MarshalJSON()
			if err != nil {
				return "", err
			}
			out.Write(j)
		}
	}
	return out.String(), nil
}

// FuzzFile opens, reads, verifies, recovers and describes arbitrary bytes.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"plain.v2.parquet", "rare.parquet", "codec-zstd.parquet", "codec-lz4.parquet",
		"codec-brotli.parquet", "fixed-none.v1.parquet", "fixed-zstd.v2.parquet", "enc-dict.v1.parquet",
		"enc-delta.v2.parquet", "enc-plain.v1.parquet", "codec-gzip.parquet", "int96.parquet"} {
		f.Add(golden(f, "testdata/"+name).Bytes("t"))
	}
	sc := sample.Schema(arrow.PrimitiveTypes.Int32, arrow.ListOf(arrow.BinaryTypes.String))
	f.Add(written(f, nil, sample.Batch(rand.New(rand.NewPCG(1, 1)), sc, 5, 0.3)).Bytes("t"))
	like := golden(f, "testdata/enc-delta.v2.parquet").Bytes("t")
	f.Add(like[:len(like)-6000])
	f.Fuzz(func(t *testing.T, b []byte) {
		defer formattest.Bound(t, 640<<20)()
		damaged(t, "fuzz", 0, b)
		findings(b)
		tree := store.NewMemory(map[string][]byte{"t": b, "intact": like})
		for _, opts := range []map[string]string{nil, {"schema": "intact"}} {
			if r, _, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
				format.OpenOptions{Opts: opts}); err == nil {
				recovered(r)
			}
		}
		for range Format.Describe(context.Background(), format.Target{Tree: tree, Name: "t"},
			format.DescribeOptions{Pages: true}) {
		}
	})
}
