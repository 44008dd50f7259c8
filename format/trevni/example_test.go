package trevni_test

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
	"stoa/format/trevni"
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

// Write options as a struct, and as the command takes them.
func ExampleWriteOptions() {
	o := trevni.WriteOptions{Codec: trevni.CodecSnappy, FirstValues: []string{"id"}}
	fmt.Println(o.Strings(), o.Formats())
	b := peopleAs("people.trv", o)
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "people.trv",
		stoa.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Count(context.Background(), stoa.ScanSpec{}))
	// Output:
	// map[codec:snappy first-values:id] [trevni]
	// 3 <nil>
}

// A column declared as sorted is searched by the first values of its blocks.
func ExampleReadOptions() {
	b := peopleAs("people.trv", trevni.WriteOptions{FirstValues: []string{"id"}})
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "people.trv",
		stoa.OpenOptions{From: "trevni", Typed: trevni.ReadOptions{Sorted: []string{"id"}}})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Schema().Field(0).Name)
	// Output:
	// id
}
