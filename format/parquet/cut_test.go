package parquet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// cuttable is rows of which so many entries make a page of every column, so that pages begin together; items is how
// many entries lists have at most: of more than one they do not.
func cuttable(t *testing.T, rows, items int, opts map[string]string) []byte {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "late", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	}, nil))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if b.Field(1).(*array.Float64Builder).Append(rng.NormFloat64()); i%9 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%d %s", i%50, strings.Repeat("x", 80)))
		}
		l := b.Field(3).(*array.ListBuilder)
		l.Append(i%4 != 0)
		for range rng.IntN(items+1) * min(i%4, 1) {
			l.ValueBuilder().(*array.Int32Builder).Append(int32(i))
		}
		if i < rows/2 {
			b.Field(4).AppendNull()
		} else {
			b.Field(4).(*array.Uint32Builder).Append(-uint32(i))
		}
	}
	return written(t, opts, b.NewRecordBatch()).Bytes("t")
}

// TestRowGroupsAreCut: row groups that are too large are cut where pages of all columns begin; the parts have the same
// rows, none has more of them, or bytes, than it may, and nothing that is said of one is wrong.
func TestRowGroupsAreCut(t *testing.T) {
	for _, more := range []map[string]string{{}, {"page-version": "2", "compression": "none"}, {"page-index": "false",
		"page-version": "2"}, {"bloom": "n,s", "dictionary": "false"}, {"sorting-columns": "n", "crc": "false"}} {
		opts := map[string]string{"page-rows": "100", "row-group-rows": "3000"}
		for k, v := range more {
			opts[k] = v
		}
		b := cuttable(t, 5000, 1, opts)
		for _, c := range []struct {
			key, value string
			rows       []int64
		}{
			{"row-group-rows", "1000", []int64{1000, 1000, 1000, 1000, 1000}},
			{"row-group-rows", "1950", []int64{1900, 1100, 1900, 100}},
			{"row-group-rows", "2000", []int64{2000, 1000, 2000}},
			{"row-group-size", "20000", nil},
		} {
			for _, columns := range [][]string{nil, {"f", "l"}} {
				name := fmt.Sprint(more, c, columns)
				out, why := copyOf(t, format.CopyOptions{Columns: columns, Opts: map[string]string{c.key: c.value}}, b)
				if why != "" {
					t.Fatalf("%s: %s", name, why)
				}
				holdParts(t, name, out, c.rows)
				want, err := sumOf(t, columns, b)
				got, err2 := sumOf(t, nil, out)
				if err != nil || err2 != nil || want.Difference(got) != "" {
					t.Errorf("%s: %v, %v: %s", name, err, err2, want.Difference(got))
				}
				for _, f := range findings(out) {
					t.Errorf("%s: %s: %s", name, f.Code, f.Message)
				}
			}
		}
	}
}

// holdParts holds the row groups of a copy against their numbers of rows; nil: they have 20,000 bytes at most.
func holdParts(t *testing.T, name string, b []byte, rows []int64) {
	t.Helper()
	r := readerOf(t, b)
	defer r.Close()
	var got []int64
	for _, g := range r.Footer.RowGroups {
		got = append(got, g.NumRows)
		stored := int64(0)
		for i, c := range g.Columns {
			stored += c.MetaData.TotalCompressedSize
			if said := c.MetaData.Statistics; said == nil || said.Nulls == nil {
				t.Errorf("%s: column %d: nulls are not counted", name, i)
			} else if c.ColumnIndexOffset != nil && said.Min == nil && *said.Nulls < g.NumRows &&
				c.MetaData.PathInSchema[0] == "n" {
				t.Errorf("%s: column %d: there are no bounds", name, i)
			}
		}
		if rows == nil && stored > 20000 {
			t.Errorf("%s: a row group of %d bytes", name, stored)
		}
	}
	if rows != nil && fmt.Sprint(got) != fmt.Sprint(rows) || len(got) < 3 {
		t.Errorf("%s: row groups of %d rows, want %d", name, got, rows)
	}
}

// TestRowGroupsThatAreNotCut: where pages do not begin together, or nobody knows where they begin, rows are decoded.
func TestRowGroupsThatAreNotCut(t *testing.T) {
	opts := format.CopyOptions{Opts: map[string]string{"row-group-rows": "1000"}}
	b := cuttable(t, 5000, 3, map[string]string{"page-rows": "100"})
	if _, why := copyOf(t, opts, b); !strings.Contains(why, "a page of every column begins") {
		t.Errorf("pages that begin apart: %q", why)
	}
	b = cuttable(t, 5000, 1, map[string]string{"page-rows": "100", "page-index": "false"})
	if _, why := copyOf(t, opts, b); !strings.Contains(why, "it is not known with which rows the pages of l") {
		t.Errorf("pages without an index: %q", why)
	}
	opts.Columns = []string{"n", "s"}
	if _, why := copyOf(t, opts, b); why != "" {
		t.Errorf("flat columns without an index: %s", why)
	}
	b = bytes.Clone(b)
	b[120] ^= 4 // in a page of n
	if _, why := copyOf(t, opts, b); why == "" {
		t.Error("damage is copied")
	}
}
