package parquet

import (
	"bytes"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// unsummed returns a file of two fixed-width columns without checksums.
func unsummed(t *testing.T) []byte {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range 90 {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 1_000_003)
		b.Field(1).(*array.Float64Builder).Append(float64(i) / 7)
	}
	mem := store.NewMemory(nil)
	w, err := Format.Create(t.Context(), mem.Sink("t"), sc, format.WriteOptions{Rows: -1, Opts: map[string]string{
		"crc": "false", "dictionary": "false", "encoding": "plain", "compression": "none", "page-size": "300"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return mem.Bytes("t")
}

// TestMovedBytes: if bytes are inserted into a file without checksums, or removed from it, reading fails or yields the
// right values, and verify reports an error if reading fails; a single damaged index costs nothing.
func TestMovedBytes(t *testing.T) {
	intact := unsummed(t)
	read := func(b []byte) (rows []string, err error) {
		r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		for rec, err := range scanned(t.Context(), r, scan.Spec{}) {
			if err != nil {
				return rows, err
			}
			rows = append(rows, array.RecordToStructArray(rec).String())
		}
		return rows, nil
	}
	right, err := read(intact)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for at := range len(intact) - 8 {
		if testing.Short() && at%5 > 0 {
			continue
		}
		for n, bad := range map[int][]byte{-1: slices.Delete(bytes.Clone(intact), at, at+1),
			-8: slices.Delete(bytes.Clone(intact), at, at+8),
			1:  slices.Insert(bytes.Clone(intact), at, intact[at]), 8: slices.Insert(bytes.Clone(intact), at,
				intact[at:at+8]...)} {
			rows, err := read(bad)
			if err == nil && !slices.Equal(rows, right) {
				t.Errorf("%d bytes at %d: got wrong values and no error", n, at)
			}
			if err == nil {
				continue
			}
			if failed++; !slices.ContainsFunc(findings(bad),
				func(f region.Finding) bool { return f.Severity == region.Error }) {
				t.Errorf("%d bytes at %d: verify: got no error, reading %v", n, at, err)
			}
		}
	}
	x := *readerOf(t, intact).Footer.RowGroups[0].Columns[1].OffsetIndexOffset
	bad := bytes.Clone(intact)
	bad[x] ^= 0xff
	if rows, err := read(bad); err != nil || !slices.Equal(rows, right) || len(findings(bad)) == 0 {
		t.Errorf("a damaged index: got %v, want all rows and a finding", err)
	}
	if failed < 100 {
		t.Errorf("got %d changes with an error, want 100 or more", failed)
	}
}
