package redfile_test

import (
	"maps"
	"slices"
	"testing"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
	"stoa/store"
)

// FuzzDirectory replaces the metadata of a split table, or one of its parts, by other content.
func FuzzDirectory(f *testing.F) {
	var tables []map[string][]byte
	var names [][]string
	for i, opts := range []map[string]string{{"split": "row-group"}, {"split": "metadata", "generation": "A"},
		{"split": "row-group", "sync": "0", "crc": "false", "index": "false"}} {
		opts["row-group-rows"] = "4"
		m := store.NewMemory(nil)
		w, err := redfile.Format.Create(ctx, m.Sink("t"), sampleSchema, format.WriteOptions{Rows: -1, Opts: opts})
		if err == nil {
			err = w.Write(ctx, sampleBatch(0, 8))
		}
		if err == nil {
			_, err = w.Close(ctx)
		}
		if err != nil {
			f.Fatal(err)
		}
		tables = append(tables, map[string][]byte{})
		names = append(names, slices.Sorted(slices.Values(m.Names())))
		for k, n := range names[i] {
			tables[i][n] = m.Bytes(n)
			f.Add(uint8(i), uint8(k), tables[i][n])
			f.Add(uint8(i), uint8(k), tables[i][n][:len(tables[i][n])-5])
		}
	}
	// without crc, metadata may declare other types than those of the values
	h := formattest.Hostile{Format: redfile.Format, Undetected: true}
	f.Fuzz(func(t *testing.T, table, object uint8, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		i := int(table) % len(tables)
		changed := maps.Clone(tables[i])
		changed[names[i][int(object)%len(names[i])]] = content
		h.TryTree(t, store.NewMemory(changed), "t")
	})
}
