package redfile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/store"
)

// peopleAs returns a file with a table of three people, written with options of the format.
func peopleAs(name string, o format.Options) []byte {
	ctx, mem := context.Background(), store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
		strings.NewReader(`[{"id":10,"name":"Ada"},{"id":20,"name":null},{"id":30,"name":"Grace"}]`))
	if err != nil {
		panic(err)
	}
	w, err := stoa.Create(ctx, name, sc, stoa.CreateOptions{Sink: mem.Sink(name), Typed: o})
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
	return mem.Bytes(name)
}

// Writing options as a struct, and the same options as the command spells them.
func ExampleWriteOptions() {
	o := redfile.WriteOptions{Compression: redfile.CompressGzip, RowGroupRows: 2, NoIndex: true}
	fmt.Println(o.Strings(), o.Formats())
	b := peopleAs("people.red", o)
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "people.red",
		stoa.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Count(context.Background(), stoa.ScanSpec{}))
	// Output:
	// map[compression:gzip index:false row-group-rows:2] [redfile]
	// 3 <nil>
}

// Index pages, which only our writer makes, are skipped.
func ExampleReadOptions() {
	b := peopleAs("people.red", nil)
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "people.red",
		stoa.OpenOptions{From: "redfile", Typed: redfile.ReadOptions{NoIndex: true}})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Schema().Field(1).Name)
	// Output:
	// name
}
