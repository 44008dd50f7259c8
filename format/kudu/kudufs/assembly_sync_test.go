package kudufs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// disk knows which names would be left after a loss of power: those that a directory had when it was last synced.
type disk struct {
	t      *testing.T
	dir    string
	synced map[string]bool
	syncs  int
}

func (d *disk) sync(dir string) error {
	d.check()
	d.syncs++
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for name := range d.synced {
		if filepath.Dir(name) == dir {
			delete(d.synced, name)
		}
	}
	for _, f := range found {
		d.synced[filepath.Join(dir, f.Name())] = true
	}
	return nil
}

// check: a superblock may be on the disk as soon as it has its name. So everything else that the server's directories
// hold must be there already.
func (d *disk) check() {
	superblocks, err := filepath.Glob(filepath.Join(d.dir, serverDir, "tablet-meta", "*"))
	if err != nil {
		d.t.Fatal(err)
	}
	if len(superblocks) > 0 {
		d.all(func(name string) bool { return strings.Contains(name, "tablet-meta") })
	}
}

func (d *disk) all(but func(name string) bool) {
	err := filepath.Walk(d.dir, func(name string, _ os.FileInfo, err error) error {
		if name != d.dir && !but(name) && !d.synced[name] {
			d.t.Errorf("after %d syncs: %s would be lost with the power", d.syncs, name)
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// TestTakeSyncs: at no time a loss of power would leave a superblock without the files that it names, and after Take it
// would lose none, also if an earlier run was killed at any point.
func TestTakeSyncs(t *testing.T) {
	files := []string{"instance", "data/block_manager_instance", "data/a.data", "data/a.metadata", "data/00/01/02/0001",
		"wals/T1/wal-000000001", "wals/T2/wal-000000001", "consensus-meta/T1", "consensus-meta/T2", "tablet-meta/T1",
		"tablet-meta/T2"}
	for moved := range len(files) + 1 {
		dir := t.TempDir()
		from := filepath.Join(t.TempDir(), "of t")
		for i, f := range files {
			at := filepath.Join(from, serverDir)
			if err := os.MkdirAll(filepath.Join(at, filepath.Dir(f)), 0o777); err != nil {
				t.Fatal(err)
			}
			if i < moved {
				at = filepath.Join(dir, serverDir)
			}
			name := filepath.Join(at, f)
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(f), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		d := &disk{t: t, dir: dir, synced: map[string]bool{}}
		if moved >= len(files)-2 { // then the killed run had synced what is not a superblock
			for _, f := range append(files[:len(files)-2:len(files)-2], ".", "data/00/01/02", "data/00/01", "data/00") {
				for name := filepath.Join(dir, serverDir, f); name != dir; name = filepath.Dir(name) {
					d.synced[name] = true
				}
			}
		}
		a := &assembly{dir: dir, sync: d.sync}
		if err := a.Take(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		d.check()
		d.all(func(string) bool { return false })
		for _, f := range files {
			if b, err := os.ReadFile(filepath.Join(dir, serverDir, f)); err != nil || string(b) != f {
				t.Errorf("%s: %s, %v", f, b, err)
			}
		}
		if _, err := os.Lstat(from); err == nil {
			t.Error("the table's own directory is left")
		}
	}
}
