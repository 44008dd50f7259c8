package stoa_test

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

// A block that Kudu wrote: the first column of a compound key.
const kuduFile = "corpus/kudu/1.18.1/key_int32/k.ck.cfile"

// Open opens a file, here for a scan batch by batch.
func ExampleOpen() {
	ctx := context.Background()
	t, err := stoa.Open(ctx, kuduFile, stoa.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()

	where, err := pred.Parse("value between -2100000000 and -2090000000")
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Filter: where}) {
		if err != nil {
			log.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			fmt.Println(b.Column(0).(*array.Int32).Value(i))
		}
	}
	// Output:
	// -2092677026
}

// Seek finds rows by key: the value index leads to the one block that can hold it.
func ExampleTable_Seek() {
	ctx := context.Background()
	t, err := stoa.Open(ctx, kuduFile, stoa.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	for b, err := range t.Seek(ctx, []any{-2133721183}, stoa.ScanSpec{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.NumRows(), "row")
	}
	// Output:
	// 1 row
}

// Create writes a table, a batch at a time. Nothing is visible before Close.
func ExampleCreate() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stoa")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	w, err := stoa.Create(ctx, filepath.Join(dir, "n.cfile"), sc,
		stoa.CreateOptions{Opts: map[string]string{"compression": "lz4"}})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort(ctx) // does nothing after Close

	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	for k := range 3 {
		for i := range int64(1000) {
			rb.Field(0).(*array.Int64Builder).Append(int64(k)*1000 + i)
		}
		b := rb.NewRecordBatch()
		if err := w.Write(ctx, b); err != nil {
			log.Fatal(err)
		}
		b.Release()
	}
	sum, err := w.Close(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Rows, "rows")
	// Output:
	// 3000 rows
}

// Verify reads everything and reports what is wrong, and where.
func ExampleVerify() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stoa")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := os.ReadFile(kuduFile)
	if err != nil {
		log.Fatal(err)
	}
	b[100] ^= 1 // damage
	bad := filepath.Join(dir, "bad.cfile")
	if err := os.WriteFile(bad, b, 0o644); err != nil {
		log.Fatal(err)
	}
	for f, err := range stoa.Verify(ctx, bad, stoa.OpenOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(f.Severity, f.Code, "rows", f.Rows[0], "to", f.Rows[1])
	}
	// Output:
	// error cfile.block.checksum rows 0 to 128
}
