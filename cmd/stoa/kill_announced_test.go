//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// journalOf is the journal of a run that writes to a directory.
func journalOf(out string) string { return filepath.Join(out, ".stoa-convert.journal") }

// killedUnrecorded runs a command that writes to out, kills it when a table has appeared, and makes the journal what it
// was before the table was recorded as done: what is left is what a kill at that moment leaves.
func killedUnrecorded(t *testing.T, out, table string, appeared func() bool, args ...string) {
	t.Helper()
	was := filepath.Join(t.TempDir(), "was")
	if _, err := os.Stat(out); err == nil {
		if err := os.CopyFS(was, os.DirFS(out)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if killedInTime(t, out, table, appeared, args...) {
			return
		}
		err := os.RemoveAll(out) // and once more, from what was there
		if _, there := os.Stat(was); err == nil && there == nil {
			err = os.CopyFS(out, os.DirFS(was))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%v was always killed too late", args)
}

// killedInTime is one attempt of killedUnrecorded; false if the command has ended or has gone on to other tables.
func killedInTime(t *testing.T, out, table string, appeared func() bool, args ...string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for begun := time.Now(); !appeared() && time.Since(begun) < time.Minute; time.Sleep(50 * time.Microsecond) {
	}
	cmd.Process.Kill()
	if <-done == nil {
		return false
	}
	b, _ := os.ReadFile(journalOf(out))
	lines := bytes.SplitAfter(b, []byte("\n"))
	for i, l := range lines {
		if bytes.HasPrefix(l, []byte(`{"done":`)) && bytes.Contains(l, []byte("#"+table+`"`)) {
			if slices.ContainsFunc(lines[i+1:], func(l []byte) bool { return bytes.HasPrefix(l, []byte(`{"done":`)) }) {
				return false
			}
			rest := slices.Delete(lines, i, i+1) // the next table may have been announced, and have appeared, since
			if err := os.WriteFile(journalOf(out), bytes.Join(rest, nil), 0o666); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	return true
}

// someTables writes the tables of a place, of which that with the log is followed by others.
func someTables(t *testing.T, in string, cluster map[string][]byte) {
	t.Helper()
	writeFiles(t, in, cluster)
	for i := range 30 {
		writeFiles(t, filepath.Join(in, "z"), map[string][]byte{fmt.Sprintf("z%02d.csv", i): []byte("x\n1\n2\n")})
	}
}

// writtenOf returns the files of a table in an output, with their bytes.
func writtenOf(t *testing.T, out, table string) map[string][]byte {
	t.Helper()
	all := filesBelow(t, out)
	maps.DeleteFunc(all, func(name string, _ []byte) bool {
		return !strings.Contains(name, table) || strings.Contains(name, ".stoa-") ||
			strings.Contains(name, ".unfinished")
	})
	return all
}

// TestKilledWhenTheTableIsThere: a run that is killed when a table has appeared, and before it is recorded as done, has
// written it: if the sources are older then, it stays, byte for byte and alone, and the run says so; if they are as
// they were, it is done.
func TestKilledWhenTheTableIsThere(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	for i, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"rescue", "--file-size", "20kB"},
		{"rescue", "--to", "kudu-backup"}, {"rescue", "--to", "kudu-fs"}, {"convert", "--all", "--to", "cfile"}} {
		if testing.Short() && i%2 > 0 {
			continue
		}
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		someTables(t, in, cluster)
		if slices.Contains(verb, "kudu-backup") || slices.Contains(verb, "kudu-fs") { // CSV has no key
			os.RemoveAll(filepath.Join(in, "z"))
		}
		args := append(slices.Clone(verb), in, "-o", out)
		there := func() bool {
			all, _ := filepath.Glob(filepath.Join(out, "*d_wal*"))
			return slices.ContainsFunc(all, func(name string) bool {
				return !strings.Contains(name, ".unfinished") && !strings.Contains(name, ".stoa-")
			})
		}
		killedUnrecorded(t, out, "d_wal", there, args...)
		before := writtenOf(t, out, "d_wal")
		writeFiles(t, in, map[string][]byte{log: cluster[log][:walCommit]})
		status, text := printedBy(append(args, "--resume")...)
		if folded := strings.Join(strings.Fields(text), " "); status != 3 ||
			!strings.Contains(folded, "is kept (1,669 rows)") {
			t.Errorf("%v: status %d: %s", verb, status, text)
		}
		after := writtenOf(t, out, "d_wal")
		if slices.Contains(verb, "kudu-fs") { // all tables are one place now
			if status, text := printedBy("count", out+"#d_wal"); status != 0 || !strings.HasPrefix(text, "1669\n") {
				t.Errorf("%v: %d: %s", verb, status, text)
			}
		} else if len(before) == 0 || !same(before, after) {
			t.Errorf("%v: %d files, and then %d or others: %v, %v", verb, len(before), len(after),
				slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		}
		writeFiles(t, in, cluster)
		if status, text := printedBy(append(args, "--resume")...); status != 0 {
			t.Errorf("%v: the log is back: status %d: %s", verb, status, text)
		}
	}
}

// same reports whether two outputs have the same files; of a backup, which may have been moved, the same bytes.
func same(a, b map[string][]byte) bool {
	sums := func(m map[string][]byte) (out []string) {
		for _, x := range m {
			out = append(out, string(x))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(sums(a), sums(b))
}

// TestKilledWhenTheTableIsReplaced: a resumed run that is killed when it has replaced a table by a newer one, and
// before that is recorded, has replaced it: older sources do not bring the old one back, and are not written.
func TestKilledWhenTheTableIsReplaced(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	for _, verb := range [][]string{{"rescue"}, {"rescue", "--file-size", "20kB"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		someTables(t, in, cluster)
		writeFiles(t, in, map[string][]byte{log: cluster[log][:walBeforeUpdates]})
		args := append(slices.Clone(verb), in, "-o", out)
		printedBy(args...)
		old := writtenOf(t, out, "d_wal")
		writeFiles(t, in, map[string][]byte{log: cluster[log]})
		name, _ := filepath.Glob(filepath.Join(out, "d_wal*"))
		was, err := os.Stat(name[0])
		if err != nil {
			t.Fatal(err)
		}
		replaced := func() bool {
			now, err := os.Stat(name[0])
			return err == nil && !os.SameFile(was, now)
		}
		killedUnrecorded(t, out, "d_wal", replaced, append(args, "--resume")...)
		newer := writtenOf(t, out, "d_wal")
		writeFiles(t, in, map[string][]byte{log: cluster[log][:walUpdates]})
		status, text := printedBy(append(args, "--resume")...)
		if status != 3 || !same(newer, writtenOf(t, out, "d_wal")) || same(old, newer) {
			t.Errorf("%v: status %d: %s", verb, status, text)
		}
		writeFiles(t, in, cluster)
		if status, text := printedBy(append(args, "--resume")...); status != 0 ||
			countOf(t, filepath.Join(out, "d_wal*")) != 1669 {
			t.Errorf("%v: the log is back: status %d: %s", verb, status, text)
		}
	}
}
