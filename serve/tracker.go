package serve

import "stoa/region"

// Told is what can be told of a node from its name, its value and the nodes that it is part of.
type Told struct {
	Role     Role
	Column   string
	Codec    string
	ID       int   // its position in the order of describe
	Parent   int   // the ID of the node that it is part of; -1: of none
	From, To int64 // rows, half-open; -1: not known
}

// Tracker tells of nodes, which are added in the order of describe.
type Tracker struct {
	open []tracked
	n    int
}

// tracked is a node that may enclose the next one.
type tracked struct {
	Told
	depth int
	name  string
}

// Add adds a node.
func (t *Tracker) Add(n region.Node) Told {
	for len(t.open) > 0 && t.open[len(t.open)-1].depth >= n.Depth {
		t.open = t.open[:len(t.open)-1]
	}
	above := &tracked{Told: Told{Role: Other, ID: -1}}
	if k := len(t.open); k > 0 {
		above = &t.open[k-1]
	}
	told := Told{Role: roleOf(n, above.Role), Column: columnOf(n, above.name, above.Column),
		From: -1, To: -1, ID: t.n, Parent: above.ID}
	t.n++
	told.Codec = codecOf(n, told.Role, above.Codec)
	switch from, count := rowsOf(n); {
	case from >= 0 && count >= 0:
		told.From, told.To = from, from+count
	case from >= 0:
		told.From = from
	}
	t.open = append(t.open, tracked{Told: told, depth: n.Depth, name: n.Name})
	return told
}
