package pred

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/pred/internal/scalar"
)

// TestPage: docs/predicates.md names every function and every type of a cast that is not one of Arrow's names only, and
// the conditions on it have the truth values that it gives, which are also DuckDB's.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../docs/predicates.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	help, err := os.ReadFile("../cmd/stoa/internal/about/predicates.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range functions {
		if !regexp.MustCompile(`\b` + name + `\b`).Match(help) {
			t.Errorf("the page of help has no function %s", name)
		}
		if !regexp.MustCompile("`" + name + "[`(]").MatchString(page) {
			t.Errorf("the page has no function %s", name)
		}
	}
	arrows := regexp.MustCompile(`^(u?int|float)(8|16|32|64)$|^large_|^string_view$|^binary_view$|^date32$`)
	for _, name := range scalar.TargetNames() {
		if !arrows.MatchString(name) && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page has no type %s", name)
		}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	row, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"a":1,"s":"ab"}]`))
	if err != nil {
		t.Fatal(err)
	}
	column := func(path string) arrow.Array { return row.Column(schema.FieldIndices(path)[0]) }
	conditions := regexp.MustCompile(`(?m)^(.*\S) +=> (true|false|null)$`).FindAllStringSubmatch(page, -1)
	if len(conditions) < 25 {
		t.Errorf("%d conditions were found", len(conditions))
	}
	for _, c := range conditions {
		for yes, text := range map[string]string{"true": c[1], "false": "not (" + c[1] + ")"} {
			e, err := Parse(text)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			bound, err := Bind(e, schema)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			sel, err := bound.Eval(1, column, nil)
			if err != nil || (sel.Count == 1) != (c[2] == yes) {
				t.Errorf("%s: expected %s; is it %s: %v (%v)", c[1], c[2], yes, sel, err)
			}
		}
	}
}
