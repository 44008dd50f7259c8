package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
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

// TestCopiesOfAServer: the rows of a Kudu table come once, however many copies of its server are named, and however
// they are named; a server's disks that are named one by one are one server.
func TestCopiesOfAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("in.csv", []byte("id,v\n1,a\n2,b\n3,c\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in.csv", "-o", "fs", "--to", "kudu-fs", "--opt", "key=id", "--opt", "table=t",
		"--opt", "buckets=2")
	for _, dir := range []string{"a", "b", "servers/c", "servers/d"} {
		if err := os.CopyFS(dir, os.DirFS("fs/tserver")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS("disk1", os.DirFS("a")); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in.csv", "-o", "other", "--to", "kudu-fs", "--opt", "key=id", "--opt", "table=t",
		"--opt", "table-id=0123456789abcdef0123456789abcdef")
	for _, args := range [][]string{{"a#t", "b#t"}, {"a", "b", "servers/c"}, {"servers/*#t"}, {"servers#t", "a#t"}} {
		if got := must(t, append([]string{"count"}, args...)...); got != "3\n" {
			t.Errorf("count %v: got %q, want 3 rows", args, got)
		}
	}
	if got := must(t, "count", "a#t", "other/tserver#t"); got != "6\n" {
		t.Errorf("two tables of one name: got %q, want 6 rows", got)
	}
	for _, args := range [][]string{{"count", "a#t", "b#t", "other/tserver#t"}, {"count", "a#t", "a#t"},
		{"plan", "a#t", "b#t"}} {
		var out, errs bytes.Buffer
		if st := run(t.Context(), args, strings.NewReader(""), &out, &errs); st != cli.StatusUse {
			t.Errorf("%v: got status %d, %q, want %d", args, st, &out, cli.StatusUse)
		}
	}
	if got := must(t, "ls", "a", "b", "in.csv", "-f", "csv"); strings.Count(got, "#t,") != 1 ||
		!strings.Contains(got, "in.csv") {
		t.Errorf("ls of two copies and a file: got %s", got)
	}
	must(t, "verify", "a", "b")
	must(t, "convert", "--all", "a", "b", "-o", "out")
	if files, _ := filepath.Glob("out/*.parquet"); len(files) != 1 {
		t.Errorf("convert --all of two copies: got %v, want one table", files)
	}
	must(t, "convert", "--all", "a#t", "b#t", "-o", "out2")
	if files, _ := filepath.Glob("out2/*.parquet"); len(files) != 1 || must(t, "count", "out2/t.parquet") != "3\n" {
		t.Errorf("convert --all of a table of two copies: got %v, want one with 3 rows", files)
	}
	must(t, "convert", "--all", "a#t", "other/tserver#t", "-o", "out3")
	if files, _ := filepath.Glob("out3/*.parquet"); len(files) != 2 {
		t.Errorf("convert --all of two tables of one name: got %v, want two", files)
	}
}

// TestDisksOfAServer: a server whose log and data are on several disks, named one by one, is one server.
func TestDisksOfAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("in.csv", []byte("id,v\n1,a\n2,b\n3,c\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in.csv", "-o", "fs", "--to", "kudu-fs", "--opt", "key=id", "--opt", "table=t")
	for _, dir := range []string{"disk1/wal", "disk2"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"instance": "disk1/wal/instance", "tablet-meta": "disk1/wal/tablet-meta",
		"consensus-meta": "disk1/wal/consensus-meta", "wals": "disk1/wal/wals", "data": "disk2/data"} {
		if err := os.Rename(filepath.Join("fs/tserver", from), to); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"count", "disk1", "disk2"}, {"count", "disk1#t", "disk2#t"},
		{"ls", "disk1", "disk2"}, {"verify", "disk1", "disk2"}, {"convert", "--all", "disk1", "disk2", "-o", "out"},
		{"ls", "--blocks", "disk2", "disk1"}, {"history", "disk1#t", "disk2#t"}} {
		if got := must(t, args...); args[0] == "count" && got != "3\n" {
			t.Errorf("%v: got %q, want 3 rows", args, got)
		}
	}
}
