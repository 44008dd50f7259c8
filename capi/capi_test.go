package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInC builds the library, and a program in C that calls every function of stoa.h, under the address and leak
// sanitizers: it must end well, with nothing left behind. In full it does 10,000 rounds of open, scan and close.
// STOA_LIBRARY names a library that is built already.
func TestInC(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatal("expected a C compiler, found none: ", err)
	}
	dir := t.TempDir()
	lib := filepath.Join(dir, "libstoa.so")
	if given := os.Getenv("STOA_LIBRARY"); given != "" {
		if err := os.Symlink(given, lib); err != nil {
			t.Fatal(err)
		}
	} else {
		do(t, "", "go", "build", "-buildmode=c-shared", "-o", lib, ".")
	}
	program := filepath.Join(dir, "test")
	do(t, "", gcc, "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", "-o", program, "ctest/test.c",
		"-L"+dir, "-lstoa", "-lpthread", "-Wl,-rpath,"+dir)
	do(t, "..", "go", "run", "./cmd/stoa", "demo", filepath.Join(dir, "try"), "--damage")
	rounds := "10000"
	if testing.Short() {
		rounds = "500"
	}
	out := do(t, "", program, filepath.Join(dir, "try"), rounds)
	for _, want := range []string{"functions: right", "errors: right", "runs: right", "writes: right",
		"threads: right", "fork: refused", "at the end: 0 handles, 0 bytes in use"} {
		if !strings.Contains(out, want) {
			t.Errorf("expected %q, found\n%s", want, out)
		}
	}
}

// TestHeader: every function that the header declares is in capi.c, and the other way round.
func TestHeader(t *testing.T) {
	header, source := read(t, "stoa.h"), read(t, "capi.c")
	for _, f := range strings.Split(header, "\n") {
		at := strings.Index(f, "stoa_")
		if at < 0 || strings.HasPrefix(f, " ") || strings.HasPrefix(f, "/") || !strings.Contains(f[at:], "(") {
			continue
		}
		if head := f[:at+strings.Index(f[at:], "(")+1]; !strings.Contains(source, head) {
			t.Errorf("expected %s in capi.c, found nothing of the kind", head)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func do(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
