package describe

import (
	"iter"

	"stoa/region"
)

// Nodes keeps nodes until they are emitted. There may be millions, as every field of a footer is one, so they are not
// copied into ever larger slices.
type Nodes struct {
	full [][]region.Node
	last []region.Node
}

const nodesEach = 4096 // nodes of a full slice

// Add adds a node.
func (k *Nodes) Add(n region.Node) {
	if len(k.last) == nodesEach {
		k.full, k.last = append(k.full, k.last), make([]region.Node, 0, nodesEach)
	}
	k.last = append(k.last, n)
}

// All yields the nodes in the order in which they were added.
func (k *Nodes) All() iter.Seq[region.Node] {
	return func(yield func(region.Node) bool) {
		for _, some := range append(k.full[:len(k.full):len(k.full)], k.last) {
			for _, n := range some {
				if !yield(n) {
					return
				}
			}
		}
	}
}
