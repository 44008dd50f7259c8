package store

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTempDir: a temporary directory stays while it is in use, goes with remove, and what a killed process left of one
// goes with the next.
func TestTempDir(t *testing.T) {
	place := filepath.Join(t.TempDir(), "out")
	killed := filepath.Join(filepath.Dir(place), TempPrefix+"1-out")
	if err := os.MkdirAll(filepath.Join(killed, "deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	first, remove, err := Local{}.TempDir(place)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("what a killed process left is there: %v", err)
	}
	second, other, err := Local{}.TempDir(place)
	if err != nil {
		t.Fatal(err)
	}
	Local{}.Sweep(place)
	if _, err := os.Stat(first); err != nil {
		t.Errorf("it is gone while it is in use: %v", err)
	}
	if err := os.WriteFile(filepath.Join(first, "x"), nil, 0o666); err != nil {
		t.Error(err)
	}
	for _, done := range []func() error{remove, other, remove} {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range []string{first, second} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is there after remove: %v", dir, err)
		}
	}
}
