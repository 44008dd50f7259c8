package cfile_test

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
	"stoa/format/cfile"
	"stoa/pred"
	"stoa/store"
)

// numbersAs writes a column of three numbers to a file, with options of the format, and returns its bytes.
func numbersAs(name string, o format.Options) []byte {
	ctx, mem := context.Background(), store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
		strings.NewReader(`[{"id":10},{"id":20},{"id":30}]`))
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
	b := numbersAs("n.cfile", cfile.WriteOptions{All: cfile.ColumnOptions{ValueIndex: new(true)}})
	r, err := cfile.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
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
	fmt.Println(row.Column(0).ValueStr(0))
	// Output:
	// 2 of 3 rows from 20 on
	// 10
}

// Options of the writer as a struct, and as the command's text: for all columns, and for single ones.
func ExampleWriteOptions() {
	o := cfile.WriteOptions{All: cfile.ColumnOptions{Compression: cfile.CompressLZ4},
		Columns: map[string]cfile.ColumnOptions{"id": {Encoding: cfile.EncodeRLE}}}
	fmt.Println(o.Strings(), o.Formats())
	b := numbersAs("n.cfile", o)
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "n.cfile",
		stoa.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Count(context.Background(), stoa.ScanSpec{}))
	// Output:
	// map[compression:lz4 encoding.id:rle] [cfile]
	// 3 <nil>
}

// A column file has one column and no name for it: the option Name sets it.
func ExampleReadOptions() {
	b := numbersAs("n.cfile", nil)
	t, err := stoa.OpenReaderAt(context.Background(), bytes.NewReader(b), int64(len(b)), "n.cfile",
		stoa.OpenOptions{From: "cfile", Typed: cfile.ReadOptions{Name: "n"}})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fmt.Println(t.Schema().Field(0).Name)
	// Output:
	// n
}
