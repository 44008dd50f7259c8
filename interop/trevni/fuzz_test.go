//go:build interop

package trevni

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/formattest"
	"stoa/interop/fuzz"
)

// leaves are the types that Avro's schemas can express.
func leaves() (out []arrow.DataType) {
	for _, f := range flat().Fields() {
		if !f.Nullable {
			out = append(out, f.Type)
		}
	}
	return out
}

// arrayOfFixed: AvroColumnReader returns arrays of fixed as buffers, which its own schema then refuses, whoever wrote
// them.
func arrayOfFixed(t arrow.DataType) bool {
	if l, ok := t.(arrow.ListLikeType); ok && t.ID() != arrow.MAP && l.Elem().ID() == arrow.FIXED_SIZE_BINARY &&
		!l.ElemField().Nullable {
		return true
	}
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if arrayOfFixed(f.Type) {
				return true
			}
		}
	}
	return false
}

// draw draws batches until one has no array of fixed.
func draw(r *rand.Rand) arrow.RecordBatch {
	for {
		b := drawAny(r)
		if !arrayOfFixed(arrow.StructOf(b.Schema().Fields()...)) {
			return b
		}
		b.Release()
	}
}

// drawAny makes a table: one in two with unions and maps, the others with arrays as all kinds of producers make them.
func drawAny(r *rand.Rand) arrow.RecordBatch {
	if r.IntN(2) == 0 {
		return formattest.RandomTable(r,
			formattest.TableOptions{Rows: []int{3, 60, 400}[r.IntN(3)], Columns: 4, Depth: 6,
				Leaves: leaves(), Plain: true, Gaps: []int{0, 3, 25, 90, 100}}).Batch
	}
	var fields []arrow.Field
	for i := range 1 + r.IntN(4) {
		fields = append(fields, RandomField(r, fmt.Sprintf("c%d", i), r.IntN(6), true))
	}
	b := RandomBatch(r, arrow.NewSchema(fields, nil), 1+r.IntN(200))
	return b.NewSlice(int64(r.IntN(int(b.NumRows()))), b.NumRows())
}

// drawOptions draws options of the writer. Only columns without nulls can have first values.
func drawOptions(r *rand.Rand, sc *arrow.Schema) map[string]string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	o := map[string]string{"version": one("1", "2", "2"), "codec": one("null", "deflate", "snappy", "bzip2"),
		"checksum":   one("crc32", "null"),
		"block-size": one("1", "50", "1000", "65536"), "arrow-schema": one("true", "false")}
	for _, f := range sc.Fields() {
		if _, flat := f.Type.(arrow.FixedWidthDataType); flat && !f.Nullable && f.Type.ID() != arrow.BOOL &&
			r.IntN(2) == 0 {
			o["first-values"] = f.Name
		}
	}
	return o
}

// rowsOf returns the rows of a file as Avro prints them.
func rowsOf(t *testing.T, path string) (out []string) {
	t.Helper()
	for line := range strings.Lines(string(java(t, "1.12.2", "Rows", path))) {
		if text, ok := strings.CutPrefix(line, "ROW "); ok {
			out = append(out, text)
		}
	}
	return out
}

// TestFuzz: random nested tables, read by AvroColumnReader 1.12.2. In each round a wrong expected row must be noticed.
func TestFuzz(t *testing.T) {
	fuzz.Run(t, "trevni", 60, func(t *testing.T, first uint64) (cells int) {
		var files []file
		for seed := first; seed < first+60; seed++ {
			r := rand.New(rand.NewPCG(seed, 29))
			b := draw(r)
			o := drawOptions(r, b.Schema())
			files = append(files, file{write(t, fmt.Sprint("seed-", seed), b, o), b,
				fmt.Sprintf("seed %d %v %v", seed, o, b.Schema())})
			cells += int(b.NumRows() * b.NumCols())
		}
		if right, _ := judge(t, "1.12.2", files); right != len(files) {
			t.Errorf("%d of %d tables are read correctly", right, len(files))
		}
		plain := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.PrimitiveTypes.Int64}}, nil)
		b, other := RandomBatch(rand.New(rand.NewPCG(first, 1)), plain, 9),
			RandomBatch(rand.New(rand.NewPCG(first, 2)), plain, 9)
		said := rowsOf(t, write(t, "plain", b, nil))
		if len(said) != 9 || row(b, 8, said[8]) != nil || row(other, 8, said[8]) == nil {
			t.Errorf("a wrong value is not noticed, or the right one is not read: %q", said)
		} else {
			t.Logf("a wrong value: noticed: %v", row(other, 8, said[8]))
		}
		return cells
	})
}
