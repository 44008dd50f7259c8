package nest

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// join is a struct and two neighbouring leaves below it, with none in between. Leaves that agree in all joins agree
// everywhere, since everything they share above is also shared with their neighbours.
type join struct {
	left, right int // columns
	def, rep    uint8
}

// findJoins appends the joins at and below n.
func findJoins(n *node, to []join) []join {
	last := -1
	for _, c := range n.children {
		to = findJoins(c, to)
		if c.leaf < 0 {
			continue
		}
		if last >= 0 {
			to = append(to, join{left: last, right: c.leaf, def: n.def, rep: n.rep})
		}
		last = c.lastLeaf()
	}
	return to
}

func (n *node) lastLeaf() int {
	for i := len(n.children) - 1; i >= 0; i-- {
		if l := n.children[i].lastLeaf(); l >= 0 {
			return l
		}
	}
	return n.own
}

// check compares the levels of every leaf with the type and the number of rows, and the levels of leaves with each
// other.
func (b *build) check(rows int) error {
	for i, n := range b.a.leaves {
		if err := b.checkLeaf(i, n, rows); err != nil {
			return err
		}
	}
	for _, j := range b.a.joins {
		l, r := &b.in[j.left], &b.in[j.right]
		if !agree(l, r, j.def, j.rep, b.a.leaves[j.left].rep, b.a.leaves[j.right].rep) {
			return fault.Corruptf(fault.Span{}, b.name(j.left)+" and "+b.name(j.right),
				"their levels are of different lists or structs")
		}
	}
	return nil
}

func (b *build) checkLeaf(i int, n *node, rows int) error {
	in, entries := &b.in[i], b.in[i].Array.Len()
	if in.Def == nil && n.def == 0 {
		in.Def = make([]byte, entries)
	}
	if in.Rep == nil && n.rep == 0 {
		in.Rep = make([]byte, entries)
	}
	if len(in.Def) != entries || len(in.Rep) != entries {
		return fault.Bugf("column %s: %d entries with %d definition and %d repetition levels", b.name(i), entries,
			len(in.Def), len(in.Rep))
	}
	at := -1
	if n.rep != 1 || n.def >= maxPackedLevel || !validLevels(in.Def, in.Rep, n.def, b.a.needs[i][1]) {
		at = badLevel(in.Def, in.Rep, n.def, b.a.needs[i])
	}
	if at >= 0 {
		return fault.Corruptf(fault.Span{}, b.name(i),
			"entry %d: definition level %d and repetition level %d cannot be there (at most %d and %d)",
			at, in.Def[at], in.Rep[at], n.def, n.rep)
	}
	if got := CountRows(in.Rep); got != rows {
		return fault.Corruptf(fault.Span{}, b.name(i), "%d rows begin among its entries, not %d", got, rows)
	}
	present := bytes.Count(in.Def, []byte{n.def})
	if n.shape != shapeNull && entries-in.Array.NullN() != present {
		return fault.Bugf("column %s: %d values, its levels say %d", b.name(i), entries-in.Array.NullN(), present)
	}
	return nil
}

// needs returns, for every repetition level of leaf, the minimum definition level of an entry with it and of the entry
// before: a list continues only where it has items. For a level that leaf does not have, the minimum is unreachable.
func (n *node) needs(leaf *node) *[256]byte {
	need := new([256]byte)
	for i := range need {
		need[i] = 255
	}
	need[0] = 0
	for up := n; up != leaf; {
		if up.isList() {
			need[up.rep+1] = up.def + 1
		}
		up = up.children[slices.IndexFunc(up.children, func(c *node) bool { return c.contains(leaf) })]
	}
	return need
}

func (n *node) contains(leaf *node) bool {
	return n == leaf || slices.ContainsFunc(n.children, func(c *node) bool { return c.contains(leaf) })
}

// badLevel returns the first entry whose levels are impossible; -1 if there is none.
func badLevel(def, rep []byte, maxDef byte, need *[256]byte) int {
	last := byte(0) // before the first entry, no list is open
	for i, d := range def {
		if d > maxDef || min(last, d) < need[rep[i]] {
			return i
		}
		last = d
	}
	return -1
}

// agree reports whether two leaves agree down to a struct that is present from def on and repeats at rep.
func agree(l, r *Input, def, rep, lRep, rRep uint8) bool {
	i, j := 0, 0
	if lRep == rep && rRep == rep {
		if len(l.Rep) != len(r.Rep) {
			return false
		}
		var differ byte
		lr, rr, ld, rd := l.Rep, r.Rep[:len(l.Rep)], l.Def[:len(l.Rep)], r.Def[:len(l.Rep)]
		for k, x := range lr {
			differ |= x ^ rr[k] | min(ld[k], def) ^ min(rd[k], def)
		}
		return differ == 0
	}
	for {
		for i < len(l.Rep) && l.Rep[i] > rep {
			i++
		}
		for j < len(r.Rep) && r.Rep[j] > rep {
			j++
		}
		if i == len(l.Rep) || j == len(r.Rep) {
			return i == len(l.Rep) && j == len(r.Rep)
		}
		if l.Rep[i] != r.Rep[j] || min(l.Def[i], def) != min(r.Def[j], def) {
			return false
		}
		i, j = i+1, j+1
	}
}

// byLevels makes n's array with the given number of places. The levels have been checked: every leaf below n has
// exactly these places.
func (b *build) byLevels(n *node, places int) (arrow.Array, error) {
	switch n.shape {
	case shapeNull:
		return array.NewNull(places), nil
	case shapeLeaf:
		return b.leafByLevels(n, places)
	case shapeStruct:
		valid, nulls := b.validity(n, places)
		children, err := b.childrenByLevels(n, places)
		if err != nil {
			release(valid)
			return nil, err
		}
		return n.newArray(places, []*memory.Buffer{valid}, children, nulls), nil
	case shapeUnion:
		all, err := b.childrenByLevels(n, places)
		if err != nil {
			return nil, err
		}
		defer releaseAll(all)
		return b.unionOf(n, places, func(u *unionBuild, i int) error { return u.claimed(n.children[i], all[i], i) })
	}
	return b.listByLevels(n, places)
}

func (b *build) childrenByLevels(n *node, places int) (children []arrow.Array, err error) {
	for _, c := range n.children {
		k, err := b.byLevels(c, places)
		if err != nil {
			releaseAll(children)
			return nil, err
		}
		children = append(children, k)
	}
	return children, nil
}

// leafByLevels removes the entries that represent lists without items.
func (b *build) leafByLevels(n *node, places int) (arrow.Array, error) {
	in := &b.in[n.own]
	if in.Array.Len() == places {
		in.Array.Retain()
		return in.Array, nil
	}
	if n.def < maxPackedLevel {
		// without nulls among the items, the array contains exactly the entries with a value
		if keep, k := atLeastMap(in.Def, n.above); k == in.Array.Len()-in.Array.NullN() {
			if out := compacted(in.Array, keep, k, b.mem); out != nil {
				return out, nil
			}
		}
	}
	idx := borrow(in.Array.Len() + 1)
	defer giveBack(idx)
	k := 0
	for i, d := range in.Def {
		(*idx)[k] = int32(i)
		k += atLeast(d, n.above)
	}
	return Take(in.Array, (*idx)[:k], b.mem)
}

// atLeast returns 1 if x >= y, else 0, without a branch.
func atLeast(x, y byte) int { return int((uint32(x)-uint32(y))>>31 ^ 1) }

// validity returns the validity bitmap of n and its number of nulls; nil if there are none.
func (b *build) validity(n *node, places int) (*memory.Buffer, int) {
	if !n.optional {
		return nil, 0
	}
	in := &b.in[n.leaf]
	present := make([]byte, places+1)
	k := 0
	for i, d := range in.Def {
		present[k] = byte(atLeast(d, n.def))
		k += atLeast(n.rep, in.Rep[i]) & atLeast(d, n.above)
	}
	return bitmap(present[:places], b.mem)
}

// bitmap packs bytes that are 0 or 1; nil if all are 1. It returns the number of zeros.
func bitmap(flags []byte, mem memory.Allocator) (*memory.Buffer, int) {
	ones := 0
	for _, x := range flags {
		ones += int(x)
	}
	if ones == len(flags) {
		return nil, 0
	}
	b := newBuffer((len(flags)+7)/8, mem)
	out := b.Bytes()
	for i := range out {
		var x byte
		for j, v := range flags[8*i : min(8*i+8, len(flags))] {
			x |= v << j
		}
		out[i] = x
	}
	return b, len(flags) - ones
}

// listByLevels finds the offsets of the lists of n.
func (b *build) listByLevels(n *node, places int) (arrow.Array, error) {
	in := &b.in[n.leaf]
	off := borrow(places + 1)
	defer giveBack(off)
	present := make([]byte, places+1)
	// For every entry, the list and item that would begin with it are written; if none does, the next entry overwrites
	// them.
	k, items := 0, 0
	o, rep := *off, in.Rep[:len(in.Def)]
	for i, d := range in.Def {
		r := rep[i]
		o[k], present[k] = int32(items), byte(atLeast(d, n.def))
		k += atLeast(n.rep, r) & atLeast(d, n.above)
		items += atLeast(n.rep+1, r) & atLeast(d, n.def+1)
	}
	o[places] = int32(items)
	children, err := b.childrenByLevels(n, items)
	if err != nil {
		return nil, err
	}
	var valid *memory.Buffer
	nulls := 0
	if n.optional {
		valid, nulls = bitmap(present[:places], b.mem)
	}
	return b.list(n, o, present[:places], valid, nulls, children)
}

// list makes a list array of any kind; it takes ownership of valid and children. present is 0 for a list that is null
// or below a null: only such a list may differ from the size of a fixed-size list.
func (b *build) list(n *node, off []int32, present []byte, valid *memory.Buffer, nulls int,
	children []arrow.Array) (arrow.Array, error) {
	places := len(off) - 1
	switch n.field.Type.ID() {
	case arrow.MAP: // arrow-go expects the child before the array is made
		if k := children[0].(*array.Struct).Field(0).NullN(); k > 0 {
			release(valid)
			releaseAll(children)
			return nil, fault.Corruptf(fault.Span{}, n.name, "%d of the keys are null", k)
		}
	case arrow.FIXED_SIZE_LIST:
		if err := b.pad(n, off, present, children); err != nil {
			release(valid)
			releaseAll(children)
			return nil, err
		}
		return n.newArray(places, []*memory.Buffer{valid}, children, nulls), nil
	case arrow.LARGE_LIST:
		buf := newBuffer(8*(places+1), b.mem)
		wide := cast[int64](buf.Bytes())
		for i := range wide {
			wide[i] = int64(off[i])
		}
		return n.newArray(places, []*memory.Buffer{valid, buf}, children, nulls), nil
	}
	buf := newBuffer(4*(places+1), b.mem)
	copy(cast[int32](buf.Bytes()), off)
	return n.newArray(places, []*memory.Buffer{valid, buf}, children, nulls), nil
}

// pad inserts items for absent lists into fixed-size lists.
func (b *build) pad(n *node, off []int32, present []byte, children []arrow.Array) error {
	size, places := int(n.field.Type.(*arrow.FixedSizeListType).Len()), len(present)
	for i, t := range present {
		if got := int(off[i+1] - off[i]); got != size && t != 0 {
			return fault.Corruptf(fault.Span{}, n.name, "list %d has %d items, its type says %d", i, got, size)
		}
	}
	if children[0].Len() == places*size {
		return nil
	}
	if places > maxPadding/size {
		return fault.Limitf(fault.Span{}, n.name, "%d lists of %d items do not fit one batch", places, size)
	}
	idx := borrow(places * size)
	defer giveBack(idx)
	k := 0
	for i, t := range present {
		for j := range int32(size) {
			if (*idx)[k] = off[i] + j; t == 0 {
				(*idx)[k] = -1
			}
			k++
		}
	}
	padded, err := Take(children[0], *idx, b.mem)
	if err != nil {
		return err
	}
	children[0].Release()
	children[0] = padded
	return nil
}

func release(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

func releaseAll(arrays []arrow.Array) {
	for _, k := range arrays {
		k.Release()
	}
}
