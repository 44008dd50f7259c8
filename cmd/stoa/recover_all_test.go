//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestRecoverAll recovers a directory with an intact table, a table that was truncated so that it cannot be opened, and
// one of which nothing is left: recover --all and rescue write all readable rows, and the status shows that something
// is missing.
func TestRecoverAll(t *testing.T) {
	t.Chdir(t.TempDir())
	var text bytes.Buffer
	text.WriteString("id,half\n")
	for i := range 200_000 {
		fmt.Fprintf(&text, "%d,%d\n", i, i/2)
	}
	if err := os.Mkdir("in", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("in/sound.csv", text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in/sound.csv", "-o", "whole.arrow")
	b, err := os.ReadFile("whole.arrow")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"in/cut.arrow": b[:len(b)*6/10], "in/nothing.parquet": []byte("PAR1....")} {
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"recover", "--all", "in", "-o", "a"}, {"rescue", "in", "-o", "b"}} {
		var stdout, stderr bytes.Buffer
		st := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if st != cli.StatusDamage || !strings.Contains(stdout.String()+stderr.String(), "nothing.parquet") {
			t.Errorf("%v: got status %d, want %d, and nothing.parquet: %s%s", args, st, cli.StatusDamage, &stdout,
				&stderr)
		}
		out := args[len(args)-1]
		must(t, "diff", "in/sound.csv", out+"/sound.parquet")
		n, err := strconv.Atoi(strings.TrimSpace(must(t, "count", out+"/cut.parquet")))
		if err != nil || n < 65_536 || n >= 200_000 {
			t.Errorf("%v: got %d rows of a table that was cut, want 65,536 to 199,999", args, n)
		}
		must(t, "diff", "in/sound.csv", out+"/cut.parquet", "--rows", "0:"+strconv.Itoa(n))
		if _, err := os.Stat(out + "/nothing.parquet"); err == nil {
			t.Errorf("%v: got an output of a file of which nothing is left, want none", args)
		}
	}
}
