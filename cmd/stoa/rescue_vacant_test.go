package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsThereStays: a file, or a directory, under the name of a table that no run has recorded stays as it is, in a
// new run and in one that is resumed, with any verb and format; it is named, the other tables are written, and the
// status is not 0. With --force it is replaced.
func TestWhatIsThereStays(t *testing.T) {
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all"},
		{"migrate", "--to", "parquet"}, {"convert", "--all", "--to", "csv"}, {"rescue", "--file-size", "1kB"},
		{"rescue", "--to", "cfile"}, {"convert", "--all", "--to", "carbon"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, map[string][]byte{"a/one.csv": []byte("x\n1\n2\n"), "b/two.csv": []byte("x\n3\n")})
		args := append(slices.Clone(verb), in, "-o", filepath.Join(dir, "names"))
		if status, text := printedBy(args...); status != 0 {
			t.Fatalf("%v: %d: %s", verb, status, text)
		}
		found, _ := filepath.Glob(filepath.Join(dir, "names", "one*"))
		if len(found) != 1 {
			t.Fatal(found)
		}
		name := filepath.Base(found[0])
		mine := []byte("what somebody else has written\n")
		writeFiles(t, out, map[string][]byte{name: mine})
		args[len(args)-1] = out
		for _, flags := range [][]string{nil, {"--resume"}} {
			status, text := printedBy(append(slices.Clone(args), flags...)...)
			b, err := os.ReadFile(filepath.Join(out, name))
			folded := strings.Join(strings.Fields(text), " ")
			if status == 0 || err != nil || !bytes.Equal(b, mine) ||
				!strings.Contains(folded, filepath.Join(out, name)+" is there already") {
				t.Errorf("%v %v: status %d, %v: %s", verb, flags, status, err, text)
			}
			if verb[0] == "migrate" { // it writes nothing then
				break
			}
			if two, _ := filepath.Glob(filepath.Join(out, "two*")); len(two) != 1 {
				t.Errorf("%v %v: the other table is not there: %s", verb, flags, text)
			}
		}
		if verb[0] == "migrate" {
			continue
		}
		if status, text := printedBy(append(args, "--resume", "--force")...); status != 0 ||
			countOf(t, filepath.Join(out, "one*")) != 2 {
			t.Errorf("%v: with --force: status %d: %s", verb, status, text)
		}
	}
}

// TestNothingKnownOfWhatIsThere: a resumed run that does not know how far what is there was read, since the record of
// the run that wrote it is gone, or is one of an earlier release, does not replace it by what it reads now if the
// source has changed, unless with --force; and so it is if the source has not changed, but for the record.
func TestNothingKnownOfWhatIsThere(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"rescue", "--file-size", "20kB"}} {
		for _, gone := range []bool{true, false} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			writeFiles(t, in, cluster)
			args := append(slices.Clone(verb), in, "-o", out)
			if status, text := printedBy(args...); status != 0 {
				t.Fatalf("%v: %d: %s", verb, status, text)
			}
			before := filesBelow(t, out)
			state := filepath.Join(out, ".stoa-convert.json")
			if gone {
				os.Remove(state)
			} else {
				withoutMoments(t, state)
			}
			for _, size := range []int{walBeforeUpdates, len(cluster[log])} { // as many rows in each
				writeFiles(t, in, map[string][]byte{log: cluster[log][:size]})
				status, text := printedBy(append(args, "--resume")...)
				text = strings.Join(strings.Fields(text), " ")
				if status == 0 || !strings.Contains(text, "--force") || !strings.Contains(text, "another directory") ||
					!strings.Contains(text, filepath.Join(out, "d_wal")) {
					t.Errorf("%v, gone %t, %d bytes: status %d: %s", verb, gone, size, status, text)
				}
				if !same(before, filesBelow(t, out)) {
					t.Errorf("%v, gone %t, %d bytes: the files are others", verb, gone, size)
				}
			}
			if status, text := printedBy(append(args, "--resume", "--force")...); status != 0 ||
				countOf(t, filepath.Join(out, "d_wal*")) != 1669 {
				t.Errorf("%v, gone %t, with --force: status %d: %s", verb, gone, status, text)
			}
		}
	}
}

// withoutMoments makes a state one that an earlier release has left, which did not record how far tables were read.
func withoutMoments(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	var doc map[string]any
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range doc["done"].([]any) {
		delete(d.(map[string]any), "reached")
	}
	if b, err = json.Marshal(doc); err == nil {
		err = os.WriteFile(name, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeletedRowsAreNotLost: a table from which rows were deleted since has fewer rows, and is written anew by a
// resumed rescue, as its tablets are newer; without what was deleted it is what the log says. Older again, it is kept.
func TestDeletedRowsAreNotLost(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal")
	log := logOfWAL(t, cluster)
	maps.DeleteFunc(cluster, func(name string, _ []byte) bool { // the log alone, which has all changes
		return strings.HasPrefix(name, "tserver/data/data/") && !strings.HasSuffix(name, "instance") ||
			strings.HasPrefix(name, "tserver/wal/tablet-meta/")
	})
	for _, flags := range [][]string{nil, {"--file-size", "20kB"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		write := func(size int) {
			writeFiles(t, in, cluster)
			writeFiles(t, in, map[string][]byte{log: cluster[log][:size]})
		}
		rows := func(r rescued) int64 {
			if len(r.Tables) != 1 || r.Tables[0].Rows == nil {
				return -1
			}
			return *r.Tables[0].Rows
		}
		write(walBeforeDeletes)
		first, _ := rescueInto(t, []string{in}, out, flags...)
		write(walDeletes)
		alone, _ := rescueInto(t, []string{in}, filepath.Join(dir, "alone"), flags...)
		second, _ := rescueInto(t, []string{in}, out, append(flags, "--resume")...)
		if rows(first) <= rows(alone) || rows(second) != rows(alone) {
			t.Errorf("%v: %d rows, then %d, and alone %d", flags, rows(first), rows(second), rows(alone))
		}
		before := filesBelow(t, out)
		write(walBeforeDeletes)
		if third, status := rescueInto(t, []string{in}, out, append(flags, "--resume")...); status != 3 ||
			rows(third) != rows(second) || !same(before, filesBelow(t, out)) {
			t.Errorf("%v: older again: status %d, %d rows", flags, status, rows(third))
		}
	}
}

// TestReportOfRepairedPlaces: what was damaged when an earlier run read a table that is kept, and is not any more, is
// not in the report, if it is not about that table.
func TestReportOfRepairedPlaces(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	const other = "tserver/wal/tablet-meta/0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	writeFiles(t, in, cluster)
	writeFiles(t, in, map[string][]byte{other: []byte("kuducntr")}) // a superblock
	broken := func(r rescued) bool {
		b, _ := json.Marshal(r)
		return strings.Contains(string(b), "kudu.superblock")
	}
	if first, _ := rescueOf(t, out, in); !broken(first) {
		t.Fatal("a damaged superblock is not told")
	}
	os.Remove(filepath.Join(in, other))
	writeFiles(t, in, map[string][]byte{log: cluster[log][:walOperation]})
	second, status := rescueInto(t, []string{in}, out, "--resume")
	text, _ := os.ReadFile(filepath.Join(out, "report.txt"))
	if status != 3 || broken(second) || bytes.Contains(text, []byte("kudu.superblock")) ||
		!strings.Contains(string(text), "is kept") {
		t.Errorf("status %d: %s", status, text)
	}
}

// TestReportsReplaceNoFiles: a report replaces a report, and no other file, unless with --force.
func TestReportsReplaceNoFiles(t *testing.T) {
	for _, verb := range []string{"rescue", "migrate"} {
		for _, name := range []string{"report.json", "report.html", "report.txt"} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			mine := []byte("{}\n")
			writeFiles(t, dir, map[string][]byte{"in/one.csv": []byte("x\n1\n"), "out/" + name: mine})
			status, text := printedBy(verb, in, "-o", out)
			b, err := os.ReadFile(filepath.Join(out, name))
			if status != 2 || err != nil || !bytes.Equal(b, mine) || !strings.Contains(text, filepath.Join(out, name)) {
				t.Errorf("%s, %s: status %d, %v: %s", verb, name, status, err, text)
			}
			if verb == "rescue" {
				if status, text := printedBy(verb, in, "-o", out, "--force"); status != 0 {
					t.Errorf("%s: with --force: status %d: %s", name, status, text)
				}
			}
			os.Remove(filepath.Join(out, name))
			if status, text := printedBy(verb, in, "-o", filepath.Join(dir, "own")); status != 0 {
				t.Errorf("%s: status %d: %s", verb, status, text)
			}
			os.Remove(filepath.Join(dir, "own", ".stoa-convert.json"))
			os.RemoveAll(filepath.Join(dir, "own", "one"))
			os.RemoveAll(filepath.Join(dir, "own", "one.parquet"))
			if status, text := printedBy(verb, in, "-o", filepath.Join(dir, "own")); status != 0 {
				t.Errorf("%s into its own reports: status %d: %s", verb, status, text)
			}
		}
	}
}
