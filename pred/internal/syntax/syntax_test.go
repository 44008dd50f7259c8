package syntax

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// seeds are conditions of every form.
var seeds = []string{
	"a.b > 3.5 and not (x in (1, -2e3, null) or y like 'a!%' escape '!')",
	`"a""b".c is not null -- why`, "x'00' <> q or 0xFF == q", "flag", "not not flag", "x in ()", "null",
	"t between date '2020-01-01' and timestamp '2020-01-01 03:04:05.5+02:00'",
	"a - -1 + -b * (c - 2) / d % 3 >= -(-e)", "a -1 < +2", "a || 'x' || (b || c) ~* '^q'",
	"s !~ 'x' and s not ilike '%a'",
	"case when a then 1 when b > 2 then -x else null end = 3", "case x when 1 then 'a' end is null",
	"case = 1",
	"cast(x as decimal(10, 2))::int > try_cast(y as date)", "coalesce(a, b, 0) != round(c, -1)", "f() or g(not a)",
	"any(list) = 3 and all(tags) <> 'x'", "(a = b) = (c = d)",
	"(a or b) and (c and d) and e", "date_trunc('day', t) = x",
	"decimal '1e-5' < d and float 'NaN' = f", "x not between -1 and - 1",
}

// same reports whether two terms are the same but for their places.
func same(a, b *Term) bool {
	a2, b2 := a.Type, b.Type
	a2.At, b2.At = 0, 0
	if a.Op != b.Op || a.Column != b.Column || a.Literal != b.Literal || a.Escape != b.Escape || a2 != b2 ||
		len(a.Args) != len(b.Args) {
		return false
	}
	for i := range a.Args {
		if !same(a.Args[i], b.Args[i]) {
			return false
		}
	}
	return true
}

// FuzzTerms: what is parsed is printed as a text that is parsed to the same term; and what is refused shows its place.
func FuzzTerms(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	file, err := os.Open("../../testdata/errors.txt")
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if s, ok := strings.CutPrefix(lines.Text(), "> "); ok {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := Parse(s)
		if err != nil {
			if !strings.Contains(err.Error(), "(byte ") {
				t.Fatalf("%q: no place in %v", s, err)
			}
			return
		}
		check(t, s, x)
	})
}

func check(t *testing.T, s string, x *Term) {
	text := x.String()
	y, err := Parse(text)
	if err != nil || !same(x, y) {
		t.Fatalf("%q is printed as %q, which is %v (%v)", s, text, y, err)
	}
	if x.depth > maxTermDepth {
		t.Fatalf("%q is nested %d deep", s, x.depth)
	}
}

func TestSeeds(t *testing.T) {
	for _, s := range seeds {
		x, err := Parse(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		check(t, s, x)
	}
}

// TestDepth: no text makes the parser recurse without end.
func TestDepth(t *testing.T) {
	for _, s := range []string{"(", "not ", "- ", "f(", "case when ", "case ", "x + (", "cast(", "x in ("} {
		if _, err := Parse(strings.Repeat(s, 20_000)); err == nil {
			t.Errorf("%s, repeated, is accepted", s)
		}
	}
	for _, s := range []string{" + x", " and x", " || x", "::int"} {
		_, err := Parse("x" + strings.Repeat(s, 2_000))
		if flat := s == " and x"; flat != (err == nil) {
			t.Errorf("x with 2000 times %s: %v", s, err)
		}
	}
}
