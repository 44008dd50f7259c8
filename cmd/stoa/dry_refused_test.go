package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestDryRefused: a dry run ends with the status of the verb, and changes nothing, whether the table has what the verb
// needs or lacks it, and whether the rows and values are such as it can hold or not.
func TestDryRefused(t *testing.T) {
	base := t.TempDir()
	for name, text := range map[string]string{"s.txt": "id int\nv string\nf float\np string\n",
		"i.txt": "id int\nv string\n", "i.jsonl": `{"id":1,"v":"a"}` + "\n",
		"a.jsonl":    `{"id":1,"v":"a","f":1.5,"p":"x"}` + "\n",
		"long.jsonl": `{"id":1,"v":"a","f":1.5,"p":"` + strings.Repeat("y", 300) + `"}` + "\n",
		"fits.jsonl": `{"id":1,"v":"a","f":1.5,"p":"` + strings.Repeat("y", 253) + `"}` + "\n"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(base)
	for _, line := range []string{"create T/t --schema s.txt", "load T/t a.jsonl",
		"create T/p --schema s.txt --partition p", "load T/p a.jsonl", "create T/i --schema i.txt", "load T/i i.jsonl",
		"create T/d --schema i.txt " +
			"--property dictionary_include=v", "load T/d i.jsonl"} {
		if st, _, stderr := told(t, line); st != cli.StatusFine {
			t.Fatalf("%s: %s", line, stderr)
		}
	}
	for line, fine := range map[string]bool{
		"load T/t a.jsonl --opt version=2": false, "load T/i i.jsonl --opt version=2": true,
		"load T/p a.jsonl --opt version=2":                                   false,
		"load T/t a.jsonl --bad-records bad.txt":                             false,
		"load T/t a.jsonl --bad-records bad":                                 false,
		"load T/t a.jsonl --bad-records bad.csv":                             true,
		"load T/t a.jsonl --dictionary two-pass":                             false,
		"load T/d i.jsonl --dictionary two-pass":                             true,
		"load T/p a.jsonl --partition p=zz":                                  false,
		"load T/p a.jsonl --partition p=zz --bad-action ignore":              false,
		"load T/p a.jsonl --partition p=zz --bad-action force":               false,
		"load T/p a.jsonl --partition p=x":                                   true,
		"load T/p a.jsonl --overwrite --partition p=zz":                      false,
		"load T/p a.jsonl --overwrite --partition p=x":                       true,
		"load T/p long.jsonl":                                                false,
		"load T/p fits.jsonl":                                                true,
		"load T/p long.jsonl --bad-action ignore":                            true,
		"merge T/p long.jsonl --key id":                                      false,
		"merge T/p fits.jsonl --key id":                                      true,
		"add-partition T/p p=" + strings.Repeat("y", 254):                    false,
		"add-partition T/p p=" + strings.Repeat("y", 253):                    true,
		"update T/t --set v=@NU#LL$! --where id=1":                           false,
		"update T/t --set v=@NU#LL$! --where id=2":                           true,
		"update T/t --set v=" + strings.Repeat("z", 40000) + " --where id=1": false,
		"update T/t --set v=" + strings.Repeat("z", 30000) + " --where id=1": true,
		"update T/p --set p=" + strings.Repeat("z", 254) + " --where id=1":   false,
		"update T/p --set p=" + strings.Repeat("z", 253) + " --where id=1":   true,
		"rename T/t T/t/sub":                                                 false,
		"rename T/t T/t/a/b":                                                 false,
		"rename T/t T/tt":                                                    true,
		"rename T/t U/a/t":                                                   true,
	} {
		dir := t.TempDir()
		copyDir(t, base, dir)
		t.Chdir(dir)
		before := contentOf(t, dir)
		dry, _, said := told(t, line+" --dry-run")
		if contentOf(t, dir) != before {
			t.Errorf("%.60s: a dry run changed files", line)
		}
		st, _, stderr := told(t, line)
		if dry != st || fine != (st == cli.StatusFine) {
			t.Errorf("%.60s: a dry run ended with %d, %.200q, the verb with %d, %.200q, want success: %v", line, dry,
				said, st, stderr, fine)
		}
		rows := strings.HasPrefix(line, "load") || strings.HasPrefix(line, "merge") // these leave an empty tablestatus
		if !fine && !rows && contentOf(t, dir) != before {
			t.Errorf("%.60s: it was refused, and files are changed", line)
		}
	}
}

// TestRenameElsewhere: a rename to another file system is refused, also by the dry run, and leaves no directory there.
func TestRenameElsewhere(t *testing.T) {
	const shared = "/dev/shm"
	dir := t.TempDir()
	if strings.HasPrefix(dir, shared) {
		var err error
		if dir, err = os.MkdirTemp("/var/tmp", "stoa-rename-*"); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	there, err := os.MkdirTemp(shared, "stoa-rename-*")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(there) })
	if os.Rename(there, filepath.Join(dir, "moved")) == nil {
		t.Cleanup(func() { os.RemoveAll(filepath.Join(dir, "moved")) })
		t.Skip("there is one file system only")
	}
	table := filepath.Join(dir, "t")
	copyDir(t, "../../corpus/carbon/2.3.0/managed/managed_del", table)
	for _, dry := range []string{" --dry-run", ""} {
		st, _, stderr := told(t, "rename "+table+" "+filepath.Join(there, "a", "t")+dry)
		if st != cli.StatusUse || !strings.Contains(stderr, "another file system") {
			t.Errorf("%s: got %d, %q", dry, st, stderr)
		}
	}
	if list, err := os.ReadDir(there); err != nil || len(list) > 0 {
		t.Errorf("got %v, %v, want an empty directory", list, err)
	}
}
