package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// kindsSchema has a column of every shape: numbers, bits, texts, codes of a dictionary, structs, lists of lists, lists
// of structs, maps.
func kindsSchema() *arrow.Schema {
	text := arrow.BinaryTypes.String
	code := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: text}
	inner := arrow.StructOf(arrow.Field{Name: "q", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "t", Type: text, Nullable: true})
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	return arrow.NewSchema([]arrow.Field{
		field("n", arrow.PrimitiveTypes.Int64), field("s", text), field("flag", arrow.FixedWidthTypes.Boolean),
		field("code", code),
		field("st", arrow.StructOf(field("a", arrow.PrimitiveTypes.Int32), field("b", text), field("c", code),
			field("l", arrow.ListOf(text)))),
		field("ll", arrow.ListOf(arrow.ListOf(text))), field("ls", arrow.ListOf(inner)),
		field("m", arrow.MapOf(text, arrow.PrimitiveTypes.Int64)),
	}, nil)
}

// kinds returns n rows of kindsSchema, with values that depend on the row and the seed.
func kinds(t testing.TB, mem memory.Allocator, seed, n int) arrow.RecordBatch {
	t.Helper()
	var rows strings.Builder
	for i := range n {
		v := seed*1000 + i
		s := fmt.Sprintf(`"a rather long text %d"`, v)
		if i%7 == 3 {
			s = "null"
		}
		st := fmt.Sprintf(`{"a": %d, "b": %s, "c": "c%d", "l": [%s, "x"]}`, v, s, v%5, s)
		if i%5 == 4 {
			st = "null"
		}
		fmt.Fprintf(&rows, `{"n": %d, "s": %s, "flag": %t, "code": "k%d", "st": %s, "ll": [[%s], [], ["%d"]],
			"ls": [{"q": %d, "t": %s}], "m": [{"key": "k%d", "value": %d}]}`, v, s, v%3 == 0, v%4, st, s, v, v, s, v, v)
	}
	b, _, err := array.RecordFromJSON(mem, kindsSchema(), strings.NewReader(rows.String()), array.WithMultipleDocs())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// churn takes and overwrites all memory that the pool keeps, and more.
func churn() {
	var all [][]byte
	for n := 64; n <= 1<<20; n += n / 4 {
		for range 8 {
			b := pool.Allocate(n)
			for i := range b[:cap(b)] {
				b[:cap(b)][i] = 0xFF
			}
			all = append(all, b)
		}
	}
	for _, b := range all {
		pool.Free(b)
	}
}

// TestGivenBatches: an exported batch keeps its values and references as long as the host has it, whatever becomes
// of the library's own batch and of the pool's memory; and no longer.
func TestGivenBatches(t *testing.T) {
	before := pool.used
	var outs [6]cdata.CArrowArray
	var given [len(outs)]arrow.ArrayData
	for i := range outs {
		b := kinds(t, pool, i, 40)
		part := b.NewSlice(int64(i), 40-int64(i)) // not from the start
		b.Release()
		given[i] = exportBatch(part, &outs[i])
		given[i].Release() // as exportNext does
		part.Release()
		churn()
		if i%2 == 0 {
			pool.trim()
		}
	}
	runtime.GC()
	churn()
	for i := range outs {
		if got := len(given[i].Children()); got != len(kindsSchema().Fields()) {
			t.Fatalf("batch %d: expected that the host's reference keeps %d columns, found %d", i,
				len(kindsSchema().Fields()), got)
		}
		b, err := cdata.ImportCRecordBatchWithSchema(&outs[i], kindsSchema())
		if err != nil {
			t.Fatal(err)
		}
		all := kinds(t, memory.DefaultAllocator, i, 40)
		want := all.NewSlice(int64(i), 40-int64(i))
		if !array.RecordEqual(b, want) {
			t.Errorf("batch %d: expected\n%v\nfound\n%v", i, want, b)
		}
		b.Release()
		if got := given[i].Children(); got != nil {
			t.Errorf("batch %d: expected nothing after the host's release, found %d columns", i, len(got))
		}
		churn()
	}
	if pool.used != before {
		t.Errorf("expected %d bytes in use, found %d", before, pool.used)
	}
}
