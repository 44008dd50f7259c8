package carbon_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/store"
)

// TestCodecNames: a changed bit in a compressor's name, of which most pages have two, is damage and no unknown
// compressor: the rows are read as they were, or the error is of class Corrupt. (Real files.)
func TestCodecNames(t *testing.T) {
	for _, pattern := range []string{"allprim_zstd/table/*.zstd", "unicode/table/*.snappy"} {
		names, err := filepath.Glob(filepath.Join(golden2, "v3", pattern+".carbondata"))
		if err != nil || len(names) != 1 {
			t.Fatalf("%s: %q, %v", pattern, names, err)
		}
		whole, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		rows := func(b []byte) ([]line, error) {
			_, out, err := read(t, "t.carbondata", stoa.OpenOptions{From: "carbon",
				Tree: store.NewMemory(map[string][]byte{"t.carbondata": b})}, stoa.ScanSpec{})
			return out, err
		}
		want, err := rows(whole)
		if err != nil {
			t.Fatal(err)
		}
		name := []byte(filepath.Ext(names[0][:len(names[0])-len(".carbondata")])[1:])
		damaged, at := 0, 0
		for k := 0; ; k++ {
			i := bytes.Index(whole[at:], name)
			if i < 0 {
				break
			}
			at += i + len(name)
			bad := slices.Clone(whole)
			bad[at-1-k%len(name)] ^= 1 << (k % 7)
			got, err := rows(bad)
			switch {
			case errors.Is(err, fault.Corrupt):
				damaged++
			case err != nil:
				t.Errorf("%s, the name that ends at %d: %v", names[0], at, err)
			case !slices.EqualFunc(got, want, maps.Equal[line, line]):
				t.Errorf("%s, the name that ends at %d: other rows", names[0], at)
			}
		}
		if damaged < 3 {
			t.Errorf("%s: %d names were found damaged", names[0], damaged)
		}
	}
}
