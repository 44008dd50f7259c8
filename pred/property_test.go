package pred

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"pgregory.net/rapid"

	"stoa/vec"
)

// anyColumns are the columns that a random predicate may test.
var anyColumns = append([]string{"st", `st."a.b"`, "list"}, leafColumns...)

func genCase(t *rapid.T, maxRows int) (*testTable, *Expr) {
	paths := rapid.SliceOfN(rapid.SampledFrom(anyColumns), 1, 3).Draw(t, "columns")
	n := rapid.IntRange(0, maxRows).Draw(t, "rows")
	tab := makeTable(t, n, paths)
	return tab, genExpr(t, tab, paths, rapid.IntRange(0, 3).Draw(t, "depth"))
}

func mustBind(t rapid.TB, e *Expr) *Expr {
	b, err := Bind(e, testSchema)
	if err != nil {
		t.Fatalf("bind %s: %v", e, err)
	}
	return b
}

// checkRows compares b's Eval with the truth values want.
func checkRows(t rapid.TB, b *Expr, tab *testTable, in *vec.Sel, want []*bool) {
	t.Helper()
	sel, err := b.Eval(tab.n, tab.col, in)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	count := 0
	for i, w := range want {
		exp := w != nil && *w && in.Has(i)
		if exp {
			count++
		}
		if sel.Has(i) != exp {
			for _, c := range b.Columns() {
				t.Logf("%s = %v", c, tab.cells[c][i])
			}
			t.Fatalf("row %d of %s: got %v, want %v", i, b, sel.Has(i), exp)
		}
	}
	if sel.Count != count || sel.N != tab.n {
		t.Fatalf("got a selection of %d of %d, want %d of %d", sel.Count, sel.N, count, tab.n)
	}
}

func genSel(t *rapid.T, n int) *vec.Sel {
	switch rapid.IntRange(0, 2).Draw(t, "in") {
	case 0:
		return nil
	case 1:
		return vec.All(n)
	}
	return vec.NewSel(rapid.SliceOfN(rapid.Byte(), (n+7)/8, (n+7)/8).Draw(t, "bits"), n)
}

func TestEvalIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, e := genCase(t, 150)
		want := tab.naive(e)
		b := mustBind(t, e)
		checkRows(t, b, tab, genSel(t, tab.n), want)
		checkRows(t, mustBind(t, b), tab, nil, want)
		not := make([]*bool, len(want))
		for i := range want {
			not[i] = invert(want[i])
		}
		checkRows(t, mustBind(t, Not(e)), tab, nil, not)
		checkRows(t, mustBind(t, Not(b)), tab, nil, not)
		checkRows(t, And(b.Conjuncts()...), tab, nil, want)
		if p, err := Parse(b.String()); err != nil {
			t.Fatalf("%s: %v", b, err)
		} else {
			checkRows(t, mustBind(t, p), tab, nil, want)
		}
	})
}

// genBounds returns correct bounds of a column, some of which may be unknown.
func genBounds(t *rapid.T, tab *testTable, path string) *Bounds {
	d := domainOf(typeOf(path))
	b := &Bounds{Rows: int64(tab.n), NoNaN: true}
	for _, c := range tab.cells[path] {
		if c == nil {
			b.Nulls++
			continue
		}
		if f, ok := c.(float64); ok && f != f {
			b.NoNaN = false
			continue
		}
		v := cellValue(c, d)
		if d.class == classNone || v.Kind == KindNull {
			return &Bounds{Nulls: -1, Rows: -1}
		}
		if cmp, ok := compareMaybe(v, b.Min); !ok || cmp < 0 {
			b.Min = &v
		}
		if cmp, ok := compareMaybe(v, b.Max); !ok || cmp > 0 {
			b.Max = &v
		}
	}
	if d.class == classBytes && rapid.Bool().Draw(t, "cut") {
		b.Min, b.MinCut = cutBound(t, b.Min)
		b.Max, b.MaxCut = cutBound(t, b.Max)
	}
	for i, forget := range []func(){func() { b.Min = nil }, func() { b.Max = nil }, func() { b.Nulls = -1 },
		func() { b.Rows = -1 },
		func() { b.NoNaN = false }} {
		if rapid.IntRange(0, 6).Draw(t, "forget") == i {
			forget()
		}
	}
	return b
}

func compareMaybe(v Value, o *Value) (int, bool) {
	if o == nil {
		return 0, false
	}
	return Compare(v, *o)
}

func cutBound(t *rapid.T, v *Value) (*Value, bool) {
	if v == nil {
		return nil, false
	}
	out := *v
	out.Text = out.Text[:rapid.IntRange(0, len(out.Text)).Draw(t, "cut at")]
	return &out, true
}

func TestPruneIsSound(t *testing.T) {
	verdicts := map[Verdict]int{}
	rapid.Check(t, func(t *rapid.T) {
		tab, e := genCase(t, 6)
		b := mustBind(t, e)
		known := map[string]*Bounds{}
		for _, p := range b.Columns() {
			known[p] = genBounds(t, tab, p)
		}
		v := b.Prune(func(p string) *Bounds { return known[p] })
		verdicts[v]++
		for i, w := range tab.naive(e) {
			hit := w != nil && *w
			if hit && v == None || !hit && v == All {
				t.Fatalf("%s: row %d is %v, but the verdict is %s; bounds %+v", b, i, hit, v, known)
			}
		}
	})
	t.Log(verdicts)
}

func TestKeyRangeIsSound(t *testing.T) {
	limited := 0
	rapid.Check(t, func(t *rapid.T) {
		tab, e := genCase(t, 30)
		b := mustBind(t, e)
		truth := tab.naive(e)
		for _, p := range b.Columns() {
			low, high, lowIncl, highIncl := b.KeyRange(p)
			values, some := b.Equals(p)
			if low != nil || high != nil || some {
				limited++
			}
			for i, w := range truth {
				if w == nil || !*w {
					continue
				}
				v := cellValue(tab.cells[p][i], domainOf(typeOf(p)))
				if v.Kind == KindNull {
					continue // a decimal that no Value can hold, or is null
				}
				if !above(v, low, lowIncl) || !below(v, high, highIncl) {
					t.Fatalf("%s: %s = %s is outside of %v … %v", b, p, v, low, high)
				}
				found := !some
				for _, o := range values {
					c, ok := Compare(v, o)
					found = found || ok && c == 0
				}
				if !found {
					t.Fatalf("%s: %s = %s is not in %v", b, p, v, values)
				}
			}
		}
	})
	t.Log(limited)
}

func above(v Value, low *Value, incl bool) bool {
	if low == nil {
		return true
	}
	c, ok := Compare(v, *low)
	return ok && (c > 0 || c == 0 && incl)
}

func below(v Value, high *Value, incl bool) bool {
	if high == nil {
		return true
	}
	c, ok := Compare(v, *high)
	return ok && (c < 0 || c == 0 && incl)
}

func TestTextAndJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, e := genCase(t, 3)
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var j Expr
		if err := json.Unmarshal(b, &j); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !sameExpr(e, &j, false) {
			t.Fatalf("%s came back as %s", b, &j)
		}
		p, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%v", err)
		}
		if !sameExpr(e, p, true) {
			t.Fatalf("%s came back as %s", e, p)
		}
		if p.String() != e.String() {
			t.Fatalf("%s came back as %s", e, p)
		}
	})
}

// sameExpr compares trees; with text, strings that are not UTF-8 may have become bytes.
func sameExpr(a, b *Expr, text bool) bool {
	if a.Op != b.Op || a.Column != b.Column || a.Escape != b.Escape || len(a.Args) != len(b.Args) ||
		len(a.Values) != len(b.Values) {
		return false
	}
	for i := range a.Values {
		x, y := a.Values[i], b.Values[i]
		if text && x.Kind == KindString && y.Kind == KindBytes {
			x.Kind = KindBytes
		}
		if !x.Equal(y) {
			return false
		}
	}
	for i := range a.Args {
		if !sameExpr(a.Args[i], b.Args[i], text) {
			return false
		}
	}
	return true
}

func TestEvalDictIsEval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]string{"ds", "di", "df"}).Draw(t, "column")
		tab := makeTable(t, rapid.IntRange(1, 60).Draw(t, "rows"), []string{p})
		b := mustBind(t, genExpr(t, tab, []string{p}, 2))
		a := tab.arrs[p].(*array.Dictionary)
		codes, null, err := b.EvalDict(a.Dictionary())
		if err != nil {
			t.Fatal(err)
		}
		sel, err := b.Eval(tab.n, tab.col, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tab.n {
			want := null
			if !a.IsNull(i) {
				want = codes.Has(a.GetValueIndex(i))
			}
			if sel.Has(i) != want {
				t.Fatalf("%s: row %d: %v by rows, %v by codes", b, i, sel.Has(i), want)
			}
		}
	})
}

// The same values, other than dictionaries, in another layout, and passed as part of a struct or as its field, give the
// same result.
func TestEvalLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := makeTable(t, 70, []string{"ds", "di", "s", "bin"})
		for p, as := range map[string]string{"ds": "s", "di": "i32", "s": "ds"} {
			e := genExpr(t, tab, []string{p}, 2)
			var moved func(e *Expr) *Expr
			moved = func(e *Expr) *Expr {
				c := *e
				if c.Column == p {
					c.Column = as
				}
				c.Args = nil
				for _, a := range e.Args {
					c.Args = append(c.Args, moved(a))
				}
				return &c
			}
			b := mustBind(t, moved(e))
			sel, err := b.Eval(tab.n, func(string) arrow.Array { return tab.arrs[p] }, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range tab.naive(e) {
				if sel.Has(i) != (w != nil && *w) {
					t.Fatalf("%s, row %d", e, i)
				}
			}
		}
	})
}

func TestConjunctsOfBound(t *testing.T) {
	b := mustBind(t, must(Parse("i8 > 3 and (s = 'a' and not (u8 > 2 or b)) and i16 in (1,2)")))
	var got []string
	for _, c := range b.Conjuncts() {
		got = append(got, c.String())
	}
	want := []string{"i8 > 3", "s = 'a'", "u8 <= 2", "b != true", "i16 in (1, 2)"}
	if !reflect.DeepEqual(got, want) {
		t.Fatal(got)
	}
	if got := b.Columns(); !reflect.DeepEqual(got, []string{"i8", "s", "u8", "b", "i16"}) {
		t.Fatal(got)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
