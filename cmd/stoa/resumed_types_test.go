package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/ipc/sample"
)

// TestResumedOfAnyType: a table that a run has written, whatever the types of its columns and the format, is taken for
// what it is by the next one, which leaves it as it is.
func TestResumedOfAnyType(t *testing.T) {
	t.Chdir(t.TempDir())
	written, done := 0, 0
	for i, typ := range typesOfSources() {
		sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
			{Name: "it", Type: typ, Nullable: true}}, nil)
		in := fmt.Sprintf("in-%d", i)
		if err := os.Mkdir(in, 0o777); err != nil {
			t.Fatal(err)
		}
		b := sample.Batch(rand.New(rand.NewPCG(26, uint64(i))), sc, 30, 0.2)
		put(t, filepath.Join(in, "t.arrow"), b)
		b.Release()
		for _, to := range []string{"jsonl", "csv", "parquet", "trevni"} {
			out := in + "-" + to
			args := []string{"convert", "--all", in, "--to", to, "-o", out, "-q"}
			if first := said("nowhere", args...); !strings.HasSuffix(first, "status: 0") {
				continue // this format has no such type, or cannot prove it
			}
			written++
			before := filesBelow(t, out)
			again := said("nowhere", append(args, "--resume")...)
			if !strings.HasSuffix(again, "status: 0") {
				t.Errorf("%s to %s: %s", typ, to, again)
				continue
			}
			for name, b := range filesBelow(t, out) {
				if strings.HasPrefix(name, "t.") {
					if done++; string(b) != string(before[name]) {
						t.Errorf("%s to %s: %s is not as it was", typ, to, name)
					}
				}
			}
		}
	}
	t.Logf("%d tables, %d files as before", written, done)
	if written < 20 || done < written {
		t.Error("this proves nothing")
	}
}
