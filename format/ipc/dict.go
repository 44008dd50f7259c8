package ipc

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/vec"
)

// grower keeps one dictionary for a column of a file. A file may have one dictionary a column only, which later batches
// may lengthen but not replace; the batches that come may each have a dictionary of their own.
type grower struct {
	name string
	typ  *arrow.DictionaryType
	mem  memory.Allocator
	dict arrow.Array // what was written so far; nil before the first batch
	seen arrow.Array // the dictionary that came last
	to   []int32     // its values' places in dict; nil: the same
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

// translate gives an array the file's own dictionaries. The caller releases the result.
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

// translate gives d the column's own dictionary. The caller releases the result.
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

// grow takes the values of d into the dictionary and notes where they are. What the library joins has each value once,
// so the first dictionary has to, too: else it would not be the beginning of the next.
func (g *grower) grow(d arrow.Array) error {
	if g.seen != nil && (g.seen == d || array.Equal(g.seen, d)) {
		return nil
	}
	u, err := array.NewDictionaryUnifier(g.mem, g.typ.ValueType)
	if err != nil && g.dict == nil {
		d.Retain()
		d.Retain()
		g.dict, g.seen = d, d
		return nil
	}
	if err != nil {
		return fault.New(fault.Unsupported, fault.Span{}, "",
			"column %q: the dictionary changes, and values of type %s cannot be joined: write a stream (stream=true)",
			g.name, g.typ.ValueType)
	}
	defer u.Release()
	if g.dict != nil {
		first, err := u.UnifyAndTranspose(g.dict)
		if err != nil {
			return err
		}
		first.Release()
	}
	to, err := u.UnifyAndTranspose(d)
	if err != nil {
		return err
	}
	defer to.Release()
	joined, err := u.GetResultWithIndexType(g.typ.IndexType)
	if err != nil {
		return fault.New(fault.Unsupported, fault.Span{}, "", "column %q: the dictionaries of the batches "+
			"together have more values than %s can number: write a stream (stream=true)", g.name, g.typ.IndexType)
	}
	d.Retain()
	g.release()
	g.dict, g.seen = joined, d
	if g.to = append([]int32{}, arrow.Int32Traits.CastFromBytes(to.Bytes())...); array.IsTrivialTransposition(g.to) {
		g.to = nil
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

// translate gives every dictionary of b, nested ones too, its file's, and b the writer's schema, from which its own
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

func hasDictionary(t arrow.DataType) bool {
	if n, ok := t.(arrow.NestedType); ok {
		return slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return hasDictionary(f.Type) })
	}
	return t.ID() == arrow.DICTIONARY
}
