package stoa_test

import (
	"path/filepath"
	"testing"

	"stoa"
	"stoa/bench/columns"
)

// BenchmarkProof converts 2 million rows of ten columns, with and without the check of the output.
func BenchmarkProof(b *testing.B) {
	src := filepath.Join(b.TempDir(), "in.arrow")
	if err := columns.Write(b.Context(), 2_000_000, src, nil); err != nil {
		b.Fatal(err)
	}
	for _, to := range []string{"parquet", "redfile", "trevni", "cfile", "carbon", "arrow", "csv", "jsonl"} {
		for _, check := range []bool{false, true} {
			name := to + "/plain"
			if check {
				name = to + "/checked"
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					t, err := stoa.Open(b.Context(), src, stoa.OpenOptions{})
					if err != nil {
						b.Fatal(err)
					}
					pool := stoa.NewPool()
					out := filepath.Join(b.TempDir(), "out")
					s, err := stoa.Convert(b.Context(), t, stoa.ScanSpec{Alloc: pool}, out,
						stoa.CreateOptions{To: to, NoCheck: !check, Alloc: pool, Parallel: 2})
					t.Close()
					if err != nil || s.Checked != check {
						b.Fatal(err, s.Checked)
					}
				}
			})
		}
	}
}
