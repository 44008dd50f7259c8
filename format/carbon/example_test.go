package carbon_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/pred"
	"stoa/store"
)

// peopleAs writes a table of three people to a file, with options of the format, and returns its bytes.
func peopleAs(name string, o format.Options) []byte {
	ctx, mem := context.Background(), store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b, _, err := array.RecordFromJSON(arrowmem.DefaultAllocator, sc,
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

// A single file, sorted by its key: the rows from a key on, and a row by its number.
func ExampleNewReader() {
	b := peopleAs("people.carbondata", carbon.WriteOptions{SortColumns: []string{"id"}})
	r, err := carbon.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	ctx := context.Background()
	for b, err := range r.RowsFromKey(ctx, pred.Int(20), nil) {
		if err != nil {
			panic(err)
		}
		fmt.Println(b.NumRows(), "of", r.NumRows(), "rows from 20 on")
	}
	row, err := r.Row(ctx, 0, nil)
	if err != nil {
		panic(err)
	}
	defer row.Release()
	fmt.Println(row.Column(1).ValueStr(0))
	// Output:
	// 2 of 3 rows from 20 on
	// Ada
}

// Options of the writer as a struct, and as the command's text.
func ExampleWriteOptions() {
	o := carbon.WriteOptions{Compression: carbon.CompressZstd, SortColumns: []string{"id"}, PageRows: 2}
	fmt.Println(o.Strings(), o.Formats())
	b := peopleAs("people.carbondata", o)
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "people.carbondata",
		stoa.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Count(context.Background(), stoa.ScanSpec{}))
	// Output:
	// map[compression:zstd page-rows:2 sort-columns:id] [carbon]
	// 3 <nil>
}

// Each row of a table has its position, as deletes by position need it.
func ExampleReadOptions() {
	t, err := stoa.Open(context.Background(), "../../corpus/carbon/2.3.0/managed/managed_del",
		stoa.OpenOptions{Typed: carbon.ReadOptions{Positions: true}})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(len(t.Schema().FieldIndices(carbon.FileColumn)), len(t.Schema().FieldIndices(carbon.RowColumn)))
	// Output:
	// 1 1
}
