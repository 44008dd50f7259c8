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

// TestIndexesOfOthers: an offset index that is that of another chunk, sound by itself, never has the pages of that one
// read in place of the chunk's own: with every index under the name of every chunk, rows from the middle are those
// that were there.
func TestIndexesOfOthers(t *testing.T) {
	for _, name := range []string{"order.v1.parquet", "order.v2.parquet"} {
		b := golden(t, "testdata/"+name).Bytes("t")
		whole := readerOf(t, b)
		for g, rg := range whole.Footer.RowGroups {
			part := vec.Range{From: 1, To: rg.NumRows - 1}
			for k := range rg.Columns {
				query := format.Query{Cols: []int{k}}
				var want []string
				for rec, err := range batchesOf(t.Context(), whole, format.RowGroup{Index: g}, query, part,
					memory.NewGoAllocator()) {
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, array.RecordToStructArray(rec).String())
				}
				for _, other := range whole.Footer.RowGroups {
					for _, c := range other.Columns {
						r := readerOf(t, b)
						own := r.Footer.RowGroups[g].Columns[k]
						own.OffsetIndexOffset, own.OffsetIndexLength = c.OffsetIndexOffset, c.OffsetIndexLength
						i := 0
						for rec, err := range batchesOf(t.Context(), r, format.RowGroup{Index: g}, query, part,
							memory.NewGoAllocator()) {
							if err != nil {
								break // it may be told
							}
							if have := array.RecordToStructArray(rec).String(); i >= len(want) || have != want[i] {
								t.Fatalf("%s: row_groups[%d].columns[%d] with the index at %d gives other rows", name,
									g, k, *c.OffsetIndexOffset)
							}
							i++
						}
						r.Close()
					}
				}
			}
		}
		whole.Close()
	}
}

// TestNamesAgree: a file whose schema has another name for a column than its chunks is one that nobody reads but
// recover; and verify tells why. In every file of the testdata that has rows, each byte of the schema is changed.
func TestNamesAgree(t *testing.T) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	told, step := 0, 1
	if testing.Short() {
		step = 5
	}
	for _, name := range names {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := readerOf(t, whole)
		from, to, groups := int(r.FooterAt.Off), 0, len(r.Footer.RowGroups)
		to = from + schemaEnd(t, whole[from:])
		was := r.Footer.Schema
		r.Close()
		if groups == 0 {
			continue
		}
		for i := from; i < to; i += step {
			b := bytes.Clone(whole)
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
			told++
			if _, err := open(t.Context(), tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
				t.Fatalf("%s, byte %d: a column has another name, and it is opened with %v", name, i, err)
			}
			back, _, err := recoverReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				t.Fatalf("%s, byte %d: recovered with %v", name, i, err)
			}
			if len(back.(format.Finder).Findings()) == 0 {
				t.Errorf("%s, byte %d: recover says nothing", name, i)
			}
			back.Close()
			worst := region.Note
			for f := range verify.File(t.Context(), tg, format.OpenOptions{Depth: format.Quick}) {
				worst = max(worst, f.Severity)
			}
			if worst < region.Error {
				t.Errorf("%s, byte %d: verify finds nothing", name, i)
			}
		}
	}
	if told*step < len(names) {
		t.Errorf("only %d changes of names", told)
	}
}

// schemaEnd is where the schema of a footer ends.
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
