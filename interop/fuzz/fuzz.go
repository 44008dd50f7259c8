// Package fuzz is the clock of judged fuzzing: tables by seed, written by stoa and read by a real system, for
// as long as STOA_FUZZ says. See ../README.md.
package fuzz

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Seed is STOA_SEED, or one of the moment.
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

// For is STOA_FUZZ, or 0.
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

// Run plays rounds until STOA_FUZZ is over (one, without it) or one failed. A round judges the table of every
// seed from first on, n of them, and tells how many cells were compared. What differs it tells with the seed of
// its table: STOA_SEED=it begins with that one.
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
