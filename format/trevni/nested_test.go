package trevni_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/store"
	"stoa/vec"
)

// randomType makes a type up to so deep. Avro has unions, and no maps but of strings.
func randomType(r *rand.Rand, depth int, unions bool) arrow.DataType {
	leaves := []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Float64, &arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 20, Scale: 4}, arrow.PrimitiveTypes.Uint16}
	if depth == 0 {
		return leaves[r.IntN(len(leaves))]
	}
	switch r.IntN(6) {
	case 0, 1:
		return arrow.ListOfField(randomField(r, "item", depth-1, unions))
	case 2:
		m := arrow.MapOf(arrow.BinaryTypes.String, randomType(r, depth-1, unions))
		m.SetItemNullable(r.IntN(2) == 0 && m.ItemType().ID() != arrow.DENSE_UNION)
		return m
	case 3:
		if !unions {
			break
		}
		fields := []arrow.Field{{Name: "null", Type: arrow.Null, Nullable: true}, {Name: "long", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "string", Type: arrow.BinaryTypes.String, Nullable: true},
			{Name: "array", Type: arrow.ListOfField(randomField(r, "item", depth-1, unions)), Nullable: true}, {Name: "boolean", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}}
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		return arrow.DenseUnionOf(fields, []arrow.UnionTypeCode{0, 1, 2, 3, 4})
	}
	var fields []arrow.Field
	for i := range 1 + r.IntN(3) {
		fields = append(fields, randomField(r, fmt.Sprintf("f%d", i), depth-1, unions))
	}
	return arrow.StructOf(fields...)
}

func randomField(r *rand.Rand, name string, depth int, unions bool) arrow.Field {
	t := randomType(r, depth, unions)
	return arrow.Field{Name: name, Type: t, Nullable: r.IntN(2) == 0 && t.ID() != arrow.DENSE_UNION}
}

// fill appends a random value.
func fill(r *rand.Rand, b array.Builder, nullable bool) {
	if nullable && r.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	x := r.Uint64() >> r.IntN(64)
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.Int32Builder:
		b.Append(int32(x))
	case *array.Int64Builder:
		b.Append(int64(x))
	case *array.Uint16Builder:
		b.Append(uint16(x))
	case *array.Float64Builder:
		b.Append(float64(x) / 7)
	case *array.BooleanBuilder:
		b.Append(x&1 == 0)
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("é%d", x)[:2+r.IntN(2)])
	case *array.BinaryBuilder:
		b.Append([]byte{byte(x), 0, 255}[:1+r.IntN(3)])
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{byte(x), byte(x >> 8), 7})
	case *array.Decimal128Builder:
		b.AppendValueFromString(fmt.Sprintf("%d.%04d", int64(x>>12)-100, x%10000))
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			fill(r, b.FieldBuilder(i), f.Nullable)
		}
	case *array.MapBuilder:
		b.Append(true)
		for k := range r.IntN(4) {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", k))
			fill(r, b.ItemBuilder(), b.Type().(*arrow.MapType).ItemField().Nullable)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range max(0, r.IntN(7)-2) {
			fill(r, b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable)
		}
	case *array.DenseUnionBuilder:
		k := r.IntN(b.NumChildren())
		b.Append(arrow.UnionTypeCode(k))
		fill(r, b.Child(k), false)
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// randomBatch makes rows of a schema.
func randomBatch(r *rand.Rand, sc *arrow.Schema, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for range n {
		for i, f := range sc.Fields() {
			fill(r, b.Field(i), f.Nullable)
		}
	}
	return b.NewRecordBatch()
}

// write makes a file of batches.
func write(t testing.TB, f format.Format, sc *arrow.Schema, opts map[string]string, batches ...arrow.RecordBatch) *store.Memory {
	t.Helper()
	ctx, m := context.Background(), store.NewMemory(nil)
	w, err := f.Create(ctx, m.Sink("t"), sc, format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatalf("%s: %v", sc, err)
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			t.Fatalf("%s: %v", sc, err)
		}
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatalf("%s: %v", sc, err)
	}
	return m
}

// open opens a file for the engine.
func openScan(t testing.TB, tree store.Tree, name string, o format.OpenOptions) scan.Source {
	t.Helper()
	o.Limits = o.Limits.WithDefaults()
	r, err := trevni.Format.Open(context.Background(), format.Target{Tree: tree, Name: name}, o)
	if err != nil {
		t.Fatal(err)
	}
	return scan.Source{Reader: r, Objects: scan.NewObjects(tree), Dicts: scan.NewDicts(), Limits: o.Limits}
}

// TestNestedRoundTrips: random schemas and rows, written and read with any window.
func TestNestedRoundTrips(t *testing.T) {
	opts := []map[string]string{{}, {"block-size": "100"}, {"block-size": "1000", "codec": "snappy"}}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		f, unions := trevni.Format, false
		o := opts[seed%3]
		if seed%2 == 0 {
			f, unions = trevni.AvroFormat, true
			if seed%4 == 0 {
				o = map[string]string{"version": "1", "block-size": "200", "codec": "deflate"}
			}
		}
		var fields []arrow.Field
		for i := range 1 + r.IntN(3) {
			fields = append(fields, randomField(r, fmt.Sprintf("c %d", i), 1+r.IntN(4), unions))
		}
		sc := arrow.NewSchema(fields, nil)
		n := r.IntN(300)
		b := randomBatch(r, sc, n)
		cut := int64(r.IntN(n + 1))
		m := write(t, f, sc, o, b.NewSlice(0, cut), b.NewSlice(cut, int64(n)))
		src := openScan(t, m, "t", format.OpenOptions{})
		if !src.Reader.Schema().Equal(sc) {
			t.Fatalf("seed %d: %s, want %s", seed, src.Reader.Schema(), sc)
		}
		from := int64(r.IntN(n + 1))
		for _, spec := range []scan.Spec{{}, {Batch: 1 + r.IntN(50)}, {Rows: vec.Range{From: from, To: int64(n) + 1}, Batch: 1 + r.IntN(100)}} {
			at := spec.Rows.From
			for got, err := range scan.Run(t.Context(), src, spec, nil) {
				if err != nil {
					t.Fatalf("seed %d %v: %v", seed, sc, err)
				}
				want := b.NewSlice(at, at+got.NumRows())
				at += got.NumRows()
				for i := range fields {
					g, w := asJSON(t, got.Column(i)), asJSON(t, want.Column(i))
					if g != w {
						t.Fatalf("seed %d, %s, rows up to %d:\n%s", seed, fields[i], at, difference(g, w))
					}
				}
			}
			if at != int64(n) {
				t.Errorf("seed %d: rows end at %d of %d", seed, at, n)
			}
		}
	}
}

// asJSON is an array as text. What lies under nulls is not in it.
func asJSON(t testing.TB, a arrow.Array) string {
	t.Helper()
	b, err := a.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// difference is the part around the first difference.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, min(i-40, len(s))):min(len(s), i+60)] }
	return cut(got) + "\nwant\n" + cut(want)
}

// countingBatch is rows of the numbers from 0 on.
func countingBatch(sc *arrow.Schema, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
	}
	return b.NewRecordBatch()
}
