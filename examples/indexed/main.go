// Command indexed writes a table of two columns with an index of the key, and finds one row by it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

func main() {
	dir, err := os.MkdirTemp("", "indexed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "temperatures")
	if err := write(context.Background(), name); err != nil {
		log.Fatal(err)
	}
	if err := find(context.Background(), name, 77_000); err != nil {
		log.Fatal(err)
	}
}

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "second", Type: arrow.PrimitiveTypes.Int64},
	{Name: "celsius", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// write writes 100,000 rows in ascending order of the key. Nothing is visible before Close.
func write(ctx context.Context, name string) error {
	w, err := stoa.Create(ctx, name, schema, stoa.CreateOptions{
		To: "cfile", Opts: map[string]string{"value-index.second": "true", "compression": "lz4"}})
	if err != nil {
		return err
	}
	defer w.Abort(ctx) // does nothing after Close
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rb.Release()
	for i := range int64(100_000) {
		rb.Field(0).(*array.Int64Builder).Append(i)
		rb.Field(1).(*array.Float64Builder).Append(float64(i%400) / 10)
		if i%10_000 == 9_999 {
			b := rb.NewRecordBatch()
			err := w.Write(ctx, b)
			b.Release()
			if err != nil {
				return err
			}
		}
	}
	_, err = w.Close(ctx)
	return err
}

// find prints the row with a key: the value index leads to the one block that can have it.
func find(ctx context.Context, name string, key int64) error {
	t, err := stoa.Open(ctx, name, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	for b, err := range t.Seek(ctx, []any{key}, stoa.ScanSpec{}) {
		if err != nil {
			return err
		}
		fmt.Println(b.Column(0).ValueStr(0), b.Column(1).ValueStr(0))
	}
	return nil
}
