package ipc

import "strings"

// longInteger reports whether err is the library's of an integer longer than Arrow's, as Polars' Int128 is. It
// has no other sign than the text. Lengths that no integer of anybody's has are damage.
func longInteger(err error) bool {
	const words = "integers with more than 64 bits not implemented (bits="
	return strings.Contains(err.Error(), words+"128)") || strings.Contains(err.Error(), words+"256)")
}
