package region

import (
	"cmp"
	"slices"

	"stoa/fault"
)

// Coverage holds the nodes of Describe against the coverage law: the leaves that name an object partition its bytes.
// It takes nodes in the order in which they are reported. It keeps 24 bytes a leaf. The zero value is ready.
//
// A node whose place is not exact (Inner ≥ 0) owns no bytes. An exact node is a leaf if no exact node follows it
// with a greater Depth before one with the same or a smaller.
type Coverage struct {
	objects []string
	leaves  []leaf
	sorted  bool
	open    Node // the last exact node, of which it is not known yet whether it is a leaf
	any     bool
}

// leaf is a run of bytes of objects[object].
type leaf struct {
	off, end int64
	object   int32
}

// Add takes the next node.
func (c *Coverage) Add(n Node) {
	if n.Inner >= 0 {
		return
	}
	if c.any && n.Depth <= c.open.Depth {
		c.keep(c.open)
	}
	c.open, c.any = n, true
}

// keep notes a leaf.
func (c *Coverage) keep(n Node) {
	if n.At.Len <= 0 || n.Kind == Gap {
		return
	}
	k := slices.Index(c.objects, n.At.Object)
	if k < 0 {
		k = len(c.objects)
		c.objects = append(c.objects, n.At.Object)
	}
	c.leaves = append(c.leaves, leaf{n.At.Off, n.At.End(), int32(k)})
	c.sorted = false
}

// sort settles the last node and sorts the leaves by object and place.
func (c *Coverage) sort() {
	if c.any {
		c.keep(c.open)
		c.any = false
	}
	if !c.sorted {
		slices.SortFunc(c.leaves, func(a, b leaf) int {
			return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.off, b.off), cmp.Compare(a.end, b.end))
		})
		c.sorted = true
	}
}

// Check says which bytes of part, usually a whole object, no leaf owns (gaps), and which more than one does
// (overlaps). Both are sorted, and their spans do not touch. Leaves that reach out of part are cut to it.
func (c *Coverage) Check(part fault.Span) (gaps, overlaps []fault.Span) {
	c.sort()
	k := int32(slices.Index(c.objects, part.Object))
	at, end := part.Off, part.End() // bytes before at are owned
	add := func(to *[]fault.Span, from, until int64) {
		if n := len(*to); n > 0 && (*to)[n-1].End() >= from {
			(*to)[n-1].Len = max((*to)[n-1].End(), until) - (*to)[n-1].Off
			return
		}
		*to = append(*to, fault.Span{Object: part.Object, Off: from, Len: until - from})
	}
	for _, l := range c.leaves {
		from, until := max(l.off, part.Off), min(l.end, end)
		if l.object != k || from >= until {
			continue
		}
		if from > at {
			add(&gaps, at, from)
		}
		if from < at {
			add(&overlaps, from, min(at, until))
		}
		at = max(at, until)
	}
	if at < end {
		add(&gaps, at, end)
	}
	return gaps, overlaps
}
