package laws_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"stoa"
)

// TestDotsAfterLinks: as for the operating system, ".." after a symbolic link is the parent of the link's target and
// not of the link.
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
		t.Skip(err) // Windows may lack the privilege
	}
	for _, uri := range []string{"link/../rows", "link/../rows/a.csv", "link/../rows/*.csv", "./link/../rows/"} {
		tab, err := stoa.Open(context.Background(), uri, stoa.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		rows := int64(0)
		for b, err := range tab.Scan(context.Background(), stoa.ScanSpec{}) {
			if err != nil {
				t.Fatal(err)
			}
			rows += b.NumRows()
		}
		if err := tab.Close(); err != nil || rows != 2 {
			t.Errorf("%s: %d rows, %v", uri, rows, err)
		}
	}
}
