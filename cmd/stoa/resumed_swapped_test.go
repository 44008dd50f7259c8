package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// threeRows returns tables of three rows each: no two have the same names, types and values.
func threeRows() map[string][]byte {
	files := map[string][]byte{}
	for i, text := range []string{"k,v\n1,a\n2,b\n3,c\n", "k,v\n1,a\n2,b\n3,d\n", "k,w\n1,a\n2,b\n3,c\n",
		"k\n1\n2\n3\n", "k\n1.5\n2.5\n3.5\n", "k\nx\ny\nz\n", "k\n2026-01-01\n2026-01-02\n2026-01-03\n",
		"k,v,w\n1,a,\n2,b,\n3,c,x\n", "k,v\n0.1,a\n0.2,b\n0.3,c\n"} {
		files[fmt.Sprintf("t%d.csv", i)] = []byte(text)
	}
	return files
}

// TestSwappedTables: where another table of a run lies in place of a finished one, a resumed run names it, leaves it as
// it is, and does not end with 0, whatever the format: no two of these tables are the same. As they were, all are done.
func TestSwappedTables(t *testing.T) {
	dir := t.TempDir()
	in, n := filepath.Join(dir, "in"), len(threeRows())
	writeFiles(t, in, threeRows())
	for x, args := range [][]string{{"convert", "--all"}, {"rescue", "--to", "iceberg"},
		{"convert", "--all", "--to", "delta"}, {"rescue", "--to", "iceberg,delta"}, {"rescue", "--to", "arrow"},
		{"convert", "--all", "--to", "cfile"}, {"convert", "--all", "--to", "redfile"},
		{"convert", "--all", "--to", "redfile", "--opt", "arrow-schema=false"},
		{"recover", "--all", "--to", "trevni"}, {"rescue", "--to", "trevni-avro"}, {"rescue", "--to", "csv"},
		{"rescue", "--to", "tsv"}, {"convert", "--all", "--to", "jsonl"}, {"migrate", "--to", "iceberg"},
		{"rescue", "--file-size", "1kB"}, {"rescue", "--file-size", "1kB", "--to", "csv"},
		{"rescue", "--file-size", "1kB", "--to", "jsonl"}, {"rescue", "--file-size", "1kB", "--to", "trevni"}} {
		if testing.Short() && x%5 != 0 {
			continue
		}
		out := filepath.Join(dir, "out")
		args = append(slices.Clone(args), in, "-o", out)
		if status, text := printedBy(args...); status != 0 {
			t.Errorf("%v: %d: %s", args, status, text)
			continue
		}
		args = append(args, "--resume")
		if status, text := printedBy(args...); status != 0 {
			t.Errorf("%v: %d: %s", args, status, text)
		}
		for i := range n {
			for j := range i {
				swap := func() (a, b string) {
					a, b = tableOfRun(t, out, i), tableOfRun(t, out, j)
					if err := errors.Join(os.Rename(a, a+"~"), os.Rename(b, a), os.Rename(a+"~", b)); err != nil {
						t.Fatal(err)
					}
					return a, b
				}
				a, b := swap()
				before := filesBelow(t, out)
				status, text := printedBy(args...)
				text = strings.Join(strings.Fields(text), " ")
				for _, name := range []string{a, b} {
					if !strings.Contains(text, name+" is not what an earlier run wrote") &&
						!strings.Contains(text, name+" is left as it is") {
						t.Errorf("%v, %d and %d: %s is not named: %s", args, i, j, name, text)
					}
				}
				if status == 0 || !maps.EqualFunc(before, filesBelow(t, out), slices.Equal) {
					t.Errorf("%v, %d and %d: status %d, or files were changed", args, i, j, status)
				}
				swap()
			}
		}
		if status, text := printedBy(args...); status != 0 {
			t.Errorf("%v: %d: %s", args, status, text)
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
}

// tableOfRun returns where the table with a number was written.
func tableOfRun(t *testing.T, out string, i int) string {
	for _, pattern := range []string{"t%d", "t%d.*", "in.t%d", "in_t%d"} {
		if all, _ := filepath.Glob(filepath.Join(out, fmt.Sprintf(pattern, i))); len(all) == 1 {
			return all[0]
		}
	}
	all, _ := os.ReadDir(out)
	t.Fatal("no table", i, all)
	return ""
}

// TestSwappedBackups: so does a resumed run of backups of Kudu's tables, although all tables have the same rows, if
// those of one lie in the directory of another, or their files do.
func TestSwappedBackups(t *testing.T) {
	cluster, _ := fewTables(t, "d_major", "d_minor", "d_rowset")
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	someTables(t, in, cluster)
	if err := os.RemoveAll(filepath.Join(in, "z")); err != nil {
		t.Fatal(err)
	}
	args := []string{"rescue", in, "--to", "kudu-backup", "-o", out}
	if status, text := printedBy(args...); status != 0 {
		t.Fatal(status, text)
	}
	args = append(args, "--resume")
	for _, below := range []string{"/*", "/*/*.parquet"} {
		all, err := filepath.Glob(out + "/*-d_*" + below)
		if err != nil || len(all) != 3 {
			t.Fatal(all, err)
		}
		for i, a := range all {
			for _, b := range all[:i] {
				swap := func() {
					if err := errors.Join(os.Rename(a, a+"~"), os.Rename(b, a), os.Rename(a+"~", b)); err != nil {
						t.Fatal(err)
					}
				}
				swap()
				before := filesBelow(t, out)
				status, text := printedBy(args...)
				if status == 0 || strings.Count(text, "is not what an earlier run wrote") < 2 ||
					!maps.EqualFunc(before, filesBelow(t, out), slices.Equal) {
					t.Errorf("%s and %s: status %d, or files were changed: %s", a, b, status, text)
				}
				swap()
			}
		}
	}
	if status, text := printedBy(args...); status != 0 {
		t.Error(status, text)
	}
}
