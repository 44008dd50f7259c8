package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stoa"
	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/region"
	"stoa/vec"
)

// try runs the command in an empty directory with the files of a map.
func try(t *testing.T, files map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	status = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// TestInterruptLeavesNothing: a conversion that is cancelled while it waits for more standard input leaves no files.
func TestInterruptLeavesNothing(t *testing.T) {
	for _, out := range []string{"o.csv", "o.parquet", "o.arrow", "o.json", "set/"} {
		for _, verb := range []string{"convert", "cat"} {
			args := []string{verb, "-", "--from", "csv", "-o", out}
			if out == "set/" {
				args = append(args, "--to", "cfile")
			}
			if verb == "cat" && out == "set/" || verb == "convert" && out == "o.json" {
				continue // the verb does not write such outputs
			}
			t.Run(verb+" "+out, func(t *testing.T) {
				t.Chdir(t.TempDir())
				ctx, cancel := context.WithCancel(context.Background())
				r, w := io.Pipe()
				begun := make(chan int, 1)
				go func() {
					b := bytes.NewBufferString("a,b\n")
					for i := range 70_000 { // more than one batch
						fmt.Fprintf(b, "%d,x%d\n", i, i)
					}
					b.WriteTo(w)
					begun <- len(everything(t))
					cancel() // the pipe stays open, but nothing more is written
				}()
				var stdout, stderr bytes.Buffer
				if got := run(ctx, args, r, &stdout, &stderr); got != cli.StatusStopped {
					t.Errorf("got status %d, want %d", got, cli.StatusStopped)
				}
				if <-begun == 0 {
					t.Error("no output had been started")
				}
				if stderr.String() != "stoa: interrupted\n" {
					t.Errorf("standard error: got %q, want interrupted", &stderr)
				}
				if left := everything(t); len(left) > 0 {
					t.Errorf("got %q left, want nothing", left)
				}
			})
		}
	}
}

func everything(t *testing.T) []string {
	var out []string
	err := filepath.WalkDir(".", func(p string, d os.DirEntry, err error) error {
		if p != "." {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// full is a writer that fails with err after n bytes.
type full struct {
	n   int
	err error
}

func (f *full) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, f.err
	}
	return len(b), nil
}

// TestClosedPipe: `stoa cat … | head` ends without a message; a full disk is reported.
func TestClosedPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	var b strings.Builder
	b.WriteString("n\n")
	for i := range 30_000 { // more than a buffer
		fmt.Fprintln(&b, i)
	}
	if err := os.WriteFile("n.csv", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, form := range output.RowForms {
		for _, c := range []struct {
			err    error
			status int
			stderr string
		}{
			{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, cli.StatusFine, ""},
			{&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, cli.StatusCannot,
				"no space left on device"},
		} {
			var stderr bytes.Buffer
			got := run(context.Background(), []string{"cat", "n.csv", "-f", form}, nil, &full{100, c.err}, &stderr)
			if got != c.status || c.stderr == "" && stderr.Len() > 0 || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("%s, %v: got status %d, %q, want %d, %q", form, c.err, got, &stderr, c.status, c.stderr)
			}
		}
	}
}

// TestClosedPipeKeepsStatus: if the reader of the output closes the pipe, at once or later, damage still sets the
// status.
func TestClosedPipeKeepsStatus(t *testing.T) {
	b, err := os.ReadFile("../../corpus/kudu/1.18.1/autoinc/v.ck.cfile")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("good.cfile", b, 0o644); err != nil {
		t.Fatal(err)
	}
	b[100] ^= 0x10
	if err := os.WriteFile("bad.cfile", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("cut.cfile", b[:1000], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"verify bad.cfile", "verify good.cfile bad.cfile", "verify bad.cfile -f json",
		"verify bad.cfile -f jsonl", "verify -q bad.cfile", "verify .",
		"cat bad.cfile", "cat --damaged skip-rows bad.cfile", "cat --damaged null-cells bad.cfile -f csv",
		"ls cut.cfile good.cfile", "ls cut.cfile", "ls .",
		"diff good.cfile bad.cfile --damaged skip-rows", "stats bad.cfile", "recover bad.cfile -o - --to csv",
		"head cut.cfile", "count cut.cfile good.cfile"} {
		for _, n := range []int{0, 1, 100, 1 << 20} {
			var stderr bytes.Buffer
			got := run(context.Background(), strings.Fields(args), nil,
				&full{n, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}, &stderr)
			if got != cli.StatusDamage {
				t.Errorf("stoa %s, closed after %d bytes: got status %d, want %d: %s", args, n, got,
					cli.StatusDamage, &stderr)
			}
			if strings.Contains(stderr.String(), "pipe") {
				t.Errorf("stoa %s: got %s, want no message about the pipe", args, &stderr)
			}
		}
	}
}

// TestTerminal: output for terminals is fitted to the width, binary forms are refused, and colour follows NO_COLOR and
// TERM.
func TestTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "id,name,text\n1,," + strings.Repeat("long ", 20) + "\n22,漢字漢字漢字漢字,b\n"
	if err := os.WriteFile("s.csv", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	show := func(width int, args ...string) (string, int, string) {
		var out, errs bytes.Buffer
		a := cli.NewApp(nil, &out, &errs)
		a.Tty, a.Width = true, width
		st := runArgs(a, context.Background(), args)
		return out.String(), st, errs.String()
	}
	t.Setenv("NO_COLOR", "1")
	got, _, _ := show(30, "cat", "s.csv")
	want := "" + // 5 for int64, 4 for gaps, and 21 for the two wide columns: 10 and 11
		"   id  name        text\n" +
		"int64  utf8        utf8\n" +
		"    1  null        long long …\n" +
		"   22  漢字漢字…   b\n" +
		"(2 rows)\n"
	if got != want {
		t.Errorf("30 cells wide: got\n%s\nwant\n%s", got, want)
	}
	got, _, _ = show(22, "cat", "s.csv")
	want = "" + // 10 for each text are too many: rows become blocks, in which long values wrap
		"── 1 ──\nid    1\nname  null\ntext  long long long\n      long long long\n" +
		strings.Repeat("      long long long\n", 4) + "      long long\n" +
		"── 2 ──\nid    22\nname  漢字漢字漢字漢字\ntext  b\n(2 rows)\n"
	if got != want {
		t.Errorf("22 cells wide: got\n%s\nwant\n%s", got, want)
	}
	got, _, _ = show(12, "cat", "s.csv", "-f", "table")
	if !strings.Contains(got, "(2 rows, 1 of 3 columns not shown: --columns chooses, -f vertical shows all)") {
		t.Errorf("12 cells wide: got\n%s\nwant the number of columns not shown", got)
	}
	for _, l := range strings.Split(got, "\n") {
		if n := len([]rune(l)); n > 12 && !strings.HasPrefix(l, "(") {
			t.Errorf("got a line of %d cells, want at most 12: %q", n, l)
		}
	}
	for _, form := range []string{"arrow", "parquet"} {
		if _, st, errs := show(80, "cat", "s.csv", "-f", form); st != cli.StatusUse ||
			!strings.Contains(errs, form+" is not for a terminal") {
			t.Errorf("-f %s: got status %d, %q, want %d", form, st, errs, cli.StatusUse)
		}
	}
	if _, st, errs := show(80, "schema", "s.csv", "-f", "arrow"); st != cli.StatusUse ||
		!strings.Contains(errs, "arrow is not for a terminal") {
		t.Errorf("schema -f arrow: got status %d, %q, want %d", st, errs, cli.StatusUse)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if got, _, _ = show(80, "head", "-n", "1", "s.csv"); !strings.Contains(got, "\x1b[2mnull\x1b[0m") {
		t.Errorf("got %q, want null dimmed", got)
	}
	t.Setenv("TERM", "dumb")
	if got, _, _ = show(80, "head", "-n", "1", "s.csv"); strings.Contains(got, "\x1b") {
		t.Errorf("dumb terminal: got %q, want no colour", got)
	}
}

// TestFindingColours: on a terminal the severity of a finding has a colour, of verify as of what warns of a scan; the
// text is the same without it.
func TestFindingColours(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if st := runArgs(cli.NewApp(nil, io.Discard, io.Discard), context.Background(),
		[]string{"demo", "try", "--damage"}); st != 0 {
		t.Fatalf("demo: status %d", st)
	}
	show := func(tty bool, args ...string) string {
		var out bytes.Buffer
		a := cli.NewApp(nil, &out, io.Discard)
		a.Tty, a.Width = tty, 80
		runArgs(a, context.Background(), args)
		return out.String()
	}
	for severity, args := range map[string][]string{
		"\x1b[31merror\x1b[0m cfile.block.checksum ": {"verify", "try/damaged/key.cfile"},
		"\x1b[33mwarning\x1b[0m kudu.wal.missing\n":  {"verify", "try/kudu", "--all-findings"},
		"\x1b[36mnote\x1b[0m file.unchecked ":        {"verify", "try/carbon"}} {
		got := show(true, args...)
		if !strings.Contains(got, severity) {
			t.Errorf("%v: expected %q, printed %q", args, severity, got)
		}
		plain := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(got, "")
		unfold := strings.NewReplacer("\n  ", " ").Replace
		if want := show(false, args...); unfold(plain) != unfold(want) { // a next command begins its own line
			t.Errorf("%v: expected %q without colours, printed %q", args, want, plain)
		}
		t.Setenv("NO_COLOR", "1")
		if got := show(true, args...); strings.Contains(got, "\x1b") {
			t.Errorf("%v: NO_COLOR, and printed %q", args, got)
		}
		t.Setenv("NO_COLOR", "")
	}
}

// TestTableSample: the first rows alone decide the widths of columns.
func TestTableSample(t *testing.T) {
	var b strings.Builder
	b.WriteString("a,b\n")
	for range display.TableSample {
		b.WriteString("x,y\n")
	}
	b.WriteString("longer than all others,z\n")
	st, out, _ := try(t, map[string]string{"s.csv": b.String()}, "cat", "s.csv", "-f", "table")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if st != 0 || len(lines) != display.TableSample+4 || lines[2] != "x     y" ||
		lines[display.TableSample+2] != "longer than all others  z" || lines[display.TableSample+3] != "(1,001 rows)" {
		t.Errorf("got status %d, %d lines: %q … %q", st, len(lines), lines[:4], lines[len(lines)-3:])
	}
}

func TestStatusOfErrors(t *testing.T) {
	at := fault.Span{Object: "f", Off: 3, Len: 4}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{cli.ErrEnough, 0},
		{fmt.Errorf("write: %w", cli.ErrEnough), 0},
		{os.ErrNotExist, 1},
		{fault.Unsupportedf(at, "", "x"), 1},
		{fault.Limitf(at, "", "x"), 1},
		{fault.Bugf("x"), 1},
		{context.Canceled, 1},
		{cli.ErrFailed, 1},
		// damage of an output is not damage of the source
		{&stoa.UnprovenError{Output: "o", Reason: "x", Err: fault.Corruptf(at, "", "x")}, 1},
		{fault.Invalidf("x"), 2},
		{cli.WrongUse("x"), 2},
		{fault.Corruptf(at, "", "x"), 3},
		{&cli.OpenError{Err: fault.Corruptf(at, "", "x")}, 3},
		{errors.Join(errors.New("x"), fault.Corruptf(at, "", "x")), 3},
		{cli.ErrDamage, 3},
	} {
		if got := cli.Status(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

// TestEveryFindingIsExplained flips bits in files of several formats: all findings of verify have documented codes.
func TestEveryFindingIsExplained(t *testing.T) {
	known := map[string]bool{}
	for _, c := range about.CodeDocs(cli.NewApp(nil, io.Discard, io.Discard)) {
		if known[c.Code] || c.Means == "" {
			t.Errorf("%s: got two explanations or none, want one", c.Code)
		}
		known[c.Code] = true
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.csv", []byte("id,name\n1,ann\n2,\"b,o\"\n3,\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, name := range []string{"o.csv", "s.tsv", "s.jsonl", "s.arrow", "s.parquet", "s.cfile"} {
		args := []string{"convert", "s.csv", "-o", name, "-q", "--columns", "id,name"}
		if name == "s.cfile" {
			args[len(args)-1] = "name"
		}
		if st := run(ctx, args, nil, io.Discard, os.Stderr); st != 0 {
			t.Fatalf("%v: status %d", args, st)
		}
		intact, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		from := strings.TrimPrefix(filepath.Ext(name), ".")
		for i := 0; i < len(intact); i += 1 + len(intact)/100 {
			b := bytes.Clone(intact)
			b[i] ^= 0x21
			if err := os.WriteFile("damaged", b, 0o644); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			st := run(ctx, []string{"verify", "--from", from, "-f", "jsonl", "damaged"}, nil, &out, &errs)
			dec := json.NewDecoder(&out)
			want, failed := cli.StatusCannot, false // if all that is wrong is not supported, the data may be intact
			for dec.More() {
				var f reading.FindingDoc
				if err := dec.Decode(&f); err != nil {
					t.Fatal(err)
				}
				if !known[f.Code] {
					t.Errorf("%s, byte %d: %s is not explained", name, i, f.Code)
				}
				if failed = failed || f.Severity == "error"; f.Severity == "error" &&
					!strings.HasSuffix(f.Code, ".unsupported") {
					want = cli.StatusDamage
				}
			}
			if failed && st != want {
				t.Errorf("%s, byte %d: got status %d for an error, want %d", name, i, st, want)
			}
			if strings.Contains(errs.String(), "bug") {
				t.Errorf("%s, byte %d: %s", name, i, &errs)
			}
		}
	}
}

func TestLostRows(t *testing.T) {
	loss := func(part string, group int, col string, from, to int64) region.Loss {
		return region.Loss{Part: part, Group: group, Column: col, Rows: [2]int64{from, to}, Exact: true}
	}
	losses := []region.Loss{
		loss("a", 0, "x", 10, 20), loss("a", 0, "y", 15, 30), // 20 rows together
		loss("a", 0, "z", 0, 5),   // 5
		loss("a", 1, "x", 0, 10),  // 10: another group
		loss("b", 0, "x", 12, 14), // 2: another part
	}
	if n, exact := region.LostRows(losses); n != 37 || !exact {
		t.Errorf("got %d, %v, want 37, true", n, exact)
	}
	losses = append(losses, region.Loss{Part: "b", Rows: [2]int64{14, -1}})
	if n, exact := region.LostRows(losses); n != 37 || exact {
		t.Errorf("with an unknown number: got %d, %v, want 37, false", n, exact)
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := display.Thousands(n); got != want {
			t.Errorf("Thousands(%d): got %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{-1: "", 0: "0 B", 999: "999 B", 1000: "1.0 kB", 99_949: "99.9 kB",
		99_950: "100 kB", 999_499: "999 kB", 999_500: "1.0 MB", 5_300_000_000: "5.3 GB"} {
		if got := display.BytesText(n); got != want {
			t.Errorf("BytesText(%d): got %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{1234 * time.Millisecond: "1.23 s", 42 * time.Second: "42 s",
		125 * time.Second: "2:05 min", 3723 * time.Second: "1:02 h"} {
		if got := display.Seconds(d); got != want {
			t.Errorf("Seconds(%v): got %q, want %q", d, got, want)
		}
	}
	for s, want := range map[string][]string{"a": {"a"}, "a,b.c": {"a", "b.c"}, ` a , "b,c" `: {"a", "b,c"},
		`"say ""hi""",x`: {`say "hi"`, "x"}, `"a.b",a."b"`: {`"a.b"`, `a."b"`}} {
		if got, err := source.SplitNames(s, true); err != nil || fmt.Sprint(got) != fmt.Sprint(want) ||
			len(got) != len(want) {
			t.Errorf("SplitNames(%q): got %q, %v, want %q", s, got, err, want)
		}
	}
	for s, want := range map[string][]string{"1,x": {"1", "x"}, `"a,b", 2`: {"a,b", " 2"},
		`'it''s,3`: {"'it''s", "3"}, `"say ""hi""",`: {`say "hi"`, ""}, "": {""}, `a"b`: {`a"b`},
		"\"a\r\nb\"": {"a\r\nb"}, `"a`: nil, `"a"b`: nil, `"a" ,b`: nil} {
		if got, err := look.SplitKey(s, 2); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("SplitKey(%q): got %q, %v, want %q", s, got, err, want)
		}
	}
	if got, err := look.SplitKey(`a, "b`, 1); len(got) != 1 || err != nil {
		t.Errorf("SplitKey for one column: got %q, %v, want it unsplit", got, err)
	}
	if got := about.Wrap("one two three four", 9, "|"); got != "one two|three|four" {
		t.Errorf("Wrap: got %q", got)
	}
}

func TestLastOf(t *testing.T) {
	for _, c := range []struct {
		in   vec.Range
		rows int64
		n    int64
		want vec.Range
	}{
		{vec.Range{}, 10, 3, vec.Range{From: 7, To: 10}},
		{vec.Range{}, 2, 3, vec.Range{From: 0, To: 2}},
		{vec.Range{From: 4, To: 6}, 10, 3, vec.Range{From: 4, To: 6}},
		{vec.Range{From: 4, To: 1 << 62}, 10, 3, vec.Range{From: 7, To: 10}},
		{vec.Range{From: 20, To: 30}, 10, 3, source.NoRows},
		{vec.Range{}, 0, 3, source.NoRows},
	} {
		if got := look.LastOf(c.in, c.rows, c.n); got != c.want {
			t.Errorf("the last %d of %v in %d rows: got %v, want %v", c.n, c.in, c.rows, got, c.want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	p := &cli.Progress{A: &cli.App{}, All: 4_000_000, Bytes: 80e6}
	p.Rows.Store(1_000_000)
	p.A.Tallies.Read.Store(20e6)
	want := "[###.........]  25%  1,000,000 rows  500k rows/s  10.0 MB/s  ETA 0:06"
	if got := p.Line(2 * time.Second); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.All = -1 // then progress is measured in bytes
	if got := p.Line(2 * time.Second); got != want {
		t.Errorf("by bytes: got %q, want %q", got, want)
	}
	p.Bytes = -1
	if got := p.Line(2 * time.Second); got != "1,000,000 rows  500k rows/s  10.0 MB/s" {
		t.Errorf("without a total: got %q", got)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                "plain",
		"ümlaut 漢字":            "ümlaut 漢字",
		"a\nb":                 "a\nb",
		"\x1b]0;title\x07":     `\u001b]0;title\u0007`,
		"\xff\xfe":             `\xff\xfe`,
		"tab\there\r":          `tab\there\r`,
		"\u202eevil\u2066":     `\u202eevil\u2066`,
		"\u009b31m":            `\u009b31m`,
		"\ufffd is a letter":   "\ufffd is a letter",
		strings.Repeat("a", 9): "aaaaaaaaa",
	} {
		if got := display.Printable(in); got != want {
			t.Errorf("Printable(%q): got %q, want %q", in, got, want)
		}
	}
	if got := display.OneLine("a\nb"); got != `a\nb` {
		t.Errorf("OneLine: got %q", got)
	}
}

// TestHeadOfAnEndlessStream: head prints the first rows of a stream without waiting for its end.
func TestHeadOfAnEndlessStream(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	status := run(ctx, []string{"head", "-n", "2", "-"}, endless("{\"n\":1}\n"), &out, &errs)
	if status != 0 || out.String() != "{\"n\":1}\n{\"n\":1}\n" {
		t.Errorf("got status %d, %q, %q, want two rows", status, out.String(), errs.String())
	}
}

// endless repeats a text forever.
func endless(text string) io.Reader { return &endlessText{text: text} }

type endlessText struct {
	text string
	at   int
}

func (e *endlessText) Read(b []byte) (n int, err error) {
	for n < len(b) {
		k := copy(b[n:], e.text[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.text)
	}
	return n, nil
}

// TestSplitCutShort: scan --split and plan report an incomplete output even if the reader closed the pipe itself.
func TestSplitCutShort(t *testing.T) {
	t.Chdir(t.TempDir())
	var b strings.Builder
	b.WriteString("n\n")
	for i := range 30_000 {
		fmt.Fprintln(&b, i)
	}
	if err := os.WriteFile("n.csv", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var plan, stderr bytes.Buffer
	if got := run(context.Background(), []string{"plan", "n.csv"}, nil, &plan, &stderr); got != cli.StatusFine {
		t.Fatal(got, &stderr)
	}
	split := firstSplit(plan.Bytes())
	for _, args := range [][]string{{"scan", "--split", split}, {"plan", "n.csv"}} {
		stderr.Reset()
		got := run(context.Background(), args, nil,
			&full{100, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}, &stderr)
		if got != cli.StatusCannot || !strings.Contains(stderr.String(), "went away") {
			t.Errorf("%s: got status %d, %q, want %d", args[0], got, &stderr, cli.StatusCannot)
		}
	}
}
