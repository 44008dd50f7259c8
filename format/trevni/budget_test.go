package trevni_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/store"
)

// TestOpeningIsBounded: files with very many or very deeply nested columns, and schemas in few bytes, take memory in
// proportion to their size, or are refused by every verb as exceeding the limits. They are not called damaged.
func TestOpeningIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of hostile files")
	}
	metas := func(n int, pairs func(i int) []string) (out, columns [][]byte) {
		for i := range n {
			out, columns = append(out, handMeta(pairs(i)...)), append(columns, handColumn())
		}
		return out, columns
	}
	file := func(version byte, n int, pairs func(i int) []string, meta ...string) []byte {
		m, columns := metas(n, pairs)
		return handFile(version, 0, handMeta(meta...), m, columns...)
	}
	nested := func(i int) []string {
		pairs := []string{"trevni.name", fmt.Sprint(i), "trevni.type", "null", "trevni.array", ""}
		if i > 0 {
			pairs = append(pairs, "trevni.parent", fmt.Sprint(i-1))
		}
		return pairs
	}
	flat := func(i int) []string { return []string{"trevni.name", fmt.Sprint(i), "trevni.type", "int"} }
	steps := func(i int) []string {
		return []string{"Name", fmt.Sprint(i, strings.Repeat(".a", 60)), "Type", "Int"}
	}
	// repeated, so that recovery needs levels to count rows
	m, columns := metas(20_000, func(i int) []string {
		return append(steps(i), "MaxRepetition", "1", "MaxDefinition", "1")
	})
	wrongRows := handFile(1, 1<<20, handMeta(), m, columns...)
	pairs := make([]string, 400_000)
	for name, c := range map[string]struct {
		data    []byte
		refused bool
	}{
		"nested 32 deep":     {file(2, 32, nested), false}, // 31 lists of structs, and a list: 63 nested types
		"nested 33 deep":     {file(2, 33, nested), true},
		"nested 20,000 deep": {file(2, 20_000, nested), true},
		"60,000 columns":     {file(2, 60_000, flat), false},
		"200,000 columns":    {file(2, 200_000, flat), true},
		"200,000 pairs":      {file(2, 1, flat, pairs...), false},
		"255 lists each": {file(1, 5000, func(i int) []string {
			return []string{"Name", fmt.Sprint(i), "Type", "Int", "MaxRepetition", "255", "MaxDefinition", "255"}
		}), true},
		"2,000 steps": {file(1, 1,
			func(int) []string { return []string{"Name", strings.Repeat("a.", 2000) + "b", "Type", "Int"} }), true},
		"20,000 of 60 steps, 1.2 million fields":          {file(1, 20_000, steps), true},
		"1.2 million fields, and rows that no column has": {wrongRows, true},
		"1,000 of 60 steps":                               {file(1, 1000, steps), false},
		"20,000 of 60 steps, the same but for the last": {file(1, 20_000, func(i int) []string {
			return []string{"Name", strings.Repeat("a.", 60) + fmt.Sprint(i), "Type", "Int"}
		}), false},
		"a schema of 20 million": {file(2, 1, flat, "avro.schema", strings.Repeat("[", 20_000_000)), true},
	} {
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": c.data}), Name: "f.trv"}
		for verb, run := range map[string]func() error{
			"open": func() error {
				r, err := trevni.Format.Open(t.Context(), tg, format.OpenOptions{})
				if err == nil {
					r.Close()
				}
				return err
			},
			"recover": func() error {
				r, _, err := trevni.Format.Recover(t.Context(), tg, format.OpenOptions{})
				if err == nil {
					r.Close()
				}
				return err
			},
			"list": func() error {
				for _, err := range trevni.Format.List(t.Context(), tg) {
					return err
				}
				return nil
			},
		} {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := run()
			runtime.ReadMemStats(&after)
			if errors.Is(err, fault.Limit) != c.refused || err != nil && !c.refused {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 600<<20+20*uint64(len(c.data)) {
				t.Errorf("%s, %s: %d bytes were allocated for a file of %d", name, verb, took, len(c.data))
			}
		}
	}
}
