package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestInC builds the library, and a C program that calls every function of stoa.h, under the address and leak
// sanitizers: it must succeed without leaks. In full it does 10,000 rounds of open, scan and close.
// STOA_LIBRARY names an existing library.
func TestInC(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "libstoa.so")
	if given := os.Getenv("STOA_LIBRARY"); given != "" {
		if err := os.Symlink(given, lib); err != nil {
			t.Fatal(err)
		}
	} else {
		do(t, "", "go", "build", "-buildmode=c-shared", "-o", lib, ".")
	}
	rounds := "10000"
	if testing.Short() {
		rounds = "500"
	}
	inC(t, dir, rounds)
}

// TestInCWithAssertions is TestInC with a library in which releasing a reference twice ends the process, and
// whose pool keeps nothing, so that the sanitizer notices every use of released memory.
func TestInCWithAssertions(t *testing.T) {
	if testing.Short() {
		t.Skip("everything is built once more for it: in full")
	}
	dir := t.TempDir()
	do(t, "", "go", "build", "-tags", "assert", "-buildmode=c-shared", "-o", filepath.Join(dir, "libstoa.so"), ".")
	inC(t, dir, "500")
}

// inC runs the program with the library in a directory.
func inC(t *testing.T, dir, rounds string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatal("expected a C compiler, found none: ", err)
	}
	program := filepath.Join(dir, "test")
	do(t, "", gcc, "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", "-o", program, "ctest/test.c",
		"ctest/hold.c", "-L"+dir, "-lstoa", "-lpthread", "-Wl,-rpath,"+dir)
	do(t, "..", "go", "run", "./cmd/stoa", "demo", filepath.Join(dir, "try"), "--damage")
	writeKinds(t, filepath.Join(dir, "try", "kinds.arrow"))
	t.Setenv("GODEBUG", "clobberfree=1") // memory freed by Go's collector is overwritten: C must no longer use it
	out := do(t, "", program, filepath.Join(dir, "try"), rounds)
	for _, want := range []string{"functions: right", "errors: right", "runs: right", "writes: right",
		"threads: right", "batches that are held: right", "fork: refused", "at the end: 0 handles, 0 bytes in use"} {
		if !strings.Contains(out, want) {
			t.Errorf("expected %q, found\n%s", want, out)
		}
	}
}

// writeKinds writes an Arrow file with columns of all shapes, in several batches.
func writeKinds(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(kindsSchema()), ipc.WithDictionaryDeltas(true))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		b := kinds(t, memory.DefaultAllocator, i, 60)
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestHeader: every function declared in the header is in capi.c, and vice versa.
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
