package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestHandlersShareNothing: what answers HTTP requests in a test assigns to nothing that others see without a lock.
// Each request has a goroutine of its own, and one that was given up may still be answered beside its repetition. The
// race detector sees that only if it happens.
func TestHandlersShareNothing(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "/remotetest/") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		handlers, shared := sharedByHandlers(f)
		seen += handlers
		for _, x := range shared {
			t.Errorf("%s: a handler of requests changes %s without a lock", fset.Position(x.Pos()), root(x).Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d handlers were found", seen)
	}
}

// TestSharedByHandlers: what must be noticed is, and what is in order is not.
func TestSharedByHandlers(t *testing.T) {
	for body, want := range map[string]int{
		`n++`: 1, `n = 1`: 1, `n += 2`: 1, `m["a"] = 1`: 1, `*p = 1`: 1, `s.f.g[1]++`: 1, `f.n++`: 1,
		`if r.Method == "GET" { go func() { n = 1 }() }`: 1, `n++; mu.Lock(); n++; mu.Unlock()`: 1,
		`n, err := 1, error(nil)`: 0, `var n int; n++`: 0, `for n = range 3 { }`: 1, `for n := range 3 { n++ }`: 0,
		`mu.Lock(); defer mu.Unlock(); n++`: 0, `r.Host = "x"`: 0, `n.Add(1)`: 0, `_ = n`: 0,
	} {
		for _, what := range []string{"func (f *F) ServeHTTP(w http.ResponseWriter, r *http.Request)",
			"func (f *F) RoundTrip(r *http.Request) (_ *http.Response, _ error)",
			"var _ = func(w http.ResponseWriter, r *http.Request)"} {
			f, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+what+" { "+body+" }",
				parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if handlers, shared := sharedByHandlers(f); handlers != 1 || len(shared) != want {
				t.Errorf("%s: %d handlers with %d assignments, want 1 with %d", body, handlers, len(shared), want)
			}
		}
	}
}

// sharedByHandlers returns how many functions of a file take a request, and what they assign to that is not theirs,
// before they lock anything. Names are told apart by themselves, not by their scopes.
func sharedByHandlers(f *ast.File) (handlers int, shared []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		var body *ast.BlockStmt
		var typ *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			typ, body = n.Type, n.Body
		case *ast.FuncLit:
			typ, body = n.Type, n.Body
		}
		if body == nil || !takesRequest(typ) {
			return true
		}
		handlers++
		own, locked := ownNames(typ, body), token.Pos(0)
		check := func(x ast.Expr) {
			if id := root(x); id != nil && !own[id.Name] && id.Name != "_" && locked == 0 {
				shared = append(shared, x)
			}
		}
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Lock" && locked == 0 {
					locked = n.Pos()
				}
			case *ast.IncDecStmt:
				check(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					check(n.Key)
				}
			case *ast.AssignStmt:
				for _, x := range n.Lhs {
					check(x)
				}
			}
			return true
		})
		return false
	})
	return handlers, shared
}

// takesRequest reports whether a parameter is a *http.Request.
func takesRequest(typ *ast.FuncType) bool {
	for _, p := range typ.Params.List {
		if s, ok := p.Type.(*ast.StarExpr); ok {
			if x, ok := s.X.(*ast.SelectorExpr); ok && x.Sel.Name == "Request" && root(x).Name == "http" {
				return true
			}
		}
	}
	return false
}

// ownNames are those that a function declares: its parameters, its results, and all within it.
func ownNames(typ *ast.FuncType, body *ast.BlockStmt) map[string]bool {
	own := map[string]bool{}
	declare := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				own[id.Name] = true
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				own[id.Name] = true
			}
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[id.Name] = true
				}
			}
		case *ast.RangeStmt:
			for _, x := range []ast.Expr{n.Key, n.Value} {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[id.Name] = true
				}
			}
		}
		return true
	}
	ast.Inspect(typ, declare)
	ast.Inspect(body, declare)
	return own
}

// root is the variable of an operand: a of *a.b[c].
func root(x ast.Expr) *ast.Ident {
	for {
		switch y := x.(type) {
		case *ast.Ident:
			return y
		case *ast.SelectorExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		case *ast.ParenExpr:
			x = y.X
		default:
			return nil
		}
	}
}
