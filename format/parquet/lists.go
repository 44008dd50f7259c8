package parquet

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/vec"
)

// runs gathers runs of a list's items into one array.
type runs struct {
	items arrow.Array
	mem   memory.Allocator
	parts []arrow.Array
	from  int64 // of the run that is not closed
	to    int64
}

func (r *runs) add(from, to int64) {
	if from == r.to {
		r.to = to
		return
	}
	r.close()
	r.from, r.to = from, to
}

func (r *runs) close() {
	if r.from < r.to {
		r.parts = append(r.parts, array.NewSlice(r.items, r.from, r.to))
	}
	r.from = r.to
}

// nulls adds n null items.
func (r *runs) nulls(n int) {
	r.close()
	r.from, r.to = -1, -1
	r.parts = append(r.parts, vec.Nulls(r.mem, r.items.DataType(), n))
}

// join makes one array of everything that was added.
func (r *runs) join() (arrow.Array, error) {
	r.close()
	defer func() {
		for _, p := range r.parts {
			p.Release()
		}
	}()
	switch len(r.parts) {
	case 0:
		return array.NewSlice(r.items, 0, 0), nil
	case 1:
		r.parts[0].Retain()
		return r.parts[0], nil
	}
	return array.Concatenate(r.parts, r.mem)
}

// validity is the null bitmap of a, moved to offset 0; nil if there are no nulls.
func validity(a arrow.Array, mem memory.Allocator) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	b := memory.NewResizableBuffer(mem)
	b.Resize((a.Len() + 7) / 8)
	bits := b.Bytes()
	clear(bits)
	for i := range a.Len() {
		if a.IsValid(i) {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return b
}

// listOfFixed makes a list of a list of fixed size; null lists have no items.
func listOfFixed(a *array.FixedSizeList, mem memory.Allocator) (arrow.Array, error) {
	return tight(a, arrow.ListOfField(a.DataType().(*arrow.FixedSizeListType).ElemField()), mem)
}

// tight makes a list of type t, with 32-bit offsets, whose items lie without gaps and of which null lists have none.
func tight(a array.ListLike, t arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	offsets := memory.NewResizableBuffer(mem)
	defer offsets.Release()
	offsets.Resize(4 * (a.Len() + 1))
	to := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	r := runs{items: a.ListValues(), mem: mem}
	n := int64(0)
	for i := range a.Len() {
		to[i] = int32(n)
		if a.IsValid(i) {
			from, end := a.ValueOffsets(i)
			r.add(from, end)
			n += end - from
		}
	}
	if n != int64(int32(n)) {
		return nil, fmt.Errorf("a batch with %d list items", n)
	}
	to[a.Len()] = int32(n)
	items, err := r.join()
	if err != nil {
		return nil, err
	}
	defer items.Release()
	return assemble(a, t, []*memory.Buffer{validity(a, mem), offsets}, items), nil
}

// assemble makes an array of type t with a's nulls.
func assemble(a arrow.Array, t arrow.DataType, buffers []*memory.Buffer, items arrow.Array) arrow.Array {
	data := array.NewData(t, a.Len(), buffers, []arrow.ArrayData{items.Data()}, a.NullN(), 0)
	defer data.Release()
	if buffers[0] != nil {
		buffers[0].Release()
	}
	return array.MakeFromData(data)
}

// looseNulls reports whether a null list has items, which the library refuses to write.
func looseNulls(a array.ListLike) bool {
	if a.NullN() == 0 {
		return false
	}
	for i := range a.Len() {
		if from, to := a.ValueOffsets(i); from != to && a.IsNull(i) {
			return true
		}
	}
	return false
}

// fixedOfList makes a list of fixed size of a list whose items all are that many, or null.
func fixedOfList(a *array.List, t *arrow.FixedSizeListType, mem memory.Allocator) (arrow.Array, error) {
	r := runs{items: a.ListValues(), mem: mem}
	n := int(t.Len())
	for i := range a.Len() {
		if a.IsNull(i) {
			r.nulls(n)
			continue
		}
		from, to := a.ValueOffsets(i)
		if to-from != int64(n) {
			return nil, fmt.Errorf("a list of %d items in a column of lists of %d", to-from, n)
		}
		r.add(from, to)
	}
	items, err := r.join()
	if err != nil {
		return nil, err
	}
	defer items.Release()
	elem := a.DataType().(*arrow.ListType).ElemField()
	return assemble(a, arrow.FixedSizeListOfField(t.Len(), elem), []*memory.Buffer{validity(a, mem)}, items), nil
}
