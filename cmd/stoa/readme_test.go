package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
)

// TestReadme: the README's session is what the commands print on a terminal of 80 columns, and its matrix is that of
// stoa formats. -update rewrites both.
func TestReadme(t *testing.T) {
	name, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	fresh := between(t, readme, "```console\n", "```\n", func(old string) string { return session(t, old) })
	fresh = between(t, fresh, "<!-- formats: written by the same test -->\n", "<!-- end -->\n",
		func(string) string { return markdownMatrix() })
	if fresh == readme {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, want := strings.Split(fresh, "\n"), strings.Split(readme, "\n")
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("README.md:%d: the commands print (-update writes it)\n%s\nthe README has\n%s", i+1, got[i],
				want[i])
		}
	}
	t.Fatal("README.md: the session differs in length; -update writes it")
}

// between replaces the text between two markers.
func between(t *testing.T, s, begin, end string, f func(string) string) string {
	i := strings.Index(s, begin)
	if i < 0 {
		t.Fatalf("README.md has no %q", begin)
	}
	i += len(begin)
	n := strings.Index(s[i:], end)
	if n < 0 {
		t.Fatalf("README.md has no %q after %q", end, begin)
	}
	return s[:i] + f(s[i:i+n]) + s[i+n:]
}

// elapsed matches times, which differ from run to run.
var elapsed = regexp.MustCompile(`\b\d+\.\d\d s\b`)

// lakeSize matches the size of a small Iceberg table, whose metadata have the name of its directory several times.
var lakeSize = regexp.MustCompile(`(rows, |as iceberg: |managed_del, )\d+\.\d kB(, 5 files| in )`)

// session runs the commands of a session, and returns it with their output.
func session(t *testing.T, old string) string {
	t.Chdir(t.TempDir())
	t.Setenv("NO_COLOR", "1")
	var out strings.Builder
	for _, l := range strings.Split(old, "\n") {
		if strings.HasPrefix(l, "$ stoa ") {
			text, _ := printed(l)
			out.WriteString(text)
		}
	}
	return out.String()
}

// printed runs a line of a session and returns it with the output, unless that goes to a file, and the status.
func printed(line string) (text string, status int) {
	command, file, _ := strings.Cut(strings.TrimPrefix(line, "$ stoa "), " > ")
	if strings.Contains(file, `"`) { // a > in quotes
		command, file = strings.TrimPrefix(line, "$ stoa "), ""
	}
	var out bytes.Buffer
	a := cli.NewApp(strings.NewReader(""), &out, &out)
	a.Tty, a.Width, a.ErrWidth = true, 80, 80
	status = runArgs(a, context.Background(), shellWords(command))
	if file != "" {
		out.Reset()
	}
	text = elapsed.ReplaceAllString(out.String(), "0.01 s")
	return line + "\n" + lakeSize.ReplaceAllString(text, "${1}10.1 kB$2"), status
}

func markdownMatrix() string {
	var out strings.Builder
	a := cli.NewApp(nil, &out, &out)
	r := about.Matrix(a.Formats)
	last := len(r.Cols) - 2
	order := []int{last + 1} // without the extensions
	for k := range last {
		order = slices.Insert(order, k, k)
	}
	line := func(cell func(k int) string) {
		for _, k := range order {
			out.WriteString("| " + cell(k) + " ")
		}
		out.WriteString("|\n")
	}
	line(func(k int) string { return r.Cols[k].Name })
	out.WriteString(strings.Repeat("|---", len(order)) + "|\n")
	for _, row := range r.Rows {
		line(func(k int) string {
			if row[k] == "-" {
				return ""
			}
			return row[k]
		})
	}
	return out.String()
}
