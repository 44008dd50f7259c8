package region

import (
	"cmp"
	"slices"

	"stoa/fault"
	"stoa/internal/sorted"
)

// Coverage checks the nodes of Describe against the coverage law: the leaves that name an object partition its bytes.
// Nodes are added in the order in which they are reported. It keeps 24 bytes per leaf. The zero value is ready to use.
//
// A node whose place is not exact (Inner ≥ 0) owns no bytes. An exact node is a leaf if no exact node with a greater
// Depth follows it before one with the same or a smaller Depth.
type Coverage struct {
	objects []string
	leaves  []leaf
	sorted  bool
	open    Node // the last exact node, which may or may not turn out to be a leaf
	any     bool
}

// leaf is a run of bytes of objects[object].
type leaf struct {
	off, end int64
	object   int32
}

// Add adds the next node.
func (c *Coverage) Add(n Node) {
	if n.Inner >= 0 {
		return
	}
	if c.any && n.Depth <= c.open.Depth {
		c.keep(c.open)
	}
	c.open, c.any = n, true
}

// keep records a leaf.
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

// sort decides about the last node, and sorts the leaves by object and offset.
func (c *Coverage) sort() {
	if c.any {
		c.keep(c.open)
		c.any = false
	}
	if !c.sorted {
		sorted.By(c.leaves, func(a, b leaf) int {
			return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.off, b.off), cmp.Compare(a.end, b.end))
		})
		c.sorted = true
	}
}

// Check returns the bytes of part, usually a whole object, that no leaf owns (gaps), and those that more than one owns
// (overlaps). Both are sorted, and their spans do not touch. Leaves that reach beyond part are cut to it.
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
