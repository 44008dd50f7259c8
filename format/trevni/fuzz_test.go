package trevni_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/store"
)

func seeds(f *testing.F) {
	for name, data := range samples(f) {
		_ = name
		f.Add(data)
	}
	for _, pattern := range []string{"negative/*.trv", "dialects/*.trv", "v1.12.2/avro_*.trv", "v1.12.2/nested.trv",
		"v1.12.2/array_of_array.trv"} {
		files, _ := filepath.Glob(filepath.Join(golden, pattern))
		for _, name := range files {
			if b, err := os.ReadFile(name); err == nil && len(b) < 5000 {
				f.Add(b)
			}
		}
	}
}

// FuzzFile: for any bytes, reading, verifying, describing and recovering end in time, and errors are not of class Bug.
func FuzzFile(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer formattest.Bound(t, 640<<20)()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		check := func(err error) {
			if errors.Is(err, fault.Bug) || errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		_, err := scanAll(ctx, data, scan.Spec{}, false)
		check(err)
		_, err = scanAll(ctx, data, scan.Spec{Damaged: scan.NullCells}, true)
		check(err)
		m := store.NewMemory(map[string][]byte{"f.trv": data})
		o := format.OpenOptions{Limits: format.Limits{Page: 1 << 20, Metadata: 1 << 20}}
		tg := format.Target{Tree: m, Name: "f.trv"}
		for f := range trevni.Format.Verify(ctx, tg, o) {
			if f.At.End() > int64(len(data)) || f.At.Off < 0 {
				t.Errorf("%s at %s", f.Code, f.At)
			}
		}
		for _, err := range trevni.Format.Describe(ctx, tg, format.DescribeOptions{OpenOptions: o, Pages: true}) {
			check(err)
		}
		if _, err := trevni.Format.Probe(ctx, tg); err != nil {
			t.Error(err)
		}
		if err := ctx.Err(); err != nil {
			t.Error(err)
		}
	})
}
