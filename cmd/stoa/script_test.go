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
	testscript.Main(m, map[string]func(){"stoa": main})
}

// TestScript runs testdata/script. Beside testscript's own words there are
//
//	status N command...   the command ends with exactly this exit status
//	flip FILE OFFSET      turns one bit of a byte
//	cut FILE LENGTH       keeps only the beginning of a file
//
// $KUDU is the folder of the golden files that a real Kudu wrote, $KUDUDIR that of whole directories, $CARBON
// that of tables which the real CarbonData wrote.
func TestScript(t *testing.T) {
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
		Dir:                 "testdata/script",
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
		ts.Fatalf("the status is %d, expected %d", got, want)
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
