//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store"
)

// TestScratchOfKilledRuns: a run that is killed just after it created its scratch file, before the file's name was
// removed, leaves a file that only the next run to the same place removes.
func TestScratchOfKilledRuns(t *testing.T) {
	for _, base := range []string{"out", strings.Repeat("o", 220)} {
		dir := t.TempDir()
		sink := func(base string) store.Sink { return store.Local{}.Sink(filepath.Join(dir, base), nil) }
		sc, err := sink(base).Scratch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		left := sc.(interface{ Name() string }).Name()
		if err := sc.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(left); err == nil {
			t.Fatal("a scratch file that was closed is there")
		}
		if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{"other", base} {
			if _, err := os.Stat(left); err != nil {
				t.Fatalf("%s: removed for another place: %v", in, err)
			}
			s := sink(in)
			write(t, s, "", "x")
			if err := s.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%.10s: it is still there", base)
		}
	}
}
