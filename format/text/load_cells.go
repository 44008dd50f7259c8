package text

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// cellRoom is how many values without a text, such as the fields that {} lacks, a cell of ParseCells may have.
const cellRoom = 1 << 24

// ParseCells returns the values of texts as a reader of CSV parses cells of type t: nested values are JSON, bytes are
// base64. A text that is no such value is null, and bad gets its index and the reason, in the order of the texts. The
// caller releases the array.
func ParseCells(mem memory.Allocator, a *array.String, t arrow.DataType, bad func(i int, err error)) arrow.Array {
	wrong := map[int]bool{}
	try := newCellParser(mem, t)
	defer try.b.Release()
	for i := range a.Len() {
		if err := try.add(a, i); err != nil {
			wrong[i] = true
			bad(i, err)
			empty([]array.Builder{try.b}) // part of the value may be in it
		}
	}
	if len(wrong) == 0 {
		return try.b.NewArray()
	}
	out := newCellParser(mem, t)
	defer out.b.Release()
	for i := range a.Len() {
		if wrong[i] {
			out.b.AppendNull()
		} else if err := out.add(a, i); err != nil { // it was parsed before
			panic(err)
		}
	}
	return out.b.NewArray()
}

// cellParser appends cells to a builder.
type cellParser struct {
	b   array.Builder
	set setter
	p   jsonParser
}

func newCellParser(mem memory.Allocator, t arrow.DataType) *cellParser {
	x := &cellParser{b: array.NewBuilder(mem, t)}
	if x.set = textSetter(x.b, t); x.set != nil {
		return x
	}
	n := newNode(x.b, t)
	x.set = func(s []byte) error {
		if len(s) == 0 {
			x.b.AppendNull()
			return nil
		}
		x.p.reset(s)
		x.p.room = cellRoom
		if err := x.p.value(n); err != nil {
			return err
		}
		return x.p.end()
	}
	return x
}

// add appends text i. The parser keeps no bytes of it.
func (x *cellParser) add(a *array.String, i int) error {
	if a.IsNull(i) {
		x.b.AppendNull()
		return nil
	}
	s := a.Value(i)
	return x.set(unsafe.Slice(unsafe.StringData(s), len(s)))
}
