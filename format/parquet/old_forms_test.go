package parquet

import (
	"bytes"
	"fmt"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"stoa/store"
	"stoa/vec"
)

// storedColumn is a column in Parquet's physical form.
type storedColumn struct {
	values   any // []int32, []int64, []ByteArray or []FixedLenByteArray
	def, rep []int16
}

// writtenByLib returns a file of one row group with a schema that stoa's writer does not produce.
func writtenByLib(t *testing.T, root schema.FieldList, columns []storedColumn) []byte {
	t.Helper()
	node, err := schema.NewGroupNode("schema", lib.Repetitions.Required, root, -1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, node)
	g, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		cw, err := g.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		switch cw := cw.(type) {
		case *file.Int32ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]int32), c.def, c.rep)
		case *file.Int64ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]int64), c.def, c.rep)
		case *file.ByteArrayColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]lib.ByteArray), c.def, c.rep)
		case *file.FixedLenByteArrayColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]lib.FixedLenByteArray), c.def, c.rep)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := cw.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// twosComplement returns a number in big-endian bytes of the given width.
func twosComplement(v int64, width int) []byte {
	n := big.NewInt(v)
	if v < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
	}
	return n.FillBytes(make([]byte, width))
}

// TestDecimalsOfFourForms: a decimal is the same whether it is stored in 32 or 64 bits, in bytes of a fixed length, or
// in as many bytes as it needs.
func TestDecimalsOfFourForms(t *testing.T) {
	numbers := []int64{0, 1, -1, 127, -128, 128, 32767, -32769, 99999999, -99999999, 12345}
	var small []int32
	var short []lib.ByteArray
	var fixed []lib.FixedLenByteArray
	for _, n := range numbers {
		small = append(small, int32(n))
		fixed = append(fixed, twosComplement(n, 7))
		for width := 1; ; width++ {
			if n >= -1<<(8*width-1) && n < 1<<(8*width-1) {
				short = append(short, twosComplement(n, width))
				break
			}
		}
	}
	var fields schema.FieldList
	logical := schema.NewDecimalLogicalType(9, 3)
	for _, f := range []struct {
		name string
		typ  lib.Type
		size int
	}{{"a32", lib.Types.Int32, -1}, {"b64", lib.Types.Int64, -1}, {"fixed", lib.Types.FixedLenByteArray, 7},
		{"bytes", lib.Types.ByteArray, -1}} {
		fields = append(fields, must[*schema.PrimitiveNode](t)(schema.NewPrimitiveNodeLogical(f.name,
			lib.Repetitions.Required, logical, f.typ, f.size, -1)))
	}
	b := writtenByLib(t, fields, []storedColumn{{values: small}, {values: numbers}, {values: fixed}, {values: short}})
	tree := store.NewMemory(map[string][]byte{"t": b})
	sc, got, err := readAll(tree, nil, vec.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		if name := sc.Field(k).Type.String(); name != "decimal(9, 3)" {
			t.Errorf("%s: got type %s", sc.Field(k).Name, name)
		}
		a := got[0].Column(k).(*array.Decimal128)
		for i, n := range numbers {
			if v := a.Value(i).BigInt(); v.Cmp(big.NewInt(n)) != 0 {
				t.Errorf("%s: row %d: got %v, want %d", sc.Field(k).Name, i, v, n)
			}
		}
	}
	for _, f := range findings(b) {
		t.Errorf("%+v", f)
	}
}

// TestOldLists: two-level lists are read by the specification's rules for backward compatibility.
func TestOldLists(t *testing.T) {
	number := func(name string, r lib.Repetition) schema.Node { return schema.NewInt32Node(name, r, -1) }
	group := func(name string, r lib.Repetition, fields ...schema.Node) schema.Node {
		return must[*schema.GroupNode](t)(schema.NewGroupNode(name, r, fields, -1))
	}
	list := func(name string, item schema.Node) schema.Node {
		return must[*schema.GroupNode](t)(schema.NewGroupNodeConverted(name, lib.Repetitions.Optional,
			schema.FieldList{item}, schema.ConvertedTypes.List, -1))
	}
	req, opt, rep := lib.Repetitions.Required, lib.Repetitions.Optional, lib.Repetitions.Repeated
	// rows: [1 2], null, [], [3]
	two := storedColumn{values: []int32{1, 2, 3}, def: []int16{2, 2, 0, 1, 2}, rep: []int16{0, 1, 0, 0, 0}}
	three := storedColumn{values: []int32{1, 2, 3}, def: []int16{3, 3, 0, 1, 3}, rep: []int16{0, 1, 0, 0, 0}}
	bare := storedColumn{values: []int32{1, 2, 3}, def: []int16{1, 1, 0, 0, 1}, rep: []int16{0, 1, 0, 0, 0}}
	for _, c := range []struct {
		node   schema.Node
		stored []storedColumn
		want   string
	}{
		{list("l", number("element", rep)), []storedColumn{two}, "[[1,2] (null) [] [3]]"},
		{list("l", number("array", rep)), []storedColumn{two}, "[[1,2] (null) [] [3]]"},
		{list("l", group("list", rep, number("element", opt))), []storedColumn{three}, "[[1,2] (null) [] [3]]"},
		{list("l", group("bag", rep, number("array_element", opt))), []storedColumn{three}, "[[1,2] (null) [] [3]]"},
		{list("l", group("array", rep, number("x", req))), []storedColumn{two},
			`[[{"x":1},{"x":2}] (null) [] [{"x":3}]]`},
		{list("l", group("l_tuple", rep, number("x", req))), []storedColumn{two},
			`[[{"x":1},{"x":2}] (null) [] [{"x":3}]]`},
		{list("l", group("element", rep, number("x", req), number("y", req))), []storedColumn{two, two},
			`[[{"x":1,"y":1},{"x":2,"y":2}] (null) [] [{"x":3,"y":3}]]`},
		{number("l", rep), []storedColumn{bare}, "[[1,2] [] [] [3]]"},
	} {
		b := writtenByLib(t, schema.FieldList{c.node}, c.stored)
		_, got, err := readAll(store.NewMemory(map[string][]byte{"t": b}), nil, vec.Range{})
		if err != nil {
			t.Errorf("%v: %v", c.node, err)
			continue
		}
		var rows []string
		for _, g := range got {
			for i := range int(g.NumRows()) {
				rows = append(rows, g.Column(0).ValueStr(i))
			}
		}
		if fmt.Sprint(rows) != c.want {
			t.Errorf("%v: got %v, want %s", c.node, rows, c.want)
		}
	}
}
