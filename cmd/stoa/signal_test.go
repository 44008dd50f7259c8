//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// TestSignal: the first signal ends a verb and leaves no files, even while a library that takes no context works on
// thousands of columns, or while the verb waits for input.
func TestSignal(t *testing.T) {
	wide := filepath.Join(t.TempDir(), "wide.jsonl")
	var b bytes.Buffer
	for i := range 60_000 {
		fmt.Fprintf(&b, "%c\"field %d\":%d", "{,"[min(i, 1)], i, i)
	}
	b.WriteString("}\n")
	if err := os.WriteFile(wide, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"convert " + wide + " -o OUT.parquet",
		"convert " + wide + " -o OUT/ --to cfile",
		"convert - --from csv -o OUT.red",
		"head - --from jsonl",
	} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], strings.Fields(strings.ReplaceAll(args, "OUT", filepath.Join(dir, "out")))...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		in, err := cmd.StdinPipe() // open, but nothing is written
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond)
		sent := time.Now()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		took := time.Since(sent)
		in.Close()
		if took > grace+4*time.Second { // the machine may be busy
			t.Errorf("%s: ended %s after the signal, want at most %s", args, took, grace+4*time.Second)
		}
		if st := cmd.ProcessState.ExitCode(); st != cli.StatusStopped ||
			!strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%s: got status %d, want %d, interrupted: %s", args, st, cli.StatusStopped, errs.String())
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: got %s left, want nothing", args, left[0].Name())
		}
		t.Logf("%s: %s", args, took)
	}
}
