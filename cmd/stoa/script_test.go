package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if os.Getenv("STOA_PEAK") != "" { // see TestPeakMemory
		asPeak()
	}
	if os.Getenv("STOA_AS_COMMAND") != "" { // see TestKilled
		main()
	}
	if os.Getenv("STOA_SERVE") != "" { // see internal/attack
		serve()
	}
	// what --memory of one test says is not for the others in the process
	os.Setenv("GOMEMLIMIT", "off")
	os.Unsetenv("GOTMPDIR") // the scripts' files lie there, if it is set, and not in TMPDIR, which may be in memory
	testscript.Main(m, map[string]func(){"stoa": main})
}

// TestScript runs testdata/script. In addition to testscript's commands there are
//
//	status N command...   the command must exit with this status
//	flip FILE OFFSET      flips one bit of a byte
//	cut FILE LENGTH       truncates a file
//
// $KUDU is the folder of golden files that Kudu wrote, $KUDUDIR that of its server directories, $CARBON that of tables
// that CarbonData wrote.
func TestScript(t *testing.T) { scripts(t) }

// scripts runs the named scripts, or all.
func scripts(t *testing.T, names ...string) {
	var files []string
	for _, n := range names {
		files = append(files, filepath.Join("testdata/script", n+".txtar"))
	}
	dir := "testdata/script"
	if len(files) > 0 {
		dir = ""
	}
	kudu, err := filepath.Abs("../../corpus/kudu/1.18.1")
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Abs("../../format/kudu/testdata")
	if err != nil {
		t.Fatal(err)
	}
	carbon, err := filepath.Abs("../../corpus/carbon/2.3.0")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("KUDU", kudu)
			e.Setenv("KUDUDIR", dirs)
			e.Setenv("CARBON", carbon)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": exitStatus, "flip": flip, "cut": cut},
	})
}

func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("got status %d, want %d", got, want)
	}
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	i, err := strconv.Atoi(args[1])
	ts.Check(err)
	b[i] ^= 0x10
	ts.Check(os.WriteFile(name, b, 0o644))
}

func cut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}
