package nest

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// benchLists returns 64 Ki rows of lists of 0 to 7 items, some of them null if nulls.
func benchLists(b *testing.B, nulls bool) (arrow.Field, arrow.Array) {
	r := rand.New(rand.NewPCG(1, 2))
	lb := array.NewListBuilder(memory.NewGoAllocator(), arrow.PrimitiveTypes.Int64)
	vb := lb.ValueBuilder().(*array.Int64Builder)
	for range 1 << 16 {
		if nulls && r.IntN(10) == 0 {
			lb.AppendNull()
			continue
		}
		lb.Append(true)
		for range r.IntN(8) {
			if nulls && r.IntN(10) == 0 {
				vb.AppendNull()
			} else {
				vb.Append(r.Int64())
			}
		}
	}
	return arrow.Field{Name: "l", Type: lb.Type(), Nullable: true}, lb.NewArray()
}

func BenchmarkAssemble(b *testing.B) {
	for _, c := range []struct {
		name  string
		nulls bool
	}{{"levels", false}, {"levels-nulls", true}} {
		f, a := benchLists(b, c.nulls)
		sc := arrow.NewSchema([]arrow.Field{f}, nil)
		mem := memory.NewGoAllocator()
		cols, in := levelColumns(b, sc, array.NewRecordBatch(sc, []arrow.Array{a}, int64(a.Len())), mem)
		runAssemble(c.name, b, f, cols, in, a.Len())
	}
	f, a := benchLists(b, true)
	l := a.(*array.List)
	lens := array.NewInt32Builder(memory.NewGoAllocator())
	for i := range l.Len() {
		from, to := l.ValueOffsets(i)
		if lens.Append(int32(to - from)); l.IsNull(i) {
			lens.SetNull(i)
		}
	}
	cols := []format.Column{{Name: "l[]", Path: []int{0}, Parent: -1, Has: format.Lengths,
		Type: arrow.PrimitiveTypes.Int32},
		{Name: "l", Path: []int{0, 0}, Has: format.Values, Type: arrow.PrimitiveTypes.Int64}}
	runAssemble("lengths", b, f, cols, []Input{{Array: lens.NewArray()}, {Array: l.ListValues()}}, a.Len())
}

func runAssemble(name string, b *testing.B, f arrow.Field, cols []format.Column, in []Input, rows int) {
	use, err := Needed(f, nil, cols, Tops(cols, 1)[0])
	if err != nil {
		b.Fatal(err)
	}
	a, err := NewAssembler(f, cols, use, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			out, err := a.Assemble(in, rows, memory.DefaultAllocator)
			if err != nil {
				b.Fatal(err)
			}
			out.Release()
		}
		b.ReportMetric(float64(b.N)*float64(in[len(in)-1].Array.Len())/b.Elapsed().Seconds()/1e6, "Mentries/s")
	})
}

func BenchmarkShred(b *testing.B) {
	f, a := benchLists(b, true)
	n := 0
	for b.Loop() {
		s, err := Shred(f, a)
		if err != nil {
			b.Fatal(err)
		}
		n = s[0].Entries
	}
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds()/1e6, "Mentries/s")
}
