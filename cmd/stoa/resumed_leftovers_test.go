package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLeftoversOfKilledRuns: what a killed run had begun of a table that is done is removed by the next run, unless
// something of others is in it; what a run has set aside, and no record knows, stays, is named, and the status is not 0
// until it is moved away.
func TestLeftoversOfKilledRuns(t *testing.T) {
	cluster, _ := fewTables(t, "d_raw", "key_all")
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, cluster)
		args := append(slices.Clone(verb), in, "-o", out, "--file-size", "10kB")
		if status, text := printedBy(args...); status != 0 {
			t.Fatalf("%v: status %d: %s", verb, status, text)
		}
		begun := map[string][]byte{"1.parquet": []byte("PAR1"), ".stoa-pieces.journal": []byte("{}\n")}
		writeFiles(t, filepath.Join(out, "d_raw.unfinished"), begun)
		writeFiles(t, filepath.Join(out, "key_all.unfinished"), begun)
		writeFiles(t, filepath.Join(out, "key_all.unfinished"), map[string][]byte{"notes.txt": []byte("mine\n")})
		writeFiles(t, filepath.Join(out, "d_alter.unfinished"), begun) // of no table here
		if status, text := printedBy(append(args, "--resume")...); status != 0 {
			t.Errorf("%v: status %d: %s", verb, status, text)
		}
		left, _ := filepath.Glob(filepath.Join(out, "*.unfinished", "*"))
		for i := range left {
			left[i], _ = filepath.Rel(out, left[i])
		}
		if want := []string{"d_alter.unfinished/.stoa-pieces.journal", "d_alter.unfinished/1.parquet",
			"key_all.unfinished/.stoa-pieces.journal", "key_all.unfinished/1.parquet",
			"key_all.unfinished/notes.txt"}; !slices.Equal(left, want) {
			t.Errorf("%v: left are %v, want %v", verb, left, want)
		}
		aside := filepath.Join(out, ".stoa-earlier-d_old.parquet")
		writeFiles(t, "", map[string][]byte{aside: []byte("PAR1")})
		for range 2 {
			status, text := printedBy(append(args, "--resume")...)
			if _, err := os.Stat(aside); status != 3 || err != nil || !strings.Contains(
				strings.Join(strings.Fields(text), " "), aside+": an earlier run wrote it") {
				t.Errorf("%v: status %d, %v: %s", verb, status, err, text)
			}
		}
		if err := os.Remove(aside); err != nil {
			t.Fatal(err)
		}
		if status, text := printedBy(append(args, "--resume")...); status != 0 {
			t.Errorf("%v: removed: status %d: %s", verb, status, text)
		}
	}
}
