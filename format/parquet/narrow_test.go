package parquet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// sortedRows returns a table of 20000 rows in which most columns ascend.
func sortedRows() arrow.RecordBatch {
	st := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "s", Type: arrow.BinaryTypes.String})
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "u", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "dec", Type: &arrow.Decimal128Type{Precision: 20, Scale: 2}},
		{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Second}}, {Name: "st", Type: st, Nullable: true},
		{Name: "r", Type: arrow.PrimitiveTypes.Int16},
		{Name: "d64", Type: arrow.FixedWidthTypes.Date64},
	}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Uint32Builder).Append(uint32(i) * 200_000) // also above 2³¹
		s, f := b.Field(2).(*array.StringBuilder), b.Field(3).(*array.Float64Builder)
		if s.Append(fmt.Sprintf("key-%06d", i)); i >= 5000 && i < 9000 {
			s.SetNull(i)
		}
		f.Append(float64(i)/4 - 1000)
		if i%1000 == 7 {
			f.SetNull(i)
		}
		b.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i-10_000) * 1_000_000_007))
		b.Field(5).(*array.TimestampBuilder).Append(arrow.Timestamp(1_600_000_000 + i*60))
		sb := b.Field(6).(*array.StructBuilder)
		if i%10 == 3 {
			sb.AppendNull()
		} else {
			sb.Append(true)
			sb.FieldBuilder(0).(*array.Int32Builder).Append(int32(-i))
			sb.FieldBuilder(1).(*array.StringBuilder).Append(fmt.Sprint(i / 100))
		}
		b.Field(7).(*array.Int16Builder).Append(int16(r.IntN(1000)))
		b.Field(8).(*array.Date64Builder).Append(arrow.Date64(int64(i) * 86_400_000))
	}
	return b.NewRecordBatch()
}

func TestNarrow(t *testing.T) {
	rows := sortedRows()
	tree := written(t, map[string]string{"row-group-rows": "8000", "page-size": "2000", "dictionary": "false"}, rows)
	r, err := openReader(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for where, most := range map[string]int64{
		"id = 12345":                2500,
		"id < 0":                    0,
		"id >= 8000 and id < 16000": 8000,
		"id < 100 or id > 19900":    5000,
		"u > 3999000000":            2500,
		"u < 2000000":               2500,
		"s = 'key-010000'":          2500,
		"s like 'key-0199%'":        2500,
		"s is null":                 8000,
		"f between 0 and 10":        2500,
		"dec < -9990000000000.07":   20_000,
		"dec > 99980000000.00":      2500,
		"t >= '2020-09-27' and t < '2020-09-27 02:00:00'": 2500,
		"st.x < -19990":            2500,
		"st.s = '150'":             5000,
		"r = 5000":                 0,
		"r = 500":                  20_000,
		"d64 = '1970-01-11'":       2500,
		"id = 1 and st.x = -19000": 0,
	} {
		e, err := pred.Parse(where)
		if err != nil {
			t.Fatal(where, err)
		}
		if e, err = pred.Bind(e, r.Schema()); err != nil {
			t.Fatal(where, err)
		}
		sel, err := e.Eval(int(rows.NumRows()), func(path string) arrow.Array {
			if i := rows.Schema().FieldIndices(path); len(i) == 1 {
				return rows.Column(i[0])
			}
			return nil
		}, nil)
		if err != nil {
			t.Fatal(where, err)
		}
		var left, base int64
		for g := range r.Footer.RowGroups {
			n := r.Footer.RowGroups[g].NumRows
			ranges, err := r.Narrow(context.Background(), format.RowGroup{Index: g}, e)
			if err != nil {
				t.Fatal(where, err)
			}
			left += ranges.Len()
			for i := range n {
				in := len(ranges.Intersect(vec.Ranges{{From: i, To: i + 1}})) > 0
				if sel.Has(int(base+i)) && !in {
					t.Fatalf("%s: row %d of group %d left out", where, i, g)
				}
			}
			base += n
		}
		if left > most {
			t.Errorf("%s: got %d rows left, want at most %d", where, left, most)
		}
	}
}

// TestUntrustedStatistics: bounds that are invalid or in an unsuitable order are not used.
func TestUntrustedStatistics(t *testing.T) {
	r, err := openReader(context.Background(), format.Target{Tree: written(t, nil, sortedRows()), Name: "t"},
		format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bounds := func(name string) pred.Bounds {
		l, ok := r.LeafNamed(name)
		if !ok {
			t.Fatal(name)
		}
		return r.GroupBounds(0, l)
	}
	if b := bounds("id"); b.Min == nil || b.Max == nil || b.Min.Int != 0 || b.Max.Int != 19_999 || b.Nulls != 0 {
		t.Errorf("id: %+v", b)
	}
	if b := bounds("s"); b.Nulls != 4000 || b.Min.Text != "key-000000" {
		t.Errorf("s: %+v", b)
	}
	s := r.Footer.RowGroups[0].Columns[0].MetaData.Statistics
	s.Min, s.DeprecatedMin, s.DeprecatedMax = []byte{1, 2, 3}, nil, nil // not a long
	if b := bounds("id"); b.Min != nil {
		t.Errorf("three bytes: got bounds %+v, want none", b)
	}
	more := int64(math.MaxInt64)
	if s.Nulls = &more; bounds("id").Nulls != -1 {
		t.Error("more nulls than rows")
	}
	r.Footer.Orders = nil
	if b := bounds("id"); b.Min != nil || b.Max != nil {
		t.Errorf("an undefined order: got bounds %+v, want none", b)
	}
	if b := bounds("u"); b.Min != nil || b.Max != nil {
		t.Errorf("unsigned numbers in signed order: got bounds %+v, want none", b)
	}
}
