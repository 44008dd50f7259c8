package cfile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/write"

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
		f    write.Field
		o    write.WriterOptions
		arr  arrow.Array
	}{
		{"int64 plain", write.Field{Type: block.Int64}, write.WriterOptions{Encoding: block.Plain}, ints.NewArray()},
		{"int64 bitshuffle", write.Field{Type: block.Int64}, write.WriterOptions{}, nil},
		{"int64 bitshuffle value index", write.Field{Type: block.Int64}, write.WriterOptions{ValueIndex: true}, nil},
		{"int64 rle", write.Field{Type: block.Int64}, write.WriterOptions{Encoding: block.RLE}, nil},
		{"int64 plain lz4", write.Field{Type: block.Int64},
			write.WriterOptions{Encoding: block.Plain, Compression: block.LZ4}, nil},
		{"int64 plain nulls", write.Field{Type: block.Int64, Nullable: true},
			write.WriterOptions{Encoding: block.Plain}, nulls.NewArray()},
		{"int64 bitshuffle nulls", write.Field{Type: block.Int64, Nullable: true}, write.WriterOptions{}, nil},
		{"string dict", write.Field{Type: block.String}, write.WriterOptions{}, words.NewArray()},
		{"string plain", write.Field{Type: block.String}, write.WriterOptions{Encoding: block.Plain}, nil},
		{"string prefix", write.Field{Type: block.String}, write.WriterOptions{Encoding: block.Prefix}, nil},
		{"bool rle", write.Field{Type: block.Bool}, write.WriterOptions{}, flags.NewArray()},
		{"bool plain", write.Field{Type: block.Bool}, write.WriterOptions{Encoding: block.Plain}, nil},
	} {
		if c.arr == nil {
			c.arr = last
		}
		last = c.arr
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := write.NewWriter(io.Discard, c.f, c.o)
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
