package main

import (
	"bytes"
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
	"stoa/format"
	"stoa/region"

	"github.com/andybalholm/brotli"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "regenerate the pages in docs")

// TestFindingPages: docs/findings has one page for each family of codes, with a heading for each code.
// `go test ./cmd/stoa -run TestFindingPages -update` writes them.
func TestFindingPages(t *testing.T) {
	checkPacked(t)
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

// checkPacked compares findings.br with the files that it holds; -update writes it.
func checkPacked(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob("internal/about/findings/*.txt")
	if err != nil || len(names) < 9 {
		t.Fatalf("%q, %v", names, err)
	}
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, bytes.TrimSpace(b)...), "\n\n"...)
	}
	if *update {
		about.Packed = packed(t, all)
		if err := os.WriteFile("internal/about/findings.br", about.Packed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(brotli.NewReader(bytes.NewReader(about.Packed))); err != nil || !bytes.Equal(got, all) {
		t.Errorf("findings.br is not findings/*.txt: go test ./cmd/stoa -run TestFindingPages -update writes it")
	}
}

// TestPackedTexts: texts.br holds the files that it is made of.
func TestPackedTexts(t *testing.T) {
	var texts [][]byte
	for _, name := range about.TextNames {
		b, err := os.ReadFile("internal/about/" + name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, b)
	}
	all := bytes.Join(texts, []byte{0})
	if *update {
		about.Texts = packed(t, all)
		if err := os.WriteFile("internal/about/texts.br", about.Texts, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(brotli.NewReader(bytes.NewReader(about.Texts))); err != nil || !bytes.Equal(got, all) {
		t.Error("texts.br is not what it is made of: go test ./cmd/stoa -run TestPackedTexts -update writes it")
	}
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
		"command. In commands, PATH is what you gave to `verify`, and OUT a new name.", family)
	if _, err := os.Stat(filepath.Join("..", "..", "docs", "formats", family+".md")); err == nil {
		fmt.Fprintf(&b, " The format: [%s](../formats/%s.md).", family, family)
	}
	b.WriteString("\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "\n## %s\n\n**%s.** %s\n\n* Cost: %s\n* Likely cause: %s\n* Next: %s\n", c.Code,
			c.Severity, strings.TrimSpace(c.Means), c.Cost, c.Cause, about.Advices()[c.Code].Next)
	}
	return b.String()
}

// TestAdvice: every code has words of its own for what it costs, what caused it and what to do; the commands have
// verbs, flags and options that exist.
func TestAdvice(t *testing.T) {
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	root := rootCmd(a)
	codes, seen := map[string]bool{}, map[about.Advice]string{}
	for _, c := range about.CodeDocs(a) {
		codes[c.Code] = true
		say := about.Advices()[c.Code]
		for _, s := range []string{say.Cost, say.Cause, say.Next} {
			if len(s) < 8 || !strings.HasSuffix(s, ".") {
				t.Errorf("%s: %q is not a sentence", c.Code, s)
			}
		}
		// Codes of several formats that mean the same may have the same advice.
		family, kind, _ := strings.Cut(c.Code, ".")
		if other := seen[say]; other != "" && !strings.HasSuffix(other, "."+kind) {
			t.Errorf("%s and %s have the same advice", c.Code, other)
		}
		seen[say] = c.Code
		lines := quoted.FindAllStringSubmatch(say.Next, -1)
		if len(lines) == 0 {
			t.Errorf("%s: no command in %q", c.Code, say.Next)
		}
		for _, line := range lines {
			checkAdvised(t, a, root, family, strings.Fields(line[1]))
		}
	}
	for code := range about.Advices() {
		if !codes[code] {
			t.Errorf("there is advice about %s, which no format reports", code)
		}
	}
}

var quoted = regexp.MustCompile("`([^`]*)`")

// checkAdvised checks that a command of an advice exists, with its flags and, for formats, its options.
func checkAdvised(t *testing.T, a *cli.App, root *cobra.Command, family string, words []string) {
	line := strings.Join(words, " ")
	verb, _, err := root.Find(words[1:2])
	if words[0] != "stoa" || err != nil || verb == root {
		t.Errorf("%s: no such command", line)
		return
	}
	for i, w := range words {
		name, ok := strings.CutPrefix(w, "--")
		if ok && verb.Flags().Lookup(name) == nil {
			t.Errorf("%s: %s has no flag %s", line, words[1], w)
		}
		if name != "source-opt" && name != "opt" {
			continue
		}
		key, value, _ := strings.Cut(words[i+1], "=")
		f := slices.IndexFunc(a.Formats, func(f format.Format) bool { return f.Name == family })
		if f < 0 {
			t.Errorf("%s: %s is no format", line, family)
			continue
		}
		known := a.Formats[f].ReadKeys
		if name == "opt" {
			known = a.Formats[f].WriteKeys
		}
		o := slices.IndexFunc(known, func(o format.OptionKey) bool { return o.Name == key })
		if o < 0 || value != strings.ToUpper(value) && !strings.Contains(known[o].Values, value) {
			t.Errorf("%s: %s has no option %s", line, family, words[i+1])
		}
	}
}
