// Package effort says how many of its cases a test tries that could try each bit, byte, cut or request there is.
package effort

import (
	"os"
	"testing"
)

// All reports whether a test tries everything: STOA_LONG is set.
func All() bool { return os.Getenv("STOA_LONG") != "" }

// Step returns the distance between the cases that run: full, or short with -short; 1, which is all of them, if
// STOA_LONG is set. Where bits are counted, a distance without a divisor of 8 takes all bits of a byte in turn.
func Step(full, short int) int {
	switch {
	case All():
		return 1
	case testing.Short():
		return short
	}
	return full
}
