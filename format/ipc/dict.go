package ipc

import (
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

// growers are those of the top-level dictionary columns of sc; nil for other columns.
func growers(sc *arrow.Schema, mem memory.Allocator) []*grower {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	mem = vec.Zeroed{Allocator: mem}
	out := make([]*grower, sc.NumFields())
	for i, f := range sc.Fields() {
		if t, ok := f.Type.(*arrow.DictionaryType); ok {
			out[i] = &grower{name: f.Name, typ: t, mem: mem}
		}
	}
	return out
}

// translate gives a the column's own dictionary. The caller releases the result.
func (g *grower) translate(a *array.Dictionary) (arrow.Array, error) {
	if err := g.grow(a.Dictionary()); err != nil {
		return nil, err
	}
	if g.to == nil {
		data := array.NewDataWithDictionary(g.typ, a.Len(), a.Data().Buffers(), a.Data().NullN(), a.Data().Offset(),
			g.dict.Data().(*array.Data))
		defer data.Release()
		return array.MakeFromData(data), nil
	}
	data, err := array.TransposeDictIndices(g.mem, a.Data(), g.typ, g.typ, g.dict.Data(), g.to)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

// grow takes the values of d into the dictionary and notes where they are.
func (g *grower) grow(d arrow.Array) error {
	switch {
	case g.seen != nil && (g.seen == d || array.Equal(g.seen, d)):
		return nil
	case g.dict == nil:
		d.Retain()
		d.Retain()
		g.dict, g.seen = d, d
		return nil
	}
	u, err := array.NewDictionaryUnifier(g.mem, g.typ.ValueType)
	if err != nil {
		return fault.New(fault.Unsupported, fault.Span{}, "",
			"column %q: the dictionary changes, and values of type %s cannot be joined: write a stream (stream=true)", g.name, g.typ.ValueType)
	}
	defer u.Release()
	first, err := u.UnifyAndTranspose(g.dict)
	if err != nil {
		return err
	}
	first.Release()
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
	g.to = append([]int32{}, arrow.Int32Traits.CastFromBytes(to.Bytes())...)
	return nil
}

func (g *grower) release() {
	if g.dict != nil {
		g.dict.Release()
		g.seen.Release()
		g.dict, g.seen = nil, nil
	}
}

// translate gives every dictionary column of b its file's dictionary, and b the writer's schema, from which its own may
// differ in metadata. The caller releases the result.
func translate(b arrow.RecordBatch, sc *arrow.Schema, gs []*grower) (arrow.RecordBatch, error) {
	cols := append([]arrow.Array{}, b.Columns()...)
	var mine []arrow.Array
	defer func() {
		for _, a := range mine {
			a.Release()
		}
	}()
	for i, g := range gs {
		d, ok := cols[i].(*array.Dictionary)
		if g == nil || !ok {
			continue
		}
		a, err := g.translate(d)
		if err != nil {
			return nil, err
		}
		cols[i] = a
		mine = append(mine, a)
	}
	return array.NewRecordBatch(sc, cols, b.NumRows()), nil
}

func hasDictionary(t arrow.DataType) bool {
	if n, ok := t.(arrow.NestedType); ok {
		return slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return hasDictionary(f.Type) })
	}
	return t.ID() == arrow.DICTIONARY
}
