package trevni_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni"
	judge "stoa/interop/trevni"
	"stoa/store"
)

// TestParts: if a file of a table of several files is missing, replaced by another of them, or another table's, every
// verb that looks at the remaining files reports an error.
func TestParts(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, f := range []format.Format{trevni.Format, trevni.AvroFormat} {
		files := func(seed uint64, rows int) map[string][]byte {
			out := map[string][]byte{}
			m := write(t, f, sc, map[string]string{"file-size": "9000", "block-size": "1000"},
				judge.RandomBatch(rand.New(rand.NewPCG(seed, 1)), sc, rows))
			for _, name := range m.Names() {
				out[name] = m.Bytes(name)
			}
			return out
		}
		all, other := files(1, 30000), files(2, 30000)
		names := slices.Sorted(maps.Keys(all))
		if len(names) < 4 || len(other) < 4 {
			t.Fatalf("%s: %d and %d files", f.Name, len(names), len(other))
		}
		reported(t, f, "whole", all, false)
		reported(t, f, "a part under a name of its own", map[string][]byte{"t/copy.trv": all[names[1]]}, false)
		for i, name := range names {
			without := maps.Clone(all)
			delete(without, name)
			reported(t, f, name+" is gone", without, true)
			foreign := maps.Clone(all)
			foreign[name] = other[name]
			reported(t, f, name+" is another table's", foreign, true)
			for _, copied := range []string{"t/zz.trv", "t/" + strings.TrimPrefix(name, "t/") + ".bak"} {
				copies := maps.Clone(all)
				copies[copied] = all[name]
				reported(t, f, copied+" is a copy of "+name, copies, true)
				delete(copies, copied)
				copies[copied] = other[name]
				reported(t, f, copied+" is another table's "+name, copies, false)
			}
			exchanged := maps.Clone(all)
			next := names[(i+1)%len(names)]
			exchanged[name], exchanged[next] = all[next], all[name]
			reported(t, f, name+" and "+next+" are exchanged", exchanged, true)
		}
		shorter := maps.Clone(all)
		delete(shorter, names[len(names)-1])
		delete(shorter, names[len(names)-2])
		reported(t, f, "the last two are gone", shorter, true)
	}
}

// reported compares what the verbs report about some files with what they should report.
func reported(t *testing.T, f format.Format, what string, files map[string][]byte, want bool) {
	t.Helper()
	stated := map[string]bool{}
	tree := store.NewMemory(files)
	for name := range files {
		tg := format.Target{Tree: tree, Name: name}
		found := slices.Collect(f.Verify(t.Context(), tg, format.OpenOptions{Depth: format.Quick}))
		stated["verify"] = stated["verify"] || anyError(found)
		for e, err := range f.List(t.Context(), tg) {
			stated["list"] = stated["list"] || err != nil || anyError(e.Findings)
		}
		r, err := f.Open(t.Context(), tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stated["open"] = stated["open"] || anyError(r.(format.Finder).Findings())
		r.Close()

		if r, found, err = f.Recover(t.Context(), tg, format.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Close()
		stated["recover"] = stated["recover"] || anyError(found)
	}
	for verb, is := range stated {
		if is != want {
			t.Errorf("%s, %s: %s reports %t, want %t", f.Name, what, verb, is, want)
		}
	}
}
