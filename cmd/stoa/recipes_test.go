package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store/remote/remotetest"
)

// house is the directory of the module.
var house string

// TestRecipes: the sessions of each page of docs/recipes, of the page that stoa skill prints and of
// docs/predicates.md, run one after the
// other in one directory, equal the output of the commands on a terminal of 80 columns. -update rewrites them. Lines
// that are not stoa commands are run by the shell.
func TestRecipes(t *testing.T) {
	var err error
	if house, err = filepath.Abs("../.."); err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	if err := os.CopyFS(filepath.Join(store, "bucket", "in", "managed_del"),
		os.DirFS("../../corpus/carbon/2.3.0/managed/managed_del")); err != nil {
		t.Fatal(err)
	}
	asS3(t, &remotetest.S3{Dir: store})
	pages, err := filepath.Glob("../../docs/recipes/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatal(pages, err)
	}
	pages = append(pages, "internal/about/skill.md", "../../docs/predicates.md")
	for i, name := range pages {
		if pages[i], err = filepath.Abs(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			page := string(b)
			for _, block := range strings.Split(page, "```go\n")[1:] {
				code, err := os.ReadFile(filepath.Join(house, "examples/indexed/main.go"))
				if program, _, _ := strings.Cut(block, "```\n"); err != nil || program != string(code) {
					t.Errorf("the program is not that of examples/indexed (%v)", err)
				}
			}
			fresh, sessions := recipe(t, page)
			if sessions == 0 && filepath.Base(name) != "README.md" {
				t.Error("no session")
			}
			if fresh == page {
				return
			}
			if *update {
				if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s (-update writes it): %s", filepath.Base(name), firstDifference(fresh, page))
		})
	}
}

// recipe returns a page with the output of its sessions.
func recipe(t *testing.T, page string) (fresh string, sessions int) {
	const begin, end = "```console\n", "```\n"
	t.Chdir(t.TempDir())
	t.Setenv("NO_COLOR", "1")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("STOA_TEST", program)
	t.Setenv("TZ", "UTC")
	var out strings.Builder
	for {
		before, rest, more := strings.Cut(page, begin)
		out.WriteString(before)
		if !more {
			return out.String(), sessions
		}
		old, after, ended := strings.Cut(rest, end)
		if !ended {
			t.Fatal("a session without an end")
		}
		out.WriteString(begin + commands(t, old) + end)
		page = after
		sessions++
	}
}

// stoaInShell makes stoa in a line of the shell this test's program.
const stoaInShell = `stoa() { STOA_AS_COMMAND=1 "$STOA_TEST" "$@"; }; `

// commands runs the commands of a session, and returns it with their output.
func commands(t *testing.T, old string) string {
	var out strings.Builder
	for _, l := range strings.SplitAfter(old, "\n") {
		command, ok := strings.CutPrefix(l, "$ ")
		switch {
		case !ok:
		case strings.HasPrefix(command, "stoa "):
			text, status := printed(strings.TrimSuffix(l, "\n"))
			if status != 0 && status != 3 { // -update would write a refusal into the page
				t.Errorf("%s ended with %d: %s", strings.TrimSpace(command), status, text)
			}
			out.WriteString(text)
		case strings.HasPrefix(command, "go run stoa/"):
			out.WriteString(l)
			program := strings.TrimSpace(strings.TrimPrefix(command, "go run "))
			run := exec.CommandContext(t.Context(), "go", "run", program)
			run.Dir = house
			b, err := run.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v", command, err)
			}
			out.Write(b)
		default:
			out.WriteString(l)
			b, err := exec.CommandContext(t.Context(), "sh", "-c", stoaInShell+command).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v", command, err)
			}
			out.Write(b)
		}
	}
	return out.String()
}
