package main

import (
	"os"
	"path/filepath"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestBadRecordsDry: a dry run of a load refuses the files for bad rows that the load refuses, and creates none.
func TestBadRecordsDry(t *testing.T) {
	dir := t.TempDir()
	table, rows := filepath.Join(dir, "t"), filepath.Join(dir, "rows.csv")
	copyDir(t, "../../corpus/carbon/2.3.0/managed/managed_del", table)
	there := filepath.Join(dir, "there.csv")
	for _, name := range []string{rows, there} {
		if err := os.WriteFile(name, []byte("id,name,v\n1,a,x\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{there, rows, filepath.Join(dir, "no", "bad.csv"), filepath.Join(dir, "bad.csv")} {
		line := "load " + table + " " + rows + " --source-opt header=true --bad-records " + file
		before := contentOf(t, dir)
		dry, said := runLine(t, line+" --dry-run")
		if contentOf(t, dir) != before {
			t.Errorf("%s: a dry run changed files", file)
		}
		st, stderr := runLine(t, line)
		if dry != st {
			t.Errorf("%s: a dry run ended with %d, %q, the load with %d, %q", file, dry, said, st, stderr)
		}
		if fine := file == filepath.Join(dir, "bad.csv"); fine != (st == cli.StatusFine) {
			t.Errorf("%s: got status %d, %q", file, st, stderr)
		}
	}
}
