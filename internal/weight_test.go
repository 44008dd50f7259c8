package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// heavy are libraries that only tests may use, and what of them costs.
var heavy = []string{
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
	"github.com/apache/arrow-go/v18/arrow/compute",
	"github.com/apache/arrow-go/v18/arrow/flight",
	"github.com/apache/arrow-go/v18/parquet/file",
	"github.com/apache/arrow-go/v18/parquet/pqarrow",
}

// TestNothingHeavyIsLinked: gRPC, Arrow's computing and its Parquet are in nothing but tests.
func TestNothingHeavyIsLinked(t *testing.T) {
	linked := func(args ...string) map[string]bool {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, args...)...).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		found := map[string]bool{}
		for _, pkg := range strings.Fields(string(out)) {
			for _, h := range heavy {
				if matches(h+"/...", pkg) {
					found[pkg] = true
				}
			}
		}
		return found
	}
	if found := linked("stoa/..."); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if len(linked("-test", "stoa/format/parquet")) == 0 { // the check can fail
		t.Error("the tests of Parquet do not have pqarrow as a judge")
	}
}

// TestLibraryHasNoClients: who imports stoa links no client of a store; who wants one imports it.
func TestLibraryHasNoClients(t *testing.T) {
	clients := func(of string) (found []string) {
		out, err := exec.Command("go", "list", "-deps", of).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, pkg := range strings.Fields(string(out)) {
			if strings.HasPrefix(pkg, "github.com/minio/") || pkg == "stoa/store/s3" || pkg == "stoa/store/web" {
				found = append(found, pkg)
			}
		}
		return found
	}
	if found := clients("stoa"); len(found) > 0 {
		t.Errorf("stoa links %v", found)
	}
	if len(clients("stoa/cmd/stoa")) < 3 { // the check can fail
		t.Error("the command has no clients")
	}
}

// TestMethodsAreDropped: nothing that is linked calls methods by names that are not known when it is linked. If
// something does, as text/template, the linker keeps every method of every type: a ninth of the program.
func TestMethodsAreDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w -dumpdep", "-o", filepath.Join(t.TempDir(), "program"),
		"stoa/cmd/stoa")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "main.main ->") {
		t.Fatal("the linker does not say what needs what")
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "<ReflectMethod>") {
			t.Errorf("%.200s", line)
		}
	}
}

// library is a program with the library and all its formats.
const library = `package main

import (
	"context"
	"os"

	"stoa"
)

func main() {
	table, err := stoa.Open(context.Background(), os.Args[1], stoa.OpenOptions{})
	if err != nil {
		panic(err)
	}
	for batch, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
		println(batch.NumRows(), err)
	}
}
`

// TestWeight: how many bytes the stripped programs have at most, the command with the release's tags, too. What is over
// the aim of 20 MB is reported in docs/decisions/0003-parquet.md.
func TestWeight(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(library), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, tags string
		most       int64
	}{{"stoa/cmd/stoa", "", 30.8e6}, {"stoa/cmd/stoa", "arrow_json_stdlib", 29.5e6}, {source, "", 22.2e6}} {
		program, what, most := filepath.Join(dir, "program"), c.what, c.most
		cmd := exec.Command("go", "build", "-trimpath", "-tags="+c.tags, "-ldflags=-s -w", "-o", program, what)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		info, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %s: %.2f MB", filepath.Base(what), c.tags, float64(info.Size())/1e6)
		if info.Size() > most {
			t.Errorf("%s has %d bytes, %d are allowed", filepath.Base(what), info.Size(), most)
		}
	}
}
