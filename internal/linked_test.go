package internal_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy are libraries that only tests may use. (The client of HDFS links protobuf, which TestLibraryHasNoClients keeps
// out of the library.) The maximum size of programs is checked by internal/weight/weight_test.go.
var heavy = []string{
	"google.golang.org/grpc",
	"github.com/apache/arrow-go/v18/arrow/compute",
	"github.com/apache/arrow-go/v18/arrow/flight",
	"github.com/apache/arrow-go/v18/parquet/file",
	"github.com/apache/arrow-go/v18/parquet/pqarrow",
}

// TestNothingHeavyIsLinked: gRPC, Arrow's compute and its Parquet are used only by tests.
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

// clientParts are the clients of stores and their libraries.
var clientParts = []string{"github.com/minio", "github.com/colinmarc/hdfs/v2", "github.com/jcmturner",
	"google.golang.org/protobuf", "stoa/store/s3", "stoa/store/web", "stoa/store/hdfs"}

// TestLibraryHasNoClients: importing stoa links no client of a store; a program that wants one imports it.
func TestLibraryHasNoClients(t *testing.T) {
	clients := func(of string) (found []string) {
		out, err := exec.Command("go", "list", "-deps", of).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, pkg := range strings.Fields(string(out)) {
			if slices.ContainsFunc(clientParts, func(c string) bool { return matches(c+"/...", pkg) }) {
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
