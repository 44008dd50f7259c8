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

// grower keeps one dictionary for a column of a file. A file can have only one dictionary a column, which later batches
// may extend but not replace; the batches to be written may each have a different one.
type grower struct {
	name string
	typ  *arrow.DictionaryType
	mem  memory.Allocator
	dict arrow.Array // what was written so far; nil before the first batch
	seen arrow.Array // the dictionary that came last
	to   []int32     // its values' places in dict; nil: the same

	places map[string]int32 // of the values of dict, by keyOf; nil before a second dictionary comes
}

// grown is where in a type dictionaries are: its own, those of its children, or both are nil.
type grown struct {
	dict     *grower
	children []*grown
}

// growers are those of the fields; nil where no dictionary is.
func growers(fields []arrow.Field, mem memory.Allocator) []*grown {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	mem = vec.Zeroed{Allocator: mem}
	out := make([]*grown, len(fields))
	for i, f := range fields {
		out[i] = growerOf(f.Name, f.Type, mem)
	}
	return out
}

func growerOf(name string, t arrow.DataType, mem memory.Allocator) *grown {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return &grown{dict: &grower{name: name, typ: t, mem: mem}}
	case arrow.ExtensionType:
		return growerOf(name, t.StorageType(), mem)
	case arrow.NestedType:
		g, some := &grown{}, false
		for _, f := range t.Fields() {
			c := growerOf(name+"."+f.Name, f.Type, mem)
			g.children, some = append(g.children, c), some || c != nil
		}
		if some {
			return g
		}
	}
	return nil
}

// translate returns an array with the file's own dictionaries. The caller releases it.
func (g *grown) translate(d *array.Data) (*array.Data, error) {
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

func (g *grown) release() {
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
func (g *grower) translate(d *array.Data) (*array.Data, error) {
	values := array.MakeFromData(d.Dictionary())
	defer values.Release()
	if err := g.grow(values); err != nil {
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
	for i := range d.Len() { // under a null there may be any number
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

// grow takes the values of d into the dictionary and notes where they are. Values are the same if their bytes are: the
// library's unifier makes one of all that are no number.
func (g *grower) grow(d arrow.Array) error {
	if g.seen != nil && (g.seen == d || sameValues(g.seen, d)) {
		return nil
	}
	if g.dict == nil {
		d.Retain()
		d.Retain()
		g.dict, g.seen = d, d
		return nil
	}
	if keyOf(d) == nil {
		return fault.New(fault.Unsupported, fault.Span{}, "",
			"column %q: the dictionary changes, and values of type %s cannot be joined: write a stream (stream=true)",
			g.name, g.typ.ValueType)
	}
	if g.places == nil {
		g.places = map[string]int32{}
		for i, key := 0, keyOf(g.dict); i < g.dict.Len(); i++ {
			if _, ok := g.places[key(i)]; !ok {
				g.places[key(i)] = int32(i)
			}
		}
	}
	to, more := make([]int32, d.Len()), []arrow.Array{g.dict}
	n := g.dict.Len()
	for i, key := 0, keyOf(d); i < d.Len(); i++ {
		at, ok := g.places[key(i)]
		if !ok {
			at = int32(n)
			n++
			g.places[key(i)] = at
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

// sameValues is array.Equal, for which 0 and -0 are the same, by the values' bytes where they are known.
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

// keyOf returns the bytes of a's values, nulls marked separately; nil: their type has none.
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

func (g *grower) release() {
	if g.dict != nil {
		g.dict.Release()
		g.seen.Release()
		g.dict, g.seen = nil, nil
	}
}

// translate returns every dictionary of b, nested ones too, its file's, and b the writer's schema, from which its own
// may differ in metadata. The caller releases the result.
func translate(b arrow.RecordBatch, sc *arrow.Schema, gs []*grown) (arrow.RecordBatch, error) {
	cols := append([]arrow.Array{}, b.Columns()...)
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
