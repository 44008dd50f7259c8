package internal_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// drawing is the parsed text under "Rooms" in docs/architecture.md.
type drawing struct {
	dirs   []string   // relative to the root of the module
	floors [][]string // groups of packages, each of which may import only those before it
}

var (
	roomHead  = regexp.MustCompile(`^( *)((?:[a-z0-9/]+/ ?)+)(?: |$)`)
	roomBrace = regexp.MustCompile(`internal/\{([a-z0-9,]+)\}`)
	roomInner = regexp.MustCompile(`\binternal/[a-z0-9]+`)
	roomOther = regexp.MustCompile(`; ([a-z0-9]+/[a-z0-9/]+)/:`)
)

// drawn parses the drawing: a line begins with a directory; an indented one is below the last one that is not indented.
// internal/{a,b} in a line lists floors of that line's directory.
func drawn(t *testing.T) (d drawing) {
	t.Helper()
	b, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "## Rooms\n\n```\n")
	text, _, ok := strings.Cut(text, "\n```")
	if !ok {
		t.Fatal("docs/architecture.md has no drawing of the rooms")
	}
	text = regexp.MustCompile(`,\n +`).ReplaceAllString(text, ",") // lists that continue on the next line
	top, at := "", ""
	for line := range strings.Lines(text) {
		if m := roomHead.FindStringSubmatch(line); m != nil {
			names := strings.Fields(m[2])
			at = strings.TrimSuffix(names[0], "/")
			if m[1] != "" {
				at = path.Join(top, at)
			} else {
				top = at
			}
			d.dirs = append(d.dirs, at)
			for _, sibling := range names[1:] {
				d.dirs = append(d.dirs, path.Join(path.Dir(at), sibling))
			}
		}
		for _, m := range roomOther.FindAllStringSubmatch(line, -1) {
			d.dirs = append(d.dirs, m[1])
		}
		for _, m := range roomBrace.FindAllStringSubmatch(line, -1) {
			var floors []string
			for _, name := range strings.Split(m[1], ",") {
				floors = append(floors, path.Join(at, "internal", name))
			}
			d.dirs, d.floors = append(d.dirs, floors...), append(d.floors, floors)
		}
		if !strings.HasPrefix(line, "internal/") {
			for _, name := range roomInner.FindAllString(line, -1) {
				if _, err := os.Stat(filepath.Join("..", at, name)); err == nil {
					d.dirs = append(d.dirs, path.Join(at, name))
				}
			}
		}
	}
	return d
}

// TestTheDrawingIsTrue: docs/architecture.md shows every package and no other, and floors import only those before
// them.
func TestTheDrawingIsTrue(t *testing.T) {
	d := drawn(t)
	if len(d.dirs) < 60 || len(d.floors) < 5 {
		t.Fatalf("only %d rooms and %d sets of floors were found: %v", len(d.dirs), len(d.floors), d.dirs)
	}
	for _, dir := range d.dirs {
		if _, err := os.Stat(filepath.Join("..", dir)); err != nil {
			t.Errorf("the drawing has %s: %v", dir, err)
		}
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "stoa/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = strings.TrimPrefix(w, "stoa/")
		}
		imports[words[0]] = words[1:]
	}
	for pkg := range imports {
		if pkg == "stoa" || pkg == "internal" { // the root, and the tests in internal
			continue
		}
		// in these, every folder is of one kind
		kinds := []string{"interop", "bench", "internal/enc"}
		if !slices.Contains(d.dirs, pkg) && !slices.Contains(kinds, path.Dir(pkg)) {
			t.Errorf("the drawing does not show %s", pkg)
		}
	}
	for _, floors := range d.floors {
		for i, floor := range floors {
			for _, above := range floors[i+1:] {
				if slices.Contains(imports[floor], above) {
					t.Errorf("%s imports %s, which the drawing puts after it", floor, above)
				}
			}
		}
	}
}
