package formattest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
)

// Cell is one value as exact text: floats by their bits, binary in hex.
func Cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Float32:
		return fmt.Sprintf("f%08x", math.Float32bits(a.Value(i)))
	case *array.Float64:
		return fmt.Sprintf("d%016x", math.Float64bits(a.Value(i)))
	case *array.String:
		return fmt.Sprintf("%q", a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.List:
		from, to := a.ValueOffsets(i)
		var cells []string
		for k := from; k < to; k++ {
			cells = append(cells, Cell(a.ListValues(), int(k)))
		}
		return "[" + strings.Join(cells, " ") + "]"
	case *array.Struct:
		var cells []string
		for k := range a.NumField() {
			cells = append(cells, Cell(a.Field(k), i))
		}
		return "{" + strings.Join(cells, " ") + "}"
	}
	return a.ValueStr(i)
}

// rowsAsText returns a batch's rows as text: see asText.
func rowsAsText(b arrow.RecordBatch) []string {
	values := make([][]any, b.NumCols())
	for i, c := range b.Columns() {
		values[i] = CellsOf(c)
	}
	out := make([]string, b.NumRows())
	for r := range out {
		row := make([]any, len(values))
		for k := range row {
			row[k] = values[k][r]
		}
		out[r] = asText(row)
	}
	return out
}

// asText returns a row of CellsOf as exact text.
func asText(row []any) string { return fmt.Sprintf("%#v", row) }

// withoutCell returns a cell of a top-level field (see CellsOf) after its part in column col is lost: null, or, if the
// format stores structs row by row, the struct with a null there. A struct whose validity is lost remains if any of its
// fields does.
func withoutCell(cell any, columns []format.Column, col int) any {
	for _, c := range columns {
		byRows := c.Parent < 0 && c.MaxDef == 0 && c.MaxRep == 0 && c.Has&format.Levels == 0 && c.Has != format.Lengths
		if c.Path[0] == columns[col].Path[0] && !byRows {
			return nil
		}
	}
	return without(cell, columns[col].Path[1:], columns[col].Has == format.Validity)
}

func without(cell any, path []int, validity bool) any {
	children, ok := cell.([]any)
	switch {
	case len(path) > 0 && ok:
		children = slices.Clone(children)
		children[path[0]] = without(children[path[0]], path[1:], validity)
		return children
	case len(path) == 0 && validity && ok && slices.ContainsFunc(children, func(x any) bool { return x != nil }):
		return cell
	}
	return nil
}
