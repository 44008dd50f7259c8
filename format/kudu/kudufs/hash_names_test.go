package kudufs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
	"stoa/format/kudu/kudufs"
)

// TestNamesWithHashes: PLACE#TABLE opens each table of a place by its name, whichever # it has, also if the place has
// one; and the verbs that save all tables save them. Each table has as many rows as its place in the list.
func TestNamesWithHashes(t *testing.T) {
	names := []string{"x", "x#y", "y", "#y", "x#", "#", "a#b#c", "x/y#z"}
	for _, place := range []string{"place", "a#place"} {
		dir := filepath.Join(t.TempDir(), place)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		var roots []string
		for i, name := range names {
			var rows [][2]any
			for k := range i + 1 {
				rows = append(rows, [2]any{k, "s"})
			}
			roots = append(roots, filepath.Join(dir, fmt.Sprint(i)))
			if err := write(t, roots[i], kudufs.WriteOptions{Table: name, Key: []string{"k"}}, rows); err != nil {
				t.Fatal(err)
			}
		}
		list := filepath.Join(t.TempDir(), "list")
		var lines []byte
		for _, r := range roots {
			lines = append(append(lines, r...), '\n')
		}
		if err := os.WriteFile(list, lines, 0o600); err != nil {
			t.Fatal(err)
		}
		want := []string{}
		for i, name := range names {
			want = append(want, fmt.Sprint(i+1))
			for _, at := range []string{dir, "@" + list} {
				if got := printed(t, "count", at+"#"+name); got != want[i]+"\n" {
					t.Errorf("%s#%s: %s rows, want %d", at, name, got, i+1)
				}
			}
		}
		if slices.Sort(want); testing.Short() && place != "place" {
			continue
		}
		for _, args := range [][]string{{"convert", "--all", dir}, {"rescue", dir}, {"recover", "--all", dir},
			append([]string{"rescue"}, roots...)} {
			out := filepath.Join(t.TempDir(), "out")
			printed(t, append(args, "-o", out, "-q")...)
			files, err := filepath.Glob(filepath.Join(out, "*.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				got = append(got, strings.TrimSpace(printed(t, "count", f)))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", args, got, want)
			}
		}
	}
}

// printed returns what the command prints. Its status must be 0.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status, err := verbs.Run(t.Context(), args, nil, &out, &errs); status != 0 {
		t.Errorf("%q: status %d, %v\n%s", args, status, err, &errs)
	}
	return out.String()
}
