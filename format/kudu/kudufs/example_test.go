package kudufs_test

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
	"stoa/format/kudu"
	"stoa/format/kudu/kudufs"
)

// Write the directories of a server with one table in four tablets, and read them as format kudu.
func ExampleWriteOptions() {
	dir, err := os.MkdirTemp("", "stoa")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, place := context.Background(), filepath.Join(dir, "server")
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[{"id":1},{"id":2},{"id":3}]`))
	if err != nil {
		panic(err)
	}
	w, err := stoa.Create(ctx, place, sc, stoa.CreateOptions{Formats: []format.Format{kudufs.Format}, To: "kudu-fs",
		Typed: kudufs.WriteOptions{Table: "people", Key: []string{"id"}, Buckets: 4}})
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
	places, err := filepath.Glob(filepath.Join(place, "*"))
	if err != nil {
		panic(err)
	}
	for _, p := range places {
		fmt.Println(filepath.Base(p))
	}
	t, err := stoa.Open(ctx, filepath.Join(place, "tserver")+"#people",
		stoa.OpenOptions{Typed: kudu.ReadOptions{NoWAL: true}})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Count(ctx, stoa.ScanSpec{}))
	// Output:
	// master
	// tserver
	// 3 <nil>
}
