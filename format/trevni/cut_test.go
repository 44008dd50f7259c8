package trevni_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestCutIsSaid: wherever behind its header a file is cut, opening it, which is all that ls and schema do, reports it.
// The files are those of the real programs, all of whose bytes belong to columns.
func TestCutIsSaid(t *testing.T) {
	r, files, cuts := rand.New(rand.NewPCG(17, 4)), 0, 0
	err := filepath.WalkDir("../../corpus/trevni", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".trv") || strings.Contains(p, "negative") {
			return err
		}
		whole, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files++
		if damage := damageAtOpen(t, whole); damage {
			t.Errorf("%s: whole, and an error is reported", p)
		}
		at := []int{1, 2, 3, 4, 5, 12, 13}
		for range 12 {
			at = append(at, 1+r.IntN(len(whole)-1))
		}
		for _, n := range at {
			if n >= len(whole) {
				continue
			}
			cuts++
			if !damageAtOpen(t, whole[:len(whole)-n]) {
				t.Errorf("%s: %d of %d bytes are missing, and opening says nothing", p, n, len(whole))
			}
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files: %v", files, err)
	}
	t.Logf("%d files, %d cuts", files, cuts)
}

// damageAtOpen reports whether opening a file fails, or reports an error.
func damageAtOpen(t *testing.T, b []byte) bool {
	t.Helper()
	tree := store.NewMemory(map[string][]byte{"f.trv": b})
	tab, err := stoa.Open(t.Context(), "f.trv", stoa.OpenOptions{Tree: tree, From: "trevni"})
	if err != nil {
		return true
	}
	defer tab.Close()
	return slices.ContainsFunc(tab.Findings(), func(f region.Finding) bool { return f.Severity == region.Error })
}
