package session

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestFilters: which filters are understood in DuckDB's notation; no others are. An empty text is none.
func TestFilters(t *testing.T) {
	columns := map[string]arrow.Field{}
	for name, typ := range map[string]arrow.DataType{"a": arrow.PrimitiveTypes.Int32, "b": arrow.BinaryTypes.String,
		"f": arrow.PrimitiveTypes.Float64, "h": arrow.FixedWidthTypes.Float16,
		"p":   &arrow.Decimal128Type{Precision: 12, Scale: 2},
		"day": arrow.FixedWidthTypes.Date32, "y": arrow.BinaryTypes.Binary, "flag": arrow.FixedWidthTypes.Boolean,
		"at": arrow.FixedWidthTypes.Timestamp_us, "tod": arrow.FixedWidthTypes.Time64us} {
		columns[name] = arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	for _, c := range []struct{ text, want string }{
		{"(a > 5)", "a > 5"},
		{"((a > 5) AND (a < 10))", "a > 5 and a < 10"},
		{"((a IS NULL) OR ((a > 5) AND (b = 'x')))", "a is null or a > 5 and b = 'x'"},
		{"(a = -3)", "a = -3"},
		{"(f > 1e+20)", "f > 1e+20"},
		{"(f > -1.5)", "f > -1.5"},
		{"(p >= 3.50)", "p >= 3.50"},
		{"(day >= '1994-01-01'::DATE)", "day >= date '1994-01-01'"},
		{"(day BETWEEN CAST('1994-01-01' AS DATE) AND '1995-01-01'::DATE)",
			"day between date '1994-01-01' and date '1995-01-01'"},
		{"(NOT (a BETWEEN 1 AND 5))", "not (a > 1 and a < 5)"}, // 1 <= a < 5 is printed like this, too
		{"(a NOT BETWEEN 1 AND 5)", "not (a > 1 and a < 5)"},
		{"(NOT (a NOT BETWEEN 1 AND 5))", "not not a between 1 and 5"},
		{"(at > '2023-11-14 22:06:25+00'::TIMESTAMP WITH TIME ZONE)", "at > timestamp '2023-11-14T22:06:25Z'"},
		{"(tod < '12:00:00'::TIME)", "tod < time '12:00:00'"},
		{"(y = '\\x00a'::BLOB)", "y = x'0061'"},
		{"(a IN (1, 2, 3))", "a in (1, 2, 3)"},
		{"(a NOT IN (1, 2))", "a not in (1, 2)"},
		{"(b ~~ 'a%_\\')", "b like 'a%_\\' escape ''"},
		{"(b !~~ 'a%')", "b not like 'a%' escape ''"},
		{"prefix(b, 'a%')", "b like 'a!%%' escape '!'"},
		{"(NOT suffix(b, 'z'))", "not b like '%z' escape '!'"},
		{"(NOT (a = 3))", "not a = 3"},
		{"(b = 'it''s')", "b = 'it''s'"},
		{"(b = ') OR (a = 1')", "b = ') OR (a = 1'"},
		{"((a > 5) AND (lower(b) = 'x') AND (a < 9))", "a > 5 and a < 9"},
		{"((lower(b) = 'x') OR (a > 5))", ""},
		{"(NOT ((a > 5) AND (lower(b) = 'x')))", ""},
		{"((a + 1) > 5)", ""}, {"(a > f)", ""}, {"(h > 0.1)", ""}, {"(CAST(a AS DOUBLE) > 3.5)", ""},
		{"(CASE  WHEN (flag) THEN ((a < 3)) ELSE (a > 5) END)", ""},
		{"CASE WHEN flag THEN b = 'x' AND a > 5 AND flag ELSE flag END", ""},
		{"(lower(b) BETWEEN 'a' AND b = 'x' AND a > 5)", ""},
		{"(a IS DISTINCT FROM 5)", ""}, {"(a > $1)", ""}, {"(other > 5)", ""}, {"(a > 5", ""}, {"a > 5)", ""}, {"", ""},
		{"(b > 5)", ""}, {"(a = 'x')", ""}, {"(a[1] > 5)", ""}, {"(a > (SELECT 5))", ""}, {"(a > 5 COLLATE x)", ""},
	} {
		got := ""
		if e := filterOf(c.text, columns); e != nil {
			got = e.String()
		}
		if got != c.want {
			t.Errorf("%s: found %q, expected %q", c.text, got, c.want)
		}
	}
	for name, want := range map[string]string{"a b": "a > 5", "x-a": "a > 5", "2020 sales": "a > 5",
		"x.y": "a > 5", "a ": "", "a--": "", "not a": "", "x or a": "", "a)": "", "'": "", "a = 5": "", "": "",
		"a,": "", "5": ""} {
		columns[name] = arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32}
		for text, want := range map[string]string{"((" + name + " = 5) AND (a > 5))": want,
			"((a > 5) AND (" + name + " IS NULL))": want, "(" + name + " = 5)": "", "(5 = " + name + ")": ""} {
			got := ""
			if e := filterOf(text, columns); e != nil {
				got = e.String()
			}
			if got != want {
				t.Errorf("%s, of a column %q: found %q, expected %q", text, name, got, want)
			}
		}
		delete(columns, name)
	}
	columns["größe"] = arrow.Field{Name: "größe", Type: arrow.PrimitiveTypes.Int32}
	if e := filterOf("(größe = 5)", columns); e == nil || e.String() != "größe = 5" {
		t.Errorf("found %v", e)
	}
	columns["a > 5 OR b"] = arrow.Field{Name: "a > 5 OR b", Type: arrow.FixedWidthTypes.Boolean}
	if e := filterOf("(a > 5)", columns); e != nil {
		t.Errorf("a column with an odd name: found %s, expected nothing", e)
	}
}

// FuzzFilters: no text makes the parser panic.
func FuzzFilters(f *testing.F) {
	f.Add("((a > 5) AND (b = 'x'))")
	f.Add("(a NOT IN (1, 2)) OR CAST('x' AS DATE) < a AND prefix(b, '%')")
	f.Fuzz(func(t *testing.T, text string) {
		filterOf(text, map[string]arrow.Field{"a": {Name: "a", Type: arrow.PrimitiveTypes.Int32},
			"b": {Name: "b", Type: arrow.BinaryTypes.String}})
		Statements(text)
		numbered(text, lex(text))
		writes(nil, text, nil)
	})
}

// TestStatements: scripts are split at semicolons, and nowhere else.
func TestStatements(t *testing.T) {
	for _, c := range []struct {
		script string
		n      int
		whole  bool
	}{
		{"select 1", 1, false}, {"select 1;", 1, true}, {" ; ;", 0, true},
		{"select ';'; select \";\" -- ;\n;", 2, true},
		{"/* ; /* ; */ ; */ select 1;", 1, true}, {"select $$;$$; select $a$;$$;$a$", 2, false},
		{"select e'\\';'; x", 2, false}, {"select 'a'';'", 1, false}, {"select 'open", 1, false}, {"", 0, true},
	} {
		all, whole := Statements(c.script)
		if len(all) != c.n || whole != c.whole {
			t.Errorf("%q: %q, %v", c.script, all, whole)
		}
	}
}

// TestNumbered: what is recognized as a table, and what is not.
func TestNumbered(t *testing.T) {
	for _, c := range [][2]string{
		{"FROM 'a.parquet'", `FROM "stoa:a.parquet:"`},
		{"select * from 'a' x join 'b#c' y using (id), 'd'",
			`select * from "stoa:a:" x join "stoa:b#c:" y using (id), 'd'`},
		{"select (select max(i) from 'a')", `select (select max(i) from "stoa:a:")`},
		{"select a is distinct from 'x' from 'y'", `select a is distinct from 'x' from "stoa:y:"`},
		{"select a is not distinct from 'x'", "select a is not distinct from 'x'"},
		{"select trim(leading 'x' from 'xa')", "select trim(leading 'x' from 'xa')"},
		{"select extract(year from '2020-01-01'::date)", "select extract(year from '2020-01-01'::date)"},
		{"select extract(year from (select d from 'x'))", `select extract(year from (select d from "stoa:x:"))`},
		{"copy t from 'x.csv'", "copy t from 'x.csv'"}, {"copy (from 'x') to 'y'", `copy (from "stoa:x:") to 'y'`},
		{"from stoa('a') join stoa('b')", "from stoa_table_100('a') join stoa_table_101('b')"},
		{"select 'from ''x''' -- from 'y'", "select 'from ''x''' -- from 'y'"},
		{"select x.stoa(1)", "select x.stoa(1)"},
	} {
		if got := numbered(c[0], lex(c[0])); got != c[1] {
			t.Errorf("%s: found %s, expected %s", c[0], got, c[1])
		}
	}
}
