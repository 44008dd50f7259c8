//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedCommand finds the command that clean names.
var namedCommand = regexp.MustCompile(`stoa (convert .*)`)

// TestHalfMadeLakes kills runs that write both catalogues at an address at each of their last requests, of small tables
// and of large ones, whose run records what it has. Where clean leaves Iceberg's alone, it says so, and the command
// that it names writes Delta's: over the same files, or of its own if others have used the table.
func TestHalfMadeLakes(t *testing.T) {
	t.Chdir(t.TempDir())
	text, _ := numbered(0, 20_000)
	if err := os.WriteFile("in.jsonl", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in.jsonl", "-o", "in.parquet", "--opt", "row-group-rows=5000", "-q")
	seen := map[string]int{}
	for _, large := range []string{"small", "large"} {
		args := []string{"convert", "in.parquet", "--to", "iceberg,delta", "-o", "s3://bucket/w/t", "-q"}
		if large == "large" {
			args = append(args, "--opt", "file-size=2KB")
		}
		s3, _ := emptyBucket(t)
		all := (&killer{S3: s3}).run(t, 0, false, args...)
		for at := max(1, all-14); at <= all; at++ {
			for _, used := range []bool{false, true} {
				s3, dir := emptyBucket(t)
				k := &killer{S3: s3}
				k.run(t, at, at%2 > 0, args...)
				found, _ := filepath.Glob(dir + "/w/t/metadata/*.metadata.json")
				logs, _ := filepath.Glob(dir + "/w/t/_delta_log/*.json")
				if len(found) != 1 || len(logs) > 0 {
					continue
				}
				if used {
					use(t, found[0])
				}
				asS3(t, s3)
				dry := said("\x00", "clean", "s3://bucket/w", "--older-than", "1ns", "--dry-run")
				got := said("\x00", "clean", "s3://bucket/w", "--older-than", "1ns")
				logs, _ = filepath.Glob(dir + "/w/t/_delta_log/*.json")
				if len(logs) > 0 {
					seen["added"]++
					continue
				}
				named := namedCommand.FindStringSubmatch(got)
				if !strings.Contains(got, "Iceberg alone") || named == nil || !strings.Contains(dry, named[0]) {
					t.Errorf("%s, used %t, killed at %d of %d: %s, dry: %s", large, used, at, all, got, dry)
					continue
				}
				seen[large+map[bool]string{true: ", used"}[used]]++
				r := strings.NewReplacer("SRC", "in.parquet", "OTHER", "s3://bucket/w/other")
				must(t, strings.Fields(r.Replace(named[1]))...)
				place := map[bool]string{false: "s3://bucket/w/t", true: "s3://bucket/w/other"}[used]
				if n := strings.TrimSpace(must(t, "count", place, "--from", "delta")); n != "20000" {
					t.Errorf("%s, used %t: %s rows of Delta", large, used, n)
				}
				if found, _ := filepath.Glob(dir + "/w/t/metadata/v*.metadata.json"); len(found) != 1 {
					t.Errorf("%s, used %t: the catalogue of Iceberg was changed: %q", large, used, found)
				}
			}
		}
	}
	for _, what := range []string{"added", "small, used", "large", "large, used"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s: %v", what, seen)
		}
	}
	t.Log(seen)
}
