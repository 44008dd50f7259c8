// Package altered counts the values that a writer changes because options ask for it, or because of their types.
package altered

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/internal/content"
)

// Counts counts the values that the writer changes because options ask for it. nil means that there are none.
type Counts struct {
	list   []format.Alteration
	fields []int // of the schema, one each
	values []int64
}

// New returns the counts for the columns of a schema.
func New(sc *arrow.Schema, list []format.Alteration) *Counts {
	a := &Counts{}
	for _, x := range list {
		for i, f := range sc.Fields() {
			if f.Name == x.Column {
				a.list, a.fields = append(a.list, x), append(a.fields, i)
			}
		}
	}
	if a.list == nil {
		return nil
	}
	a.values = make([]int64, len(a.list))
	return a
}

// Add counts the values of a batch that are changed.
func (a *Counts) Add(b arrow.RecordBatch) {
	if a == nil {
		return
	}
	for k, x := range a.list {
		c := b.Column(a.fields[k])
		for i := range c.Len() {
			if x.Changed(c, i) {
				a.values[k]++
			}
		}
	}
}

// Total returns how many values were changed.
func (a *Counts) Total() (n int64) {
	for _, c := range a.Columns() {
		n += c.Values
	}
	return n
}

// Columns returns the columns in which at least one value was changed, with the counts.
func (a *Counts) Columns() (out []format.Altered) {
	if a == nil {
		return nil
	}
	for k, x := range a.list {
		if a.values[k] > 0 {
			out = append(out, format.Altered{Column: x.Column, Option: x.Option, Values: a.values[k]})
		}
	}
	return out
}

// Round makes a plan expect timestamps as they will be written, that is, rounded.
func (a *Counts) Round(p *content.Plan) {
	if a == nil {
		return
	}
	for k, x := range a.list {
		if x.Unit > 0 {
			p.Round(a.fields[k], x.Unit, x.Nearest)
		}
	}
}

// Unknown returns the fields, and their names, whose values were changed in a way that cannot be predicted.
func (a *Counts) Unknown() (fields []int, names []string) {
	if a == nil {
		return nil, nil
	}
	for k, x := range a.list {
		if a.values[k] > 0 && x.Unit == 0 && !slices.Contains(fields, a.fields[k]) {
			fields, names = append(fields, a.fields[k]), append(names, x.Column)
		}
	}
	return fields, names
}

// Rounds reports whether converting floats of type from to type to loses precision: 0.1 then has to become another
// number.
func Rounds(from, to arrow.DataType) bool {
	if arrow.IsFloating(from.ID()) && arrow.IsFloating(to.ID()) {
		return from.(arrow.FixedWidthDataType).BitWidth() > to.(arrow.FixedWidthDataType).BitWidth()
	}
	a, ok1 := from.(arrow.NestedType)
	b, ok2 := to.(arrow.NestedType)
	if !ok1 || !ok2 || len(a.Fields()) != len(b.Fields()) {
		return false
	}
	for i, f := range a.Fields() {
		if Rounds(f.Type, b.Fields()[i].Type) {
			return true
		}
	}
	return false
}
