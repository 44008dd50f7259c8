// Command importer is a module of its own that uses stoa as a library: it writes a small table as Kudu column files,
// opens it again, and prints the rows with a price above 3.
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
	"stoa/pred"
)

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "importer")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), filepath.Join(dir, "fruit")+"/"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, uri string) error {
	if err := write(ctx, uri); err != nil {
		return err
	}
	t, err := stoa.Open(ctx, uri, stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	where, err := pred.Parse("price > 3")
	if err != nil {
		return err
	}
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Filter: where}) {
		if err != nil {
			return err
		}
		for i := range int(b.NumRows()) {
			fmt.Println(b.Column(0).ValueStr(i), b.Column(1).ValueStr(i))
		}
	}
	return nil
}

func write(ctx context.Context, uri string) error {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	rb.Field(0).(*array.StringBuilder).AppendValues([]string{"apple", "fig", "plum"}, nil)
	rb.Field(1).(*array.Float64Builder).AppendValues([]float64{2.5, 7, 3.25}, nil)
	b := rb.NewRecordBatch()
	defer b.Release()

	w, err := stoa.Create(ctx, uri, sc, stoa.CreateOptions{To: "cfile"})
	if err != nil {
		return err
	}
	defer w.Abort(ctx)
	if err := w.Write(ctx, b); err != nil {
		return err
	}
	_, err = w.Close(ctx)
	return err
}
