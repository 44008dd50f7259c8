package stoa_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// noExample are functions that need no example: a related function has one.
var noExample = []string{"Home", "InUse", "Table_Account", "Table_Undeclared", "Table_Rows", "Table_SourceRows",
	"Table_ColumnSizes", "Changer_Open", "SplitTable_Scan", "Table_Copies", "Writer_Write", "Writer_Close",
	"Writer_Abort"}

// TestEveryVerbHasAnExample: every exported function and method whose first parameter is a context has an example.
func TestEveryVerbHasAnExample(t *testing.T) {
	examples, verbs := map[string]bool{}, []string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if strings.HasSuffix(file, "_test.go") {
				if name, ok := strings.CutPrefix(fn.Name.Name, "Example"); ok {
					if i := strings.LastIndexByte(name, '_'); i >= 0 && i+1 < len(name) && name[i+1] >= 'a' {
						name = name[:i] // without the example's suffix
					}
					examples[name] = true
				}
			} else if name, ok := verbOf(fn); ok {
				verbs = append(verbs, name)
			}
		}
	}
	if len(verbs) < 25 {
		t.Errorf("got %d verbs, want 25 or more: %v", len(verbs), verbs)
	}
	for _, v := range verbs {
		if !examples[v] && !slices.Contains(noExample, v) {
			t.Errorf("Example%s is missing", v)
		}
	}
	for _, v := range noExample {
		if !slices.Contains(verbs, v) || examples[v] {
			t.Errorf("%s in noExample is not a verb, or has an example", v)
		}
	}
}

// verbOf returns the name of a function as in the name of its example, if it is exported and its first parameter is
// ctx.
func verbOf(fn *ast.FuncDecl) (string, bool) {
	if params := fn.Type.Params.List; !fn.Name.IsExported() || len(params) == 0 || len(params[0].Names) == 0 ||
		params[0].Names[0].Name != "ctx" {
		return "", false
	}
	if fn.Recv == nil {
		return fn.Name.Name, true
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	if !ok || !name.IsExported() {
		return "", false
	}
	return name.Name + "_" + fn.Name.Name, true
}
