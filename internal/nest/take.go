package nest

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// Take returns an array of a's entries at idx, in that order; -1 becomes null. Null lists become empty. The caller
// releases the result.
func Take(a arrow.Array, idx []int32, mem memory.Allocator) (arrow.Array, error) {
	if from, ok := isRun(idx); ok && mayBeSliced(a) {
		out := array.NewSlice(a, int64(from), int64(from+len(idx)))
		out.NullN() // counts now: a map needs the number for its keys
		return out, nil
	}
	d, err := takeData(a, idx, mem)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Decoded decodes a dictionary array. The caller releases the result.
func Decoded(d *array.Dictionary, mem memory.Allocator) (arrow.Array, error) {
	idx := make([]int32, d.Len())
	for i := range idx {
		if idx[i] = -1; d.IsValid(i) {
			idx[i] = int32(d.GetValueIndex(i))
		}
	}
	return Take(d.Dictionary(), idx, mem)
}

// isRun reports whether idx counts up by one.
func isRun(idx []int32) (from int, ok bool) {
	if len(idx) == 0 {
		return 0, true
	}
	if idx[0] < 0 || int(idx[len(idx)-1])-int(idx[0]) != len(idx)-1 {
		return 0, false
	}
	var off int32
	for i, p := range idx {
		off |= p - idx[0] - int32(i)
	}
	return int(idx[0]), off == 0
}

// mayBeSliced returns false for arrays that must be rebuilt: lists with items below nulls, and structs, whose offset
// arrow-go ignores in the entries of a map.
func mayBeSliced(a arrow.Array) bool {
	l, isList := a.(array.ListLike)
	return a.DataType().ID() != arrow.STRUCT && !(isList && hidesItems(l))
}

// hidesItems reports whether a null list of l has items.
func hidesItems(l array.ListLike) bool {
	if l.NullN() == 0 || l.DataType().ID() == arrow.FIXED_SIZE_LIST {
		return false
	}
	for i := range l.Len() {
		if from, to := l.ValueOffsets(i); from != to && l.IsNull(i) {
			return true
		}
	}
	return false
}

func takeData(a arrow.Array, idx []int32, mem memory.Allocator) (*array.Data, error) {
	if u, ok := a.(*array.DenseUnion); ok {
		return takeUnion(u, idx, mem)
	}
	if a.DataType().ID() == arrow.NULL {
		return array.NewData(a.DataType(), len(idx), []*memory.Buffer{nil}, nil, len(idx), 0), nil
	}
	t := &taker{a: a.Data(), idx: idx, mem: mem}
	defer t.release()
	t.validity(a)
	if err := t.values(a); err != nil {
		return nil, err
	}
	if dict, ok := t.a.Dictionary().(*array.Data); ok && dict != nil {
		return array.NewDataWithDictionary(a.DataType(), len(idx), t.bufs, t.nulls, 0, dict), nil
	}
	return array.NewData(a.DataType(), len(idx), t.bufs, t.children, t.nulls, 0), nil
}

// taker builds the buffers of one array.
type taker struct {
	a   arrow.ArrayData
	idx []int32
	mem memory.Allocator

	bufs     []*memory.Buffer
	children []arrow.ArrayData
	nulls    int
}

// release releases the buffers and children, which the array's data now hold.
func (t *taker) release() {
	for _, b := range t.bufs {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range t.children {
		c.Release()
	}
}

// buffer appends a buffer of n bytes.
func (t *taker) buffer(n int) []byte {
	b := newBuffer(n, t.mem)
	t.bufs = append(t.bufs, b)
	return b.Bytes()
}

func newBuffer(n int, mem memory.Allocator) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Reserve(max(n, 1)) // allocate a buffer even for no bytes: some readers of Arrow expect one
	b.ResizeNoShrink(n)
	return b
}

func cast[T any](b []byte) []T {
	var x T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// validity appends the bitmap; nil if there are no nulls.
func (t *taker) validity(a arrow.Array) {
	var src []byte
	if a.NullN() > 0 {
		src = a.NullBitmapBytes()
	}
	absent := uint32(0)
	for _, p := range t.idx {
		absent |= uint32(p) >> 31
	}
	if len(src) == 0 && absent == 0 {
		t.bufs = append(t.bufs, nil)
		return
	}
	out := t.buffer((len(t.idx) + 7) / 8)
	gatherBits(out, src, t.a.Offset(), t.idx)
	t.nulls = len(t.idx) - bitutil.CountSetBits(out, 0, len(t.idx))
}

// gatherBits sets bit i of dst to bit off+idx[i] of src; without src all bits are ones. An index of -1 results in 0.
func gatherBits(dst, src []byte, off int, idx []int32) {
	for k := range dst {
		var x byte
		for j, p := range idx[8*k : min(8*k+8, len(idx))] {
			if p < 0 {
				continue
			}
			if src == nil {
				x |= 1 << j
				continue
			}
			at := off + int(p)
			x |= src[at>>3] >> (at & 7) & 1 << j
		}
		dst[k] = x
	}
}

func (t *taker) values(a arrow.Array) error {
	switch x := a.(type) {
	case *array.Boolean:
		var src []byte
		if b := t.a.Buffers()[1]; b != nil {
			src = b.Bytes()
		}
		if out := t.buffer((len(t.idx) + 7) / 8); src != nil {
			gatherBits(out, src, t.a.Offset(), t.idx)
		} else {
			clear(out)
		}
		return nil
	case *array.Struct:
		for i := range x.NumField() {
			if err := t.child(x.Field(i), t.idx); err != nil {
				return err
			}
		}
		return nil
	case *array.FixedSizeList:
		return t.fixedLists(x)
	case array.ListLike:
		switch a.DataType().ID() {
		case arrow.LIST, arrow.MAP:
			return lists[int32](t, x)
		case arrow.LARGE_LIST:
			return lists[int64](t, x)
		}
	case array.ExtensionArray:
		return t.values(x.Storage())
	}
	switch id := a.DataType().ID(); id {
	case arrow.STRING, arrow.BINARY:
		return bytesOf[int32](t)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return bytesOf[int64](t)
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		t.fixed(arrow.ViewHeaderSizeBytes)
		for _, b := range t.a.Buffers()[2:] {
			b.Retain()
			t.bufs = append(t.bufs, b)
		}
		return nil
	}
	if f, ok := a.DataType().(arrow.FixedWidthDataType); ok && f.BitWidth()%8 == 0 && len(t.a.Children()) == 0 {
		t.fixed(f.BitWidth() / 8)
		return nil
	}
	return fault.Unsupportedf(fault.Span{}, "", "entries of type %s cannot be picked", a.DataType())
}

// child appends a child that has a's entries at idx.
func (t *taker) child(a arrow.Array, idx []int32) error {
	c, err := Take(a, idx, t.mem)
	if err != nil {
		return err
	}
	c.Data().Retain()
	t.children = append(t.children, c.Data())
	c.Release()
	return nil
}

// fixed gathers values of w bytes.
func (t *taker) fixed(w int) {
	out := t.buffer(len(t.idx) * w)
	var src []byte
	if b := t.a.Buffers()[1]; b != nil {
		src = b.Bytes()
	}
	if src = src[min(len(src), t.a.Offset()*w):]; len(src) == 0 { // all entries are null
		clear(out)
		return
	}
	switch w {
	case 1:
		gather(out, src, t.idx)
	case 2:
		gather(cast[uint16](out), cast[uint16](src), t.idx)
	case 4:
		gather(cast[uint32](out), cast[uint32](src), t.idx)
	case 8:
		gather(cast[uint64](out), cast[uint64](src), t.idx)
	case 16:
		gather(cast[[2]uint64](out), cast[[2]uint64](src), t.idx)
	default:
		for i, p := range t.idx {
			if d := out[i*w:][:w]; p < 0 {
				clear(d)
			} else {
				copy(d, src[int(p)*w:][:w])
			}
		}
	}
}

func gather[T any](dst, src []T, idx []int32) {
	var zero T
	for i, p := range idx {
		if p < 0 {
			dst[i] = zero
		} else {
			dst[i] = src[p]
		}
	}
}

type offset interface{ int32 | int64 }

// offsets returns the offsets of an array, one more than it has entries.
func offsets[T offset](a arrow.ArrayData) []T {
	if a.Len() == 0 || a.Buffers()[1] == nil {
		return make([]T, a.Len()+1)
	}
	return cast[T](a.Buffers()[1].Bytes())[a.Offset():][:a.Len()+1]
}

// bytesOf gathers strings.
func bytesOf[T offset](t *taker) error {
	src := offsets[T](t.a)
	var total int64
	for _, p := range t.idx {
		if p >= 0 {
			total += int64(src[p+1] - src[p])
		}
	}
	var x T
	if unsafe.Sizeof(x) == 4 && total > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, "", "%d bytes of strings do not fit one batch", total)
	}
	off := cast[T](t.buffer((len(t.idx) + 1) * int(unsafe.Sizeof(x))))
	out := t.buffer(int(total))
	var data []byte
	if b := t.a.Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	off[0] = 0
	pos, from, to := 0, T(0), T(0) // bytes [from, to) are still to be copied
	for i, p := range t.idx {
		if p >= 0 && src[p] != src[p+1] {
			if src[p] != to {
				pos += copy(out[pos:], data[from:to])
				from = src[p]
			}
			to = src[p+1]
		}
		off[i+1] = T(pos) + to - from
	}
	copy(out[pos:], data[from:to])
	return nil
}

// lists gathers lists: their offsets, and their items as a child.
func lists[T offset](t *taker, l array.ListLike) error {
	src := offsets[T](t.a)
	valid := func(p int32) bool { return p >= 0 }
	if l.NullN() > 0 {
		valid = func(p int32) bool { return p >= 0 && l.IsValid(int(p)) }
	}
	var total int64
	for _, p := range t.idx {
		if valid(p) {
			total += int64(src[p+1] - src[p])
		}
	}
	var x T
	if total > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, "", "%d items do not fit one batch", total)
	}
	off := cast[T](t.buffer((len(t.idx) + 1) * int(unsafe.Sizeof(x))))
	off[0] = 0
	if l.ListValues().DataType().ID() == arrow.NULL { // needs no positions
		for i, p := range t.idx {
			if off[i+1] = off[i]; valid(p) {
				off[i+1] += src[p+1] - src[p]
			}
		}
		t.children = append(t.children, array.NewData(l.ListValues().DataType(), int(total), []*memory.Buffer{nil},
			nil, int(total), 0))
		return nil
	}
	items := borrow(int(total))
	defer giveBack(items)
	k := 0
	for i, p := range t.idx {
		if valid(p) {
			for q := src[p]; q < src[p+1]; q++ {
				(*items)[k] = int32(q)
				k++
			}
		}
		off[i+1] = T(k)
	}
	return t.child(l.ListValues(), *items)
}

// maxPadding is the maximum number of items made that have no bytes in any file: null fixed-size lists have room for
// their items, and structs without fields are only counted.
const maxPadding = 1 << 28

func (t *taker) fixedLists(l *array.FixedSizeList) error {
	n := int64(l.DataType().(*arrow.FixedSizeListType).Len())
	if n > 0 && int64(len(t.idx)) > maxPadding/n {
		return fault.Limitf(fault.Span{}, "", "%d lists of %d items do not fit one batch", len(t.idx), n)
	}
	items := borrow(len(t.idx) * int(n))
	defer giveBack(items)
	k := 0
	for _, p := range t.idx {
		first := (int64(t.a.Offset()) + int64(p)) * n
		for j := range n {
			if (*items)[k] = int32(first + j); p < 0 {
				(*items)[k] = -1
			}
			k++
		}
	}
	return t.child(l.ListValues(), *items)
}

// takeUnion gathers type codes and offsets; the children are unchanged. A null goes to the branch that can hold it.
func takeUnion(u *array.DenseUnion, idx []int32, mem memory.Allocator) (*array.Data, error) {
	t := &taker{a: u.Data(), idx: idx, mem: mem}
	defer t.release()
	types := t.buffer(len(idx))
	off := cast[int32](t.buffer(4 * len(idx)))
	absent := false
	for i, p := range idx {
		if p < 0 {
			absent = true
			continue
		}
		types[i], off[i] = byte(u.TypeCode(int(p))), u.ValueOffset(int(p))
	}
	for _, c := range u.Data().Children() {
		c.Retain()
		t.children = append(t.children, c)
	}
	if absent {
		b := nullBranch(u.DataType().(*arrow.DenseUnionType))
		if b < 0 {
			return nil, fault.Corruptf(fault.Span{}, "", "a union that is missing, and no branch that can be null")
		}
		at, err := t.addNull(b)
		if err != nil {
			return nil, err
		}
		code := byte(u.DataType().(*arrow.DenseUnionType).TypeCodes()[b])
		for i, p := range idx {
			if p < 0 {
				types[i], off[i] = code, int32(at)
			}
		}
	}
	return array.NewData(u.DataType(), len(idx), append([]*memory.Buffer{nil}, t.bufs...), t.children, 0, 0), nil
}

// addNull appends a null to child b and returns its position.
func (t *taker) addNull(b int) (at int, err error) {
	old := array.MakeFromData(t.children[b])
	defer old.Release()
	idx := make([]int32, old.Len()+1)
	for i := range idx {
		idx[i] = int32(i)
	}
	idx[old.Len()] = -1
	d, err := takeData(old, idx, t.mem)
	if err != nil {
		return 0, err
	}
	t.children[b].Release()
	t.children[b] = d
	return old.Len(), nil
}

// nullBranch returns the branch of a union for null entries: the one of type Null, else the first nullable one; -1 if
// there is none.
func nullBranch(t *arrow.DenseUnionType) int {
	may := -1
	for i, f := range t.Fields() {
		if f.Type.ID() == arrow.NULL {
			return i
		}
		if f.Nullable && may < 0 {
			may = i
		}
	}
	return may
}
