package nest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// Shredded is one leaf of an array: its levels, and the location of its values.
type Shredded struct {
	Leaf
	Entries  int    // pairs of levels: values, nulls and empty lists; equal to rows if MaxRep is 0
	Def, Rep []byte // by entry; nil if the maximum is 0; leaves may share them

	// Values belongs to the array that was shredded and lives as long.
	Values arrow.Array
	// Present contains the positions in Values of the entries whose Def is MaxDef, in order; nil means that they are
	// all of Values, in order.
	Present []int32
}

// Count returns the number of values.
func (s *Shredded) Count() int {
	if s.Present == nil {
		return s.Values.Len()
	}
	return len(s.Present)
}

// Dense returns the values one after another, without nulls. The caller releases it.
func (s *Shredded) Dense(mem memory.Allocator) (arrow.Array, error) {
	if s.Present == nil {
		if s.Values.NullN() == 0 {
			s.Values.Retain()
			return s.Values, nil
		}
		return nil, fault.Bugf("leaf %s: nulls among the values that are there", s.Name)
	}
	return Take(s.Values, s.Present, mem)
}

// Shred returns the leaves of an array of f's type, in the order of Leaves. Values below nulls are ignored. A null
// where f is not nullable is an error of class Invalid.
func Shred(f arrow.Field, a arrow.Array) ([]Shredded, error) {
	ls, err := Leaves(f)
	if err != nil {
		return nil, err
	}
	if !arrow.TypeEqual(f.Type, a.DataType()) {
		return nil, fault.Invalidf("column %q is of type %s, the array is of type %s", f.Name, f.Type, a.DataType())
	}
	s := shredder{leaves: ls, out: make([]Shredded, 0, len(ls))}
	if err := s.field(f, a, slots{n: a.Len()}, 0, 0); err != nil {
		return nil, err
	}
	return s.out, nil
}

// slots are the places of a field: its values, and the places where lists or structs above it end.
type slots struct {
	n        int
	def, rep []byte  // so far; nil = all 0
	pos      []int32 // of the value in the field's array, -1 if something above is missing; nil = every value, in order
}

type shredder struct {
	leaves []Leaf
	out    []Shredded
}

// field shreds f and what is below it. def and rep are the levels above it.
func (s *shredder) field(f arrow.Field, a arrow.Array, at slots, def, rep uint8) error {
	var err error
	if f.Nullable {
		at = at.nulls(a, def)
		def++
	} else if err = at.noNulls(a); err != nil {
		return fault.Invalidf("leaf %s: field %q cannot be null: %v", s.leaves[len(s.out)].Name, f.Name, err)
	}
	switch l := a.(type) {
	case *array.Struct:
		for i, c := range children(f.Type) {
			if err := s.field(c, l.Field(i), at, def, rep); err != nil {
				return err
			}
		}
		return nil
	case *array.Map: // a map is a list as well
		entries := l.ListValues()
		return s.field(children(f.Type)[0], entries, at.items(l, def, rep+1), def+1, rep+1)
	case array.ListLike:
		return s.field(children(f.Type)[0], l.ListValues(), at.items(l, def, rep+1), def+1, rep+1)
	}
	s.leaf(a, at)
	return nil
}

func (s *shredder) leaf(a arrow.Array, at slots) {
	out := Shredded{Leaf: s.leaves[len(s.out)], Entries: at.n, Def: at.def, Rep: at.rep, Values: a}
	if out.MaxDef > 0 && at.def == nil {
		out.Def = make([]byte, at.n)
	}
	if out.MaxRep > 0 && at.rep == nil {
		out.Rep = make([]byte, at.n)
	}
	if at.pos != nil {
		out.Present = make([]int32, 0, at.n)
		for _, p := range at.pos {
			if p >= 0 {
				out.Present = append(out.Present, p)
			}
		}
	}
	s.out = append(s.out, out)
}

// nulls removes the nulls of a; the remaining values have definition level def+1.
func (at slots) nulls(a arrow.Array, def uint8) slots {
	out := slots{n: at.n, rep: at.rep, pos: at.pos, def: make([]byte, at.n)}
	if at.pos == nil && a.NullN() == 0 && a.DataType().ID() != arrow.NULL {
		fill(out.def, def+1)
		return out
	}
	out.pos = make([]int32, at.n)
	isNull := nullness(a)
	for i := range out.pos {
		p := int32(i)
		if at.pos != nil {
			p = at.pos[i]
		}
		d := def
		switch {
		case p < 0:
			d = at.level(i)
		case isNull(int(p)):
			p = -1
		default:
			d++
		}
		out.pos[i], out.def[i] = p, d
	}
	return out
}

func (at *slots) level(i int) byte {
	if at.def == nil {
		return 0
	}
	return at.def[i]
}

// noNulls returns an error if a place that is present has a null.
func (at slots) noNulls(a arrow.Array) error {
	if a.NullN() == 0 && a.DataType().ID() != arrow.NULL {
		return nil
	}
	isNull := nullness(a)
	for i := range at.n {
		p := int32(i)
		if at.pos != nil {
			p = at.pos[i]
		}
		if p >= 0 && isNull(int(p)) {
			return fault.Invalidf("value %d is null", p)
		}
	}
	return nil
}

// nullness is a.IsNull without the interface; every value of a Null array is null.
func nullness(a arrow.Array) func(i int) bool {
	if a.DataType().ID() == arrow.NULL {
		return func(int) bool { return true }
	}
	b, off := a.NullBitmapBytes(), a.Data().Offset()
	if len(b) == 0 {
		return func(int) bool { return false }
	}
	return func(i int) bool { return !bitutil.BitIsSet(b, off+i) }
}

// items opens the lists of l: every item becomes a place at definition level def+1, and items after the first of their
// list repeat at level rep. An empty or missing list remains one place.
func (at slots) items(l array.ListLike, def, rep uint8) slots {
	n := 0
	at.lists(l, func(_ int, from, to int64) { n += int(max(1, to-from)) })
	out := slots{n: n, def: make([]byte, n), rep: make([]byte, n), pos: make([]int32, n)}
	k := 0
	at.lists(l, func(i int, from, to int64) {
		if at.rep != nil {
			out.rep[k] = at.rep[i]
		}
		if from == to {
			out.def[k], out.pos[k] = at.level(i), -1
			k++
			return
		}
		out.def[k], out.pos[k] = def+1, int32(from)
		k++
		for p := from + 1; p < to; p++ {
			out.def[k], out.rep[k], out.pos[k] = def+1, rep, int32(p)
			k++
		}
	})
	return out
}

// lists calls f with the range of items of every place's list; it is empty if the list is missing.
func (at slots) lists(l array.ListLike, f func(i int, from, to int64)) {
	for i := range at.n {
		p := int32(i)
		if at.pos != nil {
			p = at.pos[i]
		}
		var from, to int64
		if p >= 0 {
			from, to = l.ValueOffsets(int(p))
		}
		f(i, from, to)
	}
}

func fill(b []byte, x byte) {
	for i := range b {
		b[i] = x
	}
}
