package verify

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/read"
	"stoa/pred"
	"stoa/vec"
)

// groupStats returns the statistics of a column chunk in the footer; nil if there are none.
func groupStats(r *read.Reader, group, column int) *meta.Stats {
	return r.Footer.RowGroups[group].Columns[column].MetaData.Statistics
}

// leavesOf returns the columns of a field, including those in lists and maps.
func leavesOf(r *read.Reader, f int) (out []order.LeafField) {
	for _, k := range r.FieldLeaves[f] {
		out = append(out, r.LeafOf(k))
	}
	return out
}

// claim is a statement of one place in the file about the values of a leaf in some rows of a row group, together with
// what has been seen of these values.
type claim struct {
	code, path string
	at         fault.Span
	rows       vec.Range
	leaf       order.LeafField

	pages     []vec.Range // rows of the pages of the chunk; nil if unknown
	outside   *pred.Expr  // true for values outside the bounds; nil if there are no bounds
	low, high []byte      // the same bounds as bytes, if values compare as bytes
	min, max  *pred.Value // the same bounds as values; nil if there is none
	implied   bool        // by the bounds of all pages, which are narrower: only those are checked
	within    *claim      // the claim that this one and others imply
	// Reports whether a value outside the bounds is outside in every order that a writer may have used; nil if there is
	// only one order.
	decisive func(a arrow.Array, i int) bool
	exact    []*exactBound // bounds that are claimed to be values
	nulls    int64         // -1 if not stated
	nans     int64
	distinct int64
	allNull  *bool

	values, nullsSeen, nansSeen int64
	// Distinct values; nil if not requested, or too many to count.
	seen     map[string]struct{}
	reported bool
	first    int64 // row of the first value outside the bounds, if reported
}

// exactBound is a bound that is claimed to be a value.
type exactBound struct {
	name  string
	test  *pred.Expr
	found bool
}

// maxDistinct is the largest number of distinct values that are counted.
const maxDistinct = 1 << 20

// claimsFrom makes claims of the statistics at one place. Bounds that cannot be values of the type are reported at
// once.
func (v *verifier) claimsFrom(l order.LeafField, c claim, s *meta.Stats) (out []*claim) {
	c.leaf, c.nulls, c.nans, c.distinct = l, -1, -1, -1
	first := c
	first.allNull = s.AllNull
	if s.Nulls != nil {
		if first.nulls = *s.Nulls; first.nulls < 0 {
			v.find(c.code, fault.Corruptf(c.at, c.path+".null_count", "%d", first.nulls))
			first.nulls = -1
		}
	}
	if first.distinct = -1; s.Distinct != nil {
		if first.distinct = max(*s.Distinct, 0); first.distinct <= maxDistinct {
			first.seen = map[string]struct{}{}
		}
	}
	if floating(l.Typ) && s.NaNs != nil {
		first.nans = *s.NaNs
	}
	if v.r.Ordered(l.Column) {
		low, high := v.bound(l, c, "min_value", s.Min), v.bound(l, c, "max_value", s.Max)
		first.min, first.max = low, high
		if first.outside = outside(l, low, high); v.r.Footer.Schema.Column(l.Column).PhysicalType() == meta.TypeBytes {
			first.low, first.high = s.Min, s.Max
		}
		first.exact = append(exactBounds("min_value", low, v.proving || s.MinExact && !floating(l.Typ)),
			exactBounds("max_value", high, v.proving || s.MaxExact && !floating(l.Typ))...)
	}
	out = append(out, &first)
	if s.DeprecatedMin != nil || s.DeprecatedMax != nil {
		deprecated := c
		deprecated.path += ".min/max"
		v.deprecatedBounds(&deprecated, s)
		out = append(out, &deprecated)
	}
	return out
}

// bound returns a bound as a value; nil if there is none or it is meaningless.
func (v *verifier) bound(l order.LeafField, c claim, name string, b []byte) *pred.Value {
	if b == nil {
		return nil
	}
	col := v.r.Footer.Schema.Column(l.Column)
	want := int(physicalSize[col.PhysicalType()])
	switch t := col.PhysicalType(); {
	case want > 0 && len(b) != want:
		v.find(c.code, fault.Corruptf(c.at, c.path+"."+name, "%d bytes; a value of %s has %d", len(b), t, want))
		return nil
	case t == meta.TypeFixed && (len(b) > col.TypeLength() || floating(l.Typ) && len(b) != col.TypeLength()):
		v.find(c.code, fault.Corruptf(c.at, c.path+"."+name, "%d bytes; a value has %d", len(b), col.TypeLength()))
		return nil
	}
	x := v.r.StatsValue(l, b)
	if x != nil && x.Kind == pred.KindFloat && math.IsNaN(x.Float) {
		return nil // some writers write such a bound; readers ignore it
	}
	return x
}

// physicalSize is the size of a bound in bytes; 0 if variable.
var physicalSize = map[meta.Physical]int64{meta.TypeBoolean: 1, meta.TypeInt32: 4, meta.TypeInt64: 8,
	meta.TypeInt96: 12,
	meta.TypeFloat: 4, meta.TypeDouble: 8}

func floating(t arrow.DataType) bool {
	return t.ID() == arrow.FLOAT16 || t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT64
}

func exactBounds(name string, v *pred.Value, exact bool) []*exactBound {
	if v == nil || !exact {
		return nil
	}
	return []*exactBound{{name: name, test: pred.Test(order.LeafName, pred.OpEq, *v)}}
}

// outside returns an expression that is true for values outside the bounds; nil if there are no bounds.
func outside(l order.LeafField, low, high *pred.Value) *pred.Expr {
	var out []*pred.Expr
	if low != nil {
		out = append(out, pred.Test(order.LeafName, pred.OpLt, *low))
	}
	if high != nil {
		more := pred.Test(order.LeafName, pred.OpGt, *high)
		if floating(l.Typ) { // NaN is never within the bounds
			more = pred.And(more, pred.Test(order.LeafName, pred.OpNe, pred.Float(math.NaN())))
		}
		out = append(out, more)
	}
	if out == nil {
		return nil
	}
	return pred.Or(out...)
}

// deprecatedBounds makes a claim of min and max, whose order was never specified: writers compared the stored values as
// signed, including bytes. Signed numbers can be checked against them. For other types only claims that hold in either
// order can be checked: unsigned numbers without their highest bit, and bytes up to the first difference, if that is
// ASCII on both sides. Nothing is known about INT96, intervals, and decimals and FLOAT16 stored as bytes.
func (v *verifier) deprecatedBounds(c *claim, s *meta.Stats) {
	l, low, high := c.leaf, v.bound(c.leaf, *c, "min", s.DeprecatedMin), v.bound(c.leaf, *c, "max", s.DeprecatedMax)
	c.min, c.max = low, high
	physical := v.r.Footer.Schema.Column(l.Column).PhysicalType()
	text := physical == meta.TypeBytes || physical == meta.TypeFixed && !floating(l.Typ)
	_, decimal := l.Typ.(arrow.DecimalType)
	switch {
	case read.Signed(l.Typ), decimal && !text:
		c.outside = outside(l, low, high)
	case physical == meta.TypeInt32, physical == meta.TypeInt64:
		half := pred.Uint(math.MaxInt32)
		if physical == meta.TypeInt64 {
			half = pred.Uint(math.MaxInt64)
		}
		below := func(x *pred.Value) *pred.Value {
			if x == nil {
				return nil
			}
			if k, ok := pred.Compare(*x, half); !ok || k > 0 {
				return nil
			}
			return x
		}
		if e := outside(l, below(low), below(high)); e != nil {
			c.outside = pred.And(e, pred.Test(order.LeafName, pred.OpLe, half))
		}
	case text && !decimal:
		if !ascii(s.DeprecatedMin) {
			low = nil
		}
		if !ascii(s.DeprecatedMax) {
			high = nil
		}
		c.outside = outside(l, low, high)
		c.decisive = func(a arrow.Array, i int) bool {
			return decisive(leafBytes(a, i), s.DeprecatedMin, s.DeprecatedMax)
		}
	}
}

func ascii(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 }) }

// decisive reports whether b, which is outside the bounds as unsigned bytes, is also outside them as signed bytes.
func decisive(b, low, high []byte) bool {
	signed := func(x, y []byte) int {
		return slices.CompareFunc(x, y, func(p, q byte) int { return int(int8(p)) - int(int8(q)) })
	}
	return low != nil && ascii(low) && signed(b, low) < 0 || high != nil && ascii(high) && signed(b, high) > 0
}

// leafBytes returns a value of a column of strings or bytes.
func leafBytes(a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Dictionary:
		return leafBytes(a.Dictionary(), a.GetValueIndex(i))
	case interface{ Value(int) string }:
		return []byte(a.Value(i))
	case interface{ Value(int) []byte }:
		return a.Value(i)
	}
	return nil
}

// check examines the rows of a batch to which c applies; the batch begins at row at of the row group.
func (c *claim) check(b arrow.RecordBatch, at int64) error {
	mine := vec.Range{From: c.rows.From - at, To: c.rows.To - at}.Intersect(vec.Range{To: b.NumRows()})
	if mine.Len() == 0 {
		return nil
	}
	rows := array.NewSlice(b.Column(0), mine.From, mine.To)
	defer rows.Release()
	view := order.LeafView(rows, c.leaf.Path[1:])
	c.count(view)
	for _, x := range c.exact {
		if !x.found {
			at, err := view.First(x.test, nil)
			if err != nil {
				return err
			}
			x.found = at >= 0
		}
	}
	if c.implied {
		return nil
	}
	return c.checkBounds(view, at+mine.From)
}

// checkBoundsOf is check for the bounds alone.
func (c *claim) checkBoundsOf(b arrow.RecordBatch, at int64) error {
	mine := vec.Range{From: c.rows.From - at, To: c.rows.To - at}.Intersect(vec.Range{To: b.NumRows()})
	if mine.Len() == 0 {
		return nil
	}
	rows := array.NewSlice(b.Column(0), mine.From, mine.To)
	defer rows.Release()
	return c.checkBounds(order.LeafView(rows, c.leaf.Path[1:]), at+mine.From)
}

// checkBounds looks for a value outside the bounds; the view starts at row at of the row group.
func (c *claim) checkBounds(view *order.View, at int64) error {
	if c.outside == nil || c.reported {
		return nil
	}
	k, known, err := -1, false, error(nil)
	if c.low != nil || c.high != nil {
		k, known = view.FirstOutside(c.low, c.high)
	}
	if !known {
		k, err = view.First(c.outside, c.decisive)
	}
	if err != nil || k < 0 {
		return err
	}
	c.reported, c.first = true, at+view.Row(k)
	in, of := c.inDoubt()
	return fault.Corruptf(c.at, c.path, "the value in row %d of the row group is %s, outside its bounds (%s): they or "+
		"the page are wrong, and nothing proves the %s of the %s", c.first, shownValue(view.Leaf, k),
		strings.TrimPrefix(boundText(", min ", c.min)+boundText(", max ", c.max), ", "), fault.Count(in.Len(), "row"),
		of)
}

// inDoubt returns the rows of the page with the value outside the bounds; all rows of c if the page is unknown.
func (c *claim) inDoubt() (rows vec.Range, of string) {
	for _, p := range c.pages {
		if p.From <= c.first && c.first < p.To {
			return p, "page"
		}
	}
	return c.rows, "row group"
}

// maxShown is how many bytes of a value a message has.
const maxShown = 60

func shownValue(a arrow.Array, i int) string {
	s := a.ValueStr(i)
	if b := leafBytes(a, i); b != nil {
		s = pred.String(string(b)).String()
	}
	return shortened(s)
}

// boundText returns a bound after its name; "" if there is none.
func boundText(name string, v *pred.Value) string {
	if v == nil {
		return ""
	}
	return name + shortened(v.String())
}

func shortened(s string) string {
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

// implyBy marks the bounds of a chunk as implied by those of its pages if every page has bounds within them: a value
// outside the chunk's bounds is then also outside its page's.
func (c *claim) implyBy(pages []*claim) {
	if c == nil || c.outside == nil || len(pages) == 0 {
		return
	}
	for _, p := range pages {
		// A page of nulls has no bounds, but a damaged one might still contain a value.
		if p.decisive != nil || p.outside == nil || !atLeast(p.min, c.min) || !atLeast(c.max, p.max) {
			return
		}
	}
	for _, p := range pages {
		p.within = c
	}
	c.implied = true
}

// atLeast reports whether both bounds exist and a >= b.
func atLeast(a, b *pred.Value) bool {
	if a == nil || b == nil {
		return false
	}
	k, ok := pred.Compare(*a, *b)
	return ok && k >= 0
}

// count counts values, nulls, NaN and distinct values.
func (c *claim) count(v *order.View) {
	nulls := v.Nulls()
	c.nullsSeen += nulls
	if c.values += v.Entries() - nulls; c.seen == nil && c.nans < 0 {
		return
	}
	for i := range v.Leaf.Len() {
		if !v.Has(i) {
			continue
		}
		switch x := v.Leaf.(type) {
		case *array.Float64:
			c.nansSeen += order.BoolInt(math.IsNaN(x.Value(i)))
		case *array.Float32:
			c.nansSeen += order.BoolInt(math.IsNaN(float64(x.Value(i))))
		case *array.Float16:
			c.nansSeen += order.BoolInt(x.Value(i).IsNaN())
		}
		if c.seen != nil && int64(len(c.seen)) <= c.distinct {
			c.seen[v.Leaf.ValueStr(i)] = struct{}{}
		}
	}
}

// knownWrong is the code for statistics with a known fault of the program that wrote the file. None of our readers
// relies on them.
const knownWrong = "parquet.statistics.writer"

// nullsCode returns the code for a wrong number of nulls.
func (c *claim) nullsCode(r *read.Reader) string {
	if !r.CountsNulls(c.leaf.Column) && c.nulls <= c.nullsSeen { // no writer is known to count too many
		return knownWrong
	}
	return c.code
}

// likeRust reports whether a page of lists is said to have only nulls as parquet-rs says it, whatever program uses that
// library: if there are as many nulls as rows, though a list has several values. No reader prunes lists by it.
func (c *claim) likeRust(repeated bool) bool {
	return repeated && *c.allNull && c.nulls == c.nullsSeen && c.nulls == c.rows.Len()
}

// exactCode returns the code for a bound that is marked as exact but is not a value.
func (v *verifier) exactCode(c *claim) string {
	if v.proving || !v.r.ExactBounds() {
		return knownWrong
	}
	return c.code
}

// finish reports the violations that are known only after all rows have been seen.
func (v *verifier) finish(c *claim) {
	where := fmt.Sprintf("rows %d to %d of the row group", c.rows.From, c.rows.To)
	if c.nulls >= 0 && c.nulls != c.nullsSeen {
		v.find(c.nullsCode(v.r), fault.Corruptf(c.at, c.path+".null_count", "%d, there are %d (%s)", c.nulls,
			c.nullsSeen, where))
	}
	if c.allNull != nil && *c.allNull != (c.values == 0) {
		code := c.nullsCode(v.r)
		if c.likeRust(v.r.Footer.Schema.Column(c.leaf.Column).MaxRepetitionLevel() > 0) {
			code = knownWrong
		}
		v.find(code, fault.Corruptf(c.at, c.path+".null_pages", "%t, there are %s (%s)", *c.allNull,
			fault.Count(c.values, "value"), where))
	}
	if c.nans >= 0 && c.nans != c.nansSeen {
		v.find(c.code, fault.Corruptf(c.at, c.path+".nan_count", "%d, there are %d (%s)", c.nans, c.nansSeen, where))
	}
	if c.distinct >= 0 && (c.seen != nil && c.distinct != int64(len(c.seen)) || c.distinct > c.values) {
		v.find("parquet.statistics.distinct",
			fault.Corruptf(c.at, c.path+".distinct_count", "%d, there are %s (%s)", c.distinct, c.distinctSeen(),
				where))
	}
	for _, x := range c.exact {
		if !x.found && !c.reported {
			v.find(v.exactCode(c), fault.Corruptf(c.at, c.path+"."+x.name,
				"marked as exact, but no row has this value: %s (%s)", x.test, where))
		}
	}
}

func (c *claim) distinctSeen() string {
	switch n := int64(len(c.seen)); {
	case c.seen == nil:
		return fault.Count(c.values, "value")
	case n > c.distinct:
		return "more"
	default:
		return fmt.Sprint(n)
	}
}

// boundaryOrder compares the boundary order of a column index with its bounds. Pages of nulls are ignored.
func (v *verifier) boundaryOrder(l order.LeafField, x *meta.ColumnIndex, path string) {
	ascending := x.Order == 1
	if x.Order != 1 && x.Order != 2 || !v.r.Ordered(l.Column) {
		return
	}
	for k, bounds := range [][][]byte{x.Min, x.Max} {
		name := [...]string{"min_values", "max_values"}[k]
		var last *pred.Value
		for i, b := range bounds {
			if x.NullPages[i] {
				continue
			}
			now := v.r.StatsValue(l, b)
			if last != nil && now != nil {
				if k, ok := pred.Compare(*last, *now); ok && (ascending && k > 0 || !ascending && k < 0) {
					v.find("parquet.index.bounds",
						fault.Corruptf(x.At, path+".column_index.boundary_order",
							"%s, but the %s of page %d do not follow those before",
							meta.EnumName(meta.BoundaryOrders, x.Order), name, i))
					return
				}
			}
			last = now
		}
	}
}
