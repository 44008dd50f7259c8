package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"stoa/cmd/stoa/internal/cli"
	"strings"
	"testing"
)

// TestChangingVerbsReadFirst: what readers refuse is refused, in the same words, by every verb that would
// change it, and stays as it is.
func TestChangingVerbsReadFirst(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte("id,name,v\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	verbs := []string{"delete TABLE --segment 1", "delete TABLE --where id=1",
		"update TABLE --set v=1 --where id=1", "compact TABLE --major", "clean TABLE",
		"merge-index TABLE", "load TABLE " + rows, "add-column TABLE more int", "drop-column TABLE v"}
	for name, damage := range map[string]func(b []byte) []byte{
		"no name": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"loadName":"1"`),
				[]byte(`"loadName":""`), 1)
		},
		"unknown status": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"Success"`), []byte(`"Succesz"`),
				1)
		},
		"a path": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"loadName":"1"`), []byte(`"loadName":"../1"`), 1)
		},
		"a flipped bit": func(b []byte) []byte { b[1] ^= 0x10; return b },
		"its half":      func(b []byte) []byte { return b[:len(b)/2] },
		"updates gone": func(b []byte) []byte {
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
				t.Fatalf("%s: no damage", name)
			}
			if err := os.WriteFile(file, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			before := contentOf(t, table)
			_, said := told(t, "cat "+table)
			args := strings.ReplaceAll(verb, "TABLE", table)
			st, says := told(t, args)
			if word, _, _ := strings.Cut(verb, " "); st != cli.StatusDamage || !strings.Contains(says, reasonIn(said)) {
				t.Errorf("%s, %s: status %d, %q; cat says %q", name, word, st, says, said)
			}
			if after := contentOf(t, table); after != before {
				t.Errorf("%s, %s: the table was changed:\n%s\n%s", name, verb, before, after)
			}
		}
	}
}

// told runs the command and gives its status and the first line of standard error.
func told(t *testing.T, args string) (int, string) {
	t.Helper()
	var out, stderr bytes.Buffer
	st := run(context.Background(), strings.Fields(args), nil, &out, &stderr)
	first, _, _ := strings.Cut(stderr.String(), "\n")
	return st, first
}

// reasonIn is what an error line says behind the place.
func reasonIn(s string) string {
	if _, reason, ok := strings.Cut(s, ": corrupt: "); ok {
		return reason
	}
	return s
}

// contentOf are the files of a directory and what is in them, but for locks.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, ".lock") {
			return err
		}
		data, err := os.ReadFile(p)
		b.WriteString(strings.TrimPrefix(p, dir))
		b.WriteString(" ")
		b.WriteString(fmt.Sprintf("%x", sha256.Sum256(data)))
		b.WriteString("\n")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
