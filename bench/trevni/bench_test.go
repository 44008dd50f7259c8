package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
)

var data = sync.OnceValues(batches)

// BenchmarkWrite and BenchmarkScan do stoa's side of the comparison, for -cpuprofile. The file that is scanned is stoa's own.
func BenchmarkWrite(b *testing.B) {
	sc, batches := data()
	for _, c := range cases {
		b.Run(c.codec, func(b *testing.B) {
			for b.Loop() {
				writeAll(filepath.Join(b.TempDir(), "x.trv"), c, sc, batches)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	var sc *arrow.Schema
	var batches []arrow.RecordBatch
	for _, c := range cases {
		b.Run(c.codec, func(b *testing.B) {
			name := filepath.Join(os.Getenv("TREVNI_BENCH"), "java-"+c.codec+".trv") // a file that the peer wrote
			if os.Getenv("TREVNI_BENCH") == "" {
				sc, batches = data()
				name = filepath.Join(b.TempDir(), "x.trv")
				writeAll(name, c, sc, batches)
			}
			pool := stoa.NewPool()
			for b.Loop() {
				t, err := stoa.Open(context.Background(), name, stoa.OpenOptions{})
				check(err)
				scanAll(t, pool, 1)
			}
		})
	}
}
