package formattest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// Sound fails the test unless the deepest verification of a writer's output finds nothing but notes: every value
// decodes, and agrees with statistics, indexes and checksums.
func Sound(t testing.TB, f *format.Format, tree store.Tree, name string) {
	t.Helper()
	for _, x := range unsound(f, tree, name) {
		t.Errorf("%s: finding in what was written: %s %s %s: %s", name, x.Code, x.At, x.Path, x.Message)
	}
}

// unsound returns the findings of verification except notes.
func unsound(f *format.Format, tree store.Tree, name string) (out []region.Finding) {
	if f.Verify == nil {
		return nil
	}
	o := format.OpenOptions{Limits: format.Limits{}.WithDefaults(), Depth: format.Deep}
	for x := range f.Verify(context.Background(), format.Target{Tree: tree, Name: name}, o) {
		if x.Severity >= region.Warning || x.Class != 0 {
			out = append(out, x)
		}
	}
	return out
}

// noticed: Sound reports at least a quarter of broken writers, which write one wrong bit each.
func (s Suite) noticed(t *testing.T) {
	if s.Format.Verify == nil {
		t.Skip("the format verifies nothing")
	}
	r := rand.New(rand.NewPCG(3, 3))
	sc := arrow.NewSchema([]arrow.Field{{Name: "c0", Type: s.Types[0], Nullable: true}}, nil)
	const tries = 40
	found := 0
	for try := range tries {
		mem := store.NewMemory(nil)
		w, err := s.Format.Create(t.Context(), mem.Sink("t"), sc, format.WriteOptions{Rows: -1, Opts: s.SmallPages})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), randomBatch(r, sc, 300, 20)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, name := range mem.Names() {
			b := slices.Clone(mem.Bytes(name))
			b[len(b)*try/tries] ^= 1 << r.IntN(8)
			files[name] = b
		}
		if len(unsound(&s.Format, store.NewMemory(files), "t")) > 0 {
			found++
		}
	}
	if found < tries/4 {
		t.Errorf("%d of %d broken writers noticed, want %d or more", found, tries, tries/4)
	}
	t.Logf("%d of %d broken writers noticed", found, tries)
}
