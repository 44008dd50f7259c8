package nest

import (
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// byLengths makes n's array with the given number of entries, as counted by the lengths above n.
func (b *build) byLengths(n *node, places int) (arrow.Array, error) {
	if n.presence < 0 {
		return b.content(n, places)
	}
	idx := borrow(places)
	defer giveBack(idx)
	items, whole, err := b.present(n, *idx)
	if err != nil {
		return nil, err
	}
	a, err := b.content(n, items)
	if err != nil || whole {
		return a, err
	}
	defer a.Release()
	out, err := Take(a, *idx, b.mem)
	return out, b.locate(err, n.presence)
}

// locate adds the name of a column to an error; the position in the file is unknown here.
func (b *build) locate(err error, col int) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.At, out.Path = fault.Span{}, fault.JoinPath(b.name(col), e.Path)
	return &out
}

// entries checks that column i has as many entries as there are places.
func (b *build) entries(i, places int) error {
	if got := b.in[i].Array.Len(); got != places {
		if p := b.parent(i); p >= 0 {
			return fault.Corruptf(fault.Span{}, b.name(p)+" and "+b.name(i),
				"the lengths count %d entries, there are %d", places, got)
		}
		return fault.Corruptf(fault.Span{}, b.name(i), "%d entries in %d rows", got, places)
	}
	return nil
}

// parent returns the index of column i's parent; -1 if rows count its entries.
func (b *build) parent(i int) int {
	for p, number := range b.a.use {
		if number == b.a.cols[i].Parent {
			return p
		}
	}
	return -1
}

// lengths returns the lengths in column i, including nulls, and their sum.
func (b *build) lengths(i int) ([]int32, int64, error) {
	l := b.in[i].Array.(*array.Int32).Int32Values()
	sum, err := SumLengths(l)
	if err == nil && sum > math.MaxInt32-1 {
		err = fault.Limitf(fault.Span{}, "", "%d items at once", sum)
	}
	return l, sum, b.locate(err, i)
}

// present sets idx to the item of each of n's places; -1 if there is none, or it represents null. items is the number
// of items; whole reports that idx just counts up.
func (b *build) present(n *node, idx []int32) (items int, whole bool, err error) {
	if err := b.entries(n.presence, len(idx)); err != nil {
		return 0, false, err
	}
	l, sum, err := b.lengths(n.presence)
	if err != nil {
		return 0, false, err
	}
	col := b.in[n.presence].Array
	isNull := nullness(col)
	k := int32(0)
	for i, x := range l {
		if x > 1 {
			return 0, false, fault.Corruptf(fault.Span{}, b.name(n.presence),
				"entry %d: %d of something that is there or not", i, x)
		}
		if idx[i] = -1; x == 1 && (col.NullN() == 0 || !isNull(i)) {
			idx[i] = k
		}
		k += x
	}
	return int(sum), int(sum) == len(idx) && col.NullN() == 0, nil
}

// content makes n's array with the given number of places, all of which have entries.
func (b *build) content(n *node, places int) (arrow.Array, error) {
	switch n.shape {
	case shapeNull:
		return array.NewNull(places), nil
	case shapeLeaf:
		if err := b.entries(n.own, places); err != nil {
			return nil, err
		}
		a := b.in[n.own].Array
		a.Retain()
		return a, nil
	case shapeStruct:
		children, err := b.childrenByLengths(n, places)
		if err != nil {
			return nil, err
		}
		return n.newArray(places, []*memory.Buffer{nil}, children, 0), nil
	case shapeUnion:
		return b.union(n, places)
	}
	if err := b.entries(n.own, places); err != nil {
		return nil, err
	}
	if l, ok := b.in[n.own].Array.(*array.List); ok {
		return b.listValues(n, l)
	}
	return b.listByLengths(n, places)
}

func (b *build) childrenByLengths(n *node, places int) (children []arrow.Array, err error) {
	for _, c := range n.children {
		k, err := b.byLengths(c, places)
		if err != nil {
			releaseAll(children)
			return nil, err
		}
		children = append(children, k)
	}
	return children, nil
}

// listValues returns a list array that was already decoded as a list.
func (b *build) listValues(n *node, l *array.List) (arrow.Array, error) {
	if !hidesItems(l) {
		return n.retyped(l), nil
	}
	idx := borrow(l.Len())
	defer giveBack(idx)
	for i := range *idx {
		(*idx)[i] = int32(i)
	}
	tight, err := Take(l, *idx, b.mem)
	if err != nil {
		return nil, b.locate(err, n.own)
	}
	defer tight.Release()
	return n.retyped(tight), nil
}

func (b *build) listByLengths(n *node, places int) (arrow.Array, error) {
	l, sum, err := b.lengths(n.own)
	if err != nil {
		return nil, err
	}
	if sum > maxPadding && !n.children[0].hasColumn() { // the large size is supported by nothing but these lengths
		return nil, fault.Limitf(fault.Span{}, b.name(n.own), "%d items without values do not fit one batch", sum)
	}
	children, err := b.childrenByLengths(n, int(sum))
	if err != nil {
		return nil, err
	}
	off, present := borrow(places+1), make([]byte, places)
	defer giveBack(off)
	isNull := nullness(b.in[n.own].Array)
	o := *off
	o[0] = 0
	for i, x := range l {
		if o[i+1] = o[i]; !isNull(i) {
			o[i+1] += x
			present[i] = 1
		}
	}
	if int64(o[places]) != sum { // nulls have items, which are meaningless
		if children[0], err = b.without(children[0], l, isNull, int(o[places])); err != nil {
			return nil, b.locate(err, n.own)
		}
	}
	valid, nulls := bitmap(present, b.mem)
	return b.list(n, o, present, valid, nulls, children)
}

// without removes the items of null lists; it takes ownership of items.
func (b *build) without(items arrow.Array, lengths []int32, isNull func(int) bool, rest int) (arrow.Array, error) {
	defer items.Release()
	if items.DataType().ID() == arrow.NULL {
		return array.NewNull(rest), nil
	}
	idx := borrow(rest)
	defer giveBack(idx)
	k, at := 0, int32(0)
	for i, x := range lengths {
		if !isNull(i) {
			for j := range x {
				(*idx)[k] = at + j
				k++
			}
		}
		at += x
	}
	return Take(items, *idx, b.mem)
}

// union makes a dense union of branches with lengths.
func (b *build) union(n *node, places int) (arrow.Array, error) {
	return b.unionOf(n, places, func(u *unionBuild, i int) error { return u.branch(n.children[i], i) })
}

// unionOf makes a dense union: every place belongs to the one branch that has a value there, which claims it.
func (b *build) unionOf(n *node, places int, branch func(u *unionBuild, i int) error) (arrow.Array, error) {
	t := n.field.Type.(*arrow.DenseUnionType)
	types, off := newBuffer(places, b.mem), newBuffer(4*places, b.mem)
	const unclaimed = -1
	claim := cast[int8](types.Bytes())
	for i := range claim {
		claim[i] = unclaimed
	}
	u := &unionBuild{build: b, n: n, claim: claim, off: cast[int32](off.Bytes())}
	for i := range n.children {
		if err := branch(u, i); err != nil {
			types.Release()
			off.Release()
			releaseAll(u.children)
			return nil, err
		}
	}
	if err := u.rest(t); err != nil {
		types.Release()
		off.Release()
		releaseAll(u.children)
		return nil, err
	}
	return n.newArray(places, []*memory.Buffer{nil, types, off}, u.children, 0), nil
}

type unionBuild struct {
	*build
	n        *node
	claim    []int8 // type codes; -1 while unclaimed
	off      []int32
	children []arrow.Array
}

// branch assigns the places where branch c, the ith, has a value to it, and makes its array.
func (u *unionBuild) branch(c *node, i int) error {
	switch {
	case c.presence >= 0:
		idx := borrow(len(u.claim))
		defer giveBack(idx)
		items, _, err := u.present(c, *idx)
		if err != nil {
			return err
		}
		all, err := u.content(c, items)
		if err != nil {
			return err
		}
		defer all.Release()
		return u.take(c, all, *idx, i)
	case c.shape == shapeNull:
		return u.claimed(c, nil, i)
	}
	all, err := u.content(c, len(u.claim))
	if err != nil {
		return err
	}
	defer all.Release()
	return u.claimed(c, all, i)
}

// claimed assigns the places where all, which covers every place, is not null to branch c, the ith.
func (u *unionBuild) claimed(c *node, all arrow.Array, i int) error {
	if c.shape == shapeNull {
		u.children = append(u.children, array.NewNull(0))
		return nil
	}
	idx := borrow(len(u.claim))
	defer giveBack(idx)
	isNull := nullness(all)
	for i := range *idx {
		if (*idx)[i] = int32(i); isNull(i) {
			(*idx)[i] = -1
		}
	}
	return u.take(c, all, *idx, i)
}

// take assigns the places that have an index in idx, of an item of all, to branch c, the ith.
func (u *unionBuild) take(c *node, all arrow.Array, idx []int32, branch int) error {
	code := int8(u.n.field.Type.(*arrow.DenseUnionType).TypeCodes()[branch])
	k := 0
	for i, p := range idx {
		if p < 0 {
			continue
		}
		if u.claim[i] != -1 {
			return fault.Corruptf(fault.Span{}, c.name, "entry %d of the union is of two branches", i)
		}
		u.claim[i], u.off[i] = code, int32(k)
		idx[k] = p
		k++
	}
	child, err := Take(all, idx[:k], u.mem)
	if err != nil {
		return err
	}
	u.children = append(u.children, child)
	return nil
}

// rest assigns the places that no branch claimed to the branch that can be null.
func (u *unionBuild) rest(t *arrow.DenseUnionType) error {
	free, first := 0, 0
	for i, c := range u.claim {
		if c == -1 {
			if free == 0 {
				first = i
			}
			free++
		}
	}
	if free == 0 {
		return nil
	}
	b := nullBranch(t)
	if b < 0 {
		return fault.Corruptf(fault.Span{}, u.n.name, "entry %d of the union is of no branch, and none can be null",
			first)
	}
	code := int8(t.TypeCodes()[b])
	have := u.children[b].Len()
	// A union's offsets ascend within a branch, so the nulls of a branch with values are interleaved with these.
	idx := make([]int32, 0, have+free)
	k := int32(0)
	for i, c := range u.claim {
		switch c {
		case -1:
			u.claim[i], u.off[i] = code, int32(len(idx))
			idx = append(idx, -1)
		case code:
			u.off[i] = int32(len(idx))
			idx = append(idx, k)
			k++
		}
	}
	old := u.children[b]
	made, err := Take(old, idx, u.mem)
	if err != nil {
		return err
	}
	old.Release()
	u.children[b] = made
	return nil
}

// checkNulls looks for nulls below n where the type has none. Values below a null are ignored.
func (n *node) checkNulls(a arrow.Array) error {
	for i, c := range n.children {
		var child arrow.Array
		missing := func(int) bool { return false }
		switch x := a.(type) {
		case *array.Struct:
			child, missing = x.Field(i), nullness(x)
			child.Retain()
		case *array.FixedSizeList:
			size := max(1, int(x.DataType().(*arrow.FixedSizeListType).Len()))
			from, to := span(x)
			isNull := nullness(x)
			child, missing = array.NewSlice(x.ListValues(), from, to), func(i int) bool { return isNull(i / size) }
		case array.ListLike:
			from, to := span(x)
			child = array.NewSlice(x.ListValues(), from, to)
		case array.Union:
			child = x.Field(i)
			child.Retain()
		}
		err := c.checkNullsIn(child, missing)
		child.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) checkNullsIn(a arrow.Array, missing func(int) bool) error {
	if !n.field.Nullable && a.NullN() > 0 && n.shape != shapeNull {
		isNull := nullness(a)
		for i := range a.Len() {
			if isNull(i) && !missing(i) {
				return fault.Corruptf(fault.Span{}, n.name, "entry %d is null, but its type has no nulls", i)
			}
		}
	}
	return n.checkNulls(a)
}

// span returns the range of l's items.
func span(l array.ListLike) (from, to int64) {
	if l.Len() == 0 {
		return 0, 0
	}
	from, _ = l.ValueOffsets(0)
	_, to = l.ValueOffsets(l.Len() - 1)
	return from, to
}
