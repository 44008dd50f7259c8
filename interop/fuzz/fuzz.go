// Package fuzz runs differential fuzzing: tables drawn from seeds, written by stoa and read by a real system, for as
// long as STOA_FUZZ says. See ../README.md.
package fuzz

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Seed returns STOA_SEED, by default a seed from the clock. A malformed one fails t.
func Seed(t *testing.T) uint64 {
	t.Helper()
	s := os.Getenv("STOA_SEED")
	if s == "" {
		return uint64(time.Now().UnixNano()>>20) & 0x7fffffff
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("STOA_SEED: %v", err)
	}
	return seed
}

// For returns STOA_FUZZ, a duration such as 20m; 0 if it is not set. A malformed one fails t.
func For(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("STOA_FUZZ")
	if s == "" {
		return 0
	}
	long, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("STOA_FUZZ: %v", err)
	}
	return long
}

// Run runs rounds until STOA_FUZZ has passed (a single one without it) or a round fails. A round tests the tables of n
// seeds from first on, and returns how many cells were compared; it reports a difference with the seed of its table, so
// that STOA_SEED can start there. At least one cell must be compared.
func Run(t *testing.T, peer string, n uint64, round func(t *testing.T, first uint64) (cells int)) {
	t.Helper()
	seed, long, begin := Seed(t), For(t), time.Now()
	tables, cells := uint64(0), 0
	for first := seed; tables == 0 || time.Since(begin) < long; first += n {
		tables += n
		// a test of its own, so that its temporary files go with it
		if !t.Run(strconv.FormatUint(first, 10), func(t *testing.T) { cells += round(t, first) }) {
			t.Errorf("a difference in the tables of seeds %d to %d", first, first+n-1)
			break
		}
	}
	t.Logf("COUNT fuzz %s: %d tables of seeds %d to %d, %d cells compared, in %v",
		peer, tables, seed, seed+tables-1, cells, time.Since(begin).Round(time.Second))
	if cells == 0 {
		t.Error("no cell was compared")
	}
}
