//go:build unix

package main

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa/store"
)

// changedLake is a table of Iceberg and Delta that has caught up twice, and what the last time added to each catalogue.
type changedLake struct {
	dir           string
	before        map[string]bool // the files of both catalogues before the last time
	iceberg, logs map[string]bool // those that it added to each
}

// namesIn returns the names of the files below a directory.
func namesIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, name := range keysOf(t, dir) {
		out[name] = true
	}
	return out
}

// except returns the names that are in a and not in b.
func except(a, b map[string]bool) map[string]bool {
	out := maps.Clone(a)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return b[name] })
	return out
}

// newChangedLake writes such a table, in partitions or not.
func newChangedLake(t *testing.T, opts ...string) *changedLake {
	t.Helper()
	t.Chdir(t.TempDir())
	l := &changedLake{dir: "both"}
	text, _ := numbered(0, 60)
	lines := strings.SplitAfter(text, "\n")
	write := func(lines []string) {
		if err := os.WriteFile("in.jsonl", []byte(strings.Join(lines, "")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(lines[:50])
	must(t, append([]string{"convert", "in.jsonl", "--to", "iceberg,delta", "-o", l.dir, "-q"}, opts...)...)
	write(lines[5:50])
	must(t, "convert", "--catch-up", "in.jsonl", "-o", l.dir, "-q")
	l.before = namesIn(t, l.dir)
	write(append(lines[10:20:20], lines[30:60]...))
	must(t, "convert", "--catch-up", "in.jsonl", "-o", l.dir, "--to", "iceberg", "-q")
	after := namesIn(t, l.dir)
	l.iceberg = except(after, l.before)
	must(t, "convert", "--catch-up", "in.jsonl", "-o", l.dir, "--to", "delta", "-q")
	l.logs = except(namesIn(t, l.dir), after)
	if len(l.iceberg) < 4 || len(l.logs) < 2 {
		t.Fatalf("%v, %v: the test shows little", l.iceberg, l.logs)
	}
	return l
}

// age makes all files of a directory two days old.
func age(t *testing.T, dir string) {
	t.Helper()
	then := time.Now().Add(-48 * time.Hour)
	for _, name := range keysOf(t, dir) {
		for _, name := range []string{name, path.Dir(name)} {
			if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// snapshotID finds the id of a snapshot in metadata.
var snapshotID = regexp.MustCompile(`"snapshot-id": (\d+)`)

// allVersions returns the rows of each snapshot and each version.
func allVersions(t *testing.T, dir string) (text string) {
	t.Helper()
	metadata, _ := filepath.Glob(dir + "/metadata/*.metadata.json") // in order
	b, err := os.ReadFile(metadata[len(metadata)-1])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range snapshotID.FindAllSubmatch(b, -1) {
		text += must(t, "cat", dir, "--from", "iceberg", "--at", string(id[1]), "-f", "csv")
	}
	versions, _ := filepath.Glob(dir + "/_delta_log/0*.json")
	for i := range versions {
		text += must(t, "cat", dir, "--from", "delta", "--at", strconv.Itoa(i), "-f", "csv")
	}
	return text
}

// TestLakeLeftovers: of a catch-up that was killed before one of the two catalogues had its change, verify reports the
// files, clean --dry-run lists them, and clean removes them, and nothing else: neither what any version of the other
// catalogue has, nor what others keep there. Nothing is removed while any of it is recent, or a run is writing there.
func TestLakeLeftovers(t *testing.T) {
	for _, opts := range [][]string{nil, {"--partition-by", "name"}} {
		for _, lost := range []string{"iceberg", "delta"} {
			t.Run(strings.Join(append(opts, lost), " "), func(t *testing.T) { testLakeLeftovers(t, lost, opts) })
		}
	}
}

func testLakeLeftovers(t *testing.T, lost string, opts []string) {
	l := newChangedLake(t, opts...)
	commit, orphans := "metadata/v3.metadata.json", maps.Clone(l.iceberg)
	if lost == "delta" {
		commit, orphans = "_delta_log/00000000000000000002.json", maps.Clone(l.logs)
	}
	if !orphans[commit] {
		t.Fatalf("%v has no %s", orphans, commit)
	}
	delete(orphans, commit)
	if err := os.Remove(filepath.Join(l.dir, commit)); err != nil {
		t.Fatal(err)
	}
	if lost == "iceberg" { // as before the change
		if err := os.WriteFile(filepath.Join(l.dir, "metadata/version-hint.text"), []byte("2"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const unfinished = "data/.stoa-tmp-1-00000-0123abcd.parquet"
	orphans[unfinished] = true
	for _, name := range []string{"metadata/.stoa-tmp-1-v9.metadata.json", "_delta_log/.stoa-tmp-1-" +
		"00000000000000000009.json"} { // as a run leaves them that is killed when it commits
		if err := os.Mkdir(filepath.Join(l.dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		name += "/" + strings.TrimLeft(strings.SplitN(name, "-", 4)[3], "-")
		if err := os.WriteFile(filepath.Join(l.dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		orphans[name] = true
	}
	for _, name := range []string{unfinished, "README.md", "data/part-00000-of-others.parquet",
		"data/00000-01234567.parquet", "metadata/01234567-0123-0123-0123-0123456789ab-m0.avro"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte("others"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	keep, rows := except(namesIn(t, l.dir), orphans), allVersions(t, l.dir)
	for name := range l.before {
		if !keep[name] {
			t.Fatalf("%s is gone already", name)
		}
	}
	unchanged := func(what string) {
		t.Helper()
		if got := namesIn(t, l.dir); !maps.Equal(except(got, keep), orphans) || len(except(keep, got)) > 0 {
			t.Fatalf("%s: %v", what, got)
		}
	}
	if got := said("\x00", "clean", l.dir); !strings.Contains(got, "all is kept") {
		t.Errorf("recent files: %s", got)
	}
	unchanged("recent files")
	age(t, l.dir)
	f, err := os.Open(l.dir)
	if err != nil || !store.TryLock(f) {
		t.Fatal(err)
	}
	if got := said("\x00", "clean", l.dir); !strings.Contains(got, "all is kept") {
		t.Errorf("a run is writing: %s", got)
	}
	f.Close()
	unchanged("a run is writing")
	if got := said("\x00", "verify", l.dir); !strings.Contains(got, "note dir.leftover") {
		t.Errorf("verify: %s", got)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(must(t, "clean", l.dir, "--dry-run", "-q")) {
		listed[path.Clean(strings.TrimSpace(line))] = true
	}
	for name := range orphans {
		if in := path.Dir(name); listed[in] && strings.HasPrefix(path.Base(in), store.TempPrefix) { // all of it
			delete(listed, in)
			listed[name] = true
		}
	}
	if !maps.Equal(listed, orphans) {
		t.Errorf("clean --dry-run lists %q, want %q", slices.Sorted(maps.Keys(listed)),
			slices.Sorted(maps.Keys(orphans)))
	}
	unchanged("a dry run")
	must(t, "clean", l.dir, "-q")
	if got := namesIn(t, l.dir); !maps.Equal(got, keep) {
		t.Errorf("removed: %v, left: %v", except(keep, got), except(got, keep))
	}
	if got := said("\x00", "verify", l.dir, "--deep"); strings.Contains(got, "dir.leftover") {
		t.Errorf("verify after clean: %s", got)
	}
	if allVersions(t, l.dir) != rows {
		t.Error("the rows of a version have changed")
	}
	must(t, "convert", "--catch-up", "in.jsonl", "-o", l.dir, "-q")
	for _, kind := range []string{"iceberg", "delta"} {
		if got := strings.TrimSpace(must(t, "count", l.dir, "--from", kind)); got != "40" {
			t.Errorf("%s has %s rows after the next catch-up", kind, got)
		}
	}
}

// TestLakeLeftoversAtAddress kills a catch-up at an address at each of its requests: after clean, the table has the
// files from before, unless a catalogue has its change; then what is left of the other one's is gone, too.
func TestLakeLeftoversAtAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		s3, bucket := emptyBucket(t)
		asS3(t, s3)
		table, out := filepath.Join(bucket, "t"), "s3://bucket/t"
		lake := func(rows ...int) {
			text, _ := numbered(rows[0], rows[1])
			if err := os.WriteFile("in.jsonl", []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		fresh := func() {
			if err := os.RemoveAll(table); err != nil {
				t.Fatal(err)
			}
			asS3(t, s3)
			lake(0, 30)
			must(t, "convert", "in.jsonl", "--to", to, "-o", out, "-q")
			lake(10, 40)
		}
		fresh()
		args := []string{"convert", "--catch-up", "in.jsonl", "-o", out, "-q"}
		all := (&killer{S3: s3}).run(t, 0, false, args...)
		left, none := 0, 0
		for at := int64(1); at <= all; at++ {
			if testing.Short() && at%5 > 0 || at%3 > 0 && at < all-12 {
				continue
			}
			fresh()
			before := namesIn(t, table)
			k := &killer{S3: s3}
			k.run(t, at, at%2 > 0, args...)
			killed := namesIn(t, table)
			k.run(t, 0, false, "clean", out)
			if got := namesIn(t, table); !maps.Equal(got, killed) {
				t.Fatalf("%s, %d: recent files were removed: %v", to, at, except(killed, got))
			}
			k.run(t, 0, false, "clean", out, "--older-than", "1ns")
			after := namesIn(t, table)
			if len(except(killed, after)) > 0 {
				left++
			}
			if !after["metadata/v2.metadata.json"] && !after["_delta_log/00000000000000000001.json"] {
				if none++; !maps.Equal(after, before) {
					t.Errorf("%s, %d: too many: %v, gone: %v", to, at, except(after, before), except(before, after))
				}
			}
			asS3(t, s3)
			for _, kind := range strings.Split(to, ",") {
				got := said("\x00", "verify", out, "--deep", "--from", kind)
				if strings.Contains(got, "leftover") || !strings.HasSuffix(got, "status: 0") {
					t.Errorf("%s, %d, %s: %s", to, at, kind, got)
				}
			}
		}
		t.Logf("%s: %d requests, %d runs left files, %d had changed nothing", to, all, left, none)
		if left == 0 || none == 0 {
			t.Errorf("%s: the test shows little", to)
		}
	}
}

// TestLakeLeftoversOfOthers: clean removes no file of another table whose directory lies in that of the table, or in
// which it lies, or that a symbolic link leads to, whatever the place is called.
func TestLakeLeftoversOfOthers(t *testing.T) {
	text, _ := numbered(0, 60)
	for _, inner := range []string{"t/name=1", "t/data", "t/data/name=1", "linked"} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("in.jsonl", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		must(t, "convert", "in.jsonl", "--to", "iceberg", "-o", "t", "-q")
		must(t, "convert", "in.jsonl", "--to", "delta", "-o", "other", "-q")
		if inner == "linked" {
			if err := os.Symlink(filepath.Join("..", "other"), "t/name=1"); err != nil {
				t.Fatal(err)
			}
		} else if err := errors.Join(os.CopyFS(inner, os.DirFS("other")), os.Symlink(inner, "link")); err != nil {
			t.Fatal(err)
		}
		home, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		before := namesIn(t, home)
		for _, from := range [][2]string{{".", "t"}, {".", inner}, {"t", "."}, {"t", "../" + inner}, {".", "link"}} {
			t.Chdir(filepath.Join(home, from[0]))
			said("\x00", "clean", from[1], "--older-than", "1ns")
			if gone := except(before, namesIn(t, home)); len(gone) > 0 {
				t.Errorf("%s: clean %s in %s removed %v", inner, from[1], from[0], gone)
			}
		}
	}
}

// TestLakeLeftoversWithinATable: a table of Delta lies over the data of one of Iceberg, and has not all of its files.
// Nothing is removed of it by any name, on a disk or at an address.
func TestLakeLeftoversWithinATable(t *testing.T) {
	l := newChangedLake(t)
	text, _ := numbered(0, 3)
	if err := os.WriteFile("few.jsonl", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "few.jsonl", "--to", "delta", "-o", "small", "-q")
	if err := os.CopyFS(filepath.Join(l.dir, "data"), os.DirFS("small")); err != nil {
		t.Fatal(err)
	}
	s3, bucket := emptyBucket(t)
	asS3(t, s3)
	if err := os.CopyFS(filepath.Join(bucket, "both"), os.DirFS(l.dir)); err != nil {
		t.Fatal(err)
	}
	home, _ := os.Getwd()
	before, there := namesIn(t, l.dir), namesIn(t, bucket)
	for _, from := range [][2]string{{".", l.dir + "/data"}, {l.dir, "data"}, {l.dir + "/data", "."},
		{".", filepath.Join(home, l.dir, "data")}, {".", "s3://bucket/both/data"}} {
		t.Chdir(filepath.Join(home, from[0]))
		got := said("\x00", "clean", from[1], "--older-than", "1ns")
		if gone := except(before, namesIn(t, filepath.Join(home, l.dir))); len(gone) > 0 {
			t.Errorf("clean %s in %s removed %v: %s", from[1], from[0], gone, got)
		}
		if gone := except(there, namesIn(t, bucket)); len(gone) > 0 {
			t.Errorf("clean %s removed %v: %s", from[1], gone, got)
		}
		if strings.HasSuffix(got, "status: 0") {
			t.Errorf("clean %s in %s: %s", from[1], from[0], got)
		}
	}
}

// TestLakeLeftoversAtALostVersion: if a file of the log tells of a version that is not there, nothing is removed.
func TestLakeLeftoversAtALostVersion(t *testing.T) {
	l := newChangedLake(t)
	const last = "_delta_log/00000000000000000002"
	if err := os.Rename(filepath.Join(l.dir, last+".json"), filepath.Join(l.dir, last+".crc")); err != nil {
		t.Fatal(err)
	}
	before := namesIn(t, l.dir)
	got := said("\x00", "clean", l.dir, "--older-than", "1ns")
	if strings.HasSuffix(got, "status: 0") || !maps.Equal(namesIn(t, l.dir), before) {
		t.Errorf("%s: removed %v", got, except(before, namesIn(t, l.dir)))
	}
}
