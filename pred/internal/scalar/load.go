package scalar

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/internal/enc/half"
)

// Input is the array of a column. Valid has a bit for each row that is not null, among them those of the enclosing
// structs.
type Input struct {
	Array arrow.Array
	Valid []uint64
	Type  Type // as the column was bound; set by Where
}

// input is an open column.
type input struct {
	Input
	nothing bool // it is always null
	dict    *vec // the values of a dictionary
	codes   func(i int) int
	block_  *vec
	at      int
	err     error
}

func open(in Input) (*input, error) {
	out := &input{Input: in, at: -1}
	if x, ok := out.Array.(array.ExtensionArray); ok {
		out.Array = x.Storage()
	}
	t, ok := TypeOf(out.Array.DataType())
	if out.Array.DataType().ID() == arrow.NULL {
		out.nothing = true
		return out, nil
	}
	if !ok || !sameType(t, in.Type) {
		return nil, fault.Bugf("the predicate is bound to another type than that of the array, %s",
			out.Array.DataType())
	}
	if d, ok := out.Array.(*array.Dictionary); ok {
		values := d.Dictionary()
		out.dict = out.load(values, 0, values.Len(), nil)
		n := values.Len()
		out.codes = func(i int) int {
			if k := d.GetValueIndex(i); k >= 0 && k < n {
				return k
			}
			out.err = fault.Bugf("a code that is not in the dictionary of %d values", n)
			return -1
		}
	}
	return out, out.err
}

func sameType(a, b Type) bool {
	if a.Kind == List || b.Kind == List {
		return a.Kind == b.Kind && sameType(*a.Elem, *b.Elem)
	}
	return a == b
}

// block returns the values of the rows of r's block.
func (in *input) block(r *run) *vec {
	if in.nothing {
		v := r.alloc(in.Type, r.boolPool.get(r.n))
		for i := range v.null {
			v.null[i] = true
		}
		return v
	}
	if in.at == r.at && in.block_ != nil {
		return in.block_
	}
	var null []bool
	for i := range r.n {
		if in.Valid[(r.at+i)/64]>>((r.at+i)%64)&1 == 0 {
			if null == nil {
				null = make([]bool, r.n)
			}
			null[i] = true
		}
	}
	if in.dict != nil {
		in.block_ = in.decode(r, null)
	} else {
		in.block_ = in.load(in.Array, r.at, r.n, null)
	}
	in.at = r.at
	return in.block_
}

// decode looks up the values of a dictionary.
func (in *input) decode(r *run, null []bool) *vec {
	v := (&run{n: r.n}).alloc(in.Type, null)
	for i := range r.n {
		if null != nil && null[i] {
			continue
		}
		k := in.codes(r.at + i)
		if k < 0 || in.dict.isNull(k) {
			if v.null == nil {
				null = make([]bool, r.n)
				v.null = null
			}
			v.null[i] = true
			continue
		}
		v.copyFrom(i, in.dict, k)
	}
	return v
}

// load returns n cells of a from at on. With null nil, the array's own nulls are taken.
func (in *input) load(a arrow.Array, at, n int, null []bool) *vec {
	if at+n > a.Len() {
		in.err = fault.Bugf("%d cells of an array of %d", at+n, a.Len())
		n = max(0, a.Len()-at)
	}
	if null == nil && a.NullN() > 0 {
		null = make([]bool, n)
		for i := range null {
			null[i] = a.IsNull(at + i)
		}
	}
	t, _ := TypeOf(a.DataType())
	v := &vec{mask: -1, null: null}
	switch t.Kind {
	case Bool:
		v.bools = make([]bool, n)
		b := a.(*array.Boolean)
		for i := range v.bools {
			v.bools[i] = b.Value(at + i)
		}
	case Float:
		v.floats = in.floats(a, at, n)
	case Decimal:
		v.decs = in.decimals(a, at, n)
	case String, Binary:
		v.texts = in.texts(a, at, n, null)
	case List:
		in.lists(v, a, at, n)
	case Null:
	default:
		v.ints = in.ints(a, at, n)
	}
	return v
}

// cells returns the n cells of fixed width from at on, as they are in memory.
func cells[T any](in *input, a arrow.Array, at, n int) []T {
	var zero T
	b := a.Data().Buffers()
	from := a.Data().Offset() + at
	if len(b) < 2 || b[1] == nil || b[1].Len()/int(unsafe.Sizeof(zero)) < from+n {
		if n > 0 {
			in.err = fault.Bugf("the values of the array are shorter than %d entries", from+n)
		}
		return make([]T, n)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b[1].Bytes()))), from+n)[from:]
}

// widen converts integers to 64 bits, times factor.
func widen[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](in *input, a arrow.Array, at, n int,
	factor int64) []int64 {
	out := make([]int64, n)
	for i, x := range cells[T](in, a, at, n) {
		out[i] = int64(x) * factor
	}
	return out
}

func (in *input) ints(a arrow.Array, at, n int) []int64 {
	switch t := a.DataType().(type) {
	case *arrow.Time32Type:
		return widen[int32](in, a, at, n, 1e9/perSecond(t.Unit))
	case *arrow.Time64Type:
		return widen[int64](in, a, at, n, 1e9/perSecond(t.Unit))
	}
	switch a.DataType().ID() {
	case arrow.INT8:
		return widen[int8](in, a, at, n, 1)
	case arrow.INT16:
		return widen[int16](in, a, at, n, 1)
	case arrow.INT32, arrow.DATE32:
		return widen[int32](in, a, at, n, 1)
	case arrow.UINT8:
		return widen[uint8](in, a, at, n, 1)
	case arrow.UINT16:
		return widen[uint16](in, a, at, n, 1)
	case arrow.UINT32:
		return widen[uint32](in, a, at, n, 1)
	}
	return cells[int64](in, a, at, n)
}

func (in *input) floats(a arrow.Array, at, n int) []float64 {
	switch a.DataType().ID() {
	case arrow.FLOAT64:
		return cells[float64](in, a, at, n)
	case arrow.FLOAT32:
		out := make([]float64, n)
		for i, x := range cells[uint32](in, a, at, n) {
			out[i] = float64(math.Float32frombits(x))
		}
		return out
	}
	out := make([]float64, n)
	for i, x := range cells[uint16](in, a, at, n) {
		out[i] = float64(half.Float(x))
	}
	return out
}

func (in *input) decimals(a arrow.Array, at, n int) []decimal128.Num {
	out := make([]decimal128.Num, n)
	switch a.DataType().ID() {
	case arrow.UINT64:
		for i, x := range cells[uint64](in, a, at, n) {
			out[i] = decimal128.New(0, x)
		}
	case arrow.DECIMAL32:
		for i, x := range cells[int32](in, a, at, n) {
			out[i] = decimal128.FromI64(int64(x))
		}
	case arrow.DECIMAL64:
		for i, x := range cells[int64](in, a, at, n) {
			out[i] = decimal128.FromI64(x)
		}
	default:
		return cells[decimal128.Num](in, a, at, n)
	}
	return out
}

// texts returns strings in the memory of a; those of nulls are empty.
func (in *input) texts(a arrow.Array, at, n int, null []bool) []string {
	out := make([]string, n)
	var get func(i int) string
	bytes := func(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
	switch a := a.(type) {
	case array.StringLike:
		get = a.Value
	case *array.Binary:
		get = func(i int) string { return bytes(a.Value(i)) }
	case *array.LargeBinary:
		get = func(i int) string { return bytes(a.Value(i)) }
	case *array.BinaryView:
		get = func(i int) string { return bytes(a.Value(i)) }
	case *array.FixedSizeBinary:
		get = func(i int) string { return bytes(a.Value(i)) }
	default:
		in.err = fault.Bugf("no texts in a %s", a.DataType())
		return out
	}
	defer func() { // offsets that do not lie in the data: the array comes from outside
		if p := recover(); p != nil {
			in.err = fault.Bugf("the offsets of the array do not lie in its data: %v", p)
		}
	}()
	for i := range out {
		if null == nil || !null[i] {
			out[i] = get(at + i)
		}
	}
	return out
}

// lists sets the limits and elements of lists.
func (in *input) lists(v *vec, a arrow.Array, at, n int) {
	l := a.(array.ListLike)
	v.from, v.to = make([]int, n), make([]int, n)
	low, high := math.MaxInt, 0
	for i := range n {
		if v.null != nil && v.null[i] {
			continue
		}
		from, to := l.ValueOffsets(at + i)
		if from < 0 || from > to || to > int64(l.ListValues().Len()) {
			in.err = fault.Bugf("the offsets of a list do not lie in its %d elements", l.ListValues().Len())
			return
		}
		if from < to {
			low, high = min(low, int(from)), max(high, int(to))
			v.from[i], v.to[i] = int(from), int(to)
		}
	}
	if low > high {
		low = high
	}
	elems := l.ListValues()
	if in.Type.Elem.Kind == Other {
		v.elems = &vec{mask: -1}
		return
	}
	if x, ok := elems.(array.ExtensionArray); ok {
		elems = x.Storage()
	}
	if d, ok := elems.(*array.Dictionary); ok {
		sub, err := open(Input{Array: d, Type: *in.Type.Elem, Valid: validBits(d)})
		if err != nil {
			in.err = err
			return
		}
		v.elems = sub.block(&run{n: high - low, at: low})
		in.err = sub.err
	} else {
		v.elems = in.load(elems, low, high-low, nil)
	}
	for i := range n {
		if v.from[i] < v.to[i] {
			v.from[i], v.to[i] = v.from[i]-low, v.to[i]-low
		}
	}
}

func validBits(a arrow.Array) []uint64 {
	out := make([]uint64, (a.Len()+63)/64)
	for i := range a.Len() {
		if a.IsValid(i) {
			out[i/64] |= 1 << (i % 64)
		}
	}
	return out
}
