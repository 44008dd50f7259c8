package kudubackup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/kudubackup"
	"stoa/format/parquet"
)

// A backup that Kudu can restore: Parquet files of two rows each, and the table's metadata.
func ExampleWriteOptions() {
	dir, err := os.MkdirTemp("", "stoa")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, place := context.Background(), filepath.Join(dir, "backup")
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[{"id":1},{"id":2},{"id":3}]`))
	if err != nil {
		panic(err)
	}
	w, err := stoa.Create(ctx, place, sc, stoa.CreateOptions{Formats: []format.Format{kudubackup.Format},
		To: "kudu-backup", Typed: kudubackup.WriteOptions{
			Backup:  kudubackup.Backup{Table: "people", Key: []string{"id"}, PartRows: 2},
			Parquet: parquet.WriteOptions{Compression: parquet.CompressSnappy},
		}})
	if err != nil {
		panic(err)
	}
	defer w.Abort(ctx)
	if err := w.Write(ctx, b); err != nil {
		panic(err)
	}
	if _, err := w.Close(ctx); err != nil {
		panic(err)
	}
	parts, err := filepath.Glob(filepath.Join(place, "*", "*", "*.parquet"))
	if err != nil {
		panic(err)
	}
	fmt.Println(len(parts), "files")
	// Output:
	// 2 files
}
