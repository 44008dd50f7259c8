//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/internal/effort"
	"stoa/store/remote"
)

// TestKilledMigrationAtAddress kills a migration into a bucket at each of its requests, before and after the answer: a
// run that is resumed after clean finishes, and no table that was there is touched.
func TestKilledMigrationAtAddress(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(in, 0o777); err != nil {
		t.Fatal(err)
	}
	const tables = 3
	for i := range tables {
		text := fmt.Sprintf("{\"id\": %d}\n{\"id\": %d}\n", i, i+5)
		if err := os.WriteFile(fmt.Sprintf("%s/t%d.jsonl", in, i), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"iceberg", "delta"} {
		args := []string{"migrate", in, "-o", "s3://bucket/w", "--to", to, "--parallel", "1", "-q"}
		s3, _ := emptyBucket(t)
		all := (&killer{S3: s3}).run(t, 0, false, args...)
		step := int64(effort.Step(3, 5))
		kept := 0
		for at := int64(1); at <= all; at += step {
			s3, dir := emptyBucket(t)
			k := &killer{S3: s3}
			k.run(t, at, at%2 == 0, args...)
			before := map[string][]byte{}
			for _, log := range []string{"metadata/v1.metadata.json", "_delta_log/00000000000000000000.json"} {
				found, _ := filepath.Glob(filepath.Join(dir, "w", "*", log))
				for _, name := range found {
					if _, err := os.Stat(filepath.Join(dir, "w", tableOf(dir, name), remote.Unfinished)); err == nil {
						continue // it is no table yet
					}
					b, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					before[name] = b
				}
			}
			// what was being written is refused until it is removed: another process might be the one that writes it
			k.run(t, 0, false, "clean", "s3://bucket/w", "--older-than", "1ns")
			k.run(t, 0, false, append(args, "--resume")...)
			for name, b := range before {
				kept++
				if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, b) {
					t.Errorf("killed at %d: %s was replaced: %v", at, name, err)
				}
			}
			for i := range tables {
				rows := rowsAt(t, s3, fmt.Sprintf("s3://bucket/w/t%d", i))
				if want := fmt.Sprintf("{\"id\":%d}\n{\"id\":%d}", i, i+5); strings.TrimSpace(rows) != want {
					t.Errorf("killed at %d: got %q, want %q", at, rows, want)
				}
			}
		}
		if kept == 0 {
			t.Errorf("%s: no table was there in %d kills", to, all)
		}
	}
}

// tableOf returns the table in the warehouse w of a bucket to which a file belongs.
func tableOf(bucket, name string) string {
	rel, _ := filepath.Rel(filepath.Join(bucket, "w"), name)
	table, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return table
}
