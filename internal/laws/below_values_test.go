package laws_test

import (
	"os"
	"path/filepath"
	"testing"

	"stoa"
)

// TestBelowValues: a table is the same below a directory whose name is like a partition's, and is found there.
func TestBelowValues(t *testing.T) {
	places, err := filepath.Glob("corpus/carbon/2.3.0/managed/*/Metadata")
	if err != nil || len(places) < 3 {
		t.Fatal(places, err)
	}
	for i := range places {
		places[i] = filepath.Dir(places[i])
	}
	for _, to := range []string{"cfile", "parquet", "trevni", "redfile", "csv"} {
		places = append(places, placeOf(t, to))
	}
	for _, from := range places {
		type found struct {
			rows  int64
			first string
			list  int
			told  int
		}
		look := func(dir string) (f found) {
			t.Helper()
			x, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{})
			if err != nil {
				f.first = "an error"
				return f
			}
			f.first = x.Schema().String()
			if f.rows, err = x.Count(t.Context(), stoa.ScanSpec{}); err != nil {
				t.Error(dir, err)
			}
			if err := x.Close(); err != nil {
				t.Error(dir, err)
			}
			for _, err := range stoa.List(t.Context(), filepath.Dir(dir), stoa.OpenOptions{}) {
				if f.list++; err != nil {
					t.Error(dir, err)
				}
			}
			for _, err := range stoa.Verify(t.Context(), filepath.Dir(dir), stoa.OpenOptions{}) {
				if f.told++; err != nil {
					t.Error(dir, err)
				}
			}
			return f
		}
		var want found
		for i, below := range []string{"plain", "x=y", "x=y2,0", "day=2024-01-01/x="} {
			dir := filepath.Join(t.TempDir(), below, "t")
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			if got := look(dir); i == 0 {
				want = got
			} else if got != want {
				t.Errorf("%s below %s: got %v, want %v", from, below, got, want)
			}
		}
	}
}

// placeOf returns a directory in which stoa has written two rows.
func placeOf(t *testing.T, to string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t")
	name := dir + "/"
	if to != "cfile" {
		name += "a." + to
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	rows := changeRows(t, `[{"a":1,"b":"x"},{"a":2,"b":null}]`)
	w, err := stoa.Create(t.Context(), name, rows.Schema(), stoa.CreateOptions{To: to})
	if err == nil {
		err = w.Write(t.Context(), rows)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(to, err)
	}
	return dir
}
