package kudufs_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/format/kudu/kudufs"
	"stoa/store"
)

// TestDefaultsAndBoundsOfBytes: strings in defaults and bounds of ranges are written with the bytes that they had in
// the original superblock, even if these are not UTF-8 or begin with the escape for such bytes.
func TestDefaultsAndBoundsOfBytes(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": "", "ff": "ff", `\xff00`: "\xff\x00", `\x5c786666`: `\xff`, `\x`: "",
	} {
		bound, err := json.Marshal(kudu.TableMeta{Name: "t", Range: []string{"s"},
			Custom:  []kudu.RangeMeta{{Upper: []string{text}}},
			Tablets: []kudu.TabletMeta{{ID: strings.Repeat("ab", 16)}}})
		if err != nil {
			t.Fatal(err)
		}
		m := arrow.NewMetadata([]string{kudu.MetaTable}, []string{string(bound)})
		field := func(name, key, value string, nullable bool) arrow.Field {
			return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: nullable,
				Metadata: arrow.NewMetadata([]string{key}, []string{value})}
		}
		sc := arrow.NewSchema([]arrow.Field{field("s", kudu.MetaKey, "1", false),
			field("v", kudu.MetaDefault, text, true)}, &m)
		dir := filepath.Join(t.TempDir(), "out")
		w, err := stoa.Create(t.Context(), dir, sc,
			stoa.CreateOptions{Formats: []format.Format{kudufs.Format}, To: "kudu-fs"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		ls, err := kudu.FindServers(t.Context(), store.Local{}, filepath.Join(dir, "tserver"), kudu.FSOptions{})
		if err != nil || len(ls) != 1 {
			t.Fatal(ls, err)
		}
		f, err := kudu.OpenFS(t.Context(), store.Local{}, ls[0], kudu.FSOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tablets, err := f.Tablets(t.Context())
		if err != nil || len(tablets) != 1 {
			t.Fatal(tablets, err)
		}
		if v := tablets[0].Schema.Columns[1].WriteDefault; string(v) != want {
			t.Errorf("%q: the default is %q, want %q", text, v, want)
		}
		if v := tablets[0].Partitioning.Custom[0].Upper; string(v) != want {
			t.Errorf("%q: the bound is %q, want %q", text, v, want)
		}
	}
}

// TestNullsInKeys: the error names the first row with a null in a key column.
func TestNullsInKeys(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	o := kudufs.WriteOptions{Table: "t", Key: []string{"k"}}
	w, err := stoa.Create(t.Context(), filepath.Join(t.TempDir(), "out"), sc,
		stoa.CreateOptions{Formats: []format.Format{kudufs.Format}, To: "kudu-fs", Typed: o})
	if err != nil {
		t.Fatal(err)
	}
	for batch := range 2 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 10 {
			if k := 10*batch + i; k == 13 || k == 17 {
				b.Field(0).AppendNull()
			} else {
				b.Field(0).(*array.Int32Builder).Append(int32(k))
			}
		}
		err = w.Write(t.Context(), b.NewRecordBatch())
	}
	if err == nil || !strings.Contains(err.Error(), `column "k" is in the primary key`) ||
		!strings.Contains(err.Error(), "row 13, counted from 0") {
		t.Error(err)
	}
	w.Abort(t.Context())
}
