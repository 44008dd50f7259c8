package pred

import (
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestDuckDB: conditions have the truth values that DuckDB gave them (testdata/answers.py). interop/pred asks it for
// many more, about tables.
func TestDuckDB(t *testing.T) {
	b, err := os.ReadFile("testdata/duckdb.txt")
	if err != nil {
		t.Fatal(err)
	}
	none := arrow.NewSchema(nil, nil)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range lines {
		text, want, _ := strings.Cut(line, " => ")
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for yes, x := range map[string]*Expr{"true": e, "false": Not(e)} {
			bound, err := Bind(x, none)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			sel, err := bound.Eval(1, func(string) arrow.Array { return nil }, nil)
			if err != nil || (sel.Count == 1) != (want == yes) {
				t.Errorf("%s: expected %s; is it %s: %v (%v)", text, want, yes, sel, err)
			}
		}
	}
	if len(lines) < 50 {
		t.Errorf("only %d conditions", len(lines))
	}
}
