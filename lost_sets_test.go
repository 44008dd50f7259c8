package stoa

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// TestFilesOfLostSets: CFiles that record that they belonged to sets, each to a different one, without a table.json:
// they are not a table, and opening and verification report that.
func TestFilesOfLostSets(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	files := map[string][]byte{}
	for k, name := range []string{"a.cfile", "b.cfile"} {
		mem := store.NewMemory(nil)
		w, err := Create(t.Context(), "set", sc, CreateOptions{To: "cfile", Sink: mem.Sink("set")})
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range int64(10 + k) {
			b.Field(0).(*array.Int64Builder).Append(i)
			b.Field(1).(*array.Int64Builder).Append(-i)
		}
		if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		files["dir/"+name] = mem.Bytes("set/" + name)
	}
	o := OpenOptions{Tree: store.NewMemory(files)}
	if _, err := Open(t.Context(), "dir", o); !errors.Is(err, fault.Corrupt) {
		t.Errorf("opened: %v", err)
	}
	reported := 0
	for f, err := range Verify(t.Context(), "dir", o) {
		if err == nil && f.Severity == region.Error {
			reported++
		}
	}
	if reported == 0 {
		t.Error("verify calls it whole")
	}
	if _, err := Open(t.Context(), "dir/a.cfile", o); err != nil {
		t.Errorf("a file by itself: %v", err)
	}
}

// TestTablesWithSummaries: a summary does not prevent verification of the files in its directory, and it is no finding
// that a summary alone is not a table.
func TestTablesWithSummaries(t *testing.T) {
	for _, writer := range []string{"pyarrow", "fastparquet"} {
		dir := filepath.Join("format/parquet/testdata", "summary."+writer)
		for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
			seen := 0
			for f, err := range Verify(t.Context(), dir, OpenOptions{Depth: depth}) {
				if err != nil {
					t.Fatalf("%s, %s: %v", writer, depth, err)
				}
				if f.Severity >= region.Error {
					t.Errorf("%s, %s: %s", writer, depth, f.Message)
				}
				seen++
			}
			if depth != format.Quick && seen == 0 { // there is a note about pages without checksums
				t.Errorf("%s, %s: no file was looked at", writer, depth)
			}
		}
	}
}
