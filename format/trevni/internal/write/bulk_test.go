package write

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/trevni/internal/layout"
)

// TestFill compares the kernels that encode many values with the appenders of one, and the limit with its definition.
func TestFill(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n = 3000
	ints := array.NewInt32Builder(memory.DefaultAllocator)
	longs := array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	doubles := array.NewFloat64Builder(memory.DefaultAllocator)
	for i := range n {
		ints.Append(int32(r.Uint32()) >> r.IntN(32))
		longs.Append(int64(r.Uint64()) >> r.IntN(64))
		doubles.Append(r.NormFloat64())
		texts.Append(string(bytes.Repeat([]byte{byte('a' + i%26)}, r.IntN(1<<r.IntN(9)))))
	}
	for _, c := range []struct {
		a arrow.Array
		s layout.Type
	}{{ints.NewArray(), layout.Int}, {longs.NewArray(), layout.Long}, {doubles.NewArray(), layout.Double},
		{texts.NewArray(), layout.String}} {
		a := array.NewSlice(c.a, 5, n)
		add, err := appenderOf(a, c.s)
		if err != nil {
			t.Fatal(err)
		}
		f := fillOf(a, c.s, 0)
		for _, limit := range []int{1, 7, 64, 1000, 1 << 20} {
			var got, want []byte
			for i := 0; i < a.Len(); {
				k := i
				want = want[:0]
				for ; k < a.Len() && len(want) < limit; k++ {
					if want, err = add(want, k); err != nil {
						t.Fatal(err)
					}
				}
				if got, i = f(got[:0], i, a.Len(), limit); i != k || !bytes.Equal(got, want) {
					t.Fatalf("%s, limit %d: up to value %d % x, want up to %d % x", c.s, limit, i, got, k, want)
				}
			}
		}
	}
}

// TestOptionalBulk: adding many values at once produces the same blocks as adding them one by one.
func TestOptionalBulk(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const n = 2000
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String} {
		b := array.NewBuilder(memory.DefaultAllocator, typ)
		null := false
		for range n {
			if r.IntN(8) == 0 {
				null = !null
			}
			if null {
				b.AppendNull()
				continue
			}
			switch b := b.(type) {
			case *array.Int32Builder:
				b.Append(int32(r.Uint32()) >> r.IntN(32))
			case *array.Int64Builder:
				b.Append(int64(r.Uint64()) >> r.IntN(64))
			case *array.Float32Builder:
				b.Append(r.Float32())
			case *array.Float64Builder:
				b.Append(r.Float64())
			case *array.BooleanBuilder:
				b.Append(r.IntN(2) == 0)
			case *array.StringBuilder:
				b.Append(string(bytes.Repeat([]byte{'x'}, r.IntN(40))))
			}
		}
		integer := b.NewArray()
		for _, version := range []byte{1, 2} {
			for _, size := range []int{1, 50, 1000, 1 << 20} {
				a := array.NewSlice(integer, int64(r.IntN(20)), n)
				want, got := optionalColumn(t, typ, version, size), optionalColumn(t, typ, version, size)
				if err := (optionalNode{want}).put(a, entries{pos: positions(a.Len()), n: a.Len()}); err != nil {
					t.Fatal(err)
				}
				if err := (optionalNode{got}).put(a, entries{n: a.Len()}); err != nil {
					t.Fatal(err)
				}
				sameRows(t, got, want, a.Len())
			}
		}
	}
}

func positions(n int) []int32 {
	pos := make([]int32, n)
	for i := range pos {
		pos[i] = int32(i)
	}
	return pos
}

func optionalColumn(t *testing.T, typ arrow.DataType, version byte, size int) *outColumn {
	s, _ := storedAs(typ, layout.Avro)
	w := &outFile{opts: writeOptions{dialect: layout.Avro, version: version, blockSize: size},
		spillStore: spillStore{segment: 4096, limit: spillMemory}}
	return w.column(layout.Column{Name: "c", Type: s, Array: true, Parent: -1})
}

// sameRows: the columns have the same bytes, and rows.
func sameRows(t *testing.T, got, want *outColumn, n int) {
	t.Helper()
	var out [2]bytes.Buffer
	for i, c := range []*outColumn{got, want} {
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for _, b := range c.blocks {
			rows += b.rows
		}
		if rows != int64(n) {
			t.Fatalf("%s: %d rows of %d", c.Type, rows, n)
		}
		if err := c.blockSpill.copy(&out[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) || len(got.blocks) != len(want.blocks) || out[0].Len() == 0 {
		t.Fatalf("%s, version %d, blocks of %d: other bytes", got.Type, got.w.opts.version, got.w.opts.blockSize)
	}
}
