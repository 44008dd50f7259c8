package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// hinted finds the commands in messages.
var hinted = regexp.MustCompile(`stoa (recover \S+ .*?-o OUT\.parquet)`)

// TestSchemaHints: where a tablet's superblock is gone, every message about it that names a command names one that
// works as printed: it writes the rows.
func TestSchemaHints(t *testing.T) {
	tmp := t.TempDir()
	dir, schema := filepath.Join(tmp, "k"), filepath.Join(tmp, "schema.json")
	copyDir(t, "../../format/kudu/testdata/history", dir)
	verb := func(args ...string) (int, string) {
		var b bytes.Buffer
		st := run(context.Background(), args, strings.NewReader(""), &b, &b)
		return st, strings.Join(strings.Fields(b.String()), " ")
	}
	var out bytes.Buffer
	if st := run(context.Background(), []string{"schema", "-f", "json", dir}, strings.NewReader(""), &out,
		&bytes.Buffer{}); st != 0 {
		t.Fatal(st)
	}
	if err := os.WriteFile(schema, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	superblocks, err := filepath.Glob(filepath.Join(dir, "wal", "tablet-meta", "*"))
	if err != nil || len(superblocks) != 1 {
		t.Fatal(superblocks, err)
	}
	if err := os.Remove(superblocks[0]); err != nil {
		t.Fatal(err)
	}
	lost := dir + "#" + filepath.Base(superblocks[0])
	tried := map[string]bool{}
	for _, args := range [][]string{
		{"cat", lost}, {"count", lost}, {"schema", lost}, {"convert", lost, "-o", filepath.Join(tmp, "a.csv")},
		{"recover", lost, "-o", filepath.Join(tmp, "b.csv")}, {"cat", dir}, {"cat", dir + "#other"},
		{"cat", dir + "#?"},
		{"recover", lost, "--schema", schema, "-o", filepath.Join(tmp, "c.csv")},
		{"recover", lost, "--schema", schema, "--force", "-o", filepath.Join(tmp, "c.csv")},
		{"rescue", dir, "--schema", schema, "-o", filepath.Join(tmp, "d")},
		{"convert", "--all", dir, "--schema", schema, "-o", filepath.Join(tmp, "e")},
		{"migrate", dir, "--schema", schema, "-o", filepath.Join(tmp, "f")},
		{"rescue", dir, "-o", filepath.Join(tmp, "g")},
		{"ls", dir}, {"verify", dir},
	} {
		st, text := verb(args...)
		if st == 0 {
			t.Errorf("stoa %v: status 0", args)
		}
		found := hinted.FindAllStringSubmatch(text, -1)
		if args[0] != "ls" && args[0] != "verify" && args[0] != "rescue" && len(found) == 0 {
			t.Errorf("stoa %v: no command: %s", args, text)
		}
		for _, m := range found {
			tried[m[1]] = true
		}
	}
	for line := range tried {
		saved := filepath.Join(tmp, "saved.parquet")
		line = strings.NewReplacer("FILE", schema, "OUT.parquet", saved).Replace(line)
		if st, text := verb(append(strings.Fields(line), "--force")...); st != cli.StatusDamage {
			t.Errorf("stoa %s: status %d: %s", line, st, text)
		}
		if st, text := verb("count", saved); st != 0 || text != "1619" {
			t.Errorf("stoa %s: %d, %s rows, want 1619", line, st, text)
		}
	}
	if len(tried) == 0 {
		t.Error("no command")
	}
}

// TestSchemaHintOfParquet: if --schema supplies the columns of a file without its footer, the advice says nothing of
// blocks and tables.
func TestSchemaHintOfParquet(t *testing.T) {
	whole := "../../format/parquet/testdata/order.v1.parquet"
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut-blocks.parquet") // a name decides nothing
	if err := os.WriteFile(cut, b[:4500], 0o666); err != nil {
		t.Fatal(err)
	}
	st, text := runOver(t, "recover -o OUT.parquet", cut)
	if want := "stoa recover " + cut + " --schema FILE -o OUT.parquet\n"; st == 0 || !strings.Contains(text, want) {
		t.Errorf("got status %d, %s\nwant %q", st, text, want)
	}
	if st, text := runOver(t, "recover --schema "+whole+" -o OUT.parquet", cut); st != cli.StatusDamage {
		t.Errorf("got status %d, %s", st, text)
	}
}
