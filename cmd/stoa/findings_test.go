package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages in docs anew")

// TestFindingPages: docs/findings has a page for every code, and no other. `go test ./cmd/stoa -run TestFindingPages -update` writes them.
func TestFindingPages(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	pages := map[string]string{}
	index := "# Findings\n\nWhat `stoa verify` and `stoa recover` may tell, a page each; `stoa finding CODE` prints the same. Codes never change their meaning.\nThese pages are made of the tables in the code.\n\n| code | severity | |\n|---|---|---|\n"
	for _, c := range a.codeDocs() {
		if len(c.Means) < 20 || !strings.HasSuffix(strings.TrimSpace(c.Means), ".") {
			t.Errorf("%s: %q explains little", c.Code, c.Means)
		}
		if _, ok := pages[c.Code+".md"]; ok {
			t.Errorf("%s is explained twice", c.Code)
		}
		pages[c.Code+".md"] = findingPage(c)
		first, _, _ := strings.Cut(c.Means, ". ")
		index += fmt.Sprintf("| [%s](%s.md) | %s | %s |\n", c.Code, c.Code, c.Severity, strings.TrimSuffix(first, ".")+".")
	}
	pages["README.md"] = index
	dir := filepath.Join("..", "..", "docs", "findings")
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
			t.Errorf("docs/findings/%s is not what the tables say%s", e.Name(), how)
		}
		delete(pages, e.Name())
	}
	for name := range pages {
		t.Errorf("docs/findings/%s is missing%s", name, how)
	}
}

func findingPage(c codeDoc) string {
	group, _, _ := strings.Cut(c.Code, ".")
	next := map[string]string{
		"error":   "Something is lost, or may be. The finding names the object, the offset, the field, and, where that is known, the rows. `stoa describe PATH`\nshows what lies there; `stoa cat PATH --damaged skip-rows` reads around it, and `stoa recover PATH -o OUT` writes what can still be read to another place.\nKeep the damaged file: nothing in stoa writes to a source.",
		"warning": "Nothing is lost, but the format does not allow it, or another reader may go wrong by it. `stoa convert PATH -o OUT` writes the rows anew.",
		"note":    "Odd, but allowed. Nothing has to be done.",
	}[c.Severity]
	page := fmt.Sprintf("# %s\n\n**%s**\n\n%s\n\n%s\n", c.Code, c.Severity, c.Means, next)
	if _, err := os.Stat(filepath.Join("..", "..", "docs", "formats", group+".md")); err == nil {
		page += fmt.Sprintf("\nThe format: [%s](../formats/%s.md). All codes: [README](README.md).\n", group, group)
	} else {
		page += "\nAll codes: [README](README.md).\n"
	}
	return page
}
