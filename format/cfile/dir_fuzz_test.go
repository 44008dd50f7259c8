package cfile_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/store"
)

// FuzzDirectory replaces the content of table.json, or of the file of a column.
func FuzzDirectory(f *testing.F) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "t", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
		strings.NewReader(`{"id":1,"t":"a","l":[1]}{"id":2,"l":[]}{"id":3,"t":"b","l":[2,3]}`),
		array.WithMultipleDocs())
	if err != nil {
		f.Fatal(err)
	}
	m := store.NewMemory(nil)
	w, err := cfile.Format.Create(f.Context(), m.Sink("t"), sc, format.WriteOptions{})
	if err == nil {
		err = w.Write(f.Context(), b)
	}
	if err == nil {
		_, err = w.Close(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
	files := map[string][]byte{}
	names := slices.Sorted(slices.Values(m.Names()))
	for i, n := range names {
		files[n] = m.Bytes(n)
		f.Add(uint8(i), files[n])
		f.Add(uint8(i), files[n][:len(files[n])-5])
		f.Add(uint8(i), bytes.Replace(files[n], []byte(`"schema"`), []byte(`"scheme"`), 1))
	}
	h := formattest.Hostile{Format: cfile.Format}
	f.Fuzz(func(t *testing.T, object uint8, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		changed := maps.Clone(files)
		changed[names[int(object)%len(names)]] = content
		h.TryTree(t, store.NewMemory(changed), "t")
	})
}
