package internal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits for a package without a line in ceilings. Tests are not counted.
const (
	maxFiles     = 25   // files a package
	maxLines     = 6000 // lines a package
	maxKnot      = 6    // files of a package in a cycle of references
	maxFileLines = 600  // lines a file
	maxColumns   = 120  // characters a line, a tab counts as four
)

// ceiling has the limits of a package that is still too large. The numbers may only decrease; the line is removed when
// the package is within the limits.
type ceiling struct{ files, lines, knot int }

var ceilings = map[string]ceiling{}

// longFiles are the files of more than maxFileLines lines, with their number of lines.
var longFiles = map[string]int{}

// wideLines is the number of lines of the whole tree, tests included, that are wider than maxColumns.
const wideLines = 0

// sourcePackage is a package as reported by go list.
type sourcePackage struct {
	ImportPath, Dir, Export            string
	GoFiles, TestGoFiles, XTestGoFiles []string
	DepOnly                            bool
}

// listed returns every package of the module, and its compiled dependencies.
func listed(t *testing.T) (ours []sourcePackage, exports map[string]string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly", "stoa/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports = map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p sourcePackage
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			ours = append(ours, p)
		}
	}
	if len(ours) < 40 {
		t.Fatalf("only %d packages were found", len(ours))
	}
	return ours, exports
}

// TestPackagesAreSmall checks the number of files and lines of each package, the lines of each file, and the size of
// the knot of a package: the largest set of files each of which reaches every other by its references.
func TestPackagesAreSmall(t *testing.T) {
	ours, exports := listed(t)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, p := range ours {
		most, ok := ceilings[p.ImportPath]
		if !ok {
			most = ceiling{maxFiles, maxLines, maxKnot}
		}
		lines := 0
		for _, f := range p.GoFiles {
			n := countLines(t, filepath.Join(p.Dir, f))
			lines += n
			name := strings.TrimPrefix(p.ImportPath, "stoa/") + "/" + f
			if limit := max(longFiles[name], maxFileLines); n > limit {
				t.Errorf("%s has %d lines; at most %d", name, n, limit)
			}
		}
		var knot []string
		if len(p.GoFiles) > most.knot {
			knot = largestKnot(t, p, fset, imports)
		}
		if len(p.GoFiles) > most.files || lines > most.lines || len(knot) > most.knot {
			t.Errorf("%s: %d files, %d lines, a knot of %d files; at most %d, %d, %d\n  the knot: %s", p.ImportPath,
				len(p.GoFiles), lines, len(knot), most.files, most.lines, most.knot, strings.Join(knot, " "))
		}
		if ok && len(p.GoFiles) <= maxFiles && lines <= maxLines && len(knot) <= maxKnot {
			t.Errorf("%s is small now: its line in ceilings goes", p.ImportPath)
		}
	}
}

// maxFuncLines is the maximum number of lines of a function: a screen.
const maxFuncLines = 60

// longFuncs are the functions that are still longer, by file, with their number of lines. The numbers may only
// decrease; a line is removed when its function is short. Functions that are tables rather than procedures stay, with a
// short reason.
var longFuncs = map[string]int{}

// TestFunctionsFitAScreen counts the lines of every function that is not a test, from func to the closing brace, in all
// modules below the root.
func TestFunctionsFitAScreen(t *testing.T) {
	found, funcs := map[string]bool{}, 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			funcs++
			lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			rel, _ := filepath.Rel("..", name)
			key := filepath.ToSlash(rel) + " " + fn.Name.Name
			if lines > max(longFuncs[key], maxFuncLines) {
				t.Errorf("%s has %d lines; at most %d", key, lines, max(longFuncs[key], maxFuncLines))
			}
			found[key] = found[key] || lines > maxFuncLines
		}
		return nil
	})
	if err != nil || funcs < 5000 {
		t.Fatalf("%d functions: %v", funcs, err)
	}
	for key := range longFuncs {
		if !found[key] {
			t.Errorf("%s is short now, or gone: its line in longFuncs goes", key)
		}
	}
}

func countLines(t *testing.T, name string) int {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// largestKnot returns the largest strongly connected set of files of a package; a file outside of any cycle is a set of
// one.
func largestKnot(t *testing.T, p sourcePackage, fset *token.FileSet, imports types.Importer) []string {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: imports}
	if _, err := conf.Check(p.ImportPath, fset, files, &info); err != nil {
		t.Fatalf("%s: %v", p.ImportPath, err)
	}
	own := map[string]bool{}
	for _, name := range p.GoFiles {
		own[name] = true
	}
	uses := map[string]map[string]bool{}
	for id, obj := range info.Uses {
		if obj.Pkg() == nil || obj.Pkg().Path() != p.ImportPath {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(obj.Pos()).Filename)
		if from != to && own[to] {
			if uses[from] == nil {
				uses[from] = map[string]bool{}
			}
			uses[from][to] = true
		}
	}
	return knot(p.GoFiles, uses)
}

// knot returns the largest strongly connected component, by Tarjan's algorithm.
func knot(nodes []string, edges map[string]map[string]bool) []string {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack, largest []string
	var visit func(v string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, on[v] = append(stack, v), true
		for w := range edges[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		component := slices.Clone(stack[at:])
		for _, w := range component {
			on[w] = false
		}
		stack = stack[:at]
		if len(component) > len(largest) {
			slices.Sort(component)
			largest = component
		}
	}
	for _, v := range nodes {
		if index[v] == 0 {
			visit(v)
		}
	}
	return largest
}

func TestKnot(t *testing.T) {
	edges := map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true},
		"d": {"e": true}}
	if got := fmt.Sprint(knot([]string{"e", "d", "c", "b", "a"}, edges)); got != "[a b c]" {
		t.Errorf("the knot is %s, expected [a b c]", got)
	}
}

// TestLinesAreNarrow counts the lines that are wider than a screen, in every source file below the root, including
// those of other modules (generators, examples) and those for other systems only.
func TestLinesAreNarrow(t *testing.T) {
	wide, worst, files := 0, map[string]int{}, 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		files++
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(b) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if utf8.RuneCount(line)+3*bytes.Count(line, []byte("\t")) > maxColumns {
				wide++
				worst[filepath.Dir(name)]++
			}
		}
		return nil
	})
	if err != nil || files < 1000 {
		t.Fatalf("%d files: %v", files, err)
	}
	if wide > wideLines {
		t.Errorf("%d lines are wider than %d columns; at most %d: %v", wide, maxColumns, wideLines, worst)
	}
}

// TestBudgetsAreAskedForInOnePlace: only fault/damage.go decides which errors are not damage.
func TestBudgetsAreAskedForInOnePlace(t *testing.T) {
	ours, _ := listed(t)
	own := regexp.MustCompile(`errors\.Is\(.*, fault\.Limit\)`)
	for _, p := range ours {
		for _, name := range p.GoFiles {
			b, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if m := own.Find(b); m != nil {
				t.Errorf("%s/%s: %s: use fault.OverBudget", p.ImportPath, name, m)
			}
		}
	}
}

// TestEveryPackageSaysWhatItIs: every package has a package comment in Go's usual form.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	ours, _ := listed(t)
	for _, p := range ours {
		if len(p.GoFiles) == 0 {
			continue
		}
		var docs []string
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil,
				parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				docs = append(docs, f.Doc.Text())
			}
		}
		if !slices.ContainsFunc(docs, func(d string) bool {
			return strings.HasPrefix(d, "Package ") || strings.HasPrefix(d, "Command ")
		}) {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// TestNoFormatIsKnownByName: the root, the engine and the contract do not name formats. The only list is formats.go.
func TestNoFormatIsKnownByName(t *testing.T) {
	names := regexp.MustCompile(`(?i)"[^"\n]*\b(cfile|kudu|carbon|carbondata|trevni|redfile|parquet)\b[^"\n]*"`)
	ours, _ := listed(t)
	found := 0
	for _, p := range ours {
		if p.ImportPath != "stoa" && p.ImportPath != "stoa/format" &&
			!strings.HasPrefix(p.ImportPath, "stoa/internal/scan") {
			continue
		}
		for _, name := range p.GoFiles {
			if name == "formats.go" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(b), "\n") {
				if code, _, _ := strings.Cut(line, "//"); names.MatchString(code) {
					found++
					if found > formatNames {
						t.Errorf("%s/%s:%d: %s", p.ImportPath, name, i+1, strings.TrimSpace(line))
					}
				}
			}
		}
	}
}

// formatNames is the number of lines of the root and the engine that still name a format.
const formatNames = 0

// TestNoProgramIsKept: no compiled program or library is among the files of the project.
func TestNoProgramIsKept(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is not a clone, so that the tracked files are unknown: %v", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(names) < 100 {
		t.Fatalf("only %d files were found", len(names))
	}
	for _, name := range names {
		f, err := os.Open(filepath.Join("..", name))
		if err != nil {
			continue // removed, but not committed yet
		}
		head := make([]byte, 4)
		_, err = io.ReadFull(f, head)
		f.Close()
		for _, magic := range []string{"\x7fELF", "MZ\x90\x00", "\xcf\xfa\xed\xfe"} {
			if err == nil && string(head) == magic {
				t.Errorf("%s is a compiled program", name)
			}
		}
	}
}
