package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestEmptyLoadIsAMoment: the end of a load without rows is a moment as that of any other: --at shows the rows of then,
// --since what came after it. A number that no load had is still refused.
func TestEmptyLoadIsAMoment(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"s.txt": "id int\n", "0.jsonl": `{"id":1}` + "\n",
		"2.jsonl": `{"id":3}` + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"create T/t --schema s.txt", "load T/t 0.jsonl", "load T/t 2.jsonl --rows 5:",
		"load T/t 2.jsonl"} {
		if st, _, stderr := told(t, line); st != cli.StatusFine {
			t.Fatalf("%s: %s", line, stderr)
		}
	}
	for option, want := range map[string]string{"--at 0": "1", "--at 1": "1", "--at 2": "1 3", "--since 0": "3",
		"--since 1": "3", "--since 2": ""} {
		_, out, stderr := told(t, "cat T/t --columns id -f csv "+option)
		lines := strings.Fields(out)
		if len(lines) == 0 || strings.Join(lines[1:], " ") != want {
			t.Errorf("%s: got %q, %s, want the rows %q", option, out, stderr, want)
		}
	}
	if st, _, _ := told(t, "cat T/t --at 3"); st != cli.StatusUse {
		t.Errorf("--at 3: got status %d", st)
	}
}

// TestNamedColumns: create and set-property refuse properties whose columns the table does not have, and a sort of the
// whole table by no columns; both take those that it has. The message about a key of another type names the type once.
func TestNamedColumns(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"s.txt": "id int\nv string\nd double\n",
		"a.jsonl": `{"id":1,"v":"a","d":1.5}` + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if st, _, stderr := told(t, "create T/t --schema s.txt"); st != cli.StatusFine {
		t.Fatal(stderr)
	}
	for property, fine := range map[string]bool{
		"local_dictionary_include=zz": false, "local_dictionary_include=v": true,
		"local_dictionary_exclude=zz": false, "column_meta_cache=zz": false, "column_meta_cache=id": true,
		"range_column=zz": false, "range_column=id": true, "sort_scope=global_sort": false} {
		table := filepath.Join("T", strings.NewReplacer("=", "_").Replace(property))
		for _, line := range []string{"create " + table + " --schema s.txt --property " + property,
			"set-property T/t " + property} {
			for _, dry := range []string{" --dry-run", ""} {
				st, _, stderr := told(t, line+dry)
				if fine != (st == cli.StatusFine) || !fine && st != cli.StatusUse {
					t.Errorf("%s%s: got %d, %s, want success: %v", line, dry, st, stderr, fine)
				}
			}
		}
	}
	_, _, stderr := told(t, "merge T/t a.jsonl --key d")
	if strings.Count(stderr, "float64") != 1 || !strings.Contains(stderr, "d is of type") {
		t.Errorf("got %q", stderr)
	}
}
