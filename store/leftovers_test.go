package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLeftoversOfLargeDirectories: files of a killed run are found in a directory of any size, and a large directory is
// listed rarely.
func TestLeftoversOfLargeDirectories(t *testing.T) {
	dir := t.TempDir()
	const files, sinks = 1000, 500
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	name := TempPrefix + "1-a"
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	l := leftoverNames{of: map[string]*listed{}}
	lists := 0
	for range sinks {
		was := l.of[dir]
		if got := l.in(dir); len(got) != 1 || got[0] != name {
			t.Fatalf("got %v, want %s", got, name)
		}
		if l.of[dir] != was {
			lists++
		}
	}
	if most := sinks*listedPerSink/files + 1; lists < 2 || lists > most {
		t.Errorf("listed %d times, want 2 to %d", lists, most)
	}
}
