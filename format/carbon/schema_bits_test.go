package carbon_test

import (
	"path/filepath"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestSchemaBits: for any wrong bit in a table's schema, if verify finds no error, the table can be read to the last
// row.
func TestSchemaBits(t *testing.T) {
	for _, name := range []string{"managed_complex", "managed_del"} {
		tree := loaded(t, filepath.Join(golden2, "managed", name))
		files := map[string][]byte{}
		for _, n := range tree.Names() {
			files[n] = tree.Bytes(n)
		}
		whole := files["t/Metadata/schema"]
		step := 5
		if testing.Short() {
			step = 13
		}
		refused := 0
		for at := 0; at < 8*len(whole); at += step {
			bad := slices.Clone(whole)
			bad[at/8] ^= 1 << (at % 8)
			files["t/Metadata/schema"] = bad
			damaged := store.NewMemory(files)
			_, _, err := read(t, "t", stoa.OpenOptions{Tree: damaged, From: "carbon"}, stoa.ScanSpec{})
			if err == nil {
				continue
			}
			refused++
			found := false
			tg := format.Target{Tree: damaged, Name: "t"}
			for f := range carbon.Format.Verify(t.Context(), tg, format.OpenOptions{}) {
				found = found || f.Severity == region.Error || f.Class == fault.Limit
			}
			if !found {
				t.Errorf("%s, bit %d of byte %d: reading it fails (%v), verify finds no error", name, at%8, at/8, err)
			}
		}
		if refused < 10 {
			t.Errorf("%s: %d changes were refused", name, refused)
		}
	}
}
