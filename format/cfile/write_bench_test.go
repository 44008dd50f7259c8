package cfile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// BenchmarkWriter writes a million values, in batches of 64 Ki.
func BenchmarkWriter(b *testing.B) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 1))
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	nulls := array.NewInt64Builder(memory.DefaultAllocator)
	words := array.NewStringBuilder(memory.DefaultAllocator)
	flags := array.NewBooleanBuilder(memory.DefaultAllocator)
	for i := range n {
		ints.Append(int64(i)*1000 + int64(r.IntN(1000)))
		words.Append(fmt.Sprintf("host-%04d.example.org", r.IntN(2000)))
		flags.Append(r.IntN(10) == 0)
		if r.IntN(10) == 0 {
			nulls.AppendNull()
		} else {
			nulls.Append(int64(r.IntN(1 << 30)))
		}
	}
	for _, c := range []struct {
		name string
		f    Field
		o    WriterOptions
		arr  arrow.Array
	}{
		{"int64 plain", Field{Type: Int64}, WriterOptions{Encoding: Plain}, ints.NewArray()},
		{"int64 bitshuffle", Field{Type: Int64}, WriterOptions{}, nil},
		{"int64 bitshuffle value index", Field{Type: Int64}, WriterOptions{ValueIndex: true}, nil},
		{"int64 rle", Field{Type: Int64}, WriterOptions{Encoding: RLE}, nil},
		{"int64 plain lz4", Field{Type: Int64}, WriterOptions{Encoding: Plain, Compression: LZ4}, nil},
		{"int64 plain nulls", Field{Type: Int64, Nullable: true}, WriterOptions{Encoding: Plain}, nulls.NewArray()},
		{"int64 bitshuffle nulls", Field{Type: Int64, Nullable: true}, WriterOptions{}, nil},
		{"string dict", Field{Type: String}, WriterOptions{}, words.NewArray()},
		{"string plain", Field{Type: String}, WriterOptions{Encoding: Plain}, nil},
		{"string prefix", Field{Type: String}, WriterOptions{Encoding: Prefix}, nil},
		{"bool rle", Field{Type: Bool}, WriterOptions{}, flags.NewArray()},
		{"bool plain", Field{Type: Bool}, WriterOptions{Encoding: Plain}, nil},
	} {
		if c.arr == nil {
			c.arr = last
		}
		last = c.arr
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := NewWriter(io.Discard, c.f, c.o)
				if err != nil {
					b.Fatal(err)
				}
				for a := 0; a < n; a += 64 << 10 {
					part := array.NewSlice(c.arr, int64(a), int64(a+64<<10))
					if err := w.Append(part); err != nil {
						b.Fatal(err)
					}
					part.Release()
				}
				if _, err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
}

var last arrow.Array
