package nest_test

import (
	"fmt"
	"strings"
	"testing"

	"stoa/internal/nest"
)

// shown formats steps briefly: a name, ? for optional, * for repeated, and its children.
func shown(steps []*nest.Step) string {
	var out []string
	for _, s := range steps {
		text := s.Name + [...]string{"", "?", "*"}[s.Kind]
		if s.Column < 0 {
			text += "(" + shown(s.Children) + ")"
		}
		if s.Open {
			text += " or else"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestInfer(t *testing.T) {
	type col struct {
		path     string
		def, rep int
		entries  string // pairs of repetition and definition level; "-": unknown entries; "": not examined
	}
	list := func(s *nest.Step, _ int) bool { return s.Name == "list" }
	for _, c := range []struct {
		cols []col
		want string
	}{
		{[]col{{"a", 0, 0, ""}}, "a"},
		{[]col{{"a", 1, 0, ""}}, "a?"},
		{[]col{{"a.b", 1, 0, ""}}, "a(b?) or else"},
		{[]col{{"a.b", 2, 1, ""}}, "a?(b*) or else"},
		{[]col{{"a.b", 2, 1, "01 12"}}, "a*(b?)"}, // rows [{null}, {1}] …
		{[]col{{"a.b", 2, 1, "02 11"}}, "a*(b?)"}, // … and [{1}, {}]
		{[]col{{"a.b", 2, 1, "02 12 01 00"}}, "a?(b*) or else"},
		{[]col{{"a.b.c", 3, 2, "03 11"}}, "a*(b?(c*)) or else"},   // the first list continues, with only one level
		{[]col{{"a.b.c", 3, 2, "01 - 23"}}, "a?(b*(c*)) or else"}, // entries after a gap exclude nothing
		{[]col{{"list.x", 1, 1, ""}, {"list.y", 1, 1, ""}}, "list*(x y) or else"},
		{[]col{{"list.x", 1, 1, "01 11"}, {"list.y", 1, 1, "01 11"}}, "list*(x y) or else"},
		{[]col{{"list.x", 1, 1, "01 11"}, {"list.y", 1, 1, "01"}}, "list(x* y*)"}, // lists of different lengths
		{[]col{{"a.x", 2, 1, "01 12"}, {"a.y", 1, 1, ""}}, "a*(x? y)"},
		{[]col{{"a.x", 1, 1, "11"}}, "a(x*) or else"},
		{[]col{{"a", 1, 1, ""}, {"a.b", 0, 0, ""}}, "a* a(b)"},
		{[]col{{"a", 2, 0, ""}}, "-"},
	} {
		var paths []nest.Path
		for _, p := range c.cols {
			path := nest.Path{Steps: strings.Split(p.path, "."), MaxDef: p.def, MaxRep: p.rep}
			if p.entries != "" {
				path.Seen = nest.NewSeen(p.def, p.rep, len(c.cols) > 1)
				for _, e := range strings.Fields(p.entries) {
					if e == "-" {
						path.Seen.Skip()
						continue
					}
					path.Seen.Add([]byte{e[1] - '0'}, []byte{e[0] - '0'})
				}
			}
			paths = append(paths, path)
		}
		got := "-"
		if steps, ok := nest.Infer(paths, list); ok {
			got = shown(steps)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", fmt.Sprint(c.cols), got, c.want)
		}
	}
}
