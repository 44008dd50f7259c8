package laws_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	judge "stoa/interop/trevni"
	"stoa/store"
)

// TestRetypedOfAnySchema: of random tables that are written without their Arrow schema, whoever reads them gets each
// column as it was written, type and values, unless the summary of writing names it; and those that it names have
// another type.
func TestRetypedOfAnySchema(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	for _, x := range []struct{ to, generation string }{{"trevni", ""}, {"trevni-avro", ""}, {"redfile", ""},
		{"redfile", "A"}} {
		opts := map[string]string{"arrow-schema": "false"}
		if x.generation != "" {
			opts["generation"] = x.generation
		}
		same, other := 0, 0
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 29))
			var fields []arrow.Field
			for i := range 2 + r.IntN(3) {
				fields = append(fields, judge.RandomField(r, fmt.Sprintf("c%d", i), r.IntN(4), false))
			}
			written := judge.RandomBatch(r, arrow.NewSchema(fields, nil), 1+r.IntN(30))
			mem := store.NewMemory(nil)
			w, err := stoa.Create(t.Context(), "t", written.Schema(), stoa.CreateOptions{To: x.to, Opts: opts,
				Sink: mem.Sink("t")})
			if err == nil {
				err = w.Write(t.Context(), written)
			}
			if err != nil {
				t.Fatalf("%v, seed %d: %v", x, seed, err)
			}
			sum, err := w.Close(t.Context())
			if err != nil {
				t.Fatalf("%v, seed %d: %v", x, seed, err)
			}
			back := readWhole(t, mem)
			for i, f := range fields {
				got := back.Schema().Field(i)
				kept := arrow.TypeEqual(got.Type, f.Type) && got.Nullable == f.Nullable
				if named := slices.Contains(sum.Retyped, f.Name); named == kept {
					t.Errorf("%v, seed %d: %s comes back as %s, named %v", x, seed, f, got, named)
				}
				if !kept {
					other++
					continue
				}
				same++
				for row := range int(written.NumRows()) {
					if got, want := back.Column(i).ValueStr(row), written.Column(i).ValueStr(row); got != want {
						t.Errorf("%v, seed %d: row %d of %s is %s, want %s", x, seed, row, f, got, want)
					}
				}
			}
		}
		if t.Logf("%v: %d columns as written, %d with another type", x, same, other); same < 20 || other < 20 {
			t.Errorf("%v: only %d columns as written, %d with another type", x, same, other)
		}
	}
}

// readWhole returns all rows of table t.
func readWhole(t *testing.T, tree store.Tree) arrow.RecordBatch {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var out arrow.RecordBatch
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil || out != nil {
			t.Fatal("more than one batch, or ", err)
		}
		b.Retain()
		out = b
	}
	return out
}
