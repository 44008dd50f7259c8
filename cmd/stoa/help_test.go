package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/store/remote/remotetest"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// inTerminal runs stoa in a terminal until it shows something, and leaves it; nil: not on this system.
var inTerminal func(t *testing.T, dir string, args []string)

// exampleFiles is a script that creates the files that the examples use.
const exampleFiles = `set -e
stoa demo data --damage > /dev/null
mv data/kudu kudu
printf 'kudu/wal\nkudu/data\n' > roots.txt
mv data/key.cfile block.cfile
mv data/damaged/key.cfile broken.cfile
mv data/damaged/cut.cfile cut.cfile
rm -r data/damaged
mkdir logs table dictionaries work home home/.config home/.config/fish home/.config/fish/completions
printf 'day,price,name\n2024-02-28,3.25,anna\n2024-02-29,4.5,abel\n2024-03-01,9,ben\n' > sales.csv
printf 'day,event\n2024-02-28,start\n2024-02-29,leap\n' > events.csv
printf 'status,path\n200,/\n503,/a\n' > logs/monday.csv
printf 'status,path\n500,/b\n' > logs/tuesday.csv
printf 'id bigint\ncustomer string\nday date\nprice decimal(10,2)\nstatus string\nnote string\n' > orders.txt
printf 'id,customer,day,price,status,note\n4711,a,2024-02-29,1.5,open,x\n4712,b,2019-05-06,2.25,void,y\n' > orders-1.csv
printf 'id,customer,day,price,status,note\n4713,c,2024-03-01,7.5,open,z\n' > orders-2.csv
printf 'country,customer,browser\nFR,a,lynx\nSE,b,mosaic\n' > visits.csv
printf 'FR\nSE\n' > dictionaries/country.csv
printf 'lynx\nmosaic\n' > dictionaries/browser.csv
for t in sales events visits; do stoa convert -q $t.csv --source-opt header=true -o $t.parquet; done
stoa convert -q 'orders-*.csv' --source-opt header=true -o orders.parquet
stoa convert -q sales.csv --source-opt header=true -o yesterday.parquet --opt row-group-rows=2
mkdir sales
cp yesterday.parquet sales/monday.parquet
cp sales.parquet sales/tuesday.parquet
cp yesterday.parquet table/a.parquet
cp sales.parquet table/b.parquet
head -c 200 yesterday.parquet > cut.parquet
stoa convert -q block.cfile -o block.parquet
stoa convert -q kudu#d_major -o rows.csv 2> /dev/null
stoa plan table/ -o splits.jsonl
sed -n 2p splits.jsonl > split.json
stoa create store#sales.orders --schema orders.txt
for i in 1 2 1; do stoa load -q store#sales.orders orders-$i.csv --source-opt header=true; done
stoa create store#sales.visits --schema visits.parquet --property dictionary_include=country,browser
stoa create work/orders --schema orders.txt
printf 'id bigint\ncountry string\n' > returns.txt
printf 'id,country\n1,DE\n2,NO\n' > returns.csv
stoa create store#sales.returns --schema returns.txt --partition country
stoa load -q store#sales.returns returns.csv --source-opt header=true
cp -r store/sales/orders/Fact/Part0/Segment_0 more
cp orders.parquet o.parquet
`

// exampleStatus is the exit status of examples whose status is not 0: those that read damaged files, and those that
// rescue the directory kudu, which has no logs.
var exampleStatus = map[string]int{
	"stoa rescue kudu -o out/":                                                                  cli.StatusDamage,
	"stoa rescue kudu/wal kudu/data -o tables/ --to jsonl":                                      cli.StatusDamage,
	"stoa rescue --in-kind kudu -o mended/":                                                     cli.StatusDamage,
	"stoa recover broken.cfile -o saved.parquet --manifest lost.json":                           cli.StatusDamage,
	"stoa recover cut.cfile -o saved.csv --source-opt type=int32":                               cli.StatusDamage,
	"stoa recover cut.parquet -o saved.parquet --schema yesterday.parquet --damaged null-cells": cli.StatusDamage,
}

// TestExamples runs the examples in the help of every verb as the help prints them. Each verb has two or more.
func TestExamples(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "stoa")); err != nil {
		t.Fatal(err)
	}
	// Without the database only this can be tested: that the command line reaches the program that has it.
	if err := os.WriteFile(filepath.Join(bin, "stoa-sql"), []byte("#!/bin/sh\ntest $# -ge 2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "stoa-mcp"), []byte("#!/bin/sh\ntest $# -ge 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "stoa-flight"), []byte("#!/bin/sh\ntest $# -ge 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "man"), []byte("#!/bin/sh\ntest -s \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	rootCmd(a)
	if len(a.Verbs) < 20 {
		t.Errorf("got %d verbs, want 20 or more", len(a.Verbs))
	}
	stores := t.TempDir()
	if err := os.MkdirAll(filepath.Join(stores, "bucket", "backup"), 0o777); err != nil {
		t.Fatal(err)
	}
	asS3(t, &remotetest.S3{Dir: stores}) // of examples with addresses
	shell := func(dir, line string) (string, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if strings.HasPrefix(line, "stoa serve ") { // it runs until Ctrl-C
			ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
		}
		cmd := exec.CommandContext(ctx, bash, "-c", "exec "+line)
		if _, ok := ctx.Deadline(); !ok {
			cmd.Args[2] = line
		}
		cmd.Cancel = func() error {
			return errors.Join(cmd.Process.Signal(os.Interrupt), os.ErrProcessDone) // its own status counts
		}
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "PATH="+bin+":"+os.Getenv("PATH"),
			"HOME="+filepath.Join(dir, "home"))
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil && cmd.ProcessState.Success() { // as Ctrl-C ends serve
			err = nil
		}
		return string(out), err
	}
	files := t.TempDir()
	if out, err := shell(files, exampleFiles); err != nil {
		t.Fatalf("the files: %v\n%s", err, out)
	}
	ran := 0
	for _, c := range a.Verbs {
		dir := filepath.Join(t.TempDir(), "d")
		if err := os.CopyFS(dir, os.DirFS(files)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(c.Example, "\n")
		if len(lines) < 2 {
			t.Errorf("%s: got %d examples, want 2 or more", c.Name(), len(lines))
		}
		for _, l := range lines {
			l = strings.TrimSpace(l)
			if !strings.Contains(l, "stoa "+c.Name()) {
				t.Errorf("%s: %q is not an example of it", c.Name(), l)
			}
			if c.Name() == "create" {
				if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
					t.Fatal(err)
				}
			}
			if _, out, ok := strings.Cut(l, " -o "); ok { // an earlier example may have written it
				out, _, _ = strings.Cut(out, " ")
				if st, err := os.Stat(filepath.Join(dir, out)); err == nil && st.Mode().IsRegular() {
					os.Remove(filepath.Join(dir, out))
				}
			}
			if c.Name() == "browse" {
				if inTerminal != nil {
					inTerminal(t, dir, strings.Fields(l)[1:])
					ran++
				}
				continue
			}
			out, err := shell(dir, about.ShellFold(l, about.HelpWidth-2))
			status := 0
			if exit := new(exec.ExitError); errors.As(err, &exit) {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if status != exampleStatus[l] {
				t.Errorf("%s: got status %d, want %d\n%s", l, status, exampleStatus[l], out)
			}
			ran++
		}
	}
	for _, topic := range about.Topics() {
		text, _ := about.Topic(topic)
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "stoa ") && !strings.HasPrefix(l, "stoa help") {
				if out, err := shell(files, strings.TrimSpace(l)); err != nil || strings.Count(out, "\n") < 1 {
					t.Errorf("%s%v\n%s", l, err, out)
				}
				ran++
			}
		}
	}
	t.Logf("%d examples of %d verbs", ran, len(a.Verbs))
}

// TestHelpWidth: the help of all verbs, findings, formats and options and the manual pages have no line of more than 80
// cells.
func TestHelpWidth(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	show := func(args ...string) string {
		var out, errs bytes.Buffer
		a := cli.NewApp(nil, &out, &errs)
		a.Tty, a.Width = true, about.HelpWidth
		// without arguments cobra would use those of the process, which are the test's
		if st := runArgs(a, context.Background(), append([]string{}, args...)); st != 0 || out.Len() == 0 {
			t.Errorf("%v: status %d: %s", args, st, &errs)
		}
		for _, l := range strings.Split(out.String(), "\n") {
			if display.DisplayWidth(l) > about.HelpWidth {
				t.Errorf("%v: got a line of %d cells, want at most %d:\n%s", args, display.DisplayWidth(l),
					about.HelpWidth, l)
			}
		}
		return out.String()
	}
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	root := rootCmd(a)
	if show() != show("--help") || show() != show("help") {
		t.Error("stoa, stoa --help and stoa help print different texts")
	}
	for _, c := range a.Verbs {
		text := show(c.Name(), "--help")
		if show("help", c.Name()) != text {
			t.Errorf("stoa help %s and stoa %s --help print different texts", c.Name(), c.Name())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s --help does not mention --%s", c.Name(), f.Name)
			}
		})
		checkFullHelp(t, c, text, show("help", c.Name(), "-v"))
	}
	show("finding")
	for _, c := range about.CodeDocs(a) {
		show("finding", c.Code)
	}
	show("formats")
	show("formats", "-v")
	for _, f := range a.Formats {
		show("formats", f.Name)
	}
	show("version")
	for _, topic := range about.Topics() {
		show("help", topic)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not installed: only unfilled lines of manual pages are measured")
	}
	pages := about.ManPages(a, root)
	for i, name := range slices.Sorted(maps.Keys(pages)) {
		text, filled := pages[name], true
		for _, l := range strings.Split(text, "\n") {
			if filled = (filled || l == ".fi") && l != ".nf"; !filled &&
				display.DisplayWidth(strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "").Replace(l)) > about.ManWidth {
				t.Errorf("%s: got an unfilled line of more than %d cells: %s", name, about.ManWidth, l)
			}
		}
		if groff == "" || testing.Short() && i%5 > 0 {
			continue
		}
		cmd := exec.Command(groff, "-man", "-Tutf8", "-P-cbou", "-rLL=80n")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Split(string(out), "\n") {
			if display.DisplayWidth(l) > about.HelpWidth {
				t.Errorf("%s: got a line of %d cells, want at most %d:\n%s", name, display.DisplayWidth(l),
					about.HelpWidth, l)
			}
		}
	}
}

// helpLines is the maximum number of lines of a verb's help: one screen of a terminal that nobody resized.
const helpLines = 24

// checkFullHelp checks that the short help of a verb fits one screen and explains one to three flags, and that the full
// help explains all flags.
func checkFullHelp(t *testing.T, c *cobra.Command, short, full string) {
	t.Helper()
	if n := strings.Count(short, "\n"); n > helpLines {
		t.Errorf("stoa help %s: got %d lines, want at most %d", c.Name(), n, helpLines)
	}
	explained := 0
	fold := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	short, full = fold(short), fold(full)
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		if f.Hidden || f.Name == "help" {
			return
		}
		if !strings.Contains(full, fold(usage)) {
			t.Errorf("stoa help %s -v does not explain --%s", c.Name(), f.Name)
		}
		if begin, _, _ := strings.Cut(usage, " "); strings.Contains(short, "--"+f.Name+valueOf(f)+" "+begin) {
			explained++
		}
	})
	first := cli.FirstFlags(c)
	for _, name := range first {
		if c.Flags().Lookup(name) == nil {
			t.Errorf("stoa %s: unknown flag --%s among the first flags", c.Name(), name)
		}
	}
	if explained > 3 || explained < min(len(first), 1) {
		t.Errorf("stoa help %s explains %d flags, want 1 to 3", c.Name(), explained)
	}
}

// valueOf returns the name of a flag's value as help prints it, after a space.
func valueOf(f *pflag.Flag) string {
	if value, _ := pflag.UnquoteUsage(f); value != "" {
		return " " + value
	}
	return ""
}

// TestShellFold: command lines are wrapped where a shell allows it, if possible after a flag with its value.
func TestShellFold(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"stoa ls", "stoa ls"},
		{"stoa cat file.parquet --columns a,b --limit 30", "stoa cat file.parquet \\\n    --columns a,b --limit 30"},
		{"stoa cat 'a file with a very long name indeed' -f csv",
			"stoa cat \\\n    'a file with a very long name indeed' \\\n    -f csv"},
	} {
		if got := about.ShellFold(c.line, 30); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
}

// TestManPages: each verb has a page, and no line of text would be taken for a request of man.
func TestManPages(t *testing.T) {
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	pages := about.ManPages(a, rootCmd(a))
	if len(pages) != len(a.Verbs)+1 {
		t.Errorf("got %d pages for %d verbs, want one more", len(pages), len(a.Verbs))
	}
	man, _ := exec.LookPath("groff")
	for name, text := range pages {
		for _, want := range []string{".TH STOA", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
		for _, l := range strings.Split(text, "\n") {
			request, _, _ := strings.Cut(l, " ")
			if strings.HasPrefix(l, ".") &&
				!strings.Contains(" .TH .SH .B .BR .TP .PP .nf .fi ", " "+request+" ") || strings.HasPrefix(l, "'") {
				t.Errorf("%s: man would take %q for a request", name, l)
			}
		}
		if man != "" {
			cmd := exec.Command(man, "-man", "-ww", "-z")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
}

// shellWords splits a command line at spaces outside quotes, up to a pipe or redirection.
func shellWords(s string) (out []string) {
	var word strings.Builder
	quote, any := rune(0), false
	for _, r := range s + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, any = r, true
		case strings.ContainsRune("|>&)", r):
			if word.Len() > 0 {
				out = append(out, word.String())
			}
			return out
		case r == ' ' && (any || word.Len() > 0):
			out = append(out, word.String())
			word.Reset()
			any = false
		case r != ' ':
			word.WriteRune(r)
		}
	}
	return out
}
