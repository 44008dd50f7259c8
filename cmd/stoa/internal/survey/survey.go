// Package survey counts the dates and times of a table that other systems read differently, or not at all: those before
// the Gregorian calendar, those outside of the years that engines know, and those that another type cannot hold.
package survey

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/internal/civil"
)

// Column is what was counted in a column, or in a field of one.
type Column struct {
	Column string `json:"column"`
	Values int64  `json:"values"` // that are not null
	First  string `json:"first"`  // the least day
	Last   string `json:"last"`   // the greatest day

	Julian  int64 `json:"before_1582_10_15"`    // days that Java's calendar and Spark before 3.0 count otherwise
	Far     int64 `json:"outside_years_1_9999"` // days that Python, SQL and many engines do not have
	Inexact int64 `json:"not_exact"`            // values that the type of the output cannot hold

	first, last int64
}

// Survey counts the values of batches of a schema.
type Survey struct {
	fields []node
	leaves []*leaf
}

// node is a column or field with dates or times in it.
type node struct {
	leaf     *leaf
	children []child
}

type child struct {
	at int
	node
}

// leaf is a column of dates or times.
type leaf struct {
	Column
	perDay int64 // units in a day
	fits   func(int64) bool
}

// New returns a survey of batches of schema in. out is the schema as which they will be read back; nil if it is not
// known.
func New(in, out *arrow.Schema) *Survey {
	s := &Survey{}
	for i, f := range in.Fields() {
		var to arrow.DataType
		if out != nil && i < out.NumFields() && out.Field(i).Name == f.Name {
			to = out.Field(i).Type
		}
		s.fields = append(s.fields, s.node(f.Name, f.Type, to))
	}
	return s
}

// Any reports whether there is anything to count.
func (s *Survey) Any() bool { return len(s.leaves) > 0 }

// Columns returns the names of the columns in which there is anything to count.
func (s *Survey) Columns(in *arrow.Schema) (names []string) {
	for i, n := range s.fields {
		if n.any() {
			names = append(names, in.Field(i).Name)
		}
	}
	return names
}

// Counts returns what was counted, for columns that have values.
func (s *Survey) Counts() (out []Column) {
	for _, l := range s.leaves {
		if l.Values > 0 {
			c := l.Column
			c.First, c.Last = dayText(c.first), dayText(c.last)
			out = append(out, c)
		}
	}
	return out
}

func dayText(day int64) string {
	y, m, d := civil.Date(day)
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d)
}

func (n node) any() bool { return n.leaf != nil || len(n.children) > 0 }

// node finds the dates and times of a type.
func (s *Survey) node(name string, t, to arrow.DataType) node {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return s.node(name, t.ValueType, to)
	case arrow.ExtensionType:
		return s.node(name, t.StorageType(), to)
	case *arrow.Date32Type:
		return s.leaf(name, 1, nil)
	case *arrow.Date64Type:
		day := perDay(arrow.Millisecond)
		if _, ok := to.(*arrow.Date32Type); !ok {
			return s.leaf(name, day, nil)
		}
		return s.leaf(name, day, func(v int64) bool { return v%day == 0 })
	case *arrow.TimestampType:
		return s.leaf(name, perDay(t.Unit), fitting(t.Unit, to))
	case arrow.NestedType:
		var n node
		other, _ := to.(arrow.NestedType)
		for i, f := range t.Fields() {
			var in arrow.DataType
			if other != nil && len(other.Fields()) == len(t.Fields()) {
				in = other.Fields()[i].Type
			}
			if c := s.node(name+"."+f.Name, f.Type, in); c.any() {
				n.children = append(n.children, child{i, c})
			}
		}
		return n
	}
	return node{}
}

func (s *Survey) leaf(name string, perDay int64, fits func(int64) bool) node {
	l := &leaf{Column: Column{Column: name, first: math.MaxInt64, last: math.MinInt64}, perDay: perDay, fits: fits}
	s.leaves = append(s.leaves, l)
	return node{leaf: l}
}

func perDay(u arrow.TimeUnit) int64 { return 86400 * perSecond(u) }

func perSecond(u arrow.TimeUnit) int64 {
	return map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6,
		arrow.Nanosecond: 1e9}[u]
}

// fitting returns a function that reports whether a timestamp of the unit can be stored as type to; nil if all can.
func fitting(u arrow.TimeUnit, to arrow.DataType) func(int64) bool {
	t, ok := to.(*arrow.TimestampType)
	if !ok || t.Unit == u {
		return nil
	}
	if from, into := perSecond(u), perSecond(t.Unit); from > into {
		return func(v int64) bool { return v%(from/into) == 0 }
	} else {
		most := int64(math.MaxInt64) / (into / from)
		return func(v int64) bool { return v >= -most && v <= most }
	}
}

// Add counts the values of a batch.
func (s *Survey) Add(b arrow.RecordBatch) {
	for i, n := range s.fields {
		if n.any() && i < int(b.NumCols()) {
			n.add(b.Column(i), 0, int(b.NumRows()))
		}
	}
}

// add counts the values from to to of an array. Values below a null do not count.
func (n node) add(a arrow.Array, from, to int) {
	switch x := a.(type) {
	case *array.Dictionary:
		for i := from; i < to; i++ {
			if k := 0; x.IsValid(i) {
				k = x.GetValueIndex(i)
				n.add(x.Dictionary(), k, k+1)
			}
		}
		return
	case array.ExtensionArray:
		n.add(x.Storage(), from, to)
		return
	case *array.Struct:
		runs(x, from, to, func(from, to int) {
			for _, c := range n.children {
				c.add(x.Field(c.at), from, to)
			}
		})
		return
	case *array.Map:
		runs(x, from, to, func(from, to int) {
			start, _ := x.ValueOffsets(from)
			_, end := x.ValueOffsets(to - 1)
			for _, c := range n.children {
				part := x.Keys()
				if c.at == 1 {
					part = x.Items()
				}
				c.add(part, int(start), int(end))
			}
		})
		return
	case array.ListLike:
		for i := from; i < to; i++ {
			if x.IsValid(i) {
				start, end := x.ValueOffsets(i)
				n.children[0].add(x.ListValues(), int(start), int(end))
			}
		}
		return
	}
	if value := valueOf(a); value != nil && n.leaf != nil {
		for i := from; i < to; i++ {
			if a.IsValid(i) {
				n.leaf.count(value(i))
			}
		}
	}
}

// runs calls do with each run of rows that are not null.
func runs(a arrow.Array, from, to int, do func(from, to int)) {
	if a.NullN() == 0 && from < to {
		do(from, to)
		return
	}
	for i := from; i < to; {
		if a.IsNull(i) {
			i++
			continue
		}
		j := i + 1
		for j < to && a.IsValid(j) {
			j++
		}
		do(i, j)
		i = j
	}
}

func valueOf(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Date32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Date64:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Timestamp:
		return func(i int) int64 { return int64(a.Value(i)) }
	}
	return nil
}

var gregorian, yearOne, yearEnd = civil.Days(1582, 10, 15), civil.Days(1, 1, 1), civil.Days(9999, 12, 31)

func (l *leaf) count(v int64) {
	day := civil.FloorDiv(v, l.perDay)
	l.Values++
	l.first, l.last = min(l.first, day), max(l.last, day)
	if day < gregorian {
		l.Julian++
	}
	if day < yearOne || day > yearEnd {
		l.Far++
	}
	if l.fits != nil && !l.fits(v) {
		l.Inexact++
	}
}
