//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// TestKilledAssembly kills convert --all to kudu-fs again and again, while it writes tables and while it makes one
// place of them: in the end all tables are in the servers' directories once, and nothing else is left.
func TestKilledAssembly(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	t.Chdir(t.TempDir())
	tables := 30
	if testing.Short() {
		tables = 12
	}
	if err := os.Mkdir("in", 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range tables {
		text := fmt.Sprintf("a,b\n%d,x\n%d,y\n", i, i+1000)
		if err := os.WriteFile(fmt.Sprintf("in/t%03d.csv", i), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"convert", "--all", "in", "-o", "out", "--to", "kudu-fs", "--opt", "key=a", "--resume"}
	killed := 0
	for done := false; !done; {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		var text bytes.Buffer
		cmd.Stderr = &text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(time.Duration(50+r.IntN(250)+10*killed)*time.Millisecond, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		stop.Stop()
		switch ended := cmd.ProcessState.Exited(); {
		case ended && err != nil:
			t.Fatalf("seed %d, killed %d times: %v: %s", seed, killed, err, &text)
		case !ended:
			killed++
		default:
			done = true
		}
	}
	t.Logf("killed %d times", killed)
	left, err := filepath.Glob("out/*")
	if want := "[out/.stoa-convert.json out/master out/tserver]"; err != nil || fmt.Sprint(left) != want {
		t.Errorf("got %v, %v, want %s", left, err, want)
	}
	var stdout, stderr bytes.Buffer
	if st := run(context.Background(), []string{"verify", "out/tserver", "out/master"}, strings.NewReader(""), &stdout,
		&stderr); st != cli.StatusFine || strings.Contains(stdout.String(), "kudu.") {
		t.Errorf("verify: status %d: %s%s", st, &stdout, &stderr)
	}
	for i := range tables {
		stdout.Reset()
		run(context.Background(), []string{"cat", fmt.Sprintf("out#t%03d", i), "-f", "jsonl"},
			strings.NewReader(""), &stdout, &stderr)
		if got, want := stdout.String(), fmt.Sprintf("{\"a\":%d,\"b\":\"x\"}\n{\"a\":%d,\"b\":\"y\"}\n", i,
			i+1000); got != want {
			t.Errorf("table %d: got %q, want %q", i, got, want)
		}
	}
}
