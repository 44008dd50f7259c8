package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestQuestion: on a terminal the command asks before it replaces a file. Only yes is yes.
func TestQuestion(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.csv": "n\n1\n", "b.csv": "n\n2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		answer string
		status int
	}{{"", cli.StatusUse}, {"\n", cli.StatusUse}, {"n\n", cli.StatusUse}, {"yesterday\n", cli.StatusUse},
		{"y\n", cli.StatusFine}, {" YES \r\n", cli.StatusFine}, {"y", cli.StatusFine}} {
		if err := os.WriteFile("out.csv", []byte("n\n9\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		in := strings.NewReader(c.answer + "rest")
		if !strings.HasSuffix(c.answer, "\n") {
			in = strings.NewReader(c.answer)
		}
		var out, errs bytes.Buffer
		a := cli.NewApp(in, &out, &errs)
		a.Asks = true
		st := runArgs(a, context.Background(), []string{"cat", "a.csv", "-f", "csv", "-o", "out.csv"})
		got, err := os.ReadFile("out.csv")
		if err != nil {
			t.Fatal(err)
		}
		want := "n\n9\n"
		if c.status == cli.StatusFine {
			want = "n\n1\n"
		}
		if st != c.status || string(got) != want {
			t.Errorf("answer %q: got status %d, %q, want %d, %q", c.answer, st, got, c.status, want)
		}
		if !strings.HasPrefix(errs.String(), "stoa: out.csv exists; replace it? [y/N] ") {
			t.Errorf("answer %q: got %q, want the question", c.answer, &errs)
		}
		if strings.HasSuffix(c.answer, "\n") && in.Len() != len("rest") {
			t.Errorf("answer %q: %d bytes are left, want those after the line", c.answer, in.Len())
		}
	}
	var out, errs bytes.Buffer // standard input is data, and not an answer
	a := cli.NewApp(strings.NewReader("y\n"), &out, &errs)
	a.Asks = true
	st := runArgs(a, context.Background(), []string{"cat", "-", "--from", "csv", "-f", "csv", "-o", "out.csv"})
	if st != cli.StatusUse || !strings.Contains(errs.String(), "--force") {
		t.Errorf("data on standard input: got status %d, %q, want %d", st, &errs, cli.StatusUse)
	}
}

// TestPager: text for a terminal goes through a pager; the status is that of the verb, whatever the pager does.
func TestPager(t *testing.T) {
	t.Chdir(t.TempDir())
	var b strings.Builder
	b.WriteString("n\n")
	for i := range 50_000 { // more than a pipe holds
		fmt.Fprintln(&b, i)
	}
	if err := os.WriteFile("n.csv", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bad.parquet", []byte("PAR1 and nothing"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("PAGER", "sed s/^/P:/")
	show := func(pager, line string) (int, string, string) {
		if pager != "" {
			t.Setenv("STOA_PAGER", pager)
		} else {
			os.Unsetenv("STOA_PAGER")
		}
		var out, errs bytes.Buffer
		a := cli.NewApp(nil, &out, &errs)
		a.Tty, a.Pages, a.Width = true, true, 80
		st := runArgs(a, context.Background(), strings.Fields(line))
		return st, out.String(), errs.String()
	}
	for _, c := range []struct {
		pager, line string
		status      int
		paged       bool
	}{
		{"", "head n.csv", cli.StatusFine, true},
		{"", "cat n.csv -f table", cli.StatusFine, true},
		{"", "cat n.csv -f jsonl", cli.StatusFine, false},
		{"", "schema n.csv", cli.StatusFine, true},
		{"", "schema n.csv --no-pager", cli.StatusFine, false},
		{"", "verify bad.parquet", cli.StatusDamage, true},
		{"", "help cat", cli.StatusFine, true},
		{"", "cat --help", cli.StatusFine, true},
		{"", "", cli.StatusFine, true},
		{"", "count n.csv", cli.StatusFine, false},
		{"cat", "head n.csv", cli.StatusFine, false},
		{" ", "head n.csv", cli.StatusFine, false},
		{"no-such-pager -x", "head n.csv", cli.StatusFine, false},
		{"sed 's/^/P:/'; exit 3", "head n.csv", cli.StatusFine, true},
		{"sed s/^/P:/", "verify bad.parquet", cli.StatusDamage, true},
		{"sed s/^/P:/ | head -n 1", "cat n.csv", cli.StatusFine, true}, // as if the user left it
	} {
		st, out, errs := show(c.pager, c.line)
		if st != c.status || strings.HasPrefix(out, "P:") != c.paged || out == "" {
			t.Errorf("%q, stoa %s: got status %d, %.40q, %q, want %d, paged: %v", c.pager, c.line, st, out, errs,
				c.status, c.paged)
		}
		if strings.Contains(errs, "pipe") {
			t.Errorf("%q, stoa %s: got %q, want no word about the pipe", c.pager, c.line, errs)
		}
	}
	if st, _, errs := show("no-such-pager; exit 127", "head n.csv"); st != cli.StatusCannot ||
		!strings.Contains(errs, "cannot be run") {
		t.Errorf("a pager that fails: got status %d, %q, want %d", st, errs, cli.StatusCannot)
	}
}
