package parquet

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/store"
)

// flipRows returns a table whose columns have different encodings.
func flipRows() arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int64},
		{Name: "few", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "many", Type: arrow.BinaryTypes.String}, {Name: "path", Type: arrow.BinaryTypes.Binary},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "e", Type: arrow.StructOf(), Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range 400 {
		b.Field(0).(*array.Int64Builder).Append(int64(i)*1001 + 7)
		if i%9 == 4 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("word ", i%5))
		}
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%x", uint64(i+1)*0x9e3779b97f4a7c15))
		b.Field(3).(*array.BinaryBuilder).Append(fmt.Appendf(nil, "/a/long/way/%05d", i))
		if i%50 == 20 {
			b.Field(4).AppendNull()
		} else {
			b.Field(4).(*array.Float64Builder).Append(1 + float64(i)/1024)
		}
		b.Field(5).(*array.BooleanBuilder).Append(i%7 < 3)
		l := b.Field(6).(*array.ListBuilder)
		if l.Append(i%11 > 0); i%11 > 0 {
			for k := range i % 4 {
				l.ValueBuilder().(*array.Int32Builder).Append(int32(i * k))
			}
		}
		b.Field(7).(*array.StructBuilder).Append(i%13 != 5)
	}
	return b.NewRecordBatch()
}

// flipFiles writes flipRows in all codecs and versions of pages, with dictionaries and without, plainly and encrypted,
// and returns the names; encrypted files have a key file next to them. Options may be added.
func flipFiles(t *testing.T, more map[string]string) (names []string) {
	t.Helper()
	dir, batch := t.TempDir(), flipRows()
	write := func(name string, opts map[string]string) {
		tree := store.NewMemory(nil)
		name = filepath.Join(dir, name+".parquet")
		all := map[string]string{"page-size": "700", "row-group-rows": "250", "bloom": "key,many"}
		maps.Copy(all, opts)
		maps.Copy(all, more)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if lines := all["keys"]; lines != "" && err == nil {
			all["key-file"] = name[:len(name)-len("parquet")] + "keys"
			err = os.WriteFile(all["key-file"], []byte(lines), 0o600)
		}
		delete(all, "keys")
		if err != nil {
			t.Fatal(err)
		}
		w, err := Format.Create(t.Context(), tree.Sink("t"), batch.Schema(), format.WriteOptions{Rows: -1, Opts: all})
		if err == nil {
			err = w.Write(t.Context(), batch)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err == nil {
			err = os.WriteFile(name, tree.Bytes("t"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, v := range []string{"1", "2"} {
		for _, d := range []string{"true", "false"} {
			for _, c := range []string{"none", "snappy", "gzip", "zstd", "lz4", "brotli"} {
				write("ours-"+c+v+d, map[string]string{"compression": c, "page-version": v, "dictionary": d})
			}
			for _, signed := range []string{"true", "false"} {
				write("encrypted/ours-"+v+d+signed, map[string]string{"page-version": v, "dictionary": d,
					"plain-footer": signed, "encryption": map[string]string{"true": "gcm", "false": "gcm-ctr"}[d],
					"keys": "footer text:0123456789012345\ncolumn key text:1234567890123450\n"})
			}
		}
	}
	return names
}
