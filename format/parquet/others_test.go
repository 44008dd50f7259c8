package parquet

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// TestWideDeltas reads deltas that DuckDB packs in more than 32 bits (testdata/make_others.py), from row 0 on and from
// the middle of a block.
func TestWideDeltas(t *testing.T) {
	tree := golden(t, "testdata/deltas32.duckdb.parquet")
	for _, rows := range []vec.Range{{}, {From: 1, To: 2}, {From: 700, To: 2100}, {From: 2047, To: 2060}} {
		_, got, err := readAll(tree, nil, rows)
		if err != nil {
			t.Fatal(rows, err)
		}
		i := rows.From
		for _, b := range got {
			for k := range int(b.NumRows()) {
				checkWide(t, b, k, i)
				i++
			}
		}
		if rows.Len() == 0 {
			rows.To = 2100
		}
		if i != rows.To {
			t.Errorf("%v: got rows up to %d, want %d", rows, i, rows.To)
		}
	}
	if fs := findings(tree.Bytes("t")); len(fs) != 0 {
		t.Errorf("got findings %+v, want none", fs)
	}
}

func checkWide(t *testing.T, b arrow.RecordBatch, k int, i int64) {
	t.Helper()
	u32 := func(c int) *array.Uint32 { return b.Column(c).(*array.Uint32) }
	third := uint32(i * 1431655765 % (1 << 32))
	if got := u32(0).Value(k); got != uint32(1<<32-1-i) {
		t.Fatalf("row %d: down: got %d", i, got)
	}
	if got := u32(1).Value(k); got != uint32(i*2654435761%(1<<32)) {
		t.Fatalf("row %d: far: got %d", i, got)
	}
	if got := u32(2); got.IsNull(k) != (i%3 == 0) || i%3 != 0 && got.Value(k) != third {
		t.Fatalf("row %d: nulls: got %s", i, got.ValueStr(k))
	}
	if got := b.Column(3).(*array.Int32).Value(k); got != [2]int32{1<<31 - 1, -1 << 31}[i%2] {
		t.Fatalf("row %d: signed: got %d", i, got)
	}
	l := b.Column(4).(*array.List)
	if from, to := l.ValueOffsets(k); to-from != 1 || l.ListValues().(*array.Uint32).Value(int(from)) != third {
		t.Fatalf("row %d: list: got %s", i, l.ValueStr(k))
	}
}

// TestSummaries verifies summary files of directories that pyarrow and fastparquet write (testdata/make_others.py):
// they are healthy with their data files, and missing, truncated and outside data files are reported.
func TestSummaries(t *testing.T) {
	verify := func(files map[string][]byte, name string, depth format.Depth) string {
		var out []string
		for f := range Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(files), Name: name},
			format.OpenOptions{Depth: depth}) {
			out = append(out, f.Code+": "+f.Message)
		}
		return strings.Join(out, "; ")
	}
	for dir, part := range map[string]string{"summary.pyarrow": "part-0.parquet",
		"summary.fastparquet": "part.1.parquet"} {
		files := map[string][]byte{}
		names, _ := filepath.Glob("testdata/" + dir + "/*")
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files["t/"+filepath.Base(name)] = b
		}
		if len(files) < 3 {
			t.Fatalf("%s: got %d files, want 3 or more", dir, len(files))
		}
		for name := range files {
			for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
				if got := verify(files, name, depth); got != "" {
					t.Errorf("%s, %s: got %s, want no findings", name, depth, got)
				}
				target := format.Target{Tree: store.NewMemory(files), Name: name}
				if _, err := Format.Unchecked(t.Context(), target, format.OpenOptions{Depth: depth}); err != nil {
					t.Errorf("%s, %s: which pages have no checksums: %v", name, depth, err)
				}
			}
		}
		other := maps.Clone(files)
		other["t/"+part] = files["t/"+part][:40]
		if got := verify(other, "t/_metadata", format.Deep); !strings.HasPrefix(got,
			`parquet.summary: "`+part+`" has 40 bytes`) {
			t.Errorf("a truncated file: got %s", got)
		}
		delete(other, "t/"+part)
		if got := verify(other, "t/_metadata", format.Deep); got != `parquet.summary: "`+part+`" is missing` {
			t.Errorf("a missing file: got %s", got)
		}
		other["t/_metadata"] = bytes.ReplaceAll(files["t/_metadata"], []byte(part), []byte("../"+part[3:]))
		if got := verify(other, "t/_metadata", format.Deep); !strings.Contains(got,
			`"../`+part[3:]+`" is not in the directory of the summary`) {
			t.Errorf("a file outside the directory: got %s", got)
		}
		if _, _, err := readAll(store.NewMemory(map[string][]byte{"t": files["t/_metadata"]}), nil,
			vec.Range{}); err == nil || !strings.Contains(err.Error(), "the data are in another file") {
			t.Errorf("reading: got %v, want an error", err)
		}
	}
	b, err := os.ReadFile("testdata/summary.fastparquet/_common_metadata")
	if err != nil {
		t.Fatal(err)
	}
	if got := verify(map[string][]byte{"x.parquet": b}, "x.parquet", format.Sums); !strings.HasPrefix(got,
		"parquet.rows: 6,") {
		t.Errorf("a summary under the name of a data file: got %s, want parquet.rows", got)
	}
}

// TestUnknownArrowType reads a file by Polars whose Arrow schema has a 128-bit integer: it is read as Parquet's own
// type, little-endian bytes, with a warning, but no error.
func TestUnknownArrowType(t *testing.T) {
	tree := golden(t, "testdata/warned/int128.polars.parquet")
	sc, got, err := readAll(tree, nil, vec.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if w, ok := sc.Field(0).Type.(*arrow.FixedSizeBinaryType); !ok || w.ByteWidth != 16 {
		t.Errorf("got type %s, want fixed_size_binary[16]", sc.Field(0).Type)
	}
	col := got[0].Column(0).(*array.FixedSizeBinary)
	if one, five := []byte("\x01"+strings.Repeat("\x00", 15)),
		[]byte("\xfb"+strings.Repeat("\xff", 15)); !bytes.Equal(col.Value(0), one) ||
		!bytes.Equal(col.Value(1), five) || !col.IsNull(2) {
		t.Errorf("got %s, want 1, -5 and null", col)
	}
	r := openGolden(t, "testdata/warned/int128.polars.parquet")
	for _, fs := range [][]region.Finding{findings(tree.Bytes("t")), r.Findings()} {
		k := slices.IndexFunc(fs, func(f region.Finding) bool { return f.Code == "parquet.types" })
		if k < 0 || fs[k].Severity != region.Warning || fs[k].Lost != 0 ||
			!strings.Contains(fs[k].Message, "bits=128") {
			t.Errorf("got findings %+v, want a warning parquet.types", fs)
		}
		for _, f := range fs {
			if f.Severity == region.Error {
				t.Errorf("got error %+v, want none", f)
			}
		}
	}
	for text, want := range map[string]bool{"128": true, "256": true, "192": false, "1280": false} {
		if arrowschema.LongInteger(fmt.Errorf("x: arrow/ipc: integers with more than 64 bits not implemented (bits=%s)",
			text)) != want {
			t.Errorf("LongInteger of %s bits: got %t, want %t", text, !want, want)
		}
	}
}

// TestMetadataCopies: Polars writes a copy of each chunk's metadata after it (testdata/make_others.py). Verify claims
// its bytes, and compares it with the footer.
func TestMetadataCopies(t *testing.T) {
	intact := golden(t, "testdata/copies.polars.parquet").Bytes("t")
	if fs := findings(intact); len(fs) != 0 {
		t.Errorf("a healthy file: got findings %+v", fs)
	}
	// copies are ColumnChunks; total_byte_size differs from the sum of the chunks
	old := golden(t, "testdata/warned/copies.arrow-0.7.1.parquet").Bytes("t")
	if fs := findings(old); codesIn(fs) != "parquet.sizes" {
		t.Errorf("a file by Arrow 0.7.1: got %+v, want parquet.sizes", fs)
	}
	r := readerOf(t, intact)
	copies, err := r.Copies(t.Context())
	if err != nil || len(copies) != 2 || copies[0].At.Off != 83 || copies[0].At.Len != 50 ||
		copies[1].At.Off != 192 || copies[1].At.Len != 36 {
		t.Fatalf("got copies %+v, %v", copies, err)
	}
	for name, x := range map[string]struct {
		at   int
		have byte
		is   byte
		want string
	}{
		"num_values":         {83 + 14, 6, 8, "parquet.copy: num_values 4, but the footer has 3"},
		"path_in_schema":     {83 + 10, 'a', 'b', `parquet.copy: path_in_schema "b" , but the footer has "a" `},
		"no metadata at all": {83, 0x15, 0, "parquet.layout: 50 unclaimed bytes"},
	} {
		b := bytes.Clone(intact)
		if b[x.at] != x.have {
			t.Fatalf("%s: got byte %d, want %d", name, b[x.at], x.have)
		}
		b[x.at] = x.is
		if fs := findings(b); len(fs) != 1 || fs[0].Code+": "+fs[0].Message != x.want || fs[0].Lost > 0 {
			t.Errorf("%s: got %+v, want %s", name, fs, x.want)
		}
	}
}
