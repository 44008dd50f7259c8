package verify

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/read"
	"stoa/pred"
	"stoa/vec"
)

// groupSaid is what the footer says of a column chunk; nil: nothing.
func groupSaid(r *read.Reader, group, column int) *meta.Said {
	return r.Footer.RowGroups[group].Columns[column].MetaData.Statistics
}

// leavesOf are the columns of a field, those in lists and maps, too.
func leavesOf(r *read.Reader, f int) (out []order.LeafField) {
	for _, k := range r.FieldLeaves[f] {
		out = append(out, r.LeafOf(k))
	}
	return out
}

// claim is one thing that the file says of the values of a leaf in some rows of a row group, and what has been
// seen of them.
type claim struct {
	code, path string
	at         fault.Span
	rows       vec.Range
	leaf       order.LeafField

	outside   *pred.Expr // a value that the bounds exclude; nil = they exclude none
	low, high []byte     // the same bounds as bytes, in the order of these
	// whether such a value is outside by any order that a writer may have had; nil: by the only one
	decisive func(a arrow.Array, i int) bool
	reached  []*reach // bounds that are said to occur
	nulls    int64    // -1 = not said
	nans     int64
	distinct int64
	none     *bool

	values, nullsSeen, nansSeen int64
	// distinct values; nil: nobody asks, or they are too many to be counted
	seen map[string]struct{}
	told bool
}

// reach is a bound that is said to be a value.
type reach struct {
	name  string
	test  *pred.Expr
	found bool
}

// mostDistinct is how many values are counted apart from each other.
const mostDistinct = 1 << 20

// statements makes claims of what is said at one place. Bytes that are no value of the type are told at once.
func (v *verifier) statements(l order.LeafField, c claim, s *meta.Said) (out []*claim) {
	c.leaf, c.nulls, c.nans, c.distinct = l, -1, -1, -1
	first := c
	first.none = s.None
	if s.Nulls != nil {
		if first.nulls = *s.Nulls; first.nulls < 0 {
			v.find(c.code, fault.Corruptf(c.at, c.path+".null_count", "%d", first.nulls))
			first.nulls = -1
		}
	}
	if first.distinct = -1; s.Distinct != nil {
		if first.distinct = max(*s.Distinct, 0); first.distinct <= mostDistinct {
			first.seen = map[string]struct{}{}
		}
	}
	if floating(l.Typ) && s.Nans != nil {
		first.nans = *s.Nans
	}
	if v.r.Ordered(l.Column) {
		low, high := v.bound(l, c, "min_value", s.Min), v.bound(l, c, "max_value", s.Max)
		if first.outside = beyond(l, low, high); v.r.Footer.Schema.Column(l.Column).PhysicalType() == meta.TypeBytes {
			first.low, first.high = s.Min, s.Max
		}
		first.reached = append(reaches("min_value", low, s.MinExact && !floating(l.Typ)),
			reaches("max_value", high, s.MaxExact && !floating(l.Typ))...)
	}
	out = append(out, &first)
	if s.OldMin != nil || s.OldMax != nil {
		old := c
		old.path += ".min/max"
		v.oldBounds(&old, s)
		out = append(out, &old)
	}
	return out
}

// bound is a bound as a value; nil if there is none or it says nothing.
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
	x := v.r.Value(l, b)
	if x != nil && x.Kind == pred.KindFloat && math.IsNaN(x.Float) {
		return nil // some writers leave it there; nobody believes it
	}
	return x
}

// physicalSize is how many bytes a bound of a type has; 0: it varies.
var physicalSize = map[meta.Physical]int64{meta.TypeBoolean: 1, meta.TypeInt32: 4, meta.TypeInt64: 8,
	meta.TypeInt96: 12,
	meta.TypeFloat: 4, meta.TypeDouble: 8}

func floating(t arrow.DataType) bool {
	return t.ID() == arrow.FLOAT16 || t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT64
}

func reaches(name string, v *pred.Value, exact bool) []*reach {
	if v == nil || !exact {
		return nil
	}
	return []*reach{{name: name, test: pred.Test(order.LeafName, pred.OpEq, *v)}}
}

// beyond is true for values outside of the bounds; nil if there are none.
func beyond(l order.LeafField, low, high *pred.Value) *pred.Expr {
	var out []*pred.Expr
	if low != nil {
		out = append(out, pred.Test(order.LeafName, pred.OpLt, *low))
	}
	if high != nil {
		more := pred.Test(order.LeafName, pred.OpGt, *high)
		if floating(l.Typ) { // NaN is never in the bounds
			more = pred.And(more, pred.Test(order.LeafName, pred.OpNe, pred.Float(math.NaN())))
		}
		out = append(out, more)
	}
	if out == nil {
		return nil
	}
	return pred.Or(out...)
}

// oldBounds makes a claim of min and max, whose order was never written down: writers compared signed what is
// stored, bytes, too. So numbers that are signed can be held against them; of others only what is the same in
// either order: unsigned numbers without their highest bit, and bytes up to the first that differs, if that is
// ASCII in both. Of INT96, intervals, and decimals and FLOAT16 in bytes nothing is known.
func (v *verifier) oldBounds(c *claim, s *meta.Said) {
	l, low, high := c.leaf, v.bound(c.leaf, *c, "min", s.OldMin), v.bound(c.leaf, *c, "max", s.OldMax)
	physical := v.r.Footer.Schema.Column(l.Column).PhysicalType()
	text := physical == meta.TypeBytes || physical == meta.TypeFixed && !floating(l.Typ)
	_, decimal := l.Typ.(arrow.DecimalType)
	switch {
	case read.Signed(l.Typ), decimal && !text:
		c.outside = beyond(l, low, high)
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
		if e := beyond(l, below(low), below(high)); e != nil {
			c.outside = pred.And(e, pred.Test(order.LeafName, pred.OpLe, half))
		}
	case text && !decimal:
		if !ascii(s.OldMin) {
			low = nil
		}
		if !ascii(s.OldMax) {
			high = nil
		}
		c.outside = beyond(l, low, high)
		c.decisive = func(a arrow.Array, i int) bool { return decisive(leafBytes(a, i), s.OldMin, s.OldMax) }
	}
}

func ascii(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 }) }

// decisive reports whether b, which unsigned is outside of the bounds, is so, too, if bytes are signed.
func decisive(b, low, high []byte) bool {
	signed := func(x, y []byte) int {
		return slices.CompareFunc(x, y, func(p, q byte) int { return int(int8(p)) - int(int8(q)) })
	}
	return low != nil && ascii(low) && signed(b, low) < 0 || high != nil && ascii(high) && signed(b, high) > 0
}

// leafBytes is a value of a column of strings or bytes.
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

// hold looks at the rows of a batch that c is about; the batch begins with row at of the row group.
func (c *claim) hold(b arrow.RecordBatch, at int64) error {
	mine := vec.Range{From: c.rows.From - at, To: c.rows.To - at}.Intersect(vec.Range{To: b.NumRows()})
	if mine.Len() == 0 {
		return nil
	}
	rows := array.NewSlice(b.Column(0), mine.From, mine.To)
	defer rows.Release()
	view := order.LeafView(rows, c.leaf.Path[1:])
	c.count(view)
	for _, x := range c.reached {
		if !x.found {
			at, err := view.First(x.test, nil)
			if err != nil {
				return err
			}
			x.found = at >= 0
		}
	}
	if c.outside == nil || c.told {
		return nil
	}
	k, known, err := -1, false, error(nil)
	if c.low != nil || c.high != nil {
		k, known = view.FirstBeyond(c.low, c.high)
	}
	if !known {
		k, err = view.First(c.outside, c.decisive)
	}
	if err != nil || k < 0 {
		return err
	}
	c.told = true
	return fault.Corruptf(c.at, c.path, "the value in row %d of the row group is not within them (%s)",
		at+mine.From+view.Row(k), c.outside)
}

// count counts what is said to be so many.
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
			c.nansSeen += order.One(math.IsNaN(x.Value(i)))
		case *array.Float32:
			c.nansSeen += order.One(math.IsNaN(float64(x.Value(i))))
		case *array.Float16:
			c.nansSeen += order.One(x.Value(i).IsNaN())
		}
		if c.seen != nil && int64(len(c.seen)) <= c.distinct {
			c.seen[v.Leaf.ValueStr(i)] = struct{}{}
		}
	}
}

// conclude tells what is wrong when all rows have been seen.
func (v *verifier) conclude(c *claim) {
	where := fmt.Sprintf("rows %d to %d of the row group", c.rows.From, c.rows.To)
	if c.nulls >= 0 && c.nulls != c.nullsSeen {
		v.find(c.code, fault.Corruptf(c.at, c.path+".null_count", "%d, there are %d (%s)", c.nulls, c.nullsSeen, where))
	}
	if c.none != nil && *c.none != (c.values == 0) {
		v.find(c.code, fault.Corruptf(c.at, c.path+".null_pages", "%t, there are %d values (%s)", *c.none, c.values,
			where))
	}
	if c.nans >= 0 && c.nans != c.nansSeen {
		v.find(c.code, fault.Corruptf(c.at, c.path+".nan_count", "%d, there are %d (%s)", c.nans, c.nansSeen, where))
	}
	if c.distinct >= 0 && (c.seen != nil && c.distinct != int64(len(c.seen)) || c.distinct > c.values) {
		v.find("parquet.statistics.distinct",
			fault.Corruptf(c.at, c.path+".distinct_count", "%d, there are %s (%s)", c.distinct, c.distinctSeen(),
				where))
	}
	for _, x := range c.reached {
		if !x.found && !c.told {
			v.find(c.code, fault.Corruptf(c.at, c.path+"."+x.name,
				"said to be exact, but no row has this value: %s (%s)", x.test, where))
		}
	}
}

func (c *claim) distinctSeen() string {
	switch n := int64(len(c.seen)); {
	case c.seen == nil:
		return fmt.Sprintf("%d values", c.values)
	case n > c.distinct:
		return "more"
	default:
		return fmt.Sprint(n)
	}
}

// boundaryOrder holds the order that a column index says its bounds are in against them. Pages of nulls have none.
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
			now := v.r.Value(l, b)
			if last != nil && now != nil {
				if k, ok := pred.Compare(*last, *now); ok && (ascending && k > 0 || !ascending && k < 0) {
					v.find("parquet.index.bounds",
						fault.Corruptf(x.At, path+".column_index.boundary_order",
							"%s, but the %s of page %d are not behind those before",
							meta.Named(meta.Orders, x.Order), name, i))
					return
				}
			}
			last = now
		}
	}
}
