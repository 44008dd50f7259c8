package delta_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/delta"
)

// TestHintsOfCheckpoints holds _last_checkpoint against the logs of deltalake and Spark: it never changes which rows
// are read, what contradicts it is told, and as an error where nothing shows that the checkpoint is right.
func TestHintsOfCheckpoints(t *testing.T) {
	const newest = "00000000000000000009.checkpoint.parquet"
	older := func(t *testing.T, log string) { // only the newest checkpoint is left
		t.Helper()
		all, err := filepath.Glob(log + "/*")
		for _, name := range all {
			base := filepath.Base(name)
			if err == nil && base != "_last_checkpoint" && base < newest {
				err = os.RemoveAll(name)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		hint  string // instead of what is there; "-": there is none
		want  string
		alter func(t *testing.T, log string)
	}{
		"as written":          {},
		"without":             {hint: "-"},
		"cut":                 {hint: `{"version":9,"si`, want: "delta.checkpoint.hint"},
		"no object":           {hint: `[9]`, want: "delta.checkpoint.hint"},
		"an older checkpoint": {hint: `{"version":6,"size":8}`},
		"no checkpoint": {want: "delta.checkpoint.hint", alter: func(t *testing.T, log string) {
			if err := os.Remove(log + "/" + newest); err != nil {
				t.Fatal(err)
			}
		}},
		"a later version": {hint: `{"version":50,"size":8}`, want: "delta.checkpoint.doubt"},
		"several parts":   {hint: `{"version":9,"size":9,"parts":3}`, want: "delta.checkpoint.hint"},
		"other actions":   {hint: `{"version":9,"size":7,"numOfAddFiles":4}`, want: "delta.checkpoint.hint"},
		"other files":     {hint: `{"version":9,"size":9,"numOfAddFiles":3}`, want: "delta.checkpoint.hint"},
		"cleaned":         {alter: older},
		"cleaned, other files": {hint: `{"version":9,"numOfAddFiles":3}`, want: "delta.checkpoint.doubt",
			alter: older},
		"cleaned, other counts": {hint: `{"version":9,"size":7}`, want: "delta.checkpoint.doubt", alter: older},
		"another checkpoint": {want: "delta.checkpoint.doubt", alter: func(t *testing.T, log string) {
			b, err := os.ReadFile(log + "/00000000000000000003.checkpoint.parquet")
			if err == nil {
				err = os.WriteFile(log+"/"+newest, b, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		dir := extended(t, "spark-ids", 0)
		log := filepath.Join(dir, "_delta_log")
		if c.hint == "-" {
			if err := os.Remove(log + "/_last_checkpoint"); err != nil {
				t.Fatal(err)
			}
		} else if c.hint != "" {
			if err := os.WriteFile(log+"/_last_checkpoint", []byte(c.hint), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if c.alter != nil {
			c.alter(t, log)
		}
		got, rows := hints(t, dir)
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if _, whole := hints(t, "testdata/spark-ids"); rows != whole && name != "another checkpoint" {
			t.Errorf("%s: %d rows are read, want %d", name, rows, whole)
		}
	}
	for _, table := range []string{"parted", "spark-v2json"} {
		if got, _ := hints(t, "testdata/"+table); got != "" {
			t.Errorf("%s: %s", table, got)
		}
	}
}

// hints returns the codes that verify reports of a log, and how many rows are read.
func hints(t *testing.T, dir string) (codes string, rows int64) {
	t.Helper()
	o := stoa.OpenOptions{Formats: append([]format.Format{delta.Format}, stoa.Formats...)}
	for f, err := range stoa.Verify(t.Context(), dir, o) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.Code, "delta.") {
			codes = strings.TrimPrefix(codes+" "+f.Code, " ")
		}
	}
	table, err := stoa.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if told := fmt.Sprint(table.Findings()); codes != "" && !strings.Contains(told, codes) {
		t.Errorf("%s: opening says nothing: %s", dir, told)
	}
	for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
	}
	return codes, rows
}
