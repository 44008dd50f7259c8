package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServersOfOthersStay: directories of a master or a tablet server, or files of these names, that no run has
// recorded stay as they are, with any verb, in a new run and in one that is resumed: they are named, nothing else is
// written, and the status is not 0. What a run has recorded is gone on with.
func TestServersOfOthersStay(t *testing.T) {
	mine := []byte("what somebody else has written\n")
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	writeFiles(t, in, map[string][]byte{"one.csv": []byte("x\n1\n2\n")})
	for i, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all"}} {
		args := append(slices.Clone(verb), "--to", "kudu-fs", "--opt", "key=x", in, "-o")
		for _, name := range []string{"master", "master/wal/instance", "tserver", "tserver/data/data/block"} {
			for _, flags := range [][]string{nil, {"--resume"}} {
				out := filepath.Join(dir, "out", string(rune('a'+i)), strings.ReplaceAll(name, "/", "-"))
				writeFiles(t, out, map[string][]byte{name: mine})
				before := filesBelow(t, out)
				status, text := printedBy(append(append(slices.Clone(args), out), flags...)...)
				first, _, _ := strings.Cut(name, "/")
				if status == 0 || !maps.EqualFunc(before, filesBelow(t, out), slices.Equal) || !strings.Contains(
					strings.Join(strings.Fields(text), " "), filepath.Join(out, first)+" is there already") {
					t.Errorf("%v %v, %s: status %d, files %v: %s", verb, flags, name, status,
						slices.Sorted(maps.Keys(filesBelow(t, out))), text)
				}
			}
		}
		own := filepath.Join(dir, "own"+verb[0])
		for _, flags := range [][]string{nil, {"--resume"}} {
			if status, text := printedBy(append(append(slices.Clone(args), own), flags...)...); status != 0 ||
				countOf(t, own) != 2 {
				t.Errorf("%v %v: status %d: %s", verb, flags, status, text)
			}
		}
	}
}
