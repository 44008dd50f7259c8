package store

import "reflect"

// Lasting is the tree below caches and limiters, which end with the table that they were made for. same is equal for
// two of these that are one tree; nil: that cannot be known.
func Lasting(t Tree) (below Tree, same any) {
	for {
		switch x := t.(type) {
		case *roots:
			_, same = Lasting(x.Tree)
			return t, same
		case *Cache:
			t = x.tree
		case *OpenLimiter:
			t = x.Tree
		default:
			if !reflect.TypeOf(t).Comparable() {
				return t, nil
			}
			return t, t
		}
	}
}
