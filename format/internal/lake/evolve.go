package lake

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/vec"
)

// Match finds a field of a table among those of a file; -1 if the file is older than the field.
type Match func(f arrow.Field, in []arrow.Field, path []string) int

// ByID matches by ids. If no field of the file has an id, fallback is used (names if it is nil).
func ByID(fallback Match) Match {
	return func(f arrow.Field, in []arrow.Field, path []string) int {
		if !slices.ContainsFunc(in, func(x arrow.Field) bool { return IDOf(x) >= 0 }) {
			if fallback == nil {
				return ByName(f, in, path)
			}
			return fallback(f, in, path)
		}
		id := IDOf(f)
		return slices.IndexFunc(in, func(x arrow.Field) bool { return IDOf(x) == id })
	}
}

// ByName matches by names.
func ByName(f arrow.Field, in []arrow.Field, _ []string) int {
	return slices.IndexFunc(in, func(x arrow.Field) bool { return x.Name == f.Name })
}

// ByKey matches the name that the table's field has under a key of its metadata.
func ByKey(key string) Match {
	return func(f arrow.Field, in []arrow.Field, path []string) int {
		name, ok := f.Metadata.GetValue(key)
		if !ok {
			return ByName(f, in, path)
		}
		return slices.IndexFunc(in, func(x arrow.Field) bool { return x.Name == name })
	}
}

// fieldMap is a field of the table and its position in a file.
type fieldMap struct {
	to       arrow.DataType
	index    int  // among the fields of the file, or of the group; -1 if absent
	same     bool // the file's type is the table's, with the same fields
	children []*fieldMap
	fill     arrow.Array // the value in rows of files without the field; nil: null
}

// matcher finds fields in files, and the values of those that are not there.
type matcher struct {
	match    Match
	defaults map[int]arrow.Array
}

func (t *Table) matcher() matcher { return matcher{t.c.Match, t.c.Defaults} }

// absent returns the values of a field that the file lacks.
func (n *fieldMap) absent(rows int, mem memory.Allocator) (arrow.Array, error) {
	if n.fill != nil && rows > 0 {
		return repeat(n.fill, rows, mem)
	}
	return vec.Nulls(mem, n.to, rows), nil
}

// matchFields locates the fields of a table in a file, or in a group of it.
func matchFields(fields, in []arrow.Field, m matcher, path []string) (out []*fieldMap, err error) {
	for _, f := range fields {
		at := append(slices.Clone(path), f.Name)
		n := &fieldMap{to: f.Type, index: m.match(f, in, path)}
		if n.index >= 0 {
			if err := n.matchType(f, in[n.index], m, at); err != nil {
				return nil, err
			}
		} else if n.fill = m.defaults[IDOf(f)]; n.fill == nil && !f.Nullable && len(path) > 0 {
			return nil, fault.Corruptf(fault.Span{}, f.Name, "the file has no such field, and it cannot be null")
		}
		out = append(out, n)
	}
	return out, nil
}

// matchType matches the children of a field.
func (n *fieldMap) matchType(f, have arrow.Field, m matcher, path []string) (err error) {
	n.same = arrow.TypeEqual(f.Type, have.Type)
	switch t := f.Type.(type) {
	case *arrow.StructType:
		h, ok := have.Type.(*arrow.StructType)
		if !ok {
			return refused(have.Type, f.Type)
		}
		if n.children, err = matchFields(t.Fields(), h.Fields(), m, path); err != nil {
			return err
		}
		n.same = n.same && len(h.Fields()) == len(n.children)
	case *arrow.MapType:
		h, ok := have.Type.(*arrow.MapType)
		if !ok {
			return refused(have.Type, f.Type)
		}
		key, value := &fieldMap{to: t.KeyType()}, &fieldMap{to: t.ItemType(), index: 1}
		if err := key.matchType(t.KeyField(), h.KeyField(), m, append(path, "key")); err != nil {
			return err
		}
		if err := value.matchType(t.ItemField(), h.ItemField(), m, append(path, "value")); err != nil {
			return err
		}
		n.children = []*fieldMap{key, value}
	case *arrow.ListType:
		h, ok := have.Type.(arrow.ListLikeType)
		if !ok || have.Type.ID() == arrow.MAP {
			return refused(have.Type, f.Type)
		}
		item := &fieldMap{to: t.Elem()}
		if err := item.matchType(t.ElemField(), h.ElemField(), m, append(path, "element")); err != nil {
			return err
		}
		n.children = []*fieldMap{item}
	}
	for i, c := range n.children {
		n.same = n.same && c.same && (f.Type.ID() != arrow.STRUCT || c.index == i)
	}
	return nil
}

// apply converts an array of the file to the table's type.
func (n *fieldMap) apply(a arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	if n.same {
		a.Retain()
		return a, nil
	}
	switch n.to.(type) {
	case *arrow.StructType:
		return n.applyStruct(a, n.to, mem)
	case *arrow.ListType:
		l := a.(array.ListLike)
		if a.DataType().ID() != arrow.LIST {
			return Cast(a, n.to, mem)
		}
		item, err := n.children[0].apply(l.ListValues(), mem)
		if err != nil {
			return nil, err
		}
		return rebuild(a, n.to, a.Data().Buffers(), []arrow.Array{item}, a.Data().Offset()), nil
	case *arrow.MapType:
		entries := &fieldMap{to: n.to.(*arrow.MapType).Elem(), children: n.children}
		item, err := entries.applyStruct(a.(*array.Map).ListValues(), entries.to, mem)
		if err != nil {
			return nil, err
		}
		return rebuild(a, n.to, a.Data().Buffers(), []arrow.Array{item}, a.Data().Offset()), nil
	}
	return Cast(a, n.to, mem)
}

func (n *fieldMap) applyStruct(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	s := a.(*array.Struct)
	var children []arrow.Array
	for i, c := range n.children {
		var out arrow.Array
		var err error
		if c.index < 0 {
			out, err = c.absent(a.Len(), mem)
		} else {
			out, err = c.apply(s.Field(c.index), mem)
		}
		if err != nil {
			for _, x := range children {
				x.Release()
			}
			return nil, fault.Locate(err, fault.Span{}, false, to.(*arrow.StructType).Field(i).Name)
		}
		children = append(children, out)
	}
	return rebuild(a, to, []*memory.Buffer{validity(a)}, children, 0), nil
}
