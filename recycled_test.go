package stoa_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
)

// TestBatchesOfTheDefaultAllocator: of a scan without an allocator, batches that are retained keep their cells, and so
// do strings of batches that are not, whatever is read afterwards; in all formats of pages, with any number of workers.
func TestBatchesOfTheDefaultAllocator(t *testing.T) {
	const rows = 60_000
	for _, f := range mappedFormats {
		name := filepath.Join(t.TempDir(), f.name)
		writeNumbered(t, name, f.format, rows, f.opts)
		table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		for _, workers := range []int{1, 3} {
			var kept []arrow.RecordBatch
			var texts []string
			i := 0
			for b, err := range table.Scan(t.Context(), stoa.ScanSpec{Parallel: workers, Batch: 9000}) {
				if err != nil {
					t.Fatal(err)
				}
				if i++; i%2 == 0 {
					b.Retain()
					kept = append(kept, b)
				}
				for k := range int(b.NumRows()) {
					texts = append(texts, b.Column(1).(*array.String).Value(k))
				}
			}
			for k, s := range texts {
				if want := fmt.Sprint("value ", k*7919); s != want {
					t.Fatalf("%s, %d workers: string %d is %q, expected %q", f.format, workers, k, s, want)
				}
			}
			if len(texts) != rows || len(kept) < 2 {
				t.Fatalf("%s, %d workers: %d rows, %d batches are kept", f.format, workers, len(texts), len(kept))
			}
			for _, b := range kept {
				k, s := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
				for i := range int(b.NumRows()) {
					row := k.Value(i) / 2654435761
					if k.Value(i)%2654435761 != 0 || s.Value(i) != fmt.Sprint("value ", row*7919) ||
						i > 0 && k.Value(i) != k.Value(i-1)+2654435761 {
						t.Fatalf("%s, %d workers: a kept batch has %d, %q", f.format, workers, k.Value(i), s.Value(i))
					}
				}
				b.Release()
			}
		}
	}
}
