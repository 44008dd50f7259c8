package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReplacedLakes: where something else is in place of a finished table of a lake, even with the same rows, a resumed
// run names it, leaves it as it is, and does not end with 0.
func TestReplacedLakes(t *testing.T) {
	dir := t.TempDir()
	in, parquet := filepath.Join(dir, "in"), filepath.Join(dir, "one.parquet")
	writeFiles(t, in, map[string][]byte{"one.csv": []byte("x\n1\n2\n"), "two.csv": []byte("x\n3\n")})
	if status, text := printedBy("convert", filepath.Join(in, "one.csv"), "-o", parquet); status != 0 {
		t.Fatal(text)
	}
	rows, err := os.ReadFile(parquet)
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]map[string][]byte{
		"text": {"one": []byte("my own notes\n")}, "empty": {"one": nil}, "file": {"one": rows},
		"directory": {"one/notes.txt": []byte("my own notes\n")}, "files": {"one/rows.parquet": rows}}
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all"}} {
		for _, to := range []string{"iceberg", "delta", "iceberg,delta"} {
			out := filepath.Join(dir, verb[0]+"-"+to)
			args := append(slices.Clone(verb), in, "-o", out, "--to", to)
			if status, text := printedBy(args...); status != 0 {
				t.Fatalf("%v: %d: %s", args, status, text)
			}
			if status, text := printedBy(append(args, "--resume")...); status != 0 {
				t.Errorf("%v --resume: %d: %s", args, status, text)
			}
			for name, files := range others {
				if err := os.RemoveAll(filepath.Join(out, "one")); err != nil {
					t.Fatal(err)
				}
				writeFiles(t, out, files)
				before := filesBelow(t, out)
				status, text := printedBy(append(args, "--resume")...)
				named := strings.Contains(strings.Join(strings.Fields(text), " "),
					filepath.Join(out, "one")+" was finished, and cannot be read")
				if status == 0 || !named || !maps.EqualFunc(before, filesBelow(t, out), slices.Equal) {
					t.Errorf("%v, %s: status %d: %s", args, name, status, text)
				}
			}
		}
	}
}

// TestReplacedFiles: where something else is in place of a finished table, or it was changed, a resumed run names it,
// leaves it as it is, whether or not the source has changed, writes the others, and does not end with 0. When it is
// moved away, or with --force, the table is written again.
func TestReplacedFiles(t *testing.T) {
	cluster, _ := fewTables(t, "d_raw", "key_all")
	mine := map[string][]byte{"": []byte("my own notes\n"), "/notes.txt": []byte("my own notes\n"), "/empty": nil}
	for i, args := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all", "--to", "cfile"},
		{"rescue", "--to", "jsonl"}, {"rescue", "--file-size", "10kB"}, {"rescue", "--to", "kudu-backup"},
		{"convert", "--all", "--to", "arrow"}} {
		if testing.Short() && i%2 > 0 {
			continue
		}
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		writeFiles(t, in, cluster)
		fresh := filepath.Join(dir, "fresh")
		args = append(slices.Clone(args), in, "-q", "-o")
		if status, text := printedBy(append(slices.Clone(args), fresh)...); status != 0 {
			t.Fatalf("%v: %d: %s", args, status, text)
		}
		for below, b := range mine {
			for _, changed := range []bool{false, true} {
				out := filepath.Join(dir, "out")
				if err := errors.Join(os.RemoveAll(out), os.CopyFS(out, os.DirFS(fresh))); err != nil {
					t.Fatal(err)
				}
				state, err := os.ReadFile(filepath.Join(out, ".stoa-convert.json"))
				if err == nil {
					err = os.WriteFile(filepath.Join(out, ".stoa-convert.json"), bytes.ReplaceAll(state,
						[]byte(`/fresh"`), []byte(`/out"`)), 0o666)
				}
				names, _ := filepath.Glob(filepath.Join(out, "*d_raw*"))
				others, _ := filepath.Glob(filepath.Join(out, "*key_all*"))
				if err != nil || len(names) != 1 || len(others) != 1 {
					t.Fatal(err, names, others)
				}
				if backups, _ := filepath.Glob(filepath.Join(names[0], "*")); slices.Contains(args, "kudu-backup") {
					names = backups
				}
				if err := errors.Join(os.RemoveAll(names[0]), os.RemoveAll(others[0])); err != nil {
					t.Fatal(err)
				}
				writeFiles(t, "", map[string][]byte{names[0] + below: b})
				if changed {
					writeFiles(t, in, cluster) // with other times
				}
				status, text := printedBy(append(slices.Clone(args), out, "--resume")...)
				got, err := os.ReadFile(names[0] + below)
				if folded := strings.Join(strings.Fields(text), " "); status == 0 || err != nil ||
					!bytes.Equal(got, b) || !strings.Contains(folded, names[0]+" is not what an earlier run wrote") {
					t.Errorf("%v, %q: status %d, %v: %s", args, below, status, err, text)
				}
				if _, err := os.Lstat(others[0]); err != nil {
					t.Errorf("%v, %q: the other table: %v: %s", args, below, err, text)
				}
				force := []string{out, "--resume", "--force"}
				if changed {
					force = force[:2]
					if err := os.Rename(names[0], filepath.Join(dir, "mine")); err != nil {
						t.Fatal(err)
					}
				}
				if status, text := printedBy(append(slices.Clone(args), force...)...); status != 0 {
					t.Errorf("%v, %q, %v: status %d: %s", args, below, force, status, text)
				}
				os.RemoveAll(filepath.Join(dir, "mine"))
			}
		}
	}
}
