//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// longSource writes a table that is large enough to be recorded, and returns its rows in order, after an empty line.
func longSource(t *testing.T) (name string, want []string) {
	t.Helper()
	in := t.TempDir()
	r := rand.New(rand.NewPCG(25, 3))
	for i := range 3000 {
		want = append(want, fmt.Sprintf(`{"id":%d,"s":"%016x%016x"}`, i, r.Uint64(), r.Uint64()))
	}
	write(t, in+"/t.jsonl", strings.Join(want, "\n"))
	want = append(want, "")
	slices.Sort(want)
	do(t, "convert", in+"/t.jsonl", "-o", in+"/t.parquet", "--opt", "row-group-rows=1000", "-q")
	return in + "/t.parquet", want
}

// longArgs converts it in several files.
func longArgs(in, to string) []string {
	return []string{"convert", in, "-o", "s3://bucket/t", "--to", to, "--opt", "file-size=30KB", "-q"}
}

// longRows returns the rows of the table by one of its catalogues, as longSource does.
func longRows(kind string) []string {
	got, _, _ := strings.Cut(said("s3://bucket", "cat", "-f", "jsonl", "s3://bucket/t", "--from", kind), "\nstderr:")
	return slices.Sorted(slices.Values(strings.Split(got, "\n")))
}

// skipped reports whether no run is killed at a request: the catalogues appear in the end.
func skipped(at, all int64) bool {
	return at < all-9 && at%4 > 0 || testing.Short() && at < all-4 && at%16 > 0
}

// TestKilledLongLakes kills the writing of a large table of Iceberg, Delta or both at an address at each of its
// requests, before and after the answer: a resumed run ends with 0, each catalogue has the rows of the source, and
// nothing of the runs is left. So does one more run, as another process cannot know that the last one had ended.
func TestKilledLongLakes(t *testing.T) {
	in, want := longSource(t)
	for _, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		t.Run(to, func(t *testing.T) {
			args := longArgs(in, to)
			s3, _ := emptyBucket(t)
			all := (&killer{S3: s3}).run(t, 0, false, args...)
			recorded := 0
			for at := int64(1); at <= all; at++ {
				if skipped(at, all) {
					continue
				}
				for _, answer := range []bool{false, true} {
					s3, dir := emptyBucket(t)
					(&killer{S3: s3}).run(t, at, answer, args...)
					recorded += recordsIn(dir + "/t")
					what := fmt.Sprintf("killed at %d of %d (answered %t)", at, all, answer)
					for range 2 {
						asS3(t, s3)
						got := said("s3://bucket", append(args, "--resume")...)
						if !strings.HasSuffix(got, "status: 0") {
							t.Errorf("%s: %s", what, got)
						}
					}
					for _, kind := range strings.Split(to, ",") {
						if rows := longRows(kind); !slices.Equal(rows, want) {
							t.Errorf("%s: %s has %d rows", what, kind, len(rows))
						}
					}
					if left, _ := filepath.Glob(dir + "/t/_stoa*/*"); len(left) > 0 {
						t.Errorf("%s: %q is left", what, left)
					}
				}
			}
			if recorded == 0 {
				t.Error("no run has recorded anything: this proves nothing")
			}
		})
	}
}

// TestCleanOfLongLakes: clean of what a killed run has left of a large table at an address, or of the place above it,
// ends with 0. If there is no catalogue, it removes all that the run wrote, and else only what the run has recorded,
// and the table has its rows. It touches nothing of others, and nothing that a running process may have written.
func TestCleanOfLongLakes(t *testing.T) {
	in, want := longSource(t)
	removed, kept := 0, 0
	for i, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		args := longArgs(in, to)
		s3, _ := emptyBucket(t)
		all := (&killer{S3: s3}).run(t, 0, false, args...)
		for at := int64(1); at <= all; at++ {
			if skipped(at, all) {
				continue
			}
			s3, dir := emptyBucket(t)
			(&killer{S3: s3}).run(t, at, at%2 > 0, args...)
			others := map[string][]byte{"t/README.txt": []byte("others"), "t/data/mine.parquet": []byte("others"),
				"u/data/00000-12345678.parquet": []byte("others")}
			before := filesOf(t, dir)
			maps.Copy(before, others)
			for name, b := range others {
				if err := errors.Join(os.MkdirAll(filepath.Dir(dir+"/"+name), 0o777),
					os.WriteFile(dir+"/"+name, b, 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			what := fmt.Sprintf("%s, killed at %d of %d", to, at, all)
			place := []string{"s3://bucket/t", "s3://bucket"}[(int(at)+i)%2]
			(&killer{S3: s3}).run(t, 0, false, "clean", place) // fatal unless it ends with 0
			if after := filesOf(t, dir); !maps.EqualFunc(after, before, bytes.Equal) {
				t.Errorf("%s: what was just written is gone: %q", what, slices.Sorted(maps.Keys(after)))
			}
			(&killer{S3: s3}).run(t, 0, false, "clean", place, "--older-than", "1ns")
			expect, shown := map[string][]byte{}, false
			for name := range before {
				shown = shown || strings.HasSuffix(name, ".metadata.json") || strings.Contains(name, "_delta_log/")
			}
			for name, b := range before {
				if _, other := others[name]; other || shown && !strings.HasPrefix(name, "t/_stoa/") {
					expect[name] = b
				}
			}
			if after := filesOf(t, dir); !maps.EqualFunc(after, expect, bytes.Equal) {
				t.Errorf("%s: after clean there are %q, want %q", what, slices.Sorted(maps.Keys(after)),
					slices.Sorted(maps.Keys(expect)))
			}
			removed, kept = removed+len(before)-len(expect), kept+len(expect)-len(others)
			if !shown {
				continue
			}
			kind := "delta"
			if strings.HasPrefix(to, "iceberg") {
				kind = "iceberg"
			}
			asS3(t, s3)
			if rows := longRows(kind); !slices.Equal(rows, want) {
				t.Errorf("%s: after clean there are %d rows", what, len(rows))
			}
		}
	}
	if removed == 0 || kept == 0 {
		t.Errorf("%d objects were removed, %d kept: this proves nothing", removed, kept)
	}
}
