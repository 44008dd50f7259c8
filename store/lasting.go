package store

import "reflect"

// Lasting is the tree below caches and limiters, which end with the table that they were made for. By same two of these
// can be told to be one tree; nil: they cannot.
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
