package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBackupsOfOthersStay: a file in the way of a backup, and a backup of the same table that no run has recorded, stay
// as they are, in a new run and in one that is resumed: they are named, nothing is added beside them, the other tables
// are written, rescue has its report, and the status is not 0. With --force a backup is added.
func TestBackupsOfOthersStay(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	writeFiles(t, in, cluster)
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all"}} {
		args := append(slices.Clone(verb), in, "--to", "kudu-backup", "-o")
		first := filepath.Join(dir, verb[0]+"-first")
		if status, text := printedBy(append(args, first)...); status != 0 {
			t.Fatalf("%v: %d: %s", args, status, text)
		}
		found, _ := filepath.Glob(filepath.Join(first, "*-d_wal"))
		if len(found) != 1 {
			t.Fatal(found)
		}
		name := filepath.Base(found[0])
		backup := filesBelow(t, found[0])
		for what, files := range map[string]map[string][]byte{"file": {name: []byte("mine\n")}, "backup": nil} {
			out := filepath.Join(dir, verb[0]+"-"+what)
			for file, b := range backup {
				if what == "backup" {
					writeFiles(t, filepath.Join(out, name), map[string][]byte{file: b})
				}
			}
			writeFiles(t, out, files)
			before := filesBelow(t, out)
			for _, flags := range [][]string{nil, {"--resume"}} {
				status, text := printedBy(append(append(slices.Clone(args), out), flags...)...)
				after := filesBelow(t, out)
				maps.DeleteFunc(after, func(name string, _ []byte) bool { return strings.Contains(name, "-d_raw/") })
				if status == 0 || !maps.EqualFunc(before, after, slices.Equal) ||
					!strings.Contains(strings.Join(strings.Fields(text), " "), filepath.Join(out, name)) {
					t.Errorf("%v %v, %s: status %d, files %v: %s", args, flags, what, status,
						slices.Sorted(maps.Keys(after)), text)
				}
				if raw, _ := filepath.Glob(filepath.Join(out, "*-d_raw", "*")); len(raw) != 1 {
					t.Errorf("%v %v, %s: the other table: %v: %s", args, flags, what, raw, text)
				}
				if _, err := os.Stat(filepath.Join(out, "report.json")); err != nil && verb[0] == "rescue" {
					t.Errorf("%v %v, %s: %v", args, flags, what, err)
				}
			}
			if status, text := printedBy(append(append(slices.Clone(args), out), "--resume", "--force")...); what ==
				"backup" && status != 0 {
				t.Errorf("%v --force: status %d: %s", args, status, text)
			}
		}
	}
}

// TestBackupsOfTwoSources: two sources that are the same table of Kudu do not become two backups of it, of which the
// newer one would hide the other: one is written, the other one is named with the first, and the status is not 0, in a
// run that is resumed, too. With --force both are written.
func TestBackupsOfTwoSources(t *testing.T) {
	cluster, rows := fewTables(t, "d_raw")
	dir := t.TempDir()
	in, both := filepath.Join(dir, "in"), filepath.Join(dir, "both")
	writeFiles(t, in, cluster)
	if err := os.Mkdir(both, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--to", "arrow", "-o", filepath.Join(both, "whole.arrow")},
		{"--to", "arrow", "-o", filepath.Join(both, "some.arrow"), "--limit", "10"}} {
		if status, text := printedBy(append([]string{"convert", in + "#d_raw"}, flags...)...); status != 0 {
			t.Fatal(text)
		}
	}
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"recover", "--all"}} {
		out := filepath.Join(dir, verb[0])
		args := append(slices.Clone(verb), both, "--to", "kudu-backup", "-o", out)
		for _, flags := range [][]string{nil, {"--resume"}, {"--resume", "--force"}} {
			status, text := printedBy(append(slices.Clone(args), flags...)...)
			text = strings.Join(strings.Fields(text), " ")
			all, _ := filepath.Glob(filepath.Join(out, "*-d_raw", "*"))
			if forced := len(flags) == 2; forced != (status == 0) || forced != (len(all) == 2) || len(all) == 0 ||
				forced == (strings.Contains(text, "is a backup of the same table, as") &&
					strings.Contains(text, "whole.arrow") && strings.Contains(text, "some.arrow")) {
				t.Errorf("%v %v: status %d, %v, rows %d: %s", verb, flags, status, all, rows["d_raw"], text)
			}
		}
	}
}
