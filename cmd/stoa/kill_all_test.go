//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// TestKilledAll kills convert --all halfway: the next run continues after the last table that has appeared, whether or
// not it was recorded as done, and leaves one state file, in which all tables are done.
func TestKilledAll(t *testing.T) {
	t.Chdir(t.TempDir())
	const tables = 150
	if err := os.Mkdir("in", 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range tables {
		text := fmt.Sprintf("a,b\n%d,x\n", i)
		if err := os.WriteFile(fmt.Sprintf("in/t%03d.csv", i), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"convert", "--all", "in", "-o", "out", "--to", "jsonl"}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join("out", ".stoa-convert.journal")
	recorded := func() int {
		b, _ := os.ReadFile(journal)
		return bytes.Count(b, []byte(`{"done":`))
	}
	for begun := time.Now(); recorded() < 10 && time.Since(begun) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the command ended before it was killed")
	}
	appeared, _ := filepath.Glob("out/t*.jsonl") // without temporary files
	before := len(appeared)
	if before < 10 || before >= tables {
		t.Fatalf("killed after %d tables, want 10 to %d", before, tables-1)
	}
	var stdout, stderr bytes.Buffer
	if st := run(context.Background(), append(args, "--resume"), strings.NewReader(""), &stdout, &stderr); st !=
		cli.StatusFine {
		t.Fatalf("status %d: %s", st, &stderr)
	}
	want := fmt.Sprintf("%d tables of %d", tables-before, tables)
	if got := stderr.String(); !strings.Contains(got, want) ||
		!strings.Contains(got, fmt.Sprintf("; %d were done before", before)) {
		t.Errorf("%d tables are there: got %s, want %q", before, got, want)
	}
	if n := strings.Count(stdout.String(), "equal\n"); n != tables {
		t.Errorf("got %d equal tables, want %d", n, tables)
	}
	state, err := os.ReadFile(filepath.Join("out", ".stoa-convert.json"))
	if err != nil || !bytes.Contains(state, []byte(`"finished": true`)) ||
		bytes.Count(state, []byte(`"source"`)) != tables {
		t.Errorf("state: got %v, %.300s, want %d tables and finished", err, state, tables)
	}
	if _, err := os.Stat(journal); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
	if left, _ := filepath.Glob("out/*.jsonl"); len(left) != tables {
		t.Errorf("got %d outputs, want %d", len(left), tables)
	}
}
