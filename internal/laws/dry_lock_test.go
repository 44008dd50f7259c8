package laws_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"stoa"
)

// TestDryRunsMakeNoLockFiles: a dry run creates no lock files in a table that has none.
func TestDryRunsMakeNoLockFiles(t *testing.T) {
	c := newChanger(t, stoa.OpenOptions{})
	rows := changeRows(t, `[{"a":1,"b":"x"},{"a":2,"b":null},{"a":3,"b":"y"}]`)
	locks := filepath.Join(c.Place().Dir, "LockFiles")
	for _, x := range changes {
		if err := os.RemoveAll(locks); err != nil {
			t.Fatal(err)
		}
		if _, err := x.do(t.Context(), c, rows, true); err != nil {
			t.Fatalf("%s, dry: %v", x.name, err)
		}
		if _, err := os.Stat(locks); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the dry run made lock files: %v", x.name, err)
		}
		if x.name == "drop tables" {
			return
		}
		if _, err := x.do(t.Context(), c, rows, false); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
	}
}
