package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"

	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// TestTornOutput: if damage ends an Arrow stream on standard output, other readers also fail, after the rows so far.
// stoa reads such a stream, and one without its end marker, with status 3, in every verb.
func TestTornOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	var rows strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&rows, "{\"n\":%d}\n", i)
	}
	if err := os.WriteFile("n.jsonl", []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	stoa := func(want int, args ...string) []byte {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run(context.Background(), args, nil, &stdout, &stderr); got != want {
			t.Errorf("stoa %s: got status %d, want %d: %s", strings.Join(args, " "), got, want, &stderr)
		}
		return stdout.Bytes()
	}
	stoa(cli.StatusFine, "convert", "n.jsonl", "-o", "n.cfile")
	intact := stoa(cli.StatusFine, "cat", "n.cfile", "-f", "arrow")
	if n, err := judge(intact); n != 200_000 || err != nil {
		t.Fatal(n, err)
	}
	damaged, err := os.ReadFile("n.cfile")
	if err != nil {
		t.Fatal(err)
	}
	damaged[len(damaged)*9/10] ^= 1
	if err := os.WriteFile("n.cfile", damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	split := firstSplit(stoa(cli.StatusFine, "plan", "n.cfile"))
	for status, args := range map[int][]string{cli.StatusDamage: {"cat", "n.cfile", "-f", "arrow"},
		cli.StatusCannot: {"scan", "--split", split}} {
		out := stoa(status, args...)
		if n, err := judge(out); err == nil || n == 0 {
			t.Errorf("%s: arrow-go got %d rows, %v, want some and an error", args[0], n, err)
		}
		if err := os.WriteFile("torn.arrow", out, 0o644); err != nil {
			t.Fatal(err)
		}
		stoa(cli.StatusDamage, "count", "torn.arrow")
	}
	if err := os.WriteFile("cut.arrow", intact[:len(intact)-8], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"count", "cat -o c.csv --force", "convert -o c.parquet --force", "verify", "scan"} {
		args := strings.Fields(verb)
		args = append(args, "cut.arrow")
		if verb == "scan" {
			args = []string{"scan", "--split", firstSplit(stoa(cli.StatusFine, "plan", "cut.arrow"))}
		}
		stoa(cli.StatusDamage, args...)
		if verb != "scan" {
			stoa(cli.StatusFine, append(args, "--partial")...)
		}
	}
}

// firstSplit returns the second line of a plan.
func firstSplit(plan []byte) string { return strings.Split(string(plan), "\n")[1] }

// judge returns the number of rows that arrow-go's reader finds in a stream, and its error.
func judge(stream []byte) (rows int64, err error) {
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	return rows, r.Err()
}
