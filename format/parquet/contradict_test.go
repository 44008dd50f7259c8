package parquet

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/verify"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// TestForeignOffsetIndex: with the intact offset index of another chunk, reading rows from the middle never yields the
// pages of that chunk. Every index is tried for every chunk.
func TestForeignOffsetIndex(t *testing.T) {
	for _, name := range []string{"order.v1.parquet", "order.v2.parquet"} {
		b := golden(t, "testdata/"+name).Bytes("t")
		intact := readerOf(t, b)
		for g, rg := range intact.Footer.RowGroups {
			part := vec.Range{From: 1, To: rg.NumRows - 1}
			for k := range rg.Columns {
				query := format.Query{Cols: []int{k}}
				var want []string
				for rec, err := range batchesOf(t.Context(), intact, format.RowGroup{Index: g}, query, part,
					memory.NewGoAllocator()) {
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, array.RecordToStructArray(rec).String())
				}
				for _, other := range intact.Footer.RowGroups {
					for _, c := range other.Columns {
						r := readerOf(t, b)
						own := r.Footer.RowGroups[g].Columns[k]
						own.OffsetIndexOffset, own.OffsetIndexLength = c.OffsetIndexOffset, c.OffsetIndexLength
						i := 0
						for rec, err := range batchesOf(t.Context(), r, format.RowGroup{Index: g}, query, part,
							memory.NewGoAllocator()) {
							if err != nil {
								break // an error is also correct
							}
							if have := array.RecordToStructArray(rec).String(); i >= len(want) || have != want[i] {
								t.Fatalf("%s: row_groups[%d].columns[%d] with the index at %d: got wrong rows", name, g,
									k, *c.OffsetIndexOffset)
							}
							i++
						}
						r.Close()
					}
				}
			}
		}
		intact.Close()
	}
}

// TestNamesAgree: if a column's name in the schema differs from that of its chunks, opening fails, recovery and verify
// report it. In every file of testdata with rows, each byte of the schema is changed.
func TestNamesAgree(t *testing.T) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	tried, step := 0, 3
	if testing.Short() {
		step = 17
	} else if os.Getenv("STOA_LONG") != "" {
		step = 1
	}
	for _, name := range names {
		intact, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := readerOf(t, intact)
		from, to, groups := int(r.FooterAt.Off), 0, len(r.Footer.RowGroups)
		to = from + schemaEnd(t, intact[from:])
		was := r.Footer.Schema
		r.Close()
		if groups == 0 {
			continue
		}
		for i := from; i < to; i += step {
			b := bytes.Clone(intact)
			b[i] ^= 2
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
			o, err := openReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				continue
			}
			same := o.Footer.Schema.NumColumns() == was.NumColumns()
			for k := 0; same && k < was.NumColumns(); k++ {
				same = o.Footer.Schema.Column(k).Path() == was.Column(k).Path()
			}
			if o.Close(); same {
				continue
			}
			tried++
			if _, err := open(t.Context(), tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
				t.Fatalf("%s, byte %d: a different name: open: got %v, want class Corrupt", name, i, err)
			}
			back, _, err := recoverReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				t.Fatalf("%s, byte %d: recover: %v", name, i, err)
			}
			if len(back.(format.Finder).Findings()) == 0 {
				t.Errorf("%s, byte %d: recover: got no findings, want some", name, i)
			}
			back.Close()
			worst := region.Note
			for f := range verify.File(t.Context(), tg, format.OpenOptions{Depth: format.Quick}) {
				worst = max(worst, f.Severity)
			}
			if worst < region.Error {
				t.Errorf("%s, byte %d: verify: got no error, want one", name, i)
			}
		}
	}
	if tried*step < len(names) {
		t.Errorf("got %d changed names, want %d or more", tried, len(names)/step)
	}
}

// schemaEnd returns the offset of the end of the schema in a footer.
func schemaEnd(t *testing.T, footer []byte) int {
	c := wire.NewCursor(footer, fault.Span{Len: int64(len(footer))}, "footer")
	r := thrift.NewReader(c, thrift.Compact)
	for r.Struct(""); r.Next(); {
		if r.Field() != 2 {
			continue
		}
		for range r.List("schema", thrift.Struct) {
			meta.Walk(r, "", meta.SchemaElement)
		}
		return c.Pos()
	}
	t.Fatal("a footer without a schema")
	return 0
}
