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

// TestKilledAll kills convert --all in its middle: the next run goes on after the last table that was noted, and
// leaves one state file, which says that all of them are done.
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
	noted := func() int { // the head stands for the table that is in the state file
		b, _ := os.ReadFile(journal)
		return bytes.Count(b, []byte("\n"))
	}
	for begun := time.Now(); noted() < 10 && time.Since(begun) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it had ended before it was killed")
	}
	before := noted()
	if before < 10 || before >= tables {
		t.Fatalf("killed after %d tables", before)
	}
	var stdout, stderr bytes.Buffer
	if st := run(context.Background(), append(args, "--resume"), strings.NewReader(""), &stdout, &stderr); st !=
		cli.StatusFine {
		t.Fatalf("status %d: %s", st, &stderr)
	}
	want := fmt.Sprintf("%d tables of %d", tables-before, tables)
	if said := stderr.String(); !strings.Contains(said, want) ||
		!strings.Contains(said, fmt.Sprintf("; %d were done before", before)) {
		t.Errorf("%d tables were noted, but: %s", before, said)
	}
	if n := strings.Count(stdout.String(), "equal\n"); n != tables {
		t.Errorf("%d tables are equal, want %d", n, tables)
	}
	state, err := os.ReadFile(filepath.Join("out", ".stoa-convert.json"))
	if err != nil || !bytes.Contains(state, []byte(`"finished": true`)) ||
		bytes.Count(state, []byte(`"source"`)) != tables {
		t.Errorf("%v, the state: %.300s", err, state)
	}
	if _, err := os.Stat(journal); !os.IsNotExist(err) {
		t.Errorf("the journal stays: %v", err)
	}
	if left, _ := filepath.Glob("out/*.jsonl"); len(left) != tables {
		t.Errorf("%d outputs, want %d", len(left), tables)
	}
}
