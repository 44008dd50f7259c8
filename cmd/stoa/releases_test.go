package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/catalogue"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
)

// releaseSet is the MANIFEST.json of the fixtures of a release, which corpus/releases/next writes.
type releaseSet struct {
	Version string
	Stamp   time.Time
	Cases   []releaseCase
	Files   map[string]string
}

type releaseCase struct {
	Path, Made, Rows string
	Columns, Args    []string
	Unordered        bool
}

// TestReleases: what stoa wrote in any release is read by this build: the same rows, nothing found by verify, seals,
// splits and staged tasks in force, and what killed runs left is continued. The rows are those that the files were made
// from.
func TestReleases(t *testing.T) {
	sets, err := filepath.Glob("../../corpus/releases/v*")
	if err != nil || len(sets) == 0 {
		t.Fatalf("expected sets in corpus/releases, found %d: %v", len(sets), err)
	}
	for _, dir := range sets {
		t.Run(filepath.Base(dir), func(t *testing.T) { checkRelease(t, dir) })
	}
}

// oldestSet was made before sets had every option and what migrate leaves.
const oldestSet = "v0.1.0"

// TestNextRelease makes the set of the next release, and checks it as those that are kept.
func TestNextRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program that has stoa in it")
	}
	next, out := filepath.Join(t.TempDir(), "next"), t.TempDir()
	if b, err := exec.Command("go", "build", "-o", next, "../../corpus/releases/next").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if b, err := exec.Command(next, "-o", out, "v9.9.9").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if b, err := exec.Command(next, "-o", out, "v9.9.9").CombinedOutput(); err == nil {
		t.Errorf("a set was replaced: %s", b)
	}
	checkRelease(t, filepath.Join(out, "v9.9.9"))
}

// TestReleasesHaveEveryOption: each option of each writer was given for a file of the newest set.
func TestReleasesHaveEveryOption(t *testing.T) {
	sets, err := filepath.Glob("../../corpus/releases/v*")
	if err != nil || len(sets) == 0 {
		t.Fatalf("sets: %v, %v", sets, err)
	}
	slices.Sort(sets)
	var set releaseSet
	newest := sourceRows(t, filepath.Join(sets[len(sets)-1], "MANIFEST.json"))
	if err := json.Unmarshal([]byte(newest), &set); err != nil {
		t.Fatal(err)
	}
	var made strings.Builder
	for _, c := range set.Cases {
		made.WriteString(c.Made + "\n")
	}
	of := map[string][]format.OptionKey{}
	for _, f := range catalogue.Formats() {
		of[f.Name] = f.WriteKeys
	}
	elsewhere := []string{"since"} // of kudu-backup: it needs a Kudu table that was changed after a backup
	for name, options := range of {
		for _, o := range options {
			ofParquet := name != "parquet" &&
				slices.ContainsFunc(of["parquet"], func(p format.OptionKey) bool { return p == o })
			given := regexp.MustCompile("--opt '?" + regexp.QuoteMeta(o.Name) + "[.=]").MatchString(made.String())
			if !given && !ofParquet && !slices.Contains(elsewhere, o.Name) {
				t.Errorf("%s: no case of %s has the option %s", name, set.Version, o.Name)
			}
		}
	}
}

func checkRelease(t *testing.T, dir string) {
	var set releaseSet
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err == nil {
		err = json.Unmarshal(b, &set)
	}
	if err != nil || len(set.Cases) < 100 {
		t.Fatalf("MANIFEST.json has %d cases: %v", len(set.Cases), err)
	}
	checkFiles(t, dir, set.Files)
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(work, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(name, set.Stamp, set.Stamp) // git keeps no times; splits and journals hold them
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	for _, c := range set.Cases {
		checkCase(t, c)
	}
	checkSplits(t, work)
	checkSeal(t)
	checkStaged(t)
	checkKilled(t, set.Version == oldestSet)
	checkCatchUp(t, set.Version == oldestSet)
}

// checkFiles compares the files of a set with its list.
func checkFiles(t *testing.T, dir string, want map[string]string) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "MANIFEST.json" {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		found[filepath.ToSlash(rel)] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, sum := range found {
		if want[name] != sum {
			t.Errorf("%s: expected checksum %q, computed %s", name, want[name], sum)
		}
	}
	for name := range want {
		if found[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

// stoaOf runs a command line.
func stoaOf(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	if status != cli.StatusFine {
		t.Errorf("stoa %s: status %d\n%s%s", strings.Join(args, " "), status, stdout.String(), stderr.String())
	}
	return stdout.String(), status
}

// rowsOf parses JSON lines, and keeps columns of them if there are any.
func rowsOf(t *testing.T, text string, columns []string, unordered bool) (rows []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var row map[string]any
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for name := range row {
			if columns != nil && !slices.Contains(columns, name) {
				delete(row, name)
			}
		}
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(b))
	}
	if unordered {
		slices.Sort(rows)
	}
	return rows
}

func sameRows(t *testing.T, what string, want, found []string) {
	t.Helper()
	if reflect.DeepEqual(want, found) {
		return
	}
	for i := range min(len(want), len(found)) {
		if want[i] != found[i] {
			t.Errorf("%s: row %d of %d: expected\n%s\nfound\n%s", what, i, len(want), want[i], found[i])
			return
		}
	}
	t.Errorf("%s: expected %d rows, found %d", what, len(want), len(found))
}

func sourceRows(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		t.Fatalf("%s: %d bytes, %v", name, len(b), err)
	}
	return string(b)
}

func checkCase(t *testing.T, c releaseCase) {
	t.Helper()
	want := rowsOf(t, sourceRows(t, c.Rows), c.Columns, c.Unordered)
	out, status := stoaOf(t, append([]string{"cat", "-f", "jsonl", c.Path}, c.Args...)...)
	if status == cli.StatusFine {
		sameRows(t, c.Path+", made by "+c.Made, want, rowsOf(t, out, nil, c.Unordered))
	}
	stoaOf(t, append([]string{"verify", c.Path}, c.Args...)...)
}

// checkSplits reads all splits of a plan, whose files are elsewhere now.
func checkSplits(t *testing.T, work string) {
	plan := strings.ReplaceAll(sourceRows(t, "splits.jsonl"), "@ROOT@", filepath.ToSlash(work))
	var rows []string
	n := 0
	for line := range strings.Lines(plan) {
		if !strings.HasPrefix(line, `{"stoa_split"`) {
			continue
		}
		n++
		out, _ := stoaOf(t, "scan", "-f", "jsonl", "--split", strings.TrimSpace(line))
		rows = append(rows, rowsOf(t, out, nil, false)...)
	}
	if n < 3 {
		t.Errorf("expected some splits, found %d", n)
	}
	sameRows(t, "splits", rowsOf(t, sourceRows(t, "rows/flat.jsonl"), []string{"id", "s"}, false), rows)
}

// checkSeal compares the sealed files, and restores one of them from the parity.
func checkSeal(t *testing.T) {
	stoaOf(t, "verify", "--seal", "some.seal", "parquet", "arrow")
	whole := sourceRows(t, "parquet/zstd.parquet")
	changed := []byte(whole)
	changed[len(changed)/2] ^= 0x40
	if err := os.WriteFile("parquet/zstd.parquet", changed, 0o666); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	if run(context.Background(), []string{"verify", "--seal", "some.seal", "parquet", "arrow"}, nil, &out, &notes) !=
		cli.StatusDamage {
		t.Errorf("a changed byte was not noticed: %s%s", out.String(), notes.String())
	}
	stoaOf(t, "recover", "--seal", "some.seal", "parquet", "arrow", "-o", "restored")
	if sourceRows(t, "restored/parquet/zstd.parquet") != whole {
		t.Error("the restored file differs from the sealed one")
	}
	if err := os.WriteFile("parquet/zstd.parquet", []byte(whole), 0o666); err != nil {
		t.Fatal(err)
	}
}

// checkStaged commits what a job staged in that release.
func checkStaged(t *testing.T) {
	if _, status := stoaOf(t, "load", "waiting", "--commit", "three", "--tasks", "1"); status == cli.StatusFine {
		checkCase(t, releaseCase{Path: "waiting", Made: "load --commit", Rows: "rows/flat.jsonl"})
	}
}

// checkKilled continues runs that were killed in that release: what they had done is not done again, and the rest is as
// it should be.
func checkKilled(t *testing.T, oldest bool) {
	for _, c := range []struct {
		args  []string
		done  string // a file that is done already
		check func()
	}{
		{[]string{"convert", "--all", "cfile", "-o", "converted/killed", "--to", "arrow"},
			"converted/killed/int64-bitshuffle-lz4.arrow", func() {
				checkCase(t, releaseCase{Path: "converted/killed/int64-rle-none.arrow", Made: "convert --resume",
					Rows: "rows/flat.jsonl", Columns: []string{"id"}})
			}},
		{[]string{"convert", "--all", "redfile", "-o", "converted/pieces", "--to", "csv", "--file-size", "1KiB"}, "",
			func() {
				if parts, err := filepath.Glob("converted/pieces/bare/*.csv"); err != nil || len(parts) < 5 {
					t.Errorf("expected pieces, found %v, %v", parts, err)
				}
			}},
		{[]string{"rescue", "trevni", "-o", "converted/rescue-killed"}, "converted/rescue-killed/blocks-avro.parquet",
			func() {
				checkCase(t, releaseCase{Path: "converted/rescue-killed/snappy.parquet", Made: "rescue --resume",
					Rows: "rows/flat.jsonl"})
			}},
		{[]string{"migrate", "trevni", "-o", "migrated/killed", "--to", "delta"},
			"migrated/killed/blocks-avro/_delta_log", func() {
				checkCase(t, releaseCase{Path: "migrated/killed/snappy", Made: "migrate --resume",
					Rows: "rows/flat.jsonl"})
			}},
	} {
		if _, err := os.Stat(c.args[3]); err != nil && c.args[0] == "migrate" && oldest {
			continue // the oldest set has none
		}
		before, _ := os.Stat(c.done)
		stoaOf(t, append(c.args, "--resume")...)
		if after, err := os.Stat(c.done); c.done != "" && (err != nil || !os.SameFile(before, after)) {
			t.Errorf("stoa %s --resume wrote %s again: %v", strings.Join(c.args, " "), c.done, err)
		}
		c.check()
	}
}

// checkCatchUp brings a warehouse that a release made up to date with its store, to which this build adds a segment.
func checkCatchUp(t *testing.T, oldest bool) {
	if oldest {
		return
	}
	stoaOf(t, "load", "store#sales.flat", "parquet/default.parquet")
	stoaOf(t, "convert", "--catch-up", "store#sales.flat", "-o", "migrated/done/sales.flat")
	rows := sourceRows(t, "rows/changed.jsonl") + sourceRows(t, "rows/flat.jsonl")
	out, _ := stoaOf(t, "cat", "-f", "jsonl", "migrated/done/sales.flat")
	sameRows(t, "convert --catch-up", rowsOf(t, rows, nil, true), rowsOf(t, out, nil, true))
}
