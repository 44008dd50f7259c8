package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
)

// TestEighty: on a terminal of 80 cells no line of rows or reports is longer, and what does not fit is wrapped or
// shortened.
func TestEighty(t *testing.T) {
	t.Chdir(t.TempDir())
	if st := run(context.Background(), []string{"demo", "try"}, nil, io.Discard, io.Discard); st != 0 {
		t.Fatal("demo")
	}
	t.Setenv("NO_COLOR", "1")
	for _, c := range []struct {
		command string
		want    []string // lines
	}{
		{"head try/kudu#d_major", []string{"── 10 ──", "g   -50881553091156619201493394.2238841926",
			"ts  2023-11-14 22:06:30.76683Z"}},
		{"head try/kudu#d_major --columns id,a,b,v", []string{"   id            a  b                  v"}},
		{"head -f table try/kudu#d_major",
			[]string{"   14  2788…  kfff…  8.030…  0xd13…  false  -0.00…    null    53  k5873…  9999-…"}},
		{"cat -f table try/dremel.trv", []string{"   10  {\"Backward\":[],\"Forward\":[20,40,60…  " +
			"[{\"Language\":[{\"Code\":\"en-us\",\"Coun…"}},
		{"cat try/dremel.trv", []string{"── 1 ──", "DocId  10",
			"       {\"Language\":[{\"Code\":\"en-gb\",\"Country\":\"gb\"}],\"Url\":null}]"}},
		{"cat try/primitives.trv", nil},
		{"ls -v try/kudu", []string{"    partition RANGE (id) PARTITION UNBOUNDED, state READY, rowsets 2, server"}},
		{"ls --segments try/carbon/managed_del",
			[]string{"try/carbon/managed_del  1        Success  yes   2026-11-21T08:32:20.876Z"}},
		{"ls --blocks try/kudu", nil},
		{"stats try/primitives.trv", []string{
			"column  type                  encoding  codec   blocks  values  nulls     raw",
			"column  stored  share  min                   max",
			"y        585 B  13.5%                        0xfa705414b29d6d20"}},
		{"stats try/kudu#d_major", nil},
		{"schema try/kudu#d_major", nil},
		{"meta try/primitives.trv", []string{"                       \"size\":5}}]}"}},
		{"explain try/kudu#d_major --where id<5",
			[]string{"                                                             first and last key:"}},
		{"formats", nil},
		{"formats carbon", nil},
	} {
		var out, errs bytes.Buffer
		a := cli.NewApp(nil, &out, &errs)
		a.Tty, a.Width = true, 80
		if st := runArgs(a, context.Background(), strings.Fields(c.command)); st != 0 {
			t.Errorf("%s: status %d\n%s", c.command, st, &errs)
		}
		lines := strings.Split(out.String(), "\n")
		for _, l := range lines {
			if display.DisplayWidth(l) > 80 {
				t.Errorf("%s: got a line of %d cells, want at most 80:\n%s", c.command, display.DisplayWidth(l), l)
			}
		}
		for _, w := range c.want {
			if !strings.Contains("\n"+out.String(), "\n"+w+"\n") {
				t.Errorf("%s: got\n%s\nwant the line\n%s", c.command, &out, w)
			}
		}
	}
}

// TestOneTable: on narrow terminals ls and schema print one table, with each name once and whole, and with remarks.
func TestOneTable(t *testing.T) {
	t.Chdir(t.TempDir())
	if st := run(context.Background(), []string{"demo", "try", "--damage"}, nil, io.Discard, io.Discard); st != 0 {
		t.Fatal("demo")
	}
	t.Setenv("NO_COLOR", "1")
	long := "try/" + strings.Repeat("name", 13) + ".cfile"
	if err := os.Rename("try/key.cfile", long); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		widths  []int
		once    []string
	}{
		{"ls try", []int{80, 72}, []string{"500 rows ", "\n" + long + "\n", "\ntry/damaged/cut.cfile",
			"\n    corrupt: footer.magic", "try/flat.red "}},
		{"schema try/kudu#d_major", []int{80, 60}, []string{"column ", "\nid  ", "\nts  ", "column_id=11 \n"}},
	} {
		for _, width := range c.widths {
			var out, errs bytes.Buffer
			a := cli.NewApp(nil, &out, &errs)
			a.Tty, a.Width = true, width
			runArgs(a, context.Background(), strings.Fields(c.command))
			for _, l := range strings.Split(out.String(), "\n") {
				if display.DisplayWidth(l) > width {
					t.Errorf("%s: got a line of %d cells, want at most %d: %s", c.command, len(l), width, l)
				}
			}
			text := strings.ReplaceAll(out.String(), "column_id=11\n", "column_id=11 \n")
			for _, w := range c.once {
				if strings.Count(text, w) != 1 {
					t.Errorf("%s, %d cells: got\n%s\nwant %q once", c.command, width, text, w)
				}
			}
		}
	}
}

// TestHanging: on a terminal of 80 cells messages are wrapped between words, and have the same words as elsewhere.
func TestHanging(t *testing.T) {
	t.Setenv("NO_COLOR", "1") // colours have their own test
	t.Chdir(t.TempDir())
	if st := run(context.Background(), []string{"demo", "try", "--damage"}, nil, io.Discard, io.Discard); st != 0 {
		t.Fatal("demo")
	}
	for _, c := range []string{"verify try/damaged", "recover try/damaged/key.cfile -o saved.parquet",
		"cat try/damaged/key.cfile -o x.csv", "count try", "cat try/damaged/cut.cfile", "head try/kudu#d_major -n 1"} {
		show := func(width int) (string, string) {
			var out, errs bytes.Buffer
			a := cli.NewApp(nil, &out, &errs)
			a.Tty, a.Width, a.ErrWidth = width > 0, width, width
			runArgs(a, context.Background(), strings.Fields(c))
			return out.String(), errs.String()
		}
		out, errs := show(80)
		_, unwrapped := show(0)
		if c == "verify try/damaged" {
			errs = out
			unwrapped, _ = show(0)
		}
		if len(strings.Fields(unwrapped)) == 0 {
			t.Errorf("%s: got no messages, want some", c)
		}
		for _, l := range strings.Split(errs, "\n") {
			if display.DisplayWidth(l) > 80 && strings.Contains(strings.TrimSpace(l), " ") &&
				display.DisplayWidth(strings.Fields(l)[0]) < 76 {
				t.Errorf("%s: got a line of %d cells, want at most 80: %s", c, display.DisplayWidth(l), l)
			}
		}
		// recover -o prints the time that it took
		if !slices.Equal(strings.Fields(errs), strings.Fields(unwrapped)) && !strings.Contains(c, "-o saved") {
			t.Errorf("%s: on a terminal\n%s, else\n%s", c, errs, unwrapped)
		}
	}
	if got := display.Hanging("stoa: a  b\n     ^", 5); got != "stoa: a  b\n     ^" {
		t.Errorf("got %q, want it unchanged", got)
	}
}

// TestOneLineATable: on a terminal of 80 cells ls of a server prints one line for each table, and no other, so that 24
// tables fit on 24 lines.
func TestOneLineATable(t *testing.T) {
	files, rows := deadCluster(t)
	t.Chdir(t.TempDir())
	writeFiles(t, ".", files)
	var out, errs bytes.Buffer
	a := cli.NewApp(nil, &out, &errs)
	a.Tty, a.Width = true, 80
	if st := runArgs(a, context.Background(), []string{"ls", "tserver"}); st != 0 {
		t.Fatalf("status %d: %s", st, &errs)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) != len(rows) {
		t.Errorf("got %d lines for %d tables, want one for each:\n%s", len(lines), len(rows), &out)
	}
	for _, l := range lines {
		if display.DisplayWidth(l) > 80 {
			t.Errorf("got a line of %d cells, want at most 80: %s", display.DisplayWidth(l), l)
		}
	}
}
