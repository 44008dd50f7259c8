package redfile_test

import (
	"maps"
	"slices"
	"testing"

	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestPartsThatEndEarly: a part of a split table that ends before its chunks is reported when the table is opened,
// whatever is read from it afterwards. A complete part, or one with extra bytes at its end, is not reported.
func TestPartsThatEndEarly(t *testing.T) {
	const part = "out/part-00002.red"
	for _, generation := range []string{"A", "E"} {
		table := splitTable(t, map[string]string{"generation": generation})
		whole := table[part]
		for what, c := range map[string]struct {
			data  []byte
			wrong bool
		}{
			"empty":  {nil, true},
			"half":   {whole[:len(whole)/2], true},
			"whole":  {whole, false},
			"longer": {append(slices.Clone(whole), make([]byte, 100)...), false},
		} {
			objects := maps.Clone(table)
			objects[part] = c.data
			r, err := redfile.Format.Open(t.Context(), format.Target{Tree: store.NewMemory(objects), Name: "out"},
				format.OpenOptions{})
			if err != nil {
				t.Errorf("%s, %s: %v", generation, what, err)
				continue
			}
			found := r.(format.Finder).Findings()
			r.Close()
			wrong := slices.ContainsFunc(found, func(f region.Finding) bool {
				return f.Severity == region.Error && f.Code == "redfile.column.damaged"
			})
			if wrong != c.wrong {
				t.Errorf("%s, %s: reported %+v", generation, what, found)
			}
		}
	}
}
