package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
	"stoa/region"
)

var update = flag.Bool("update", false, "regenerate the pages in docs")

// TestFindingPages: docs/findings has one page for each family of codes, with a heading for each code.
// `go test ./cmd/stoa -run TestFindingPages -update` writes them.
func TestFindingPages(t *testing.T) {
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	families := map[string][]about.CodeDoc{}
	seen := map[string]bool{}
	for _, c := range about.CodeDocs(a) {
		if len(c.Means) < 20 || !strings.HasSuffix(strings.TrimSpace(c.Means), ".") {
			t.Errorf("%s: %q is not a sentence of 20 characters or more", c.Code, c.Means)
		}
		if seen[c.Code] {
			t.Errorf("%s has two explanations, want one", c.Code)
		}
		seen[c.Code] = true
		family, _, _ := strings.Cut(c.Code, ".")
		families[family] = append(families[family], c)
	}
	pages := map[string]string{"README.md": findingIndex(families)}
	for family, codes := range families {
		pages[family+".md"] = findingPage(family, codes)
	}
	checkPages(t, filepath.Join("..", "..", "docs", "findings"), pages)
}

// checkPages compares the files of a directory with the expected pages; -update writes them.
func checkPages(t *testing.T, dir string, pages map[string]string) {
	t.Helper()
	if *update {
		os.RemoveAll(dir)
		os.MkdirAll(dir, 0o755)
		for name, text := range pages {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	const how = "; go test ./cmd/stoa -run TestFindingPages -update writes the pages"
	for _, e := range entries {
		got, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		if want, ok := pages[e.Name()]; !ok || string(got) != want {
			t.Errorf("docs/findings/%s differs from the tables in the code%s", e.Name(), how)
		}
		delete(pages, e.Name())
	}
	for name := range pages {
		t.Errorf("docs/findings/%s is missing%s", name, how)
	}
}

// findingIndex returns the page that lists all codes.
func findingIndex(families map[string][]about.CodeDoc) string {
	var b strings.Builder
	b.WriteString(`# Findings

What ` + "`stoa verify`, `stoa recover` and `stoa ls`" + ` may report: one page per family, one heading per code.
` + "`stoa finding CODE`" + ` prints the same. Codes never change their meaning. ` +
		`These pages are generated from the tables in the code.

| severity | what it costs | what to do next |
|---|---|---|
| error | ` + about.Costs[region.Error] + ` ` +
		`The finding names the object, the offset, the field and, where known, the rows. | ` +
		"`stoa describe PATH` shows the structures there, `stoa cat PATH --damaged skip-rows` reads around it, `stoa " +
		"recover PATH -o OUT`" +
		` writes the readable rows to another place. Keep the damaged file: stoa never writes to a source. |
| warning | ` + about.Costs[region.Warning] + ` | ` +
		"`stoa convert PATH -o OUT`" + ` writes the rows anew. |
| note | ` + about.Costs[region.Note] + ` | Nothing. |
`)
	for _, family := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, "\n## [%s](%s.md)\n\n| code | severity | |\n|---|---|---|\n", family, family)
		for _, c := range families[family] {
			first, _, _ := strings.Cut(c.Means, ". ")
			anchor := strings.ReplaceAll(c.Code, ".", "")
			fmt.Fprintf(&b, "| [%s](%s.md#%s) | %s | %s. |\n", c.Code, family, anchor, c.Severity,
				strings.TrimSuffix(first, "."))
		}
	}
	return b.String()
}

// findingPage returns the page of a family.
func findingPage(family string, codes []about.CodeDoc) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: findings\n\nFor each code: what happened, what it costs, the likely cause, and the next "+
		"command. The last two are explained [below](#likely-causes-and-the-next-command).", family)
	if _, err := os.Stat(filepath.Join("..", "..", "docs", "formats", family+".md")); err == nil {
		fmt.Fprintf(&b, " The format: [%s](../formats/%s.md).", family, family)
	}
	b.WriteString("\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "\n## %s\n\n**%s.** %s\n\nCost: %s Likely cause: %s. Next: `%s`.\n", c.Code, c.Severity,
			strings.TrimSpace(c.Means), c.Cost, about.CauseOf(c.Code).Title, commandOf.FindString(c.Next))
	}
	b.WriteString("\n## Likely causes, and the next command\n\n" +
		"| trouble | likely cause | next | codes |\n|---|---|---|---|\n")
	for _, why := range about.Causes() {
		var of []string
		for _, c := range codes {
			if about.CauseOf(c.Code).Title == why.Title {
				of = append(of, strings.TrimPrefix(c.Code, family+"."))
			}
		}
		if len(of) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s. | %s |\n", why.Title, why.Why, quoteCommands(why.Next),
				strings.Join(of, ", "))
		}
	}
	return b.String()
}

// commandOf matches a command in a next step: stoa, a verb, flags and words in capitals.
var commandOf = regexp.MustCompile(`stoa [a-z]+(?: (?:--?[a-z][a-z-]*|[A-Z][A-Za-z.]*|skip-rows))*`)

func quoteCommands(s string) string { return commandOf.ReplaceAllString(s, "`$0`") }

// TestCauses: every next step has commands with verbs and flags that exist; every cause has codes; no two causes have
// the same text.
func TestCauses(t *testing.T) {
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	root := rootCmd(a)
	used, seen := map[string]int{}, map[string]bool{}
	for _, c := range about.CodeDocs(a) {
		used[about.CauseOf(c.Code).Title]++
	}
	for _, why := range about.Causes() {
		if used[why.Title] == 0 || seen[why.Why] {
			t.Errorf("%s: got %d codes, duplicate text: %v", why.Title, used[why.Title], seen[why.Why])
		}
		seen[why.Why] = true
		lines := commandOf.FindAllString(why.Next, -1)
		if len(lines) == 0 {
			t.Errorf("%s: no command in %q", why.Title, why.Next)
		}
		for _, line := range lines {
			words := strings.Fields(line)[1:]
			verb, _, err := root.Find(words[:1])
			if err != nil || verb == root {
				t.Errorf("%s: unknown verb %s", line, words[0])
				continue
			}
			for _, w := range words[1:] {
				if name, ok := strings.CutPrefix(w, "--"); ok && verb.Flags().Lookup(name) == nil {
					t.Errorf("%s: %s has no flag %s", line, words[0], w)
				}
			}
		}
	}
	if n := used[about.CauseOf("of.no.kind").Title]; 3*n > len(about.CodeDocs(a)) {
		t.Errorf("%d codes have only the general cause, want at most a third", n)
	}
}
