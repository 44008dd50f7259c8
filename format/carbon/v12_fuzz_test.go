package carbon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/s2"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/internal/check"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

var v12Limits = format.Limits{Page: 1 << 22, Metadata: 1 << 20}

// requireFileError fails the test unless err is nil or has a class that a file can cause.
func requireFileError(t *testing.T, err error) {
	t.Helper()
	var e *fault.Error
	if err != nil && err != io.EOF && (!errors.As(err, &e) || e.Class == fault.Bug) {
		t.Fatalf("%T %v", err, err)
	}
}

func goldenSeeds(f *testing.F, pattern string, most int64) {
	names, err := filepath.Glob(filepath.Join("../../corpus/carbon/1.0.0", pattern))
	if err != nil || len(names) == 0 {
		f.Fatal(pattern, err)
	}
	for _, n := range names {
		if b, err := os.ReadFile(n); err != nil {
			f.Fatal(err)
		} else if int64(len(b)) <= most {
			f.Add(b)
		}
	}
}

// FuzzOldFile opens data files of formats 1 and 2, and decodes every page of every column.
func FuzzOldFile(f *testing.F) {
	goldenSeeds(f, "*/Fact/Part0/Segment_0/*.carbondata", 1<<20)
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := context.Background()
		files := map[string][]byte{"f.carbondata": data}
		tg := format.Target{Tree: store.NewMemory(files), Name: "f.carbondata"}
		tab, err := table.OpenFiles(ctx, tg, format.OpenOptions{Limits: v12Limits}, table.ReadOptions{Bucket: -1},
			[]string{tg.Name}, nil)
		requireFileError(t, err)
		if err != nil {
			return
		}
		src := data
		for part, err := range tab.Parts(ctx, format.Query{}) {
			requireFileError(t, err)
			groups, err := tab.RowGroups(ctx, part, format.Query{})
			requireFileError(t, err)
			for _, g := range groups {
				for c := range tab.Columns() {
					requireFileError(t, decodeAll(ctx, tab, g, c, src))
				}
			}
		}
	})
}

// decodeAll decodes all pages of a column of a blocklet; pages of items are decoded without knowing the number of
// items.
func decodeAll(ctx context.Context, tab *table.Table, g format.RowGroup, col int, src []byte) error {
	c, err := tab.Chunk(ctx, g, col, vec.Range{To: g.Rows})
	if err != nil {
		return err
	}
	for {
		p, err := c.Next(ctx)
		if err != nil {
			return err
		}
		dst, err := vec.New(tab.Columns()[col].Type, memory.DefaultAllocator)
		if err != nil {
			return err
		}
		words, err := vec.New(tab.Columns()[col].Type, memory.DefaultAllocator)
		if err != nil {
			return err
		}
		words.ExtendUnset(1 << 10)
		t := &format.Task{Page: p, N: p.Entries, Scratch: &vec.Arena{}, Limits: v12Limits, Dict: words}
		for _, s := range p.Spans {
			t.Bytes = append(t.Bytes, src[s.Off:s.End()])
		}
		if err := c.Decode(t, dst); err != nil {
			return err
		}
	}
}

// FuzzDictionary reads three files as a dictionary, in every way.
func FuzzDictionary(f *testing.F) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(
			"../../corpus/carbon/1.0.0/v2_b2000/Metadata/12345678-0000-4000-8000-00000000000" + name))
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add(read("4.dict"), read("4.dictmeta"), read("4_21.sortindex"))
	f.Add(read("1.dict"), read("1.dictmeta"), read("1_1104.sortindex"))
	f.Add(read("1.dict"), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, data, meta, sort []byte) {
		ctx := context.Background()
		files := map[string][]byte{"m/c.dict": data}
		if len(meta) > 0 {
			files["m/c.dictmeta"] = meta
		}
		if len(sort) > 0 {
			files["m/c.sortindex"] = sort
		}
		tree := store.NewMemory(files)
		col := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeInt, Name: "c", ID: "c",
			Dimension: true, Encoders: layout.Encodings{layout.EncDictionary}}}
		d := dict.NewDictionaries(tree, "m", format.OpenOptions{Limits: v12Limits})
		g, err := d.Global(ctx, col)
		requireFileError(t, err)
		if err == nil {
			for _, typ := range []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32} {
				v, err := vec.New(typ, memory.DefaultAllocator)
				if err != nil {
					t.Fatal(err)
				}
				task := &format.Task{Bytes: [][]byte{data[:g.Dict.Len]}, Scratch: &vec.Arena{}}
				requireFileError(t, g.Decode(task, v))
			}
			_, err = g.Bounds(ctx, []byte{1}, []byte{3})
			requireFileError(t, err)
		}
		requireFileError(t, verifyDictionaries(ctx, d, []*schema.Column{col}, discarding(ctx)))
		for name := range files {
			tg := format.Target{Tree: tree, Name: name}
			r, err := table.OpenDictionary(ctx, tg, format.OpenOptions{Limits: v12Limits})
			requireFileError(t, err)
			if err == nil {
				for b, err := range r.(format.Batcher).Batches(ctx, format.RowGroup{},
					format.Query{Cols: []int{0, 1}}, vec.Range{To: 1 << 40}, memory.DefaultAllocator) {
					if requireFileError(t, err); b != nil {
						b.NumRows()
					}
				}
			}
			requireFileError(t, table.DescribeDictionary(ctx, tg, format.OpenOptions{Limits: v12Limits},
				func(region.Node) {}))
			requireFileError(t, verifyDictionary(ctx, tg, format.OpenOptions{Limits: v12Limits}, discarding(ctx)))
		}
	})
}

// FuzzMeasure parses the metadata of a measure's page and decodes a page with it.
func FuzzMeasure(f *testing.F) {
	f.Add(javaMeta('d', 0, int64(300), int64(0)), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(javaMeta('n', 2, 1e9+0.25, 1e9), []byte{1, 2, 3, 4})
	f.Add(javaMeta('b', 2, 1.0, 0.0), []byte{0, 0, 0, 2, 1, 7})
	f.Fuzz(func(t *testing.T, meta, raw []byte) {
		c := wire.NewCursor(meta, fault.Span{Object: "f", Len: int64(len(meta))}, "")
		layout.ParseMeasureMeta(layout.BigEndian{Cursor: c})
		requireFileError(t, c.Err())
		for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int64,
			arrow.PrimitiveTypes.Float64, &arrow.Decimal128Type{Precision: 38, Scale: 6}} {
			for _, n := range []int64{int64(len(raw)), int64(len(raw) / 8), 1} {
				_, err := decodeMeasure(meta, s2.EncodeSnappy(nil, raw), n, typ, nil)
				requireFileError(t, err)
			}
		}
	})
}

// FuzzPacked reads row ids and runs of any width.
func FuzzPacked(f *testing.F) {
	f.Add(pack([]uint32{0, 9, 12, 10}, 17), pack([]uint32{0}, 17), 13)
	f.Add(pack([]uint32{0, 5, 5, 10}, 11), []byte{}, 2000)
	f.Fuzz(func(t *testing.T, ids, starts []byte, n int) {
		var k page.KeyWidths
		a := &vec.Arena{}
		out, err := k.RowIDs(ids, starts, n, a)
		requireFileError(t, err)
		seen := map[uint32]bool{}
		for _, v := range out {
			if seen[v] || int(v) >= n {
				t.Fatalf("row %d of %d", v, n)
			}
			seen[v] = true
		}
		_, err = k.Runs(ids, a)
		requireFileError(t, err)
	})
}

// discarding is a reporter that discards findings.
func discarding(ctx context.Context) *check.Reporter {
	return check.Collect(ctx, "", layout.Codes, new([]region.Finding))
}
