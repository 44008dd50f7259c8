package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/format"
	metas "stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
)

// claimed returns a file of 400 rows with all metadata for every column: statistics of the row group and of pages, both
// indexes, a Bloom filter. In row i x is 10·i; u is 2³¹+i; s is "k" and i in three digits; f is i/2, NaN in row 7; l is
// [i, null, -i], null where i%10 is 3 and [] where it is 4; all but l are null where i%50 is 9.
func claimed(t *testing.T, more ...lib.WriterProperty) []byte {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "u", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	list := b.Field(4).(*array.ListBuilder)
	for i := range 400 {
		switch i % 10 {
		case 3:
			list.AppendNull()
		case 4:
			list.AppendEmptyValue()
		default:
			list.Append(true)
			list.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), 0, -int32(i)},
				[]bool{true, false, true})
		}
		if i%50 == 9 {
			for k := range 4 {
				b.Field(k).AppendNull()
			}
			continue
		}
		b.Field(0).(*array.Int64Builder).Append(int64(10 * i))
		b.Field(1).(*array.Uint32Builder).Append(1<<31 + uint32(i))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("k%03d", i))
		f := float64(i) / 2
		if i == 7 {
			f = math.NaN()
		}
		b.Field(3).(*array.Float64Builder).Append(f)
	}
	// a name other than Arrow's, some of whose statistics are known to be wrong
	props := append([]lib.WriterProperty{lib.WithCreatedBy("test version 1.0.0"), lib.WithDictionaryDefault(false),
		lib.WithDataPageSize(400), lib.WithBatchSize(40), lib.WithPageIndexEnabled(true),
		lib.WithBloomFilterEnabled(true), lib.WithBloomFilterNDV(1000)}, more...)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(sc, &out, lib.NewWriterProperties(props...), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// targetOf returns a file in memory.
func targetOf(b []byte) format.Target {
	return format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}), Name: "t"}
}

func readerOf(t *testing.T, b []byte) *reader {
	t.Helper()
	r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// refooter edits the footer of a file, and inserts more bytes, at offset at, in front of it.
func refooter(t *testing.T, intact []byte, more []byte, edit func(m *metadata.FileMetaData, at int64)) []byte {
	t.Helper()
	r := readerOf(t, intact)
	meta, err := metadata.NewFileMetaData(intact[r.FooterAt.Off:r.FooterAt.End()], nil)
	if err != nil {
		t.Fatal(err)
	}
	edit(meta, r.FooterAt.Off)
	out := bytes.NewBuffer(append(bytes.Clone(intact[:r.FooterAt.Off]), more...))
	n, err := meta.WriteTo(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(out.Bytes(), uint32(n)), metas.Magic...)
}

// reindex adds an edited column index for a column.
func reindex(t *testing.T, intact []byte, column int, edit func(x *metas.ColumnIndex)) []byte {
	t.Helper()
	r := readerOf(t, intact)
	off, err := r.OffsetIndex(t.Context(), 0, column)
	if err != nil || off == nil || len(off.Offsets) < 2 {
		t.Fatalf("%+v, %v", off, err)
	}
	x, err := r.ColumnIndex(t.Context(), 0, column, len(off.Offsets))
	if err != nil {
		t.Fatal(err)
	}
	edit(x)
	w := thrift.NewWriter(thrift.Compact)
	w.Struct(thrift.Item)
	w.List(1, thrift.Bool, len(x.NullPages))
	for _, v := range x.NullPages {
		w.Bool(thrift.Item, v)
	}
	for k, list := range [][][]byte{x.Min, x.Max} {
		w.List(int16(2+k), thrift.Bytes, len(list))
		for _, v := range list {
			w.Bytes(thrift.Item, v)
		}
	}
	w.I32(4, x.Order)
	w.List(5, thrift.I64, len(x.Nulls))
	for _, v := range x.Nulls {
		w.I64(thrift.Item, v)
	}
	for k, list := range [][]int64{x.RepLevels, x.DefLevels} {
		if list == nil {
			continue
		}
		w.List(int16(6+k), thrift.I64, len(list))
		for _, v := range list {
			w.I64(thrift.Item, v)
		}
	}
	w.End()
	b := w.Encoded()
	return refooter(t, intact, b, func(m *metadata.FileMetaData, at int64) {
		c, n := m.RowGroups[0].Columns[column], int32(len(b))
		c.ColumnIndexOffset, c.ColumnIndexLength = &at, &n
	})
}

func le64(v int64) []byte    { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func le32(v uint32) []byte   { return binary.LittleEndian.AppendUint32(nil, v) }
func lef64(v float64) []byte { return le64(int64(math.Float64bits(v))) }

const (
	colX = iota
	colU
	colS
	colF
	colL
)

// TestVerifyStatistics: verify compares all statistics in a footer with the values, unless they are ambiguous.
func TestVerifyStatistics(t *testing.T) {
	intact := claimed(t, lib.WithDataPageVersion(lib.DataPageV2))
	if fs := findings(intact); len(fs) > 0 {
		t.Fatalf("a healthy file: got findings %+v", fs)
	}
	type stats = func(m *metadata.FileMetaData)
	column := func(k int, f func(c *metas.Stats)) stats {
		return func(m *metadata.FileMetaData) {
			s := m.RowGroups[0].Columns[k].MetaData.Statistics
			c := metas.Stats{Min: s.MinValue, Max: s.MaxValue, DeprecatedMin: s.Min, DeprecatedMax: s.Max,
				Nulls: s.NullCount}
			f(&c)
			s.MinValue, s.MaxValue, s.Min, s.Max = c.Min, c.Max, c.DeprecatedMin, c.DeprecatedMax
			s.NullCount, s.DistinctCount, s.NanCount = c.Nulls, c.Distinct, c.NaNs
			s.IsMinValueExact, s.IsMaxValueExact = &c.MinExact, &c.MaxExact
		}
	}
	const wrong, none = "parquet.statistics", ""
	for what, c := range map[string]struct {
		edit stats
		want string
	}{
		"min":                  {column(colX, func(s *metas.Stats) { s.Min = le64(1) }), wrong},
		"max":                  {column(colX, func(s *metas.Stats) { s.Max = le64(3989) }), wrong},
		"wide bounds":          {column(colX, func(s *metas.Stats) { s.Min, s.Max = le64(-5), le64(5000) }), none},
		"not exact":            {column(colX, func(s *metas.Stats) { s.Min, s.MinExact = le64(-5), true }), wrong},
		"exact":                {column(colX, func(s *metas.Stats) { s.MinExact, s.MaxExact = true, true }), none},
		"min of a list":        {column(colL, func(s *metas.Stats) { s.Min = le32(0) }), wrong},
		"max of a list":        {column(colL, func(s *metas.Stats) { s.Max = le32(398) }), wrong},
		"nulls":                {column(colX, func(s *metas.Stats) { s.Nulls = metas.Ptr[int64](7) }), wrong},
		"more nulls than rows": {column(colX, func(s *metas.Stats) { s.Nulls = metas.Ptr[int64](401) }), wrong},
		"nulls below zero":     {column(colX, func(s *metas.Stats) { s.Nulls = metas.Ptr[int64](-1) }), wrong},
		"nulls of a list":      {column(colL, func(s *metas.Stats) { s.Nulls = metas.Ptr[int64](40) }), wrong},
		"nulls of a list, right": {column(colL,
			func(s *metas.Stats) { s.Nulls = metas.Ptr[int64](320 + 40 + 40) }), none},
		"bytes": {column(colX, func(s *metas.Stats) { s.Min = []byte{1, 2, 3} }), wrong},
		"distinct": {column(colX, func(s *metas.Stats) { s.Distinct = metas.Ptr[int64](391) }),
			"parquet.statistics.distinct"},
		"distinct, right": {column(colX, func(s *metas.Stats) { s.Distinct = metas.Ptr[int64](392) }), none},
		"distinct, too many to count": {column(colX, func(s *metas.Stats) { s.Distinct = metas.Ptr[int64](1 << 40) }),
			"parquet.statistics.distinct"},
		"NaN is no bound": {column(colF,
			func(s *metas.Stats) { s.Min, s.Max = lef64(math.NaN()), lef64(math.NaN()) }), none},
		"count of NaN":        {column(colF, func(s *metas.Stats) { s.NaNs = metas.Ptr[int64](0) }), wrong},
		"count of NaN, right": {column(colF, func(s *metas.Stats) { s.NaNs = metas.Ptr[int64](1) }), none},
		"old min":             {column(colX, func(s *metas.Stats) { s.DeprecatedMin = le64(1) }), wrong},
		"old max":             {column(colX, func(s *metas.Stats) { s.DeprecatedMax = le64(3980) }), wrong},
		"old bounds, right": {column(colX, func(s *metas.Stats) {
			s.DeprecatedMin, s.DeprecatedMax = le64(0), le64(3990)
		}), none},
		"old max of floats": {column(colF, func(s *metas.Stats) { s.DeprecatedMax = lef64(199) }), wrong},
		// 2³¹ and more are negative in signed order, so that any value may be the minimum
		"old min of unsigned, in either order": {column(colU,
			func(s *metas.Stats) { s.DeprecatedMin = le32(1<<31 + 399) }), none},
		"old min of unsigned, below it": {column(colU,
			func(s *metas.Stats) { s.DeprecatedMin = le32(1 << 30) }), none},
		"old min of text": {column(colS,
			func(s *metas.Stats) { s.DeprecatedMin = []byte("k001") }), wrong},
		"old max of text": {column(colS,
			func(s *metas.Stats) { s.DeprecatedMax = []byte("k398") }), wrong},
		"old min of text, not ASCII": {column(colS,
			func(s *metas.Stats) { s.DeprecatedMin = []byte("ké") }), none},
		"raw size": {func(m *metadata.FileMetaData) {
			m.RowGroups[0].Columns[colX].MetaData.TotalUncompressedSize++
			m.RowGroups[0].TotalByteSize++
		}, "parquet.sizes"},
	} {
		got := findings(refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) { c.edit(m) }))
		if codesIn(got) != c.want || len(got) > 1 {
			t.Errorf("%s: got %+v, want %q", what, got, c.want)
		}
		for _, f := range got {
			if f.At.Len == 0 || f.Path == "" || f.Column == "" {
				t.Errorf("%s: got %+v without span, path or column", what, f)
			}
		}
	}
}

// TestVerifyIndexes: verify reports wrong content of column indexes, offset indexes and Bloom filters, and wrong
// locations of them in the footer.
func TestVerifyIndexes(t *testing.T) {
	intact := claimed(t)
	if fs := findings(intact); len(fs) > 0 {
		t.Fatalf("a healthy file: got findings %+v", fs)
	}
	const wrong = "parquet.index.bounds"
	for what, c := range map[string]struct {
		b    []byte
		want string
		path string
	}{
		"min": {reindex(t, intact, colX, func(x *metas.ColumnIndex) { x.Min[1] = le64(900) }), wrong,
			"column_index[1]"},
		"max of a list": {reindex(t, intact, colL, func(x *metas.ColumnIndex) { x.Max[1] = le32(0) }), wrong,
			"column_index"},
		"nulls": {reindex(t, intact, colX, func(x *metas.ColumnIndex) { x.Nulls[1]++ }), wrong, "null_count"},
		"nulls, many": {reindex(t, intact, colX, func(x *metas.ColumnIndex) { x.Nulls[1] = 1 << 40 }), wrong,
			"null_count"},
		"null page": {reindex(t, intact, colX, func(x *metas.ColumnIndex) { x.NullPages[1] = true }), wrong,
			"null_pages"},
		"order":     {reindex(t, intact, colX, func(x *metas.ColumnIndex) { x.Order = 2 }), wrong, "boundary_order"},
		"no order":  {reindex(t, intact, colX, func(x *metas.ColumnIndex) { x.Order = 0 }), "", ""},
		"unchanged": {reindex(t, intact, colX, func(x *metas.ColumnIndex) {}), "", ""},
		"length of the column index": {refooter(t, intact, nil,
			func(m *metadata.FileMetaData, _ int64) { *m.RowGroups[0].Columns[colX].ColumnIndexLength++ }),
			"parquet.index", "column_index"},
		"length of the offset index": {refooter(t, intact, nil,
			func(m *metadata.FileMetaData, _ int64) { *m.RowGroups[0].Columns[colX].OffsetIndexLength += 2 }),
			"parquet.index", "offset_index"},
		"another column's offset index": {refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			c := m.RowGroups[0].Columns
			c[colX].OffsetIndexOffset, c[colX].OffsetIndexLength = c[colF].OffsetIndexOffset, c[colF].OffsetIndexLength
		}), "parquet.index", "offset_index"},
		"another column's Bloom filter": {refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			c := m.RowGroups[0].Columns
			c[colX].MetaData.BloomFilterOffset = c[colS].MetaData.BloomFilterOffset
		}), "parquet.bloom", "bloom_filter"},
		"length of a Bloom filter": {refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			*m.RowGroups[0].Columns[colX].MetaData.BloomFilterLength++
		}), "parquet.bloom", "bloom_filter_length"},
		"no Bloom filter": {refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			*m.RowGroups[0].Columns[colX].MetaData.BloomFilterOffset = 4
		}), "parquet.bloom", "bloom_filter"},
	} {
		n := 0
		for _, f := range findings(c.b) {
			if f.Code == "parquet.layout" {
				continue // of the replaced index
			}
			if n++; f.Code != c.want || !strings.Contains(f.Path, c.path) || f.At.Len == 0 {
				t.Errorf("%s: got %+v, want %s at %s", what, f, c.want, c.path)
			}
		}
		if n != 1 && c.want != "" {
			t.Errorf("%s: got %d findings, want 1", what, n)
		}
	}
}

// TestVerifyPageHeaders: verify compares the statistics in the header of a page with its values.
func TestVerifyPageHeaders(t *testing.T) {
	intact := claimed(t, lib.WithPageIndexEnabled(false), lib.WithDataPageVersion(lib.DataPageV2),
		lib.WithBloomFilterEnabled(false))
	r := readerOf(t, intact)
	n := 0
	for p, err := range r.Pages(t.Context(), 0, colX) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Stats == nil {
			t.Fatal("got a page without statistics")
		}
		b := bytes.Clone(intact)
		head := b[p.Header.Off:p.Header.End()]
		if !bytes.Contains(head, p.Stats.Max) {
			t.Fatal("the maximum is not in the header")
		}
		copy(head, bytes.ReplaceAll(head, p.Stats.Max, p.Stats.Min))
		if got := codesIn(findings(b)); got != "parquet.index.bounds" {
			t.Errorf("page %d: got %q, want parquet.index.bounds", n, got)
		}
		n++
	}
	if n < 3 {
		t.Errorf("got %d pages, want 3 or more", n)
	}
}

// TestVerifyMisplacedChunks: verify and reading report swapped and repeated chunks and row groups in a footer, although
// all pages are intact.
func TestVerifyMisplacedChunks(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(sc, &out,
		lib.NewWriterProperties(lib.WithMaxRowGroupLength(50), lib.WithPageIndexEnabled(true)),
		pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range int64(100) {
		b.Field(0).(*array.Int64Builder).Append(i)
		b.Field(1).(*array.Int64Builder).Append(1000 + i)
	}
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		edit func(m *metadata.FileMetaData)
		want string
	}{
		"nothing": {func(*metadata.FileMetaData) {}, ""},
		"columns": {func(m *metadata.FileMetaData) { c := m.RowGroups[0].Columns; c[0], c[1] = c[1], c[0] },
			"parquet.misplaced"},
		"chunks of a column in two groups": {func(m *metadata.FileMetaData) {
			a, b := m.RowGroups[0].Columns, m.RowGroups[1].Columns
			a[0], b[0] = b[0], a[0]
		}, "parquet.misplaced"},
		"row groups": {func(m *metadata.FileMetaData) {
			m.RowGroups[0],
				m.RowGroups[1] = m.RowGroups[1], m.RowGroups[0]
		}, "parquet.misplaced"},
		"the same chunk twice": {func(
			m *metadata.FileMetaData) {
			m.RowGroups[1].Columns[0] = m.RowGroups[0].Columns[0]
		}, "parquet.misplaced"},
		"raw size of a row group": {func(m *metadata.FileMetaData) { m.RowGroups[1].TotalByteSize++ },
			"parquet.sizes"},
		"compressed size of a row group": {func(m *metadata.FileMetaData) { *m.RowGroups[1].TotalCompressedSize++ },
			"parquet.sizes"},
		"without sizes and ordinals": {func(m *metadata.FileMetaData) {
			g := m.RowGroups[1]
			g.TotalByteSize, g.TotalCompressedSize, g.Ordinal = 0, nil, nil
		}, ""},
	} {
		bad := refooter(t, out.Bytes(), nil, func(m *metadata.FileMetaData, _ int64) { c.edit(m) })
		found := findings(bad)
		read := readerOf(t, bad).Findings()
		if c.want == "parquet.misplaced" != (len(read) > 0) || len(read) > 0 && codesIn(read) != c.want {
			t.Errorf("%s: reading: got %+v, want %q", what, read, c.want)
		}
		found = slices.DeleteFunc(found, func(f region.Finding) bool {
			lost := f.Code == "parquet.column" && strings.Contains(f.Message, "the bytes also belong to")
			return f.Code == "parquet.layout" || f.Code == "parquet.sizes" && c.want != f.Code || lost
		})
		if codesIn(found) != c.want || len(found) > 0 && found[0].At.Len == 0 {
			t.Errorf("%s: got %+v, want %q", what, found, c.want)
		}
	}
}
