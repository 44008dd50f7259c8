package survey

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestCounts compares the counts of columns, also nested ones, with those of package time.
func TestCounts(t *testing.T) {
	ns := &arrow.TimestampType{Unit: arrow.Nanosecond}
	us := &arrow.TimestampType{Unit: arrow.Microsecond}
	nested := arrow.ListOf(arrow.StructOf(arrow.Field{Name: "d", Type: arrow.FixedWidthTypes.Date32, Nullable: true}))
	in := arrow.NewSchema([]arrow.Field{{Name: "d", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "t", Type: ns, Nullable: true}, {Name: "l", Type: nested, Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	out := arrow.NewSchema([]arrow.Field{in.Field(0), {Name: "t", Type: us}, in.Field(2), in.Field(3)}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, in)
	defer b.Release()
	day := func(s string) arrow.Date32 {
		at, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return arrow.Date32(at.Unix() / 86400)
	}
	list := b.Field(2).(*array.ListBuilder)
	item := list.ValueBuilder().(*array.StructBuilder)
	for i, s := range []string{"1582-10-15", "1582-10-14", "9999-12-31", "0001-01-01", "2024-02-29"} {
		d := day(s)
		b.Field(0).(*array.Date32Builder).Append(d + arrow.Date32(map[int]int{2: 1, 3: -1}[i])) // two are outside
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(i))                         // 1 to 4 are not whole
		list.Append(true)
		item.Append(true)
		item.FieldBuilder(0).(*array.Date32Builder).Append(d)
		b.Field(3).AppendNull()
	}
	b.Field(0).AppendNull()
	b.Field(1).(*array.TimestampBuilder).Append(-86400_000_000_000)
	list.Append(true)
	item.AppendNull()
	b.Field(3).AppendNull()
	batch := b.NewRecordBatch()
	defer batch.Release()

	s := New(in, out)
	s.Add(batch)
	got := s.Counts()
	want := []Column{{Column: "d", Values: 5, First: "0000-12-31", Last: "10000-01-01", Julian: 2, Far: 2},
		{Column: "t", Values: 6, First: "1969-12-31", Last: "1970-01-01", Inexact: 4},
		{Column: "l.item.d", Values: 5, First: "0001-01-01", Last: "9999-12-31", Julian: 2}}
	if len(got) != len(want) {
		t.Fatalf("got %d columns, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		g.first, g.last = 0, 0
		if g != w {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	if names := s.Columns(in); len(names) != 3 {
		t.Errorf("got columns %q, want d, t, l", names)
	}

	part := batch.NewSlice(4, 6) // the last day, and nulls
	defer part.Release()
	s = New(in, nil)
	s.Add(part)
	for _, c := range s.Counts() {
		if c.Julian != 0 || c.Inexact != 0 {
			t.Errorf("of the last two rows: got %+v, want no day before 1582", c)
		}
	}
}
