package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDotsAfterLinks: in sources and outputs ".." after a symbolic link is the parent of the link's target, as in
// system calls; the file that the cleaned path names is neither read nor written.
func TestDotsAfterLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"there/rows/a.csv": "n\n1\n2\n", "rows/a.csv": "n\n7\n",
		"there/deep/x": ""} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("there/deep", "link"); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	for _, source := range []string{"link/../rows", "link/../rows/a.csv"} {
		out.Reset()
		if st := run(context.Background(), []string{"count", source}, strings.NewReader(""), &out,
			&errs); st != 0 || out.String() != "2\n" {
			t.Errorf("%s: got status %d, %q, %s, want 2 rows", source, st, &out, &errs)
		}
	}
	if st := run(context.Background(), []string{"convert", "rows/a.csv", "-o", "link/../b.csv"},
		strings.NewReader(""), &out, &errs); st != 0 {
		t.Errorf("convert: got status %d, want 0: %s", st, &errs)
	}
	if _, err := os.Stat("b.csv"); err == nil {
		t.Error("link/../b.csv was written to b.csv")
	}
	if b, err := os.ReadFile("there/b.csv"); string(b) != "n\n7\n" {
		t.Errorf("output: got %q, %v", b, err)
	}
}
