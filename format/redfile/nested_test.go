package redfile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
	"stoa/store"
)

// randomType returns a type of at most depth levels.
func randomType(r *rand.Rand, depth int) arrow.DataType {
	leaf := []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint16,
		arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String,
		arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Boolean, arrow.FixedWidthTypes.Date32}
	k := r.IntN(8)
	if depth == 0 || k < 3 {
		return leaf[r.IntN(len(leaf))]
	}
	item := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: randomType(r, depth-1), Nullable: r.IntN(2) == 0}
	}
	switch k {
	case 3, 4:
		return arrow.ListOfField(item("item"))
	case 5:
		m := arrow.MapOf(arrow.BinaryTypes.String, randomType(r, depth-1))
		m.SetItemNullable(r.IntN(2) == 0)
		return m
	default:
		var fs []arrow.Field
		for i := range 1 + r.IntN(3) {
			fs = append(fs, item(fmt.Sprintf("f%d", i)))
		}
		return arrow.StructOf(fs...)
	}
}

// appendRandom appends one value of f.
func appendRandom(r *rand.Rand, f arrow.Field, b array.Builder) {
	if f.Nullable && r.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		sb := b.(*array.StructBuilder)
		sb.Append(true)
		for i, c := range t.Fields() {
			appendRandom(r, c, sb.FieldBuilder(i))
		}
	case *arrow.MapType:
		mb := b.(*array.MapBuilder)
		mb.Append(true)
		for range r.IntN(4) {
			appendRandom(r, arrow.Field{Type: t.KeyType()}, mb.KeyBuilder())
			appendRandom(r, t.ItemField(), mb.ItemBuilder())
		}
	case *arrow.ListType:
		lb := b.(*array.ListBuilder)
		lb.Append(true)
		for range r.IntN(5) {
			appendRandom(r, t.ElemField(), lb.ValueBuilder())
		}
	default:
		switch b := b.(type) {
		case *array.Int32Builder:
			b.Append(int32(r.Uint32()))
		case *array.Int64Builder:
			b.Append(int64(r.Uint64()))
		case *array.Uint16Builder:
			b.Append(uint16(r.Uint32()))
		case *array.Float64Builder:
			b.Append(r.NormFloat64())
		case *array.StringBuilder:
			b.Append(fmt.Sprint(r.IntN(1000)))
		case *array.BinaryBuilder:
			b.Append(fmt.Append(nil, r.IntN(1000)))
		case *array.BooleanBuilder:
			b.Append(r.IntN(2) == 0)
		case *array.Date32Builder:
			b.Append(arrow.Date32(r.IntN(20000)))
		}
	}
}

// TestNestedRoundTrips: random types and values, in both generations and many pages.
func TestNestedRoundTrips(t *testing.T) {
	ctx := context.Background()
	tables, leaves := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		var fields []arrow.Field
		for i := range 1 + r.IntN(3) {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: randomType(r, 4),
				Nullable: r.IntN(2) == 0})
		}
		sc := arrow.NewSchema(fields, nil)
		rows := 1 + r.IntN(200)
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for range rows {
			for i, f := range fields {
				appendRandom(r, f, b.Field(i))
			}
		}
		batch := b.NewRecordBatch()
		for _, opts := range []map[string]string{
			{"page-size": "60"}, {"generation": "A", "row-group-rows": "37", "page-size": "200"},
			{"index": "false", "encoding": "group-varint", "page-size": "64"},
			{"arrow-schema": "true", "protocol": "binary", "compression": "none", "generation": "A"},
		} {
			mem := store.NewMemory(nil)
			w, err := redfile.Format.Create(ctx, mem.Sink("f.red"), sc, format.WriteOptions{Rows: -1, Opts: opts})
			if err != nil {
				t.Fatal(err)
			}
			half := batch.NewSlice(0, int64(rows/2))
			rest := batch.NewSlice(int64(rows/2), int64(rows))
			for _, part := range []arrow.RecordBatch{half, rest} {
				if err := w.Write(ctx, part); err != nil {
					t.Fatalf("seed %d, %v: %v\n%s", seed, opts, err, sc)
				}
			}
			if _, err := w.Close(ctx); err != nil {
				t.Fatal(err)
			}
			formattest.Sound(t, &redfile.Format, mem, "f.red")
			rd, err := redfile.Format.Open(ctx, format.Target{Tree: mem, Name: "f.red"}, format.OpenOptions{})
			if err != nil {
				t.Fatalf("seed %d, %v: %v\n%s", seed, opts, err, sc)
			}
			if !rd.Schema().Equal(sc) {
				t.Fatalf("seed %d, %v: schema\n%s\nwant\n%s", seed, opts, rd.Schema(), sc)
			}
			at := int64(0)
			for _, group := range arrays(t, rd, mem) {
				for i, got := range group {
					want := array.NewSlice(batch.Column(i), at, at+int64(got.Len()))
					for k := range got.Len() { // not array.Equal, which also compares values under nulls
						if got.IsNull(k) != want.IsNull(k) || got.ValueStr(k) != want.ValueStr(k) {
							t.Fatalf("seed %d, %v, column %d, row %d: %s\n got %s\nwant %s", seed, opts, i,
								at+int64(k), fields[i].Type, got.ValueStr(k), want.ValueStr(k))
						}
					}
				}
				at += int64(group[0].Len())
			}
			if at != int64(rows) {
				t.Fatalf("%d rows, %d were written", at, rows)
			}
			leaves += len(rd.Columns())
			rd.Close()
			tables++
		}
	}
	t.Logf("%d tables, %d columns", tables, leaves)
}
