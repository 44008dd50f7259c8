package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format/ipc/sample"
)

// TestTypes: values of every type of Arrow's come through DuckDB as they were, or as text where it has no type for them;
// values that it cannot have are an error that names the column.
func TestTypes(t *testing.T) {
	types := slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare())
	q := newAsked(t, flagsFor(t))
	refused := 0
	for i, typ := range types {
		sc := sample.Schema(typ)
		file := filepath.Join(t.TempDir(), "in.arrow")
		write(t, file, sc, rand.New(rand.NewPCG(uint64(i), 1)))
		what := fmt.Sprintf("%d %s", i, typ)
		out := filepath.Join(t.TempDir(), "out.arrow")
		if err := q.to(out, "FROM "+quoteName(file)); err != nil {
			refused++
			t.Logf("%s: refused: %v", what, err)
			continue
		}
		want, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		alike(t, what, want, out)
		want.Close()
	}
	t.Logf("%d types, %d refused", len(types), refused)
}

func write(t *testing.T, file string, sc *arrow.Schema, r *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	w, err := stoa.Create(ctx, file, sc, stoa.CreateOptions{NoCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b := sample.Batch(r, sc, 1500, 0.1)
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
