package vec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Emit returns the first n entries as an Arrow array, which owns its buffers, and keeps the other entries.
func (v *Vector) Emit(n int) (arrow.Array, error) {
	if _, _, ok := v.Coded(); !ok || n == v.n { // if entries remain, they can remain codes
		if err := v.Plain(); err != nil {
			return nil, err
		}
	}
	rest, err := v.cut(n)
	if err == nil {
		err = v.Plain()
	}
	if err != nil {
		if rest != nil {
			rest.Release()
		}
		return nil, err
	}
	d := v.arrayData(v.n)
	v.Release()
	*v = *rest
	defer d.Release()
	return array.MakeFromData(d), nil
}

// CodesOf is the type of dictionary arrays of t.
func CodesOf(t arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t}
}

// EmitCodes is Emit for strings as a dictionary array, of type CodesOf. Codes remain those that are stored, and share
// their dictionary; entries that are not all codes of one dictionary get one of their own, of different strings.
func (v *Vector) EmitCodes(n int) (arrow.Array, error) {
	_, dict, ok := v.Coded()
	if !ok || dict.n == 0 {
		return v.emitOwn(n)
	}
	rest, err := v.cut(n)
	if err != nil {
		return nil, err
	}
	d := v.coded32(v.Type, dict)
	v.Release()
	*v = *rest
	defer d.Release()
	return array.MakeFromData(d), nil
}

// coded32 returns the entries, all of which are codes, as a dictionary array. Codes are below 2³¹, as dictionaries are.
func (v *Vector) coded32(t arrow.DataType, dict *Vector) *array.Data {
	dd := dict.dictData()
	defer dd.Release()
	valid := v.valid
	if v.nulls == 0 {
		valid = nil
	}
	return array.NewDataWithDictionary(CodesOf(t), v.n, []*memory.Buffer{valid, v.codes}, v.nulls, 0, dd)
}

// emitOwn returns the first n entries as codes of a dictionary of their own, which has each string once.
func (v *Vector) emitOwn(n int) (arrow.Array, error) {
	if err := v.Plain(); err != nil {
		return nil, err
	}
	rest, err := v.cut(n)
	if err != nil {
		return nil, err
	}
	own := Vector{mem: v.mem}
	own.grow(&own.codes, 4*n)
	defer own.Release()
	first := v.distinct(words[uint32](own.codes, n))
	dict, err := New(v.Type, v.mem)
	if err == nil {
		err = dict.Interleave([]*Vector{v}, make([]uint16, len(first)), first)
	}
	if err != nil {
		rest.Release()
		return nil, err
	}
	if dict.n == 0 && n > 0 { // nulls have the number 0
		dict.ExtendUnset(1)
	}
	own.n, own.nulls = n, v.nulls
	own.valid, v.valid = v.valid, nil
	d := own.coded32(v.Type, dict)
	dict.Release()
	v.Release()
	*v = *rest
	defer d.Release()
	return array.MakeFromData(d), nil
}

// distinct numbers the different strings of v, writes the number of each entry to codes, and returns where each string
// is first. A null has the number 0.
func (v *Vector) distinct(codes []uint32) (first []int32) {
	offs, b := words[int32](v.offs, v.n+1), v.StringBytes()
	seen := map[string]uint32{}
	for i := range codes {
		codes[i] = 0
		if !v.Valid(i) {
			continue
		}
		text := b[offs[i]:offs[i+1]]
		c, ok := seen[string(text)]
		if !ok {
			c, first = uint32(len(first)), append(first, int32(i))
			seen[string(text)] = c
		}
		codes[i] = c
	}
	return first
}

// cut removes the entries after the first n, and returns a vector that has them.
func (v *Vector) cut(n int) (*Vector, error) {
	rest := &Vector{Type: v.Type, kind: v.kind, width: v.width, mem: v.mem, hint: v.hint}
	if rest.hint.peak = max(v.hint.peak, v.n); v.kind == strs && v.offs != nil && v.coded > 0 {
		rest.hint.bytes, rest.hint.strings = int64(words[int32](v.offs, v.coded+1)[v.coded]), int64(v.coded)
	}
	if v.Items != nil {
		rest.Items = &Vector{Type: v.Items.Type, kind: v.Items.kind, width: v.Items.width, mem: v.mem}
	}
	if n < v.n {
		if err := rest.appendRun(v, n, v.n); err != nil {
			return nil, err
		}
		v.Truncate(n)
	}
	return rest, nil
}

// View returns the first n entries as an Arrow array that shares v's buffers: it must be released before v changes.
// Entries that are all codes of one dictionary become a dictionary array.
func (v *Vector) View(n int) (arrow.Array, error) {
	_, dict, ok := v.Coded()
	if !ok || dict.n == 0 {
		if err := v.Plain(); err != nil {
			return nil, err
		}
		d := v.arrayData(n)
		defer d.Release()
		return array.MakeFromData(d), nil
	}
	dd := dict.dictData()
	defer dd.Release()
	t := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: v.Type}
	d := array.NewDataWithDictionary(t, n, []*memory.Buffer{v.valid, v.codes}, v.nullsIn(n), 0, dd)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// dictData returns the values of a dictionary, the same ones each time after AsDict. The caller releases them.
func (v *Vector) dictData() *array.Data {
	if v.values == nil {
		return v.arrayData(v.n)
	}
	v.values.Retain()
	return v.values
}

func (v *Vector) nullsIn(n int) int {
	if n == v.n || v.valid == nil {
		return v.nulls
	}
	return countZeros(v.valid.Buf(), 0, n)
}

func (v *Vector) arrayData(n int) *array.Data {
	var bufs []*memory.Buffer
	var children []arrow.ArrayData
	valid := v.valid
	nulls := v.nullsIn(n)
	if nulls == 0 {
		valid = nil
	}
	switch v.kind {
	case null:
		return array.NewData(v.Type, n, []*memory.Buffer{nil}, nil, n, 0)
	case fixed, boolean:
		bufs = []*memory.Buffer{valid, v.data}
	case strs, list:
		if v.offs == nil {
			v.grow(&v.offs, 4)
			words[int32](v.offs, 1)[0] = 0
		}
		bufs = []*memory.Buffer{valid, v.offs, v.data}
		if v.kind == list {
			bufs = bufs[:2]
			c := v.Items.arrayData(int(words[int32](v.offs, n+1)[n]))
			defer c.Release()
			children = []arrow.ArrayData{c}
		} else if v.data != nil {
			if end := int(words[int32](v.offs, n+1)[n]); v.data.Len() != end { // a dictionary is shared: see AsDict
				v.data.ResizeNoShrink(end)
			}
		}
	}
	return array.NewData(v.Type, n, bufs, children, nulls, 0)
}
