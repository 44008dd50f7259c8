package kudufs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu/kudufs"
)

// fillPlace writes tables t0, t1 … to directories of their own in dir, as an assembly asks for it.
func fillPlace(t *testing.T, a format.Assembly, dir, manager string, n int) (dirs []string) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		opts, o := a.Options(name), kudufs.WriteOptions{Key: []string{"k", "s"}, Manager: manager, RowSetSize: 400,
			Buckets: 2}
		o.Table, o.Server = opts["table"], opts["server"]
		if _, err := fmt.Sscan(opts["first-block"], &o.FirstBlock); err != nil {
			t.Fatal(err)
		}
		var rows [][2]any
		for k := range 20 {
			rows = append(rows, [2]any{k + 100*i, "s"})
		}
		dirs = append(dirs, filepath.Join(dir, "of "+name))
		if err := write(t, dirs[i], o, rows[:10], rows[10:]); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Check(t.Context(), dirs[i]); err != nil || got != name {
			t.Fatal(got, err)
		}
	}
	return dirs
}

// checkPlace requires exactly these tables in dir, each with its rows, and nothing that verify finds.
func checkPlace(t *testing.T, dir string, n int) {
	t.Helper()
	tables := 0
	for e, err := range stoa.List(t.Context(), dir, stoa.OpenOptions{}) {
		if err != nil || len(e.Findings) > 0 {
			t.Fatal(e.Findings, err)
		}
		tables++
	}
	if tables != n {
		t.Errorf("%d tables, want %d", tables, n)
	}
	for i := range n {
		var want []string
		for k := range 20 {
			want = append(want, fmt.Sprintf("%d s", k+100*i))
		}
		got := read(t, fmt.Sprintf("%s#t%d", dir, i))
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("table %d: %v", i, got)
		}
	}
	for f, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{}) {
		if err != nil || f.Severity > 0 {
			t.Error(f, err)
		}
	}
}

// stopsAfter is a context that ends when it was asked n times.
type stopsAfter struct {
	context.Context
	n int
}

func (c *stopsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestAssembly: tables become one place, with either block manager; taking a table can be interrupted after any of its
// files and repeated, and more tables be added later.
func TestAssembly(t *testing.T) {
	for _, manager := range []string{"file", "log"} {
		dir := t.TempDir()
		begin := func() format.Assembly {
			t.Helper()
			a, err := kudufs.Format.Assemble(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		dirs := fillPlace(t, begin(), dir, manager, 2)
		a := begin()
		for i, d := range dirs {
			for n := 0; ; n += 5 { // some files more each time
				err := a.Take(&stopsAfter{t.Context(), n}, d)
				if err == nil {
					break
				}
				if n > 1000 {
					t.Fatal(i, err)
				}
			}
			if err := a.Take(t.Context(), d); err != nil {
				t.Error("taken again:", err)
			}
		}
		if err := a.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkPlace(t, dir, 2)

		a = begin()
		more := filepath.Join(dir, "more")
		o := kudufs.WriteOptions{Table: "t2", Key: []string{"k", "s"}, Manager: manager}
		for _, why := range []string{"expected server", "another table is named", ""} {
			switch opts := a.Options(""); why {
			case "another table is named":
				o.Table, o.Server = "t1", opts["server"]
			case "":
				o.Table = "t2"
				if _, err := fmt.Sscan(opts["first-block"], &o.FirstBlock); err != nil {
					t.Fatal(err)
				}
			}
			var rows [][2]any
			for k := range 20 {
				rows = append(rows, [2]any{k + 200, "s"})
			}
			if err := write(t, more, o, rows); err != nil {
				t.Fatal(err)
			}
			_, err := a.Check(t.Context(), more)
			if why != "" {
				if err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("got %v, want %s", err, why)
				}
				if err := os.RemoveAll(more); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Take(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		if err := a.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkPlace(t, dir, 3)
	}
}
