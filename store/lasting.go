package store

import (
	"os"
	"reflect"
)

// Exchange swaps two names of the local file system at once. Not every file system, and not every system, can.
func Exchange(a, b string) error { return exchange(a, b) }

// TryLock locks an open file or directory exclusively, until it is closed, and reports whether it succeeded.
func TryLock(f *os.File) bool { return tryLock(f) }

// Lasting returns the tree below caches and limiters, whose lifetime is that of the table they were made for. same is
// equal for two trees returned by Lasting if they are the same tree; nil if that cannot be determined.
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
