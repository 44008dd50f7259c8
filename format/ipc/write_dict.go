package ipc

import (
	"encoding/binary"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/vec"
)

// columnDictionary is the dictionary of a column of a file. A file has one dictionary per column, which later batches
// may extend but not replace; the batches to be written may each have a different one.
type columnDictionary struct {
	name string
	typ  *arrow.DictionaryType
	mem  memory.Allocator
	dict arrow.Array // the values written so far; nil before the first batch
	seen arrow.Array // the dictionary of the previous batch
	to   []int32     // indices in dict of the values of seen; nil: identical

	index map[string]int32 // indices of the values of dict, by keyOf; nil before the second dictionary
}

// dictTree locates the dictionaries in a type: its own or those of its children; the other is nil.
type dictTree struct {
	dict     *columnDictionary
	children []*dictTree
}

// dictTreesOf returns the trees of the fields; nil for a field without dictionaries.
func dictTreesOf(fields []arrow.Field, mem memory.Allocator) []*dictTree {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	mem = vec.Zeroed{Allocator: mem}
	out := make([]*dictTree, len(fields))
	for i, f := range fields {
		out[i] = dictTreeOf(f.Name, f.Type, mem)
	}
	return out
}

func dictTreeOf(name string, t arrow.DataType, mem memory.Allocator) *dictTree {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return &dictTree{dict: &columnDictionary{name: name, typ: t, mem: mem}}
	case arrow.ExtensionType:
		return dictTreeOf(name, t.StorageType(), mem)
	case arrow.NestedType:
		g, some := &dictTree{}, false
		for _, f := range t.Fields() {
			c := dictTreeOf(name+"."+f.Name, f.Type, mem)
			g.children, some = append(g.children, c), some || c != nil
		}
		if some {
			return g
		}
	}
	return nil
}

// translate returns an array with the file's own dictionaries. The caller releases it.
func (g *dictTree) translate(d *array.Data) (*array.Data, error) {
	switch {
	case g == nil:
		d.Retain()
		return d, nil
	case g.dict != nil:
		return g.dict.translate(d)
	}
	children := make([]arrow.ArrayData, len(g.children))
	for i, c := range d.Children() {
		made, err := g.children[i].translate(c.(*array.Data))
		if err != nil {
			return nil, err
		}
		defer made.Release()
		children[i] = made
	}
	return array.NewData(d.DataType(), d.Len(), d.Buffers(), children, d.NullN(), d.Offset()), nil
}

func (g *dictTree) release() {
	if g == nil {
		return
	}
	if g.dict != nil {
		g.dict.release()
	}
	for _, c := range g.children {
		c.release()
	}
}

// translate returns d with the column's own dictionary. The caller releases it.
func (g *columnDictionary) translate(d *array.Data) (*array.Data, error) {
	values := array.MakeFromData(d.Dictionary())
	defer values.Release()
	if err := g.extend(values); err != nil {
		return nil, err
	}
	own := g.dict.Data().(*array.Data)
	if g.to == nil {
		return array.NewDataWithDictionary(d.DataType(), d.Len(), d.Buffers(), d.NullN(), d.Offset(), own), nil
	}
	a := array.NewDictionaryData(d)
	defer a.Release()
	width := g.typ.IndexType.(arrow.FixedWidthDataType).BitWidth() / 8
	buf := memory.NewResizableBuffer(g.mem)
	defer buf.Release()
	buf.Resize(width * (d.Offset() + d.Len()))
	clear(buf.Bytes())
	for i := range d.Len() { // the index under a null is arbitrary
		if a.IsNull(i) {
			continue
		}
		from := a.GetValueIndex(i)
		if from < 0 || from >= len(g.to) {
			return nil, fault.Invalidf("column %q: entry %d of a dictionary of %d", g.name, from, len(g.to))
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], uint64(g.to[from]))
		copy(buf.Bytes()[width*(d.Offset()+i):], word[:width])
	}
	return array.NewDataWithDictionary(d.DataType(), d.Len(), []*memory.Buffer{d.Buffers()[0], buf}, d.NullN(),
		d.Offset(), own), nil
}

// extend adds the values of d to the dictionary, and sets to. Values are compared by their bytes: the library's unifier
// does not distinguish NaNs, nor 0 and -0.
func (g *columnDictionary) extend(d arrow.Array) error {
	if g.seen != nil && (g.seen == d || sameValues(g.seen, d)) {
		return nil
	}
	if g.dict == nil {
		d.Retain()
		g.dict, g.seen = notEmpty(d, g.mem), d
		return nil
	}
	if keyOf(d) == nil {
		return fault.New(fault.Unsupported, fault.Span{}, "",
			"column %q: the dictionary changes, and values of type %s cannot be joined: write a stream (stream=true)",
			g.name, g.typ.ValueType)
	}
	if g.index == nil {
		g.index = map[string]int32{}
		for i, key := 0, keyOf(g.dict); i < g.dict.Len(); i++ {
			if _, ok := g.index[key(i)]; !ok {
				g.index[key(i)] = int32(i)
			}
		}
	}
	to, more := make([]int32, d.Len()), []arrow.Array{g.dict}
	n := g.dict.Len()
	for i, key := 0, keyOf(d); i < d.Len(); i++ {
		at, ok := g.index[key(i)]
		if !ok {
			at = int32(n)
			n++
			g.index[key(i)] = at
			value := array.NewSlice(d, int64(i), int64(i)+1)
			defer value.Release()
			more = append(more, value)
		}
		to[i] = at
	}
	if bits := g.typ.IndexType.(arrow.FixedWidthDataType).BitWidth(); bits < 32 {
		if arrow.IsSignedInteger(g.typ.IndexType.ID()) {
			bits--
		}
		if n > 1<<bits {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q: the dictionaries of the batches "+
				"together have more values than %s can number: write a stream (stream=true)", g.name, g.typ.IndexType)
		}
	}
	joined, err := array.Concatenate(more, g.mem)
	if err != nil {
		return err
	}
	d.Retain()
	g.release()
	g.dict, g.seen, g.to = joined, d, to
	return nil
}

// notEmpty returns d, or one zero value if d has no values: the library writes additions to an empty dictionary as a
// replacement, which files do not allow. The caller releases it.
func notEmpty(d arrow.Array, mem memory.Allocator) arrow.Array {
	if d.Len() > 0 || keyOf(d) == nil {
		d.Retain()
		return d
	}
	null := array.MakeArrayOfNull(mem, d.DataType(), 1)
	defer null.Release()
	buffers := append([]*memory.Buffer{nil}, null.Data().Buffers()[1:]...)
	zero := array.NewData(d.DataType(), 1, buffers, nil, 0, 0)
	defer zero.Release()
	return array.MakeFromData(zero)
}

// sameValues is array.Equal, but compares the bytes of values if they are known: for array.Equal 0 and -0 are the same.
func sameValues(a, b arrow.Array) bool {
	x, y := keyOf(a), keyOf(b)
	if x == nil || y == nil {
		return array.Equal(a, b)
	}
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if x(i) != y(i) {
			return false
		}
	}
	return true
}

// keyOf returns a function that returns the bytes of a's values, nulls marked separately; nil if their type has no
// bytes.
func keyOf(a arrow.Array) func(i int) string {
	value := bytesOf(a)
	if value == nil {
		return nil
	}
	return func(i int) string {
		if a.IsNull(i) {
			return ""
		}
		return "=" + value(i)
	}
}

func bytesOf(a arrow.Array) func(i int) string {
	switch a := a.(type) {
	case *array.String:
		return a.Value
	case *array.LargeString:
		return a.Value
	case *array.StringView:
		return a.Value
	case *array.Binary:
		return func(i int) string { return string(a.Value(i)) }
	case *array.LargeBinary:
		return func(i int) string { return string(a.Value(i)) }
	case *array.BinaryView:
		return func(i int) string { return string(a.Value(i)) }
	case *array.Boolean:
		return func(i int) string { return strconv.FormatBool(a.Value(i)) }
	}
	t, ok := a.DataType().(arrow.FixedWidthDataType)
	if b := a.Data().Buffers(); ok && t.BitWidth()%8 == 0 && len(b) == 2 && len(a.Data().Children()) == 0 &&
		a.Data().Dictionary() == arrow.ArrayData((*array.Data)(nil)) {
		w := t.BitWidth() / 8
		return func(i int) string { return string(b[1].Bytes()[(a.Data().Offset()+i)*w:][:w]) }
	}
	return nil
}

func (g *columnDictionary) release() {
	if g.dict != nil {
		g.dict.Release()
		g.seen.Release()
		g.dict, g.seen = nil, nil
	}
}

// translate returns b with the file's dictionaries, nested ones too, and the writer's schema, from which its own may
// differ in metadata. The caller releases the result.
func translate(b arrow.RecordBatch, sc *arrow.Schema, gs []*dictTree) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		compact, err := compactViews(c)
		if err != nil {
			return nil, err
		}
		cols[i] = vec.NoShortOffsets(compact)
		compact.Release()
		defer cols[i].Release()
	}
	for i, g := range gs {
		if g == nil {
			continue
		}
		d, err := g.translate(cols[i].Data().(*array.Data))
		if err != nil {
			return nil, err
		}
		cols[i] = array.MakeFromData(d)
		d.Release()
		defer cols[i].Release()
	}
	return array.NewRecordBatch(sc, cols, b.NumRows()), nil
}
