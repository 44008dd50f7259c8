package redfile

import (
	"io"

	"stoa/format/redfile/internal/write"
)

// SetRandom has r give the markers of sync blocks, and returns what undoes it.
func SetRandom(r io.Reader) (undo func()) {
	old := write.Random
	write.Random = r
	return func() { write.Random = old }
}
