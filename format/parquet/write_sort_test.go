package parquet

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"stoa/format/parquet/internal/write"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// pair is a row: a key in a struct, and a nullable key.
type pair struct {
	a int32
	b *string
}

// pairs divides rows into batches at random.
func pairs(r *rand.Rand, rows []pair) (out []arrow.RecordBatch) {
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float32},
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32})
	sc := arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true},
		{Name: "s", Type: inner},
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for len(rows) > 0 || out == nil {
		n := min(len(rows), 1+r.IntN(9))
		b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
		for _, p := range rows[:n] {
			b.Field(0).AppendNull()
			s := b.Field(1).(*array.StructBuilder)
			s.Append(true)
			s.FieldBuilder(0).(*array.Float32Builder).Append(0)
			s.FieldBuilder(1).(*array.Int32Builder).Append(p.a)
			if p.b == nil {
				b.Field(2).AppendNull()
			} else {
				b.Field(2).(*array.StringBuilder).Append(*p.b)
			}
		}
		out, rows = append(out, b.NewRecordBatch()), rows[n:]
	}
	return out
}

// TestSortingColumns: sorting_columns are written as arrow-go and verify read them; rows that are not in order are
// refused, wherever batches begin; but row groups may come in any order.
func TestSortingColumns(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 41))
		desc, first := r.IntN(2) == 0, r.IntN(2) == 0
		rows := make([]pair, 2+r.IntN(40))
		for i := range rows {
			if rows[i].a = int32(r.IntN(4)) - 2; r.IntN(3) > 0 {
				s := string(rune('a' + r.IntN(9)))
				rows[i].b = &s
			}
		}
		less := func(x, y pair) int {
			switch {
			case x.a != y.a:
				return int(x.a) - int(y.a)
			case x.b == nil && y.b == nil:
				return 0
			case x.b == nil || y.b == nil:
				if (x.b == nil) == first {
					return -1
				}
				return 1
			case desc:
				return bytes.Compare([]byte(*y.b), []byte(*x.b))
			}
			return bytes.Compare([]byte(*x.b), []byte(*y.b))
		}
		slices.SortFunc(rows, less)
		option := "s.a,b"
		if desc {
			option += ":desc"
		}
		if first {
			option += ":nulls-first"
		}
		tree := written(t, map[string]string{"sorting-columns": option}, pairs(r, rows)...)
		for _, f := range findings(tree.Bytes("t")) {
			t.Errorf("seed %d: %+v", seed, f)
		}
		f, err := file.NewParquetReader(bytes.NewReader(tree.Bytes("t")))
		if err != nil {
			t.Fatal(err)
		}
		got := f.MetaData().RowGroups[0].SortingColumns
		if len(got) != 2 || got[0].ColumnIdx != 2 || got[0].Descending || got[1].ColumnIdx != 3 ||
			got[1].Descending != desc || got[1].NullsFirst != first {
			t.Fatalf("seed %d: %s: got %v", seed, option, got)
		}
		i := 1 + r.IntN(len(rows)-1)
		if less(rows[i-1], rows[i]) == 0 {
			continue
		}
		rows[i-1], rows[i] = rows[i], rows[i-1]
		for _, groups := range []string{"1000", "1"} { // with one row per row group there is no order
			batches := pairs(r, rows)
			w, err := write.NewWriter(&bytes.Buffer{}, batches[0].Schema(),
				map[string]string{"sorting-columns": option, "row-group-rows": groups})
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range batches {
				if err = w.Write(b); err != nil {
					break
				}
			}
			if refused := err != nil; refused != (groups == "1000") {
				t.Errorf("seed %d: rows %d and %d swapped, %s rows a row group: got %v", seed, i-1, i, groups, err)
			}
		}
	}
}

// TestSortingColumnsRefused: unknown columns, columns in lists, and unknown words are refused.
func TestSortingColumnsRefused(t *testing.T) {
	sc := pairs(rand.New(rand.NewPCG(0, 0)), nil)[0].Schema()
	for _, v := range []string{"x", "s", "l.list.element", "b:up", "b,"} {
		if _, err := write.NewWriter(&bytes.Buffer{}, sc, map[string]string{"sorting-columns": v}); err == nil {
			t.Errorf("sorting-columns=%s: got no error, want one", v)
		}
	}
}
