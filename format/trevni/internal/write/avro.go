package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/coerce"
)

// entries are the entries that a column, or a group of columns, writes for some rows: positions in an array; -1 is a
// null for which the column stores a length of 0.
type entries struct {
	pos  []int32 // nil: the whole array, in order
	ends []int32 // nil: one per row
	n    int
}

func (e *entries) at(i int) int {
	if e.pos == nil {
		return i
	}
	return int(e.pos[i])
}

// rows calls start before each row and f with each of its entries.
func (e *entries) rows(start func() error, f func(pos int) error) error {
	if e.ends == nil {
		for i := range e.n {
			if err := start(); err != nil {
				return err
			}
			if err := f(e.at(i)); err != nil {
				return err
			}
		}
		return nil
	}
	i := 0
	for _, end := range e.ends {
		if err := start(); err != nil {
			return err
		}
		for ; i < int(end); i++ {
			if err := f(e.at(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// child returns the entries below e: add is called with the position of each entry, and appends theirs to pos.
func (e *entries) child(add func(pos []int32, at int) []int32) entries {
	out := entries{ends: make([]int32, 0, max(e.n, len(e.ends)))}
	out.pos = make([]int32, 0, e.n)
	if e.ends == nil {
		for i := range e.n {
			out.pos = add(out.pos, e.at(i))
			out.ends = append(out.ends, int32(len(out.pos)))
		}
	} else {
		i := 0
		for _, end := range e.ends {
			for ; i < int(end); i++ {
				out.pos = add(out.pos, e.at(i))
			}
			out.ends = append(out.ends, int32(len(out.pos)))
		}
	}
	out.n = len(out.pos)
	return out
}

// lengths writes the length of each entry to an array column: 0 for a null, otherwise what length returns.
func (e *entries) lengths(c *outColumn, length func(pos int) int64) error {
	return e.rows(c.startRow, func(pos int) error {
		if pos < 0 {
			c.length(0)
		} else {
			c.length(length(pos))
		}
		return nil
	})
}

// node writes a type's entries to its columns and those below. Only nodes that have lengths get positions of -1.
type node interface {
	put(a arrow.Array, e entries) error
}

// avroField is a top-level field.
type avroField struct {
	name string
	n    node
}

func (f *avroField) write(a arrow.Array) error {
	if err := f.n.put(coerce.Stored(a), entries{n: a.Len()}); err != nil {
		return fault.Locate(err, fault.Span{}, true, f.name)
	}
	return nil
}

// isNull returns a function that reports nulls; every value of type null is null.
func isNull(a arrow.Array) func(i int) bool {
	if a.DataType().ID() == arrow.NULL {
		return func(int) bool { return true }
	}
	if a.NullN() == 0 {
		return func(int) bool { return false }
	}
	return a.IsNull
}

func unexpectedNull(pos int) error {
	return fault.Invalidf("value %d is null in a field that is not nullable", pos)
}

// flatNode writes values that cannot be null.
type flatNode struct{ c *outColumn }

func (n flatNode) put(a arrow.Array, e entries) error {
	v, err := n.c.valuesOf(a)
	if err != nil {
		return err
	}
	if n.c.Type == layout.Null {
		return e.rows(n.c.startRow, func(int) error { return nil })
	}
	if a.NullN() == 0 && e.pos == nil && e.ends == nil {
		if ok, err := n.c.flat(a); ok {
			return err
		}
		for i := range e.n {
			if err := n.c.startRow(); err != nil {
				return err
			}
			if err := v.write(i); err != nil {
				return err
			}
		}
		return nil
	}
	null := isNull(a)
	return e.rows(n.c.startRow, func(pos int) error {
		if pos < 0 || null(pos) {
			return unexpectedNull(pos)
		}
		return v.write(pos)
	})
}

// optionalNode writes a branch of a union whose type is simple.
type optionalNode struct{ c *outColumn }

func (n optionalNode) put(a arrow.Array, e entries) error {
	v, err := n.c.valuesOf(a)
	if err != nil {
		return err
	}
	if e.pos == nil && e.ends == nil && !n.c.FirstValues {
		if ok, err := n.c.optional(a); ok {
			return err
		}
	}
	null := isNull(a)
	return e.rows(n.c.startRow, func(pos int) error {
		if pos < 0 || null(pos) {
			n.c.length(0)
			return nil
		}
		n.c.length(1)
		return v.write(pos)
	})
}

// presenceNode writes lengths of 0 or 1 for a branch of a union, and for lengths of 1 the columns below.
type presenceNode struct {
	c     *outColumn
	below node
}

func (n presenceNode) put(a arrow.Array, e entries) error {
	null := isNull(a)
	err := e.lengths(n.c, func(pos int) int64 {
		if null(pos) {
			return 0
		}
		return 1
	})
	if err != nil {
		return err
	}
	return n.below.put(a, e.child(func(to []int32, pos int) []int32 {
		if pos < 0 || null(pos) {
			return to
		}
		return append(to, int32(pos))
	}))
}

// listOf returns a as a list or map. A null among the entries is an error of class Invalid.
func listOf(a arrow.Array, e entries) (l array.ListLike, err error) {
	l, ok := a.(array.ListLike)
	if !ok {
		return nil, fault.Bugf("trevni: %s as a list", a.DataType())
	}
	if a.NullN() > 0 {
		for i := range e.n {
			if a.IsNull(e.at(i)) {
				return nil, unexpectedNull(e.at(i))
			}
		}
	}
	return l, nil
}

// listNode writes lists of simple items.
type listNode struct{ c *outColumn }

func (n listNode) put(a arrow.Array, e entries) error {
	l, err := listOf(a, e)
	if err != nil {
		return err
	}
	items := coerce.Stored(l.ListValues())
	v, err := n.c.valuesOf(items)
	if err != nil {
		return err
	}
	null := isNull(items)
	return e.rows(n.c.startRow, func(pos int) error {
		from, to := l.ValueOffsets(pos)
		n.c.length(to - from)
		for i := from; i < to; i++ {
			if null(int(i)) {
				return unexpectedNull(int(i))
			}
			if err := v.write(int(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// groupNode writes the lengths of lists or maps, and the columns below; below is nil if the items are nulls.
type groupNode struct {
	c     *outColumn
	below node
}

func (n groupNode) put(a arrow.Array, e entries) error {
	l, err := listOf(a, e)
	if err != nil {
		return err
	}
	err = e.lengths(n.c, func(pos int) int64 {
		from, to := l.ValueOffsets(pos)
		return to - from
	})
	if err != nil || n.below == nil {
		return err
	}
	return n.below.put(coerce.Stored(l.ListValues()), e.child(func(out []int32, pos int) []int32 {
		from, to := l.ValueOffsets(pos)
		for i := from; i < to; i++ {
			out = append(out, int32(i))
		}
		return out
	}))
}

// structNode writes the fields of records.
type structNode struct{ fields []node }

func (n structNode) put(a arrow.Array, e entries) error {
	s, ok := a.(*array.Struct)
	if !ok {
		return fault.Bugf("trevni: %s as a struct", a.DataType())
	}
	if a.NullN() > 0 {
		for i := range e.n {
			if a.IsNull(e.at(i)) {
				return unexpectedNull(e.at(i))
			}
		}
	}
	for i, f := range n.fields {
		if err := f.put(coerce.Stored(s.Field(i)), e); err != nil {
			return fault.Locate(err, fault.Span{}, true, s.DataType().(*arrow.StructType).Field(i).Name)
		}
	}
	return nil
}

// unionNode writes unions. The branch of type null has no node.
type unionNode struct {
	branches []node
	null     bool
}

func (n unionNode) put(a arrow.Array, e entries) error {
	u, ok := a.(array.Union)
	if !ok {
		return fault.Bugf("trevni: %s as a union", a.DataType())
	}
	place := func(pos int) int { return pos }
	if d, ok := u.(*array.DenseUnion); ok {
		place = func(pos int) int { return int(d.ValueOffset(pos)) }
	}
	nulls := make([]func(i int) bool, len(n.branches))
	for b := range nulls {
		nulls[b] = isNull(u.Field(b))
	}
	own := make([]entries, len(n.branches))
	for b := range own {
		own[b] = entries{pos: make([]int32, e.n), ends: e.ends, n: e.n}
	}
	for i := range e.n {
		pos := e.at(i)
		for b := range own {
			own[b].pos[i] = -1
		}
		if b, at := u.ChildID(pos), place(pos); !nulls[b](at) {
			own[b].pos[i] = int32(at)
		} else if !n.null {
			return unexpectedNull(pos)
		}
	}
	for b, below := range n.branches {
		if below == nil {
			continue
		}
		if err := below.put(coerce.Stored(u.Field(b)), own[b]); err != nil {
			return err
		}
	}
	return nil
}
