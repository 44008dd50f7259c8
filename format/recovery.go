package format

import (
	"context"

	"stoa/store"
)

// Declarer is an optional interface of a Reader that Recover returned. A place that cannot be opened, because one of
// its files is missing, may still have metadata that declares how many rows there were.
type Declarer interface {
	// Declared returns the number of rows, and the file that states it; -1 if nothing trustworthy declares it.
	Declared() (rows int64, by string)
}

// Adder is an optional interface of a Reader that Recover returned, which may have found rows that the place, opened
// without recovery, does not have: those of parts whose metadata is gone.
type Adder interface {
	Added(ctx context.Context) (rows int64, err error)
}

// Decrypter is a Reader of encrypted files. Its pages are read through Decrypted(tree) instead of tree.
type Decrypter interface {
	Decrypted(tree store.Tree) store.Tree
}

// Plain returns the tree through which the pages of r are read.
func Plain(r Reader, tree store.Tree) store.Tree {
	if d, ok := r.(Decrypter); ok {
		return d.Decrypted(tree)
	}
	return tree
}
