package parquet

import (
	"fmt"
	"strings"
	"testing"

	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/region"
)

// withCodes returns the findings with the given codes, as text: code, path, rows, message.
func withCodes(fs []region.Finding, codes ...string) (out []string) {
	for _, f := range fs {
		for _, c := range codes {
			if f.Code == c {
				out = append(out, fmt.Sprintf("%s %s rows %d:%d lost %d: %s", f.Code, f.Path, f.Rows[0], f.Rows[1],
					f.Lost, f.Message))
			}
		}
	}
	return out
}

// wants checks that there are as many findings as expected texts, and that each contains its text.
func wants(t *testing.T, name string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
		return
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: %q, want %q", name, got[i], want[i])
		}
	}
}

// TestVerifyOrder: verify compares rows with sorting_columns. In pyarrow's files the order is right (testdata/make.py);
// in that of claimed, by its formula, it is violated by a null in row 9.
func TestVerifyOrder(t *testing.T) {
	for _, file := range []string{"order.v1", "order.v2"} {
		intact := golden(t, "testdata/"+file+".parquet").Bytes("t")
		if fs := findings(intact); len(fs) != 0 {
			t.Errorf("%s: got findings %+v, want none", file, fs)
		}
		if n := len(readerOf(t, intact).Footer.RowGroups[0].SortingColumns); n != 2 {
			t.Fatalf("%s: got %d sorting columns, want 2", file, n)
		}
		// 17 or 18 rows have each value of desc, so the values of s start anew within a row group, with nulls at the
		// end of each run.
		ascending := refooter(t, intact, nil,
			func(m *metadata.FileMetaData, _ int64) { m.RowGroups[1].SortingColumns[0].Descending = false })
		if got := withCodes(findings(ascending), "parquet.order"); len(got) != 1 ||
			!strings.Contains(got[0], "row_groups[1].sorting_columns") ||
			!strings.Contains(got[0], "by desc (ascending, nulls last)") {
			t.Errorf("%s, ascending: got %q", file, got)
		}
		nulls := refooter(t, intact, nil,
			func(m *metadata.FileMetaData, _ int64) { m.RowGroups[0].SortingColumns[1].NullsFirst = true })
		if got := withCodes(findings(nulls), "parquet.order"); len(got) != 1 ||
			!strings.Contains(got[0], "by s (ascending, nulls first)") {
			t.Errorf("%s, nulls first: got %q", file, got)
		}
		if got := withCodes(shallow(t, nulls), "parquet.order"); got != nil {
			t.Errorf("%s, without --deep: got %q, want none", file, got)
		}
	}
	intact := claimed(t)
	by := func(cols ...lib.SortingColumn) []string {
		b := refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			for i := range cols {
				m.RowGroups[0].SortingColumns = append(m.RowGroups[0].SortingColumns, &cols[i])
			}
		})
		return withCodes(findings(b), "parquet.order")
	}
	wants(t, "nulls last", by(lib.SortingColumn{ColumnIdx: colX}), "row_groups[0].sorting_columns rows 10:11 "+
		"lost 0: row 10 of the row group should come before row 9 by x (ascending, nulls last)")
	wants(t, "nulls first", by(lib.SortingColumn{ColumnIdx: colX, NullsFirst: true}),
		"rows 9:10 lost 0: row 9 of the row group should come before row 8 by x")
	wants(t, "descending", by(lib.SortingColumn{ColumnIdx: colU, Descending: true}),
		"rows 1:2 lost 0: row 1 of the row group should come before row 0 by u (descending, nulls last)")
	wants(t, "strings", by(lib.SortingColumn{ColumnIdx: colS, Descending: true}), "rows 1:2 lost 0: row 1 ")
	wants(t, "numbers", by(lib.SortingColumn{ColumnIdx: colF, Descending: true}), "rows 1:2 lost 0: row 1 ")
	wants(t, "no column", by(lib.SortingColumn{ColumnIdx: 5}),
		"row_groups[0].sorting_columns[0].column_idx rows 0:400 lost -1: there is no such column: the schema has 5")
	wants(t, "a list, which has no order", by(lib.SortingColumn{ColumnIdx: colL}))
}

// TestVerifyLevelsOfArrowCpp: Arrow C++ counts the bytes of strings in DELTA_BYTE_ARRAY differently, which is not
// reported.
func TestVerifyLevelsOfArrowCpp(t *testing.T) {
	for _, file := range []string{"enc-delta.v1", "enc-delta.v2", "enc-dict.v1", "codec-zstd"} {
		wants(t, file, withCodes(findings(golden(t, "testdata/"+file+".parquet").Bytes("t")), "parquet.levels",
			"parquet.order", "parquet.sizes"))
	}
}

// shallow returns the findings of verify without --deep.
func shallow(t *testing.T, b []byte) (out []region.Finding) {
	t.Helper()
	r := readerOf(t, b)
	for f := range Format.Verify(t.Context(), r.Target, format.OpenOptions{Depth: format.Sums}) {
		out = append(out, f)
	}
	return out
}

// librarySizes is the library's struct, which is unnamed.
type librarySizes struct {
	UnencodedByteArrayDataBytes                        *int64
	RepetitionLevelHistogram, DefinitionLevelHistogram []int64
}

func fresh[T any](p **T) *T { *p = new(T); return *p }

// TestVerifyLevels: verify checks the size statistics of chunks and pages. By the formula of claimed 40 rows of l are
// null, 40 empty, and each of the others has a value, a null and a value.
func TestVerifyLevels(t *testing.T) {
	intact := claimed(t, lib.WithDataPageVersion(lib.DataPageV2))
	with := func(column int, s librarySizes) []string {
		b := refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) {
			to := fresh(&m.RowGroups[0].Columns[column].MetaData.SizeStatistics)
			to.UnencodedByteArrayDataBytes, to.RepetitionLevelHistogram,
				to.DefinitionLevelHistogram = s.UnencodedByteArrayDataBytes, s.RepetitionLevelHistogram,
				s.DefinitionLevelHistogram
		})
		return withCodes(findings(b), "parquet.levels")
	}
	// A string has four bytes, and eight rows are null.
	wants(t, "right", with(colS, librarySizes{UnencodedByteArrayDataBytes: meta.Ptr(int64(4 * 392)),
		RepetitionLevelHistogram: []int64{400}, DefinitionLevelHistogram: []int64{8, 392}}))
	wants(t, "right for a list", with(colL,
		librarySizes{RepetitionLevelHistogram: []int64{400, 640}, DefinitionLevelHistogram: []int64{40, 40, 320, 640}}))
	wants(t, "left out", with(colL, librarySizes{}))
	wants(t, "bytes of numbers", with(colX, librarySizes{UnencodedByteArrayDataBytes: meta.Ptr(int64(1))}))
	wants(t, "bytes", with(colS, librarySizes{UnencodedByteArrayDataBytes: meta.Ptr(int64(1567))}),
		"row_groups[0].columns[2].size_statistics.unencoded_byte_array_data_bytes rows 0:400 lost 0: [1567], "+
			"there are [1568]")
	wants(t, "definition", with(colX, librarySizes{DefinitionLevelHistogram: []int64{9, 391}}),
		"columns[0].size_statistics.definition_level_histogram rows 0:400 lost 0: [9 391], there are [8 392]")
	wants(t, "repetition", with(colL, librarySizes{RepetitionLevelHistogram: []int64{401, 639}}),
		"columns[4].size_statistics.repetition_level_histogram rows 0:400 lost 0: [401 639], there are [400 640]")
	wants(t, "levels", with(colL, librarySizes{RepetitionLevelHistogram: []int64{400, 640, 0}}),
		"3 numbers instead of 2")

	paged := golden(t, "testdata/order.v2.parquet").Bytes("t")
	const list = 2 // ls.list.element
	edited := reindex(t, paged, list, func(x *meta.ColumnIndex) {
		if len(x.RepLevels) < 4 || len(x.DefLevels) != 2*len(x.RepLevels) {
			t.Fatalf("got levels %v, %v, want 2 for each page", x.RepLevels, x.DefLevels)
		}
		x.RepLevels[2]++
		x.DefLevels[4+1]--
	})
	wants(t, "pages", withCodes(findings(edited), "parquet.levels"),
		"columns[2].column_index.repetition_level_histograms[1] rows 0:70 lost 0: ",
		"columns[2].column_index.definition_level_histograms[1] rows 0:70 lost 0: ")
	edited = reindex(t, paged, list, func(x *meta.ColumnIndex) { x.RepLevels = x.RepLevels[1:] })
	wants(t, "pages", withCodes(findings(edited), "parquet.levels"),
		"columns[2].column_index.repetition_level_histograms rows 0:70 lost 0: ")
	edited = reoffset(t, paged, list, func(x *meta.OffsetIndex) {
		if len(x.Bytes) < 2 {
			t.Fatalf("got bytes %v, want 2 or more", x.Bytes)
		}
		x.Bytes[1] += 7
	})
	wants(t, "strings of pages", withCodes(findings(edited), "parquet.levels"),
		"columns[2].offset_index.unencoded_byte_array_data_bytes[1] rows 0:70 lost 0: ")
}

// reoffset adds an edited offset index for a column.
func reoffset(t *testing.T, intact []byte, column int, edit func(x *meta.OffsetIndex)) []byte {
	t.Helper()
	x, err := readerOf(t, intact).OffsetIndex(t.Context(), 0, column)
	if err != nil || x == nil || len(x.Offsets) < 2 {
		t.Fatalf("%+v, %v", x, err)
	}
	edit(x)
	w := thrift.NewWriter(thrift.Compact)
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(x.Offsets))
	for i := range x.Offsets {
		w.Struct(thrift.Item)
		w.I64(1, x.Offsets[i])
		w.I32(2, x.Sizes[i])
		w.I64(3, x.FirstRow[i])
		w.End()
	}
	if x.Bytes != nil {
		w.List(2, thrift.I64, len(x.Bytes))
		for _, n := range x.Bytes {
			w.I64(thrift.Item, n)
		}
	}
	w.End()
	b := w.Encoded()
	return refooter(t, intact, b, func(m *metadata.FileMetaData, at int64) {
		c, n := m.RowGroups[0].Columns[column], int32(len(b))
		c.OffsetIndexOffset, c.OffsetIndexLength = &at, &n
	})
}

// TestVerifyFileOffset: verify compares the offset of a row group with its chunks; some writers leave it out, or write
// 0.
func TestVerifyFileOffset(t *testing.T) {
	intact := golden(t, "testdata/order.v1.parquet").Bytes("t")
	for off, want := range map[int64][]string{0: nil, 4: nil,
		5: {"row_groups[0].file_offset rows 0:70 lost 0: 5, but its first page is at 4"}} {
		b := refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) { m.RowGroups[0].FileOffset = &off })
		wants(t, fmt.Sprint(off), withCodes(findings(b), "parquet.sizes"), want...)
	}
}
