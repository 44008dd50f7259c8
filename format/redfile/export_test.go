package redfile

import (
	"io"

	"stoa/format/redfile/internal/write"
)

// SetRandom makes r the source of the markers of sync blocks, and returns a function that undoes it.
func SetRandom(r io.Reader) (undo func()) {
	old := write.Random
	write.Random = r
	return func() { write.Random = old }
}
