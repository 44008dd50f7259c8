package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/fault"
	"stoa/store"
	"stoa/store/faulty"
)

// TestFaultyLists: whichever operation of a store fails, a listing is complete and names the right formats, or reports
// an error.
func TestFaultyLists(t *testing.T) {
	files := filepath.Join(t.TempDir(), "files")
	for _, d := range []string{"sub", "c"} {
		if err := os.MkdirAll(filepath.Join(files, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, out := range []string{"a.parquet", "b.arrow", "c.csv", "d.jsonl", "e.red", "f.trv", "c/"} {
		args := []string{"convert", "../../corpus/carbon/2.3.0/managed/managed_gsort", "-q", "-o",
			filepath.Join(files, out) + out[len(strings.TrimSuffix(out, "/")):], "--limit", "5"}
		if out == "c/" {
			args = append(args, "--to=cfile")
		}
		if st := run(context.Background(), args, strings.NewReader(""), io.Discard, os.Stderr); st != 0 {
			t.Fatal(out)
		}
	}
	copyDir(t, "../../corpus/carbon/2.3.0/managed/managed_del", filepath.Join(files, "carbon"))
	kudu := filepath.Join(t.TempDir(), "kudu")
	kuduSample(t, kudu)
	copyDir(t, filepath.Join(files, "carbon"), filepath.Join(kudu, "beside", "carbon"))
	for _, name := range []string{"a.parquet", "f.trv"} {
		b, err := os.ReadFile(filepath.Join(files, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(kudu, "beside", name), b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, place := range map[string]string{"files": files, "kudu": kudu} {
		t.Run(name, func(t *testing.T) {
			healthy := &faulty.Tree{Tree: store.Local{}, At: -1}
			want, err := listing(t.Context(), place, healthy)
			if err != nil || len(want) < 4 {
				t.Fatalf("%q, %v", want, err)
			}
			step := max(1, healthy.Count()/(8*maxFaults()))
			for _, mode := range []faulty.Mode{faulty.Fail, faulty.Short} {
				reported, cut := 0, 0
				for at := int64(0); at < healthy.Count(); at += step {
					damaged := &faulty.Tree{Tree: store.Local{}, Mode: mode, At: at}
					got, err := listing(t.Context(), place, damaged)
					switch {
					case err == nil && !slices.Equal(got, want):
						t.Errorf("operation %d: %s: got %q, want %q or an error", at, mode, got, want)
					case mode == faulty.Fail && errors.Is(err, fault.Corrupt):
						t.Errorf("operation %d: %s is reported as damage: %v", at, mode, err)
					}
					if err != nil {
						reported++
					}
					if damaged.Cut.Load() {
						cut++
					}
				}
				t.Logf("%s: %d operations, %d reported, %d reads cut", mode, healthy.Count(), reported, cut)
				// A listing may not depend on the read that was cut: then it is the same, as checked above.
				if mode == faulty.Fail && reported == 0 || mode == faulty.Short && cut == 0 {
					t.Errorf("%s: no error reported, or no read cut", mode)
				}
			}
		})
	}
}

// listing lists the tables of a location, and joins all errors.
func listing(ctx context.Context, place string, tree store.Tree) (out []string, all error) {
	for e, err := range stoa.List(ctx, place, stoa.OpenOptions{Formats: catalogue.Formats(), Tree: tree}) {
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		out = append(out, fmt.Sprintf("%s#%s %s", e.Place, e.Table, e.Format))
		for _, m := range e.Meta {
			if m.Key == "error" {
				all = errors.Join(all, errors.New(m.Value))
			}
		}
		for _, f := range e.Findings {
			all = errors.Join(all, errors.New(f.Message))
		}
	}
	return out, all
}
