package carbon_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa/format/carbon"
	"stoa/format/formattest"
	"stoa/store"
)

// FuzzTable replaces the content of one of the files of a table other than data files: tablestatus, schema, segment
// files, indexes, delete deltas and their status, locks.
func FuzzTable(f *testing.F) {
	var trees []map[string][]byte
	var names [][]string
	for i, dir := range []string{"managed/managed_del", "managed/managed_part", "managed/managed_alter"} {
		tree := loaded(f, golden2+"/"+dir)
		files := map[string][]byte{}
		for _, n := range tree.Names() {
			files[n] = tree.Bytes(n)
		}
		trees = append(trees, files)
		names = append(names, slices.DeleteFunc(slices.Sorted(maps.Keys(files)),
			func(n string) bool { return strings.HasSuffix(n, ".carbondata") }))
		for k, n := range names[i] {
			f.Add(uint8(i), uint8(k), files[n])
		}
	}
	// a directory that is no longer a table is opened as a directory of files
	h := formattest.Hostile{Format: carbon.Format, Undetected: true}
	f.Fuzz(func(t *testing.T, table, object uint8, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		i := int(table) % len(trees)
		files := maps.Clone(trees[i])
		files[names[i][int(object)%len(names[i])]] = content
		h.TryTree(t, store.NewMemory(files), "t")
	})
}

// FuzzStatus is FuzzTable for JSON files: values of the document are changed, so that it remains JSON.
func FuzzStatus(f *testing.F) {
	tree := loaded(f, golden2+"/managed/managed_del")
	files, docs := map[string][]byte{}, []string{}
	for _, n := range tree.Names() {
		files[n] = tree.Bytes(n)
		if json.Valid(files[n]) {
			docs = append(docs, n)
		}
	}
	if len(docs) < 5 {
		f.Fatalf("%d documents", len(docs))
	}
	for i := range docs {
		f.Add(uint8(i), uint8(1), "0")
		f.Add(uint8(i), uint8(3), `"x"`)
		f.Add(uint8(i), uint8(2), "null")
	}
	h := formattest.Hostile{Format: carbon.Format, Undetected: true}
	f.Fuzz(func(t *testing.T, doc, at uint8, value string) {
		if !json.Valid([]byte(value)) || len(value) > 1<<12 {
			return
		}
		name := docs[int(doc)%len(docs)]
		var v any
		if err := json.Unmarshal(files[name], &v); err != nil {
			t.Fatal(err)
		}
		k := int(at)
		b, err := json.Marshal(replaced(v, &k, json.RawMessage(value)))
		if err != nil {
			t.Fatal(err)
		}
		changed := maps.Clone(files)
		changed[name] = b
		h.TryTree(t, store.NewMemory(changed), "t")
	})
}

// replaced returns v with its k-th value (depth first, members by name) replaced.
func replaced(v any, k *int, by any) any {
	if *k--; *k < 0 {
		if *k == -1 {
			return by
		}
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		for _, n := range slices.Sorted(maps.Keys(v)) {
			v[n] = replaced(v[n], k, by)
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], k, by)
		}
	}
	return v
}
