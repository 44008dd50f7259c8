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

// TestCutPartsAreVerified: wherever a part is cut, verify has an error if opening the table reports one.
func TestCutPartsAreVerified(t *testing.T) {
	const part = "out/part-00002.red"
	for _, generation := range []string{"A", "E"} {
		table := splitTable(t, map[string]string{"generation": generation})
		wrong := 0
		for n := len(table[part]) - 1; n > 0 && wrong < 10; n-- {
			objects := maps.Clone(table)
			objects[part] = table[part][:n]
			tg := format.Target{Tree: store.NewMemory(objects), Name: "out"}
			r, err := redfile.Format.Open(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", generation, n, err)
			}
			isError := func(f region.Finding) bool { return f.Severity == region.Error }
			found := slices.ContainsFunc(r.(format.Finder).Findings(), isError)
			r.Close()
			if found {
				wrong++
			}
			if found && !slices.ContainsFunc(findings(tg), isError) {
				t.Errorf("%s, %d bytes: opening reports an error, verify none", generation, n)
			}
		}
		if wrong == 0 {
			t.Errorf("%s: no cut was reported", generation)
		}
	}
}
