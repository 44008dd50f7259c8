package redfile

import "io"

// SetRandom has r give the markers of sync blocks, and returns what undoes it.
func SetRandom(r io.Reader) (undo func()) {
	old := random
	random = r
	return func() { random = old }
}
