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

// packageList is the parsed text under "Packages" in docs/architecture.md.
type packageList struct {
	dirs   []string   // relative to the root of the module
	layers [][]string // groups of packages, each of which may import only those before it
}

var (
	lineHead   = regexp.MustCompile(`^( *)((?:[a-z0-9/]+/ ?)+)(?: |$)`)
	lineLayers = regexp.MustCompile(`internal/\{([a-z0-9,]+)\}`)
	lineInner  = regexp.MustCompile(`\binternal/[a-z0-9]+`)
	lineOther  = regexp.MustCompile(`; ([a-z0-9]+/[a-z0-9/]+)/:`)
)

// readPackageList parses the list: a line begins with a directory; an indented one is below the last one that is not
// indented. internal/{a,b} in a line lists layers of that line's directory.
func readPackageList(t *testing.T) (d packageList) {
	t.Helper()
	b, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "## Packages\n\n```\n")
	text, _, ok := strings.Cut(text, "\n```")
	if !ok {
		t.Fatal("docs/architecture.md has no list of packages")
	}
	text = regexp.MustCompile(`,\n +`).ReplaceAllString(text, ",") // lists that continue on the next line
	top, at := "", ""
	for line := range strings.Lines(text) {
		if m := lineHead.FindStringSubmatch(line); m != nil {
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
		for _, m := range lineOther.FindAllStringSubmatch(line, -1) {
			d.dirs = append(d.dirs, m[1])
		}
		for _, m := range lineLayers.FindAllStringSubmatch(line, -1) {
			var layers []string
			for _, name := range strings.Split(m[1], ",") {
				layers = append(layers, path.Join(at, "internal", name))
			}
			d.dirs, d.layers = append(d.dirs, layers...), append(d.layers, layers)
		}
		if !strings.HasPrefix(line, "internal/") {
			for _, name := range lineInner.FindAllString(line, -1) {
				if _, err := os.Stat(filepath.Join("..", at, name)); err == nil {
					d.dirs = append(d.dirs, path.Join(at, name))
				}
			}
		}
	}
	return d
}

// TestPackageListIsComplete: docs/architecture.md shows every package and no other, and layers import only those before
// them.
func TestPackageListIsComplete(t *testing.T) {
	d := readPackageList(t)
	if len(d.dirs) < 60 || len(d.layers) < 5 {
		t.Fatalf("only %d packages and %d sets of layers were found: %v", len(d.dirs), len(d.layers), d.dirs)
	}
	for _, dir := range d.dirs {
		if _, err := os.Stat(filepath.Join("..", dir)); err != nil {
			t.Errorf("the list has %s: %v", dir, err)
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
			t.Errorf("the list does not show %s", pkg)
		}
	}
	for _, layers := range d.layers {
		for i, layer := range layers {
			for _, above := range layers[i+1:] {
				if slices.Contains(imports[layer], above) {
					t.Errorf("%s imports %s, which the list puts after it", layer, above)
				}
			}
		}
	}
}
