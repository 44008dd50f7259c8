package parquet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/store"
)

// TestQuotedNames: lists in options and key files can contain any column name.
func TestQuotedNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a,b", " a", "a ", "", `a"b`, `"a"`, `"`, "a:desc", "a b", "a.b", "ä", "\t"} {
		sc := arrow.NewSchema([]arrow.Field{{Name: name, Type: arrow.PrimitiveTypes.Int64},
			{Name: "other", Type: arrow.PrimitiveTypes.Int64}}, nil)
		b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
		for _, f := range b.Fields() {
			f.(*array.Int64Builder).AppendValues([]int64{3, 2, 1}, nil)
		}
		rows := b.NewRecordBatch()
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		key := strings.Repeat("ab", 16)
		own := filepath.Join(dir, "own")
		one := filepath.Join(dir, "one")
		for file, text := range map[string]string{one: "footer " + key + "\n",
			own: "footer " + key + "\ncolumn " + quoted + " " + strings.Repeat("cd", 16) + "\n"} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, opts := range []map[string]string{
			{"bloom": quoted}, {"bloom": "other," + quoted}, {"sorting-columns": quoted + ":desc"},
			{"key-file": one, "plain-columns": quoted}, {"key-file": own},
		} {
			tree := store.NewMemory(nil)
			w, err := stoa.Create(t.Context(), "t.parquet", sc,
				stoa.CreateOptions{To: "parquet", Opts: opts, Sink: tree.Sink("t.parquet")})
			if err == nil {
				if err = w.Write(t.Context(), rows); err == nil {
					_, err = w.Close(t.Context())
				}
			}
			if err != nil {
				t.Errorf("%q, %v: %v", name, opts, err)
				continue
			}
			o := format.OpenOptions{Opts: map[string]string{}}
			if k := opts["key-file"]; k != "" {
				o.Opts["key-file"] = k
			}
			f, err := file.Open(t.Context(), format.Target{Tree: tree, Name: "t.parquet"}, o)
			if err != nil {
				t.Fatal(err)
			}
			g := f.Footer.RowGroups[0]
			c, other := g.Columns[0], g.Columns[1]
			if is := c.MetaData.BloomFilterOffset != nil; is != (opts["bloom"] != "") {
				t.Errorf("%q, %v: a Bloom filter: %v", name, opts, is)
			}
			if s := g.SortingColumns; (len(s) == 1) != (opts["sorting-columns"] != "") {
				t.Errorf("%q, %v: sorting columns: %v", name, opts, s)
			}
			if opts["key-file"] != "" && (other.Crypto == nil || (c.Crypto == nil) != (opts["plain-columns"] != "") ||
				c.Crypto != nil && !c.Crypto.Own) {
				t.Errorf("%q, %v: encrypted as %+v, the other as %+v", name, opts, c.Crypto, other.Crypto)
			}
			f.Close()
		}
	}
}
