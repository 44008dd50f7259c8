package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
)

// TestChangingVerbsReadFirst: a table that readers refuse is refused with the same message by every verb that would
// change it, and remains unchanged.
func TestChangingVerbsReadFirst(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte("id,name,v\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	verbs := []string{"delete TABLE --segment 1", "delete TABLE --where id=1",
		"update TABLE --set v=1 --where id=1", "compact TABLE --major", "clean TABLE",
		"merge-index TABLE", "load TABLE " + rows, "add-column TABLE more int", "drop-column TABLE v",
		"rename TABLE TABLE.other", "rename TABLE w --column v", "set-type TABLE id bigint",
		"set-property TABLE comment=x",
		"truncate TABLE --yes", "load TABLE --overwrite " + rows, "add-segment TABLE " + rows}
	for name, damage := range map[string]func(b []byte) []byte{
		"empty name": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"loadName":"1"`),
				[]byte(`"loadName":""`), 1)
		},
		"unknown status": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"Success"`), []byte(`"Succesz"`),
				1)
		},
		"a path as name": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"loadName":"1"`), []byte(`"loadName":"../1"`), 1)
		},
		"a flipped bit": func(b []byte) []byte { b[1] ^= 0x10; return b },
		"cut in half":   func(b []byte) []byte { return b[:len(b)/2] },
		"missing update status": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`tableupdatestatus-`), []byte(`tableupdatestatuz-`), 1)
		},
		"empty": func([]byte) []byte { return nil },
	} {
		for _, verb := range verbs {
			table := filepath.Join(t.TempDir(), "t")
			copyDir(t, "../../corpus/carbon/2.3.0/managed/managed_del", table)
			file := filepath.Join(table, "Metadata", "tablestatus")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bad := damage(bytes.Clone(b))
			if bytes.Equal(b, bad) {
				t.Fatalf("%s: the file did not change", name)
			}
			if err := os.WriteFile(file, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			before := contentOf(t, table)
			_, want := runLine(t, "cat "+table)
			args := strings.ReplaceAll(verb, "TABLE", table)
			st, got := runLine(t, args)
			if st != cli.StatusDamage || !strings.Contains(got, reasonIn(want)) {
				t.Errorf("%s, %s: got status %d, %q; want status %d and the message of cat, %q", name, verb, st, got,
					cli.StatusDamage, want)
			}
			if after := contentOf(t, table); after != before {
				t.Errorf("%s, %s: the table was changed:\n%s\n%s", name, verb, before, after)
			}
		}
	}
}

// runLine runs a command line and returns its status and the first line of standard error.
func runLine(t *testing.T, args string) (int, string) {
	t.Helper()
	var out, stderr bytes.Buffer
	st := run(context.Background(), strings.Fields(args), nil, &out, &stderr)
	first, _, _ := strings.Cut(stderr.String(), "\n")
	return st, first
}

// reasonIn returns the reason in the message of an error, without its location.
func reasonIn(s string) string {
	if _, reason, ok := strings.Cut(s, ": corrupt: "); ok {
		return reason
	}
	return s
}

// contentOf lists the files of a directory except locks, with the hash of each.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, ".lock") {
			return err
		}
		data, err := os.ReadFile(p)
		fmt.Fprintf(&b, "%s %x\n", strings.TrimPrefix(p, dir), sha256.Sum256(data))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDryRunsOfVerbs: every verb that changes a table has --dry-run, which reports what would be done and changes no
// files; the same command without it does change them.
func TestDryRunsOfVerbs(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte("id,name,v\n1001,a,2\n1002,b,3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(t.TempDir(), "columns.txt")
	if err := os.WriteFile(schema, []byte("id bigint\nname string\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	more := filepath.Join(t.TempDir(), "more")
	copyDir(t, "../../corpus/carbon/2.3.0/managed/managed_del/Fact/Part0/Segment_0", more)
	tried := map[string]bool{}
	for _, c := range []struct{ verb, want string }{
		{"create TABLE.new --schema " + schema, "a table of 2 columns would be made"},
		{"load TABLE " + rows + " --source-opt header=true", "2 rows would be added"},
		{"update TABLE --set v=1 --where id<5", "would be changed"},
		{"delete TABLE --where id<5", "would be deleted"},
		{"delete TABLE --segment 1", "segment 1 would be deleted"},
		{"compact TABLE --major", "would become segment"},
		{"merge-index TABLE", "would be merged"},
		{"add-column TABLE more int", "column more (int32) would be added"},
		{"drop-column TABLE v", "column v would be removed"},
		{"clean TABLE", "would be removed"},
		{"drop TABLE --yes", "would be removed"},
		{"rename TABLE TABLE.other", "would be renamed to"},
		{"rename TABLE w --column v", "column v would be renamed to w"},
		{"set-type TABLE id bigint", "column id would be of type int64"},
		{"set-property TABLE comment=rows", "comment=rows would be set"},
		{"load TABLE " + rows + " --source-opt header=true --overwrite", "2 rows would be added"},
		{"add-segment TABLE " + more, "would become segment"},
		{"truncate TABLE --yes", "would be removed"},
		{"merge TABLE " + rows + " --source-opt header=true --key id", "would be replaced, 2 rows added"},
		{"add-partition PARTS c=new", "c=new would be added"},
		{"drop-partition PARTS c=b", "would be removed"},
		{"convert --catch-up TABLE -o LAKE --where id<50", "45 rows, 0 would be added, 134 deleted"},
	} {
		dir := t.TempDir()
		table := filepath.Join(dir, "t")
		copyDir(t, "../../corpus/carbon/2.3.0/managed/managed_del", table)
		parts := filepath.Join(dir, "p")
		copyDir(t, "../../format/carbon/testdata/life/dropped", parts)
		lake := filepath.Join(dir, "l")
		if st, stderr := runLine(t, "convert "+table+" -o "+lake+" --to iceberg"); st != cli.StatusFine {
			t.Fatal(stderr)
		}
		before := contentOf(t, dir)
		line := strings.NewReplacer("TABLE", table, "PARTS", parts, "LAKE", lake).Replace(c.verb)
		st, stderr := runLine(t, line+" --dry-run")
		if st != cli.StatusFine || !strings.Contains(stderr, c.want) {
			t.Errorf("stoa %s --dry-run: got status %d, %q; want %q", c.verb, st, stderr, c.want)
		}
		if contentOf(t, dir) != before {
			t.Errorf("stoa %s --dry-run changed files", c.verb)
		}
		verb, _, _ := strings.Cut(c.verb, " ")
		// these tables have neither single indexes nor leftovers, and a new partition has no file
		idle := verb == "merge-index" || verb == "clean" || verb == "add-partition"
		if st, stderr := runLine(t, line); st != cli.StatusFine || !idle && contentOf(t, dir) == before {
			t.Errorf("stoa %s: got status %d, %q, and no change; want a change", c.verb, st, stderr)
		}
		tried[verb] = true
	}
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	rootCmd(a)
	for _, c := range a.Verbs {
		if c.Name() == "migrate" { // it writes other tables, as convert; the script migrate.txtar tries its dry run
			continue
		}
		if has := c.Flags().Lookup("dry-run") != nil; has != tried[c.Name()] {
			t.Errorf("stoa %s: has --dry-run: %v; tried: %v", c.Name(), has, tried[c.Name()])
		}
		if c.GroupID == about.GroupWrite && c.Name() != "convert" && !tried[c.Name()] {
			t.Errorf("stoa %s changes tables, but has no --dry-run", c.Name())
		}
	}
}
