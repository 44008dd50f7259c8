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
// what it is by the next one, which leaves it as it is. If a row of it is another one since, it is named as not of the
// run, and left as it is, too.
func TestResumedOfAnyType(t *testing.T) {
	t.Chdir(t.TempDir())
	written, done, changed := 0, 0, 0
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
		for _, to := range []string{"jsonl", "csv", "parquet", "trevni", "arrow", "redfile",
			"redfile --opt arrow-schema=false", "cfile", "iceberg", "delta", "iceberg,delta"} {
			out := in + "-" + to
			args := append([]string{"convert", "--all", in, "-o", out, "-q", "--to"}, strings.Fields(to)...)
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
				if !strings.HasPrefix(name, "t") {
					continue
				}
				if done++; string(b) != string(before[name]) {
					t.Errorf("%s to %s: %s is not as it was", typ, to, name)
				}
				other, ok := otherRow(to, string(b))
				if !ok {
					continue
				}
				changed++
				set := func(text string) { writeFiles(t, out, map[string][]byte{name: []byte(text)}) }
				set(other)
				if third := said("nowhere", append(args, "--resume")...); !strings.HasSuffix(third, "status: 1") ||
					!strings.Contains(third, "is not what an earlier run wrote") {
					t.Errorf("%s to %s, with another row: %s", typ, to, third)
				}
				if now := filesBelow(t, out)[name]; string(now) != other {
					t.Errorf("%s to %s: what is not of the run was replaced", typ, to)
				}
				set(string(b))
				if last := said("nowhere", append(args, "--resume")...); !strings.HasSuffix(last, "status: 0") {
					t.Errorf("%s to %s, as it was again: %s", typ, to, last)
				}
			}
		}
	}
	t.Logf("%d tables, %d files as before, %d changed", written, done, changed)
	if written < 20 || done < written || changed < written/8 {
		t.Error("this proves nothing")
	}
}

// otherRow returns text in which the first row has what the second has; false if that changes nothing, or the text is
// of no such format.
func otherRow(format, text string) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	head := map[string]int{"jsonl": 0, "csv": 1}
	i, ok := head[format]
	if !ok || len(lines) < i+3 || lines[i] == lines[i+1] {
		return text, false
	}
	lines[i] = lines[i+1]
	return strings.Join(lines, ""), true
}
