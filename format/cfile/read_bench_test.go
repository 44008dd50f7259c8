package cfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/store"
	"stoa/vec"
)

// BenchmarkScan decodes all pages of a file of a million rows, as the engine's workers do: into one vector, which is
// reset every 64 Ki rows.
func BenchmarkScan(b *testing.B) {
	for _, x := range []struct {
		typ   block.Type
		enc   block.Encoding
		nulls bool
	}{
		{block.Int64, block.BitShuffle, false}, {block.Int64, block.BitShuffle, true},
		{block.Int32, block.RLE, true}, {block.Double, block.Plain, false},
		{block.String, block.Dict, false}, {block.String, block.Dict, true}, {block.String, block.Plain, true},
		{block.String, block.Prefix, false}, {block.Bool, block.RLE, true},
	} {
		b.Run(fmt.Sprintf("%s/%s/nulls=%t", x.typ, x.enc, x.nulls), func(b *testing.B) {
			data := benchFile(b, x.typ, x.enc, x.nulls)
			ctx := context.Background()
			f, err := columnfile.OpenFile(ctx, sourceOf(data), fault.Span{Object: "f", Len: int64(len(data))},
				format.OpenOptions{})
			if err != nil {
				b.Fatal(err)
			}
			v, err := vec.New(f.Field(columnfile.ReadOptions{Scale: -1}).Type, memory.DefaultAllocator)
			if err != nil {
				b.Fatal(err)
			}
			var dict *vec.Vector
			if f.Footer.Dict != nil {
				if dict, err = f.ReadDict(ctx); err != nil {
					b.Fatal(err)
				}
			}
			task := format.Task{Scratch: &vec.Arena{}, Limits: f.Limits, Dict: dict}
			b.ReportAllocs()
			b.ResetTimer()
			rows := 0
			for range b.N {
				c, err := f.NewChunk(ctx, vec.Range{To: f.Footer.NumValues})
				if err != nil {
					b.Fatal(err)
				}
				for {
					p, err := c.Next(ctx)
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					s := p.Spans[0]
					task.Page, task.N, task.Bytes = p, p.Entries, append(task.Bytes[:0], data[s.Off:s.End()])
					task.Scratch.Reset()
					if err := c.Decode(&task, v); err != nil {
						b.Fatal(err)
					}
					if v.Len() >= 64<<10 {
						rows += v.Len()
						v.Reset()
					}
				}
			}
			b.ReportMetric(float64(rows)/1e6/b.Elapsed().Seconds(), "Mrows/s")
		})
	}
}

func sourceOf(data []byte) store.Source { return readerSource{bytes.NewReader(data), int64(len(data))} }

// benchFile returns a file of a million values.
func benchFile(b *testing.B, t block.Type, e block.Encoding, nulls bool) []byte {
	bld := array.NewBuilder(memory.DefaultAllocator, t.Arrow(0, 0))
	defer bld.Release()
	x := uint64(1)
	for i := range 1 << 20 {
		x = x*6364136223846793005 + 1442695040888963407
		if nulls && x>>60 == 0 {
			bld.AppendNull()
			continue
		}
		switch bld := bld.(type) {
		case *array.Int64Builder:
			bld.Append(int64(i)*1000 + int64(x>>55))
		case *array.Int32Builder:
			bld.Append(int32(i >> 4))
		case *array.Float64Builder:
			bld.Append(float64(x>>40) / 16)
		case *array.BooleanBuilder:
			bld.Append(x>>62 == 0)
		case *array.StringBuilder:
			if e == block.Dict {
				bld.Append(fmt.Sprintf("host-%03d.example", x>>54))
			} else {
				bld.Append(fmt.Sprintf("/path/%08d/%x", i, x>>52))
			}
		}
	}
	arr := bld.NewArray()
	defer arr.Release()
	var out bytes.Buffer
	w, err := write.NewWriter(&out, write.Field{Name: "x", Type: t, Nullable: nulls}, write.WriterOptions{Encoding: e})
	if err == nil {
		err = w.Append(arr)
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}
