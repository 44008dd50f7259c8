package stoa_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// wounded is b with something done to it that happens to files: bits that flip, bytes that are overwritten, zeroed, cut off, put in, or doubled.
func wounded(r *rand.Rand, b []byte) []byte {
	out := slices.Clone(b)
	at, n := r.IntN(len(b)), 1+r.IntN(min(len(b), 100))
	end := min(at+n, len(b))
	switch r.IntN(8) {
	case 0, 1, 2:
		out[at] ^= 1 << r.IntN(8)
	case 3:
		out[at] = byte(r.Uint32())
	case 4:
		clear(out[at:end])
	case 5:
		out = out[:at]
	case 6:
		put := make([]byte, n)
		for i := range put {
			put[i] = byte(r.Uint32())
		}
		out = slices.Insert(out, at, put...)
	case 7:
		out = slices.Insert(out, at, b[at:end]...)
	}
	return out
}

// TestOneVerdict: of any file, whatever was done to it, for which verify finds no error, without --deep too, reading finds none; and what reading
// tells as an error while it gives rows, or ls, verify tells.
func TestOneVerdict(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	refused := 0
	for _, name := range append(corpusFiles(t, "corpus/trevni", ".trv"), corpusFiles(t, "corpus/redfile", ".red")...) {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) == 0 {
			continue
		}
		for i := range rounds {
			b := wounded(rand.New(rand.NewPCG(uint64(i), uint64(len(whole)))), whole)
			o := stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f" + filepath.Ext(name): b})}
			for _, depth := range []format.Depth{format.Sums, format.Deep} {
				o.Depth = depth
				found := false
				for f, err := range stoa.Verify(t.Context(), "f"+filepath.Ext(name), o) {
					found = found || err != nil || f.Severity == region.Error
				}
				for what, err := range map[string]error{"reading": scanned(t, "f"+filepath.Ext(name), o), "listing": listed(t, "f"+filepath.Ext(name), o)} {
					if !errors.Is(err, fault.Corrupt) {
						continue
					}
					if refused++; !found {
						t.Errorf("%s, wound %d: verify finds nothing (%v), %s says %v", name, i, depth, what, err)
					}
				}
			}
		}
	}
	if refused < 1000 && !testing.Short() {
		t.Errorf("only %d times was something refused", refused)
	}
}

// listed is what listing says of a file.
func listed(t *testing.T, name string, o stoa.OpenOptions) error {
	for e, err := range stoa.List(t.Context(), name, o) {
		if err != nil {
			return err
		}
		for _, f := range e.Findings {
			if f.Severity == region.Error {
				return fault.Corruptf(f.At, f.Path, "%s", f.Message)
			}
		}
	}
	return nil
}
