package pred

import (
	"testing"

	"pgregory.net/rapid"
)

// anyExprs are conditions over two columns, and such that become ranges; A and B stand for columns.
var pairShapes = []string{"A < B", "A <= B", "A > B", "A >= B", "A = B", "A != B", "not A < B", "not A = B",
	"A = B and A >= B",
	"A < B or B is null", "coalesce(A, B) = B", "case when A is null then true else A < B end"}

// columnsOfKind are columns that can be compared with each other.
var columnsOfKind = [][]string{
	{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "d64", "d128", "f16", "di"},
	{"s", "ls", "sv", "ds", "bin"}, {"d_32", "d_64", "ts_s", "ts_ms", "ts_us", "ts_ns"},
	{"t32s", "t32ms", "t64us", "t64ns"}}

// singleShapes are conditions of one column C of dates or texts.
var dayShapes = []string{"year(C) = 2020", "year(C) != 1970", "year(C) < 1970", "year(C) between 1969 and 2000",
	"date_trunc('month', C) >= '2020-01-01'", "date_trunc('week', C) = date '1970-01-05'",
	"cast(C as date) = '1970-01-01'",
	"cast(C as date) <= '1970-01-01T12:00:00'",
	"not date_trunc('hour', C) > '1970-01-01T00:30:00'", "year(C) in (1969, 1970)"}

// TestPruneOfExprsIsSound: the verdict by bounds never contradicts the rows, of whatever shape the condition is, and
// the bound condition is that which was written, row by row evaluated alone.
func TestPruneOfExprsIsSound(t *testing.T) {
	verdicts := map[Verdict]int{}
	rapid.Check(t, func(t *rapid.T) {
		text, columns := drawShape(t)
		tab := makeTable(t, rapid.IntRange(1, 4).Draw(t, "rows"), columns)
		b, err := Bind(must(Parse(text)), testSchema)
		if err != nil {
			t.Skip(err)
		}
		sel, err := b.Eval(tab.n, tab.col, nil)
		if err != nil {
			t.Skip(err) // an overflow
		}
		known := map[string]*Bounds{}
		for _, p := range b.Columns() {
			known[p] = genBounds(t, tab, p)
		}
		v := b.Prune(func(p string) *Bounds { return known[p] })
		verdicts[v]++
		if v == None && sel.Count > 0 || v == All && sel.Count < tab.n {
			t.Fatalf("%s selects %d of %d rows, but the verdict is %s; bounds %+v", b, sel.Count, tab.n, v, known)
		}
		again, err := Bind(must(Parse(b.String())), testSchema)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if s, err := again.Eval(tab.n, tab.col, nil); err != nil || s.Count != sel.Count {
			t.Fatalf("%s selects %d rows, as text %v (%v)", b, sel.Count, s, err)
		}
	})
	t.Log(verdicts)
}

func drawShape(t *rapid.T) (string, []string) {
	replace := func(s string, names map[byte]string) string {
		out := ""
		for i := range len(s) {
			isName := func(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
			alone := (i == 0 || !isName(s[i-1])) && (i+1 == len(s) || !isName(s[i+1]))
			if n, ok := names[s[i]]; ok && alone {
				out += n
			} else {
				out += s[i : i+1]
			}
		}
		return out
	}
	if rapid.Bool().Draw(t, "one column") {
		c := rapid.SampledFrom(columnsOfKind[2]).Draw(t, "column")
		return replace(rapid.SampledFrom(dayShapes).Draw(t, "shape"), map[byte]string{'C': c}), []string{c}
	}
	kind := rapid.SampledFrom(columnsOfKind).Draw(t, "kind")
	a, b := rapid.SampledFrom(kind).Draw(t, "a"), rapid.SampledFrom(kind).Draw(t, "b")
	return replace(rapid.SampledFrom(pairShapes).Draw(t, "shape"), map[byte]string{'A': a, 'B': b}), []string{a, b}
}

// TestRangesAreTheFunctions: what Bind makes of year, date_trunc and casts selects the rows that the functions do when
// they are evaluated, which "or" with a second column that is never TRUE enforces.
func TestRangesAreTheFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(columnsOfKind[2]).Draw(t, "column")
		shape := rapid.SampledFrom(dayShapes).Draw(t, "shape")
		text := ""
		for _, r := range shape {
			if r == 'C' {
				text += c
			} else {
				text += string(r)
			}
		}
		tab := makeTable(t, 20, []string{c})
		fast, err1 := mustBind(t, must(Parse(text))).Eval(tab.n, tab.col, nil)
		whole := "case when true then (" + text + ") else " + c + " is null end"
		slow, err2 := mustBind(t, must(Parse(whole))).Eval(tab.n, tab.col, nil)
		if err1 != nil {
			t.Fatal(err1)
		}
		if err2 != nil {
			t.Skip(err2) // the beginning of a unit before the first timestamp
		}
		for i := range tab.n {
			if fast.Has(i) != slow.Has(i) {
				t.Fatalf("%s: row %d, %v: %v as a range, %v evaluated", text, i, tab.cells[c][i], fast.Has(i),
					slow.Has(i))
			}
		}
	})
}
