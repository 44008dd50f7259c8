package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"
)

// TestExamples: the help of every verb has two examples, whose verb and flags there are.
func TestExamples(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	a.root()
	if len(a.verbs) < 20 {
		t.Errorf("only %d verbs", len(a.verbs))
	}
	for _, c := range a.verbs {
		lines := strings.Split(c.Example, "\n")
		if len(lines) < 2 {
			t.Errorf("%s: %d examples", c.Name(), len(lines))
		}
		for _, l := range lines {
			i := strings.Index(l, "stoa "+c.Name())
			if !strings.HasPrefix(l, "  ") || i < 0 {
				t.Errorf("%s: %q is no example of it", c.Name(), l)
				continue
			}
			words := shellWords(l[i:])
			fresh := newApp(strings.NewReader(""), io.Discard, io.Discard)
			cmd, rest, err := fresh.root().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil && cmd.Args != nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || cmd.Name() != c.Name() {
				t.Errorf("%s: %q: %v", c.Name(), l, err)
			}
		}
	}
}

// shellWords splits a command line at blanks outside of quotes, up to a pipe or a redirection.
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

// TestManPages: a page a verb, without lines that man would take for requests.
func TestManPages(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	pages := a.manPages(a.root())
	if len(pages) != len(a.verbs)+1 {
		t.Errorf("%d pages for %d verbs", len(pages), len(a.verbs))
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
			if strings.HasPrefix(l, ".") && !strings.Contains(" .TH .SH .B .BR .TP .PP .nf .fi ", " "+request+" ") || strings.HasPrefix(l, "'") {
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
