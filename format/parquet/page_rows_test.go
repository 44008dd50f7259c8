package parquet

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	lib "github.com/apache/arrow-go/v18/parquet"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/region"
	"stoa/vec"
)

// rowsFrom returns rows of a column of claimed's file, as JSON.
func rowsFrom(t *testing.T, r *reader, column int, rows vec.Range) (out []string, err error) {
	t.Helper()
	for b, err := range batchesOf(t.Context(), r, format.RowGroup{}, format.Query{Cols: []int{column}}, rows, nil) {
		if err != nil {
			return out, err
		}
		for i := range int(b.NumRows()) {
			out = append(out, array.NewSlice(b.Column(0), int64(i), int64(i+1)).String())
		}
	}
	return out, nil
}

// TestWrongFirstRow: with a wrong first row of a page in an offset index, reading by rows never yields values of wrong
// rows, even in lists, whose v1 pages do not declare the number of rows; and verify reports it.
func TestWrongFirstRow(t *testing.T) {
	for _, version := range []lib.DataPageVersion{lib.DataPageV1, lib.DataPageV2} {
		intact := claimed(t, lib.WithDataPageVersion(version))
		for _, column := range []int{colX, colS, colL} {
			want, err := rowsFrom(t, readerOf(t, intact), column, vec.Range{})
			if err != nil || len(want) != 400 {
				t.Fatal(len(want), err)
			}
			x, err := readerOf(t, intact).OffsetIndex(t.Context(), 0, column)
			if err != nil {
				t.Fatal(err)
			}
			for _, by := range []int64{0, 1, -1} {
				for k := 1; k < len(x.FirstRow); k++ {
					bad := reoffset(t, intact, column, func(x *meta.OffsetIndex) { x.FirstRow[k] += by })
					r, refused := readerOf(t, bad), 0
					for row := range int64(400) {
						got, err := rowsFrom(t, r, column, vec.Range{From: row, To: row + 1})
						switch {
						case errors.Is(err, fault.Corrupt):
							refused++
						case err != nil || !slices.Equal(got, want[row:row+1]):
							t.Fatalf("V%d, column %d, page %d by %d, row %d: got %v, %v; want %s", version+1, column, k,
								by, row, got, err, want[row])
						}
					}
					// Lists are always read by the index, so that pages can be skipped.
					if got, err := rowsFrom(t, r, column, vec.Range{}); (column != colL ||
						!errors.Is(err, fault.Corrupt)) && (err != nil || !slices.Equal(got, want)) {
						t.Errorf("column %d, page %d by %d: all rows: got %v", column, k, by, err)
					}
					reported := slices.ContainsFunc(findings(bad),
						func(f region.Finding) bool { return f.Code == "parquet.index" })
					if reported != (by != 0) || refused > 0 != (by != 0) {
						t.Errorf("V%d, column %d, page %d by %d: got reported %t, %d rows refused", version+1, column,
							k, by, reported, refused)
					}
				}
			}
		}
	}
}
