package main

import (
	"os"
	"path/filepath"
	"testing"

	"stoa"
)

// BenchmarkWrite and BenchmarkScan do stoa's side of the comparison, for -cpuprofile. The files that are scanned are those of the peer
// in the directory TREVNI_BENCH, or else stoa's own.
func BenchmarkWrite(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			sc, data := batches(c.nullable)
			for b.Loop() {
				writeAll(filepath.Join(b.TempDir(), "x.trv"), c, sc, data)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			name := filepath.Join(os.Getenv("TREVNI_BENCH"), "java-"+c.name+".trv")
			if os.Getenv("TREVNI_BENCH") == "" {
				sc, data := batches(c.nullable)
				name = filepath.Join(b.TempDir(), "x.trv")
				writeAll(name, c, sc, data)
			}
			pool := stoa.NewPool()
			for b.Loop() {
				scanAll(name, pool, 1, nil)
			}
		})
	}
}
