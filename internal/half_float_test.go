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

// TestNoHalfFloatsOfArrow: only the type and the bits of Arrow's package float16 are used. Values are converted
// by stoa/internal/enc/half: arrow-go's conversions are wrong for subnormal numbers and do not round, and its
// comparisons use them.
func TestNoHalfFloatsOfArrow(t *testing.T) {
	const path = "github.com/apache/arrow-go/v18/arrow/float16"
	files, users := 0, 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		own := ""
		for _, i := range f.Imports {
			if strings.Trim(i.Path.Value, `"`) == path {
				if own = "float16"; i.Name != nil {
					own = i.Name.Name
				}
				users++
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && own != "" && x.Name == own && n.Sel.Name != "FromBits" &&
					n.Sel.Name != "Num" {
					t.Errorf("%s: %s.%s", set.Position(n.Pos()), own, n.Sel.Name)
				}
			case *ast.CallExpr: // of a Num, or of an unknown type: a Rat's has two results
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Float32" || len(n.Args) > 0 {
					return true
				}
				if x, ok := s.X.(*ast.Ident); !ok || x.Name != "r" {
					t.Errorf("%s: Float32 of what may be Arrow's: half.Float", set.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 || users == 0 {
		t.Errorf("only %d files were looked at, %d of which use the type", files, users)
	}
}
