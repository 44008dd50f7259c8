package attack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNulledOnly: nulled excuses a reported null and nothing else. If bytes of the column's name were changed, it must
// be reported under the current name.
func TestNulledOnly(t *testing.T) {
	ref := []string{`{"a":1,"b":"x"}`, `{"a":2,"b":"y"}`, `{"a":3,"b":"z"}`, `{"a":4,"b":"w"}`}
	row := func(k int, is string) []string {
		out := append([]string{}, ref...)
		out[k] = is
		return out
	}
	loss := func(column string) string {
		return `{"losses":[{"column":"` + column + `","from":1,"to":2,"exact":true}]}`
	}
	renamed := make([]string, len(ref))
	for i, l := range ref {
		renamed[i] = strings.Replace(l, `"b"`, `"c"`, 1)
	}
	renamed[1] = `{"a":2,"c":null}`
	name, elsewhere := touch{"f", 12, 13}, touch{"f", 40, 41}
	for what, x := range map[string]struct {
		out      []string
		manifest string
		touched  touch
		find     bool
	}{
		"a null that is reported":                {row(1, `{"a":2,"b":null}`), loss("b"), elsewhere, false},
		"a null that is reported of all columns": {row(1, `{"a":2,"b":null}`), loss(""), elsewhere, false},
		"a null of another column":               {row(1, `{"a":2,"b":null}`), loss("a"), elsewhere, true},
		"a null in another row":                  {row(2, `{"a":3,"b":null}`), loss("b"), elsewhere, true},
		"a null that is not reported":            {row(1, `{"a":2,"b":null}`), `{}`, elsewhere, true},
		"another value where a null is reported": {row(1, `{"a":2,"b":"q"}`), loss("b"), elsewhere, true},
		"a null by the changed name":             {renamed, loss("c"), name, false},
		"a null by another name, none touched":   {renamed, loss("c"), elsewhere, true},
		"a null by the original name":            {renamed, loss("b"), name, true},
		"another value in a renamed column": {append(append([]string{}, renamed[:2]...), `{"a":3,"c":"q"}`,
			renamed[3]), loss("c"), name, true},
		"a column less":   {row(1, `{"a":2}`), loss("b"), name, true},
		"a row too few":   {ref[:3], `{}`, elsewhere, true},
		"nothing changed": {ref, `{}`, elsewhere, false},
	} {
		c := &trial{f: &fixture{name: "trevni/x", ref: ref, files: []string{"f"}, checked: true,
			names: []storedName{{"f", 4, 5, "a"}, {"f", 12, 13, "b"}}}, touched: []touch{x.touched}}
		if got := c.nulls(t, x.out, x.manifest); got != x.find {
			t.Errorf("%s: %v", what, c.finds)
		}
	}
}

// nulls runs nulled and reports whether it found anything.
func (c *trial) nulls(t *testing.T, out []string, manifest string) bool {
	t.Helper()
	m := &lost{}
	if err := json.Unmarshal([]byte(manifest), m); err != nil {
		t.Fatal(err)
	}
	c.nulled("x", out, m)
	return len(c.finds) > 0
}

// TestNulledLines: in a text only the touched lines and their neighbours may differ, in other formats none.
func TestNulledLines(t *testing.T) {
	f := &fixture{name: "jsonl", text: true, dir: t.TempDir(), files: []string{"f"}}
	for i := range 20 {
		f.ref = append(f.ref, `{"a":`+string(rune('a'+i))+`}`)
	}
	content := []byte(strings.Join(f.ref, "\n") + "\n")
	copied := t.TempDir()
	for _, dir := range []string{f.dir, copied} {
		if err := os.WriteFile(filepath.Join(dir, "f"), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 8 {
		for _, text := range []bool{true, false} {
			g := *f
			g.text, g.checked = text, !text
			c := &trial{f: &g, dir: copied, touched: []touch{{"f", 2, 4}}} // inside a line
			out := append([]string{}, f.ref...)
			for i := range n {
				out[i] = `{"a":0}`
			}
			if got, want := c.nulls(t, out, `{}`), n > 3 || !text && n > 0; got != want {
				t.Errorf("%d lines differ, text %v: %v", n, text, c.finds)
			}
		}
	}
}

// TestDisplaced: the remainder belongs to another table only if nothing of the table's own is left. A file under the
// name of a file of another kind does not count as left; under the name of a file of its own kind it does.
func TestDisplaced(t *testing.T) {
	own, other := &fixture{name: "cfile/dir", maker: &maker{}, dir: t.TempDir()},
		&fixture{name: "cfile/dir", dir: t.TempDir()}
	write := func(dir string, content ...string) {
		for i, name := range []string{"a.cfile", "b.cfile", "table.json"} {
			if content[i] == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content[i]), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	own.ref = []string{`{"a":1}`} // it has columns
	for _, f := range []*fixture{own, other} {
		f.files = []string{"a.cfile", "b.cfile", "table.json"}
		f.pages = []page{{"a.cfile", 0, 1, 1}, {"b.cfile", 0, 1, 1}}
	}
	write(own.dir, "A", "B", "{own}")
	write(other.dir, "OA", "OB", "{other}")
	own.other = other
	for _, x := range []struct {
		copied [3]string
		want   bool
	}{
		{[3]string{"{own}", "OB", "A"}, true}, // a column was exchanged with table.json
		{[3]string{"{own}", "OB", ""}, true},  // and then removed
		{[3]string{"{own}", "B", "A"}, false}, // a column is left
		{[3]string{"B", "OB", ""}, false},     // a column under another's name can be read
		{[3]string{"{own}", "OB", "{own}"}, false},
		{[3]string{"{own}", "", "A"}, false}, // nothing is left
		{[3]string{"{x}", "OB", "A"}, false}, // harmed in another way
		{[3]string{"", "OB", ""}, true},
	} {
		c := &trial{f: own, dir: t.TempDir(), moved: true}
		write(c.dir, x.copied[:]...)
		if got := c.remains() == other; got != x.want {
			t.Errorf("%q: %v", x.copied, got)
		}
		if c.loose() {
			t.Errorf("%q: loose, so nothing would be judged", x.copied)
		}
	}
}
