package main

import (
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
