package diff

import "github.com/apache/arrow-go/v18/arrow"

// Cells converts cells of two columns, whose types may differ, to the form in which Run compares them: cells are equal
// if and only if their bytes are. Text that may represent bytes in base64 is not decoded.
type Cells struct{ *shape }

// Pair returns how cells of two types are compared; false if the types have nothing in common.
func Pair(a, b arrow.DataType) (Cells, bool) {
	s := pair(a, b)
	return Cells{s}, s.kind != None
}

// Append appends cell i of arr, which is of side 0 (the first type) or 1.
func (c Cells) Append(dst []byte, arr arrow.Array, i, side int) []byte {
	return c.append(dst, arr, i, side)
}
