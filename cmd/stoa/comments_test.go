package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComments: the comments of columns stay with a CarbonData table: in its DDL, in a table made like it,
// after loads, changes of other columns and compactions. Those that CarbonData cannot register are left out.
func TestComments(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(path(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	comments := [][2]string{{"`id` INT", `the key`}, {"`a` ARRAY<INT>", `it's`}, {"`n` STRING", `ünï 日本`}}
	schema := write("s.json", `{"fields":[{"name":"id","type":"int32","metadata":{"stoa.comment":"the key"}},
		{"name":"a","type":"list","children":[{"name":"item","type":"int32"}],"metadata":{"stoa.comment":"it's"}},
		{"name":"n","type":"utf8","metadata":{"stoa.comment":"ünï 日本"}},
		{"name":"q","type":"utf8","metadata":{"stoa.comment":"a \"q\""}}]}`)
	rows := write("rows.jsonl", `{"id":1,"a":[1],"n":"x","q":"y"}`+"\n")
	check := func(name string) {
		t.Helper()
		st, ddl, said := told(t, "schema -f ddl --dialect carbon "+path(name))
		for _, c := range comments {
			want := c[0] + " COMMENT '" + strings.ReplaceAll(c[1], "'", `\'`) + "'"
			if st != 0 || !strings.Contains(ddl, want) {
				t.Errorf("%s: got %d, %s %s, want %s", name, st, ddl, said, want)
			}
		}
		if strings.Count(ddl, "COMMENT") != len(comments) {
			t.Errorf("%s: got %s", name, ddl)
		}
	}
	for _, line := range []string{"create T --schema " + schema, "load T " + rows, "load T " + rows,
		"add-column T z int", "compact T --major", "create U --schema T", "drop-column T z"} {
		for _, name := range []string{"T", "U"} {
			line = strings.ReplaceAll(line+" ", " "+name+" ", " "+path(name)+" ")
		}
		if st, _, said := told(t, line); st != 0 {
			t.Fatalf("%s: %s", line, said)
		}
	}
	check("T")
	check("U")
}
