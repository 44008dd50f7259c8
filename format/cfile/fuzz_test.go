package cfile

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/formattest"
	"stoa/internal/codec"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

var fuzzLimits = format.Limits{Page: 1 << 22, Metadata: 1 << 22}

// seeds adds small real files.
func seeds(f *testing.F) (files [][]byte) {
	names, _ := filepath.Glob("../../corpus/kudu/1.18.1/*/*.cfile")
	for _, n := range names {
		if st, err := os.Stat(n); err == nil && st.Size() < 1500 && len(files) < 60 {
			if b, err := os.ReadFile(n); err == nil {
				files = append(files, b)
			}
		}
	}
	return files
}

// classed fails unless err is nil or a placed error of a class that a file may cause.
func classed(t *testing.T, err error) {
	if e, ok := err.(*fault.Error); err != nil && (!ok || e.Class == fault.Bug) {
		t.Fatalf("%T %v", err, err)
	}
}

func FuzzFile(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer formattest.Bound(t, 640<<20)()
		ctx := context.Background()
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
		o := format.OpenOptions{Limits: fuzzLimits}
		for range verify(ctx, tg, o) {
		}
		for _, err := range anatomy(ctx, tg, format.DescribeOptions{OpenOptions: o, Pages: true}) {
			classed(t, err)
		}
		for _, opts := range []map[string]string{nil, {"kind": "column"}} {
			o.Opts = opts
			r, err := open(ctx, tg, o)
			classed(t, err)
			if err == nil {
				fuzzRead(t, r, data)
				r.Close()
			}
			if r, _, err := recoverTable(ctx, tg, o); err == nil {
				fuzzRead(t, r, data)
				r.Close()
			}
		}
	})
}

// fuzzRead reads everything that a reader returns.
func fuzzRead(t *testing.T, r format.Reader, data []byte) {
	ctx := context.Background()
	all := vec.Range{From: 0, To: 1 << 20}
	g, err := r.RowGroups(ctx, format.Part{Ref: "f"}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := r.(format.Batcher); ok {
		for _, err := range b.Batches(ctx, g[0], format.Query{Cols: []int{0}}, all, memory.DefaultAllocator) {
			classed(t, err)
		}
		return
	}
	c, err := r.Chunk(ctx, g[0], 0, all)
	classed(t, err)
	for n := 0; err == nil && n < 100; n++ {
		var p format.Page
		if p, err = c.Next(ctx); err == nil && p.Lost == nil {
			v, verr := vec.New(r.Columns()[0].Type, memory.DefaultAllocator)
			if verr != nil {
				t.Fatal(verr)
			}
			s := p.Spans[0]
			task := format.Task{Page: p, N: p.Entries, Bytes: [][]byte{data[s.Off:s.End()]}, Scratch: &vec.Arena{},
				Limits: fuzzLimits}
			classed(t, c.Decode(&task, v))
		}
	}
	if err != io.EOF {
		classed(t, err)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("kuducfl2\x00\x00\x00\x00\x00\x00\x00\x00"), true)
	f.Add([]byte("kuducfil\x04\x00\x00\x00\x08\x01\x10\x00"), false)
	f.Fuzz(func(t *testing.T, data []byte, checksums bool) {
		c := wire.NewCursor(data, fault.Span{Object: "f", Len: int64(len(data))}, "header")
		block.ParseHeader(c, checksums)
		classed(t, c.Err())
	})
}

func FuzzFooter(f *testing.F) {
	for _, b := range seeds(f) {
		if n := int(block.Le32(b[len(b)-4:])) + block.Tail + 4; n <= len(b) {
			f.Add(b[len(b)-n:], true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, checksums bool) {
		if len(data) < block.Tail+4 {
			return
		}
		c := wire.NewCursor(data, fault.Span{Object: "f", Len: int64(len(data))}, "footer")
		if footer, _ := block.ParseFooter(c, checksums); c.Err() == nil {
			classed(t, block.Support(&footer, fault.Span{Object: "f"}))
		}
		classed(t, c.Err())
	})
}

func FuzzIndexBlock(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x00\x10\x20\x00\x00\x00\x00\x08\x01\x10\x00\x04\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := block.Block{Data: data, At: fault.Span{Object: "f", Len: int64(len(data))}, Exact: true}
		var cover region.Coverage
		c := b.Cursor("x").Trace(cover.Add, 0)
		x := block.ParseIndexBlock(c, true)
		classed(t, c.Err())
		if c.Err() != nil {
			return
		}
		if gaps, _ := cover.Check(b.At); len(gaps) > 0 {
			t.Fatalf("%v have no owner", gaps)
		}
		x.Block = b
		for i := range x.N {
			_, err := x.Entry(i)
			classed(t, err)
		}
	})
}

// FuzzBlock decodes a block of every type and encoding; the extent functions must measure exactly the bytes that the
// parser consumes.
func FuzzBlock(f *testing.F) {
	f.Add(uint8(0), uint8(0), []byte{4, 2, 3, 6, 2, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0}, uint8(1))
	f.Add(uint8(7), uint8(1),
		[]byte("\x00\x03\x00\x02\x00\x00\x03abc\x02\x01x\x00\x01y\x0e\x00\x00\x00\x01\x00\x00\x00"), uint8(0))
	f.Fuzz(func(t *testing.T, typ, enc uint8, data []byte, shape uint8) {
		footer := block.Footer{Type: block.Type(typ % 22), Encoding: block.Encoding(enc % 7), Nullable: shape&1 != 0}
		if shape&2 != 0 {
			footer.Incompatible = block.FeatureArrayBlocks
		}
		if block.Allowed(footer.Type, footer.Encoding) != nil {
			return
		}
		x := &columnfile.File{Footer: footer, At: fault.Span{Object: "f", Len: int64(len(data))}, Limits: fuzzLimits}
		v, err := vec.New(x.Field(columnfile.ReadOptions{Scale: -1}).Type, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range []int64{0, 1} {
			task := format.Task{Page: format.Page{Sub: sub, Spans: []fault.Span{x.At},
				Own: &columnfile.DataBlock{First: -1, Rows: -1}}, N: 100_000, Bytes: [][]byte{data},
				Scratch: &vec.Arena{}, Limits: fuzzLimits}
			lay, err := x.Decode(&task, v, nil)
			if sub > int64(lay.Rows) {
				break
			}
			classed(t, err)
			if err == nil && sub == 0 && lay.Rows <= 100_000 && lay.Rows > 0 {
				if n := block.DataExtent(data, &footer); n > len(data) {
					t.Fatalf("the extent is %d of %d bytes", n, len(data))
				}
			}
		}
	})
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("\x00\xff\x66\x0cGbf\xd2P\x00\x02"))
	f.Add([]byte("\x05\xff\x66\x0cGbf\xd2P\x00\x01\x0a\x05abcd\x0b\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := wire.NewCursor(data, fault.Span{Object: "f", Len: int64(len(data))}, "")
		columnfile.ParseDelta(c, nil)
		classed(t, c.Err())
	})
}

// FuzzExtents: for any bytes, no function measures more of them than it was given.
func FuzzExtents(f *testing.F) {
	f.Add([]byte("\x1fabcdefghijklmnopqrst\x05\x00\x00"), uint16(40))
	f.Fuzz(func(t *testing.T, data []byte, raw uint16) {
		for _, c := range []block.Compression{block.LZ4, block.Snappy, block.Zlib} {
			if n := codec.Extent(c.String(), data, int(raw)); n > len(data) {
				t.Fatalf("%s: %d of %d bytes", c, n, len(data))
			}
		}
		for _, e := range []block.Encoding{block.Plain, block.Prefix, block.RLE, block.Dict, block.BitShuffle,
			block.GroupVarint} {
			for _, typ := range []block.Type{block.Int8, block.Int64, block.Bool, block.String} {
				if n := block.ValuesExtent(data, typ, e); n > len(data) {
					t.Fatalf("%s %s: %d of %d bytes", typ, e, n, len(data))
				}
			}
		}
	})
}
