//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// TestKilledRescue kills a rescue several times: the last run continues it, and its report equals that of an
// uninterrupted run.
func TestKilledRescue(t *testing.T) {
	files, rows := deadCluster(t)
	t.Chdir(t.TempDir())
	writeFiles(t, "in", files)
	journal := filepath.Join("out", ".stoa-convert.journal")
	recorded := func() int {
		b, _ := os.ReadFile(journal)
		return bytes.Count(b, []byte("\n"))
	}
	kills := 0
	for i := range 4 {
		args := []string{"rescue", "in", "-o", "out"}
		if i > 0 {
			args = append(args, "--resume")
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		ended := false
		for recorded() < 3+4*i && !ended {
			select {
			case err := <-done:
				ended = true
				t.Logf("run %d ended: %v", i, err)
			case <-time.After(time.Millisecond):
			}
		}
		if !ended {
			cmd.Process.Kill()
			if <-done != nil {
				kills++
			}
		}
		if _, err := os.Stat("out/report.json"); err == nil && i == 0 {
			t.Fatal("got a report of a killed run, want none")
		}
	}
	if kills < 2 {
		t.Fatalf("got %d killed runs, want 2 or more", kills)
	}
	var out, errs bytes.Buffer
	if st := run(t.Context(), []string{"rescue", "in", "-o", "out"}, nil, &out, &errs); st != cli.StatusUse {
		t.Errorf("without --resume: got status %d, want %d: %s", st, cli.StatusUse, &errs)
	}
	r, status := rescueInto(t, []string{"in"}, "out", "--resume")
	if status != cli.StatusFine || len(r.Tables) != len(rows) {
		t.Errorf("got status %d, %d tables, want 0, %d", status, len(r.Tables), len(rows))
	}
	for _, x := range r.Tables {
		if x.Rows == nil || *x.Rows != rows[x.Table] || x.Back.Verdict != "equal" {
			t.Errorf("%s: got %+v, want %d rows", x.Table, x, rows[x.Table])
		}
	}
	if left, _ := filepath.Glob("out/.stoa-tmp*"); len(left) > 0 {
		t.Errorf("got %v left, want nothing", left)
	}
	if outputs, _ := filepath.Glob("out/*.parquet"); len(outputs) != len(rows) {
		t.Errorf("got %d outputs, want %d", len(outputs), len(rows))
	}
}
