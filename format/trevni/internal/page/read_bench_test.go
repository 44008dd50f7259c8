package page

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/trevni/internal/layout"
	"stoa/vec"
)

// BenchmarkDense decodes blocks of values; the unit is values.
func BenchmarkDense(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name string
		t    layout.Type
		make func(i int) []byte
	}{
		{"small ints", layout.Int, func(i int) []byte { return layout.AppendLong(nil, int64(i%60)) }},
		{"ints", layout.Int, func(int) []byte { return layout.AppendLong(nil, int64(int32(r.Uint32()))) }},
		{"longs", layout.Long, func(int) []byte { return layout.AppendLong(nil, int64(r.Uint64())>>20) }},
		{"doubles", layout.Double, func(int) []byte { return make([]byte, 8) }},
		{"strings", layout.String, func(i int) []byte { return layout.AppendText(nil, "word"+string(rune('a'+i%26))) }},
	} {
		const n = 16 << 10
		var src []byte
		for i := range n {
			src = append(src, c.make(i)...)
		}
		b.Run(c.name, func(b *testing.B) {
			p := &Physical{StoredType: c.t}
			v, err := vec.New(layout.Types[c.t].Arrow, memory.DefaultAllocator)
			if err != nil {
				b.Fatal(err)
			}
			d := &decoding{limit: 1 << 30, scratch: &vec.Arena{}}
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				v.Reset()
				if used, err := p.dense(v, src, n, d); err != nil || used != len(src) {
					b.Fatal(used, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}
