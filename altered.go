package stoa

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/internal/alter"
	"stoa/internal/content"
)

// alterations counts the values that the writer changes because options ask for it. nil means that there are none.
type alterations struct {
	list   []format.Alteration
	fields []int // of the schema, one each
	values []int64
}

func newAlterations(sc *arrow.Schema, list []format.Alteration) *alterations {
	a := &alterations{}
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

// add counts the values of a batch that are changed.
func (a *alterations) add(b arrow.RecordBatch) {
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

// columns returns the columns in which at least one value was changed, with the counts.
func (a *alterations) columns() (out []format.Altered) {
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

// round makes a plan expect timestamps as they will be written, that is, rounded.
func (a *alterations) round(p *content.Plan) {
	if a == nil {
		return
	}
	for k, x := range a.list {
		if x.Unit > 0 {
			p.Round(a.fields[k], x.Unit, x.Nearest)
		}
	}
}

// unknown returns the fields, and their names, whose values were changed in a way that cannot be predicted.
func (a *alterations) unknown() (fields []int, names []string) {
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

// rowsWith finds the rows of the table whose keys are in k.
func (c *Changer) rowsWith(ctx context.Context, k *alter.Keys) (out []format.RowsOfFile, err error) {
	t, err := c.open(ctx, c.change.Positions)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	columns := append([]string{}, c.change.PositionColumns[:]...)
	for _, name := range k.Columns {
		columns = append(columns, t.Schema().Field(fieldNamed(t.Schema(), name)).Name)
	}
	for b, err := range t.Scan(ctx, ScanSpec{Alloc: c.Alloc, Columns: columns}) {
		if err != nil {
			return nil, err
		}
		files, rows := b.Column(0).(*array.String), b.Column(1).(*array.Int64)
		for i := range int(b.NumRows()) {
			key, ok := k.Key(b, i)
			hit, has := k.Seen[key]
			if !ok || !has {
				continue
			}
			if !hit {
				k.Seen[key] = true
				k.Found++
			}
			if n := len(out); n == 0 || out[n-1].File != files.Value(i) {
				out = append(out, format.RowsOfFile{File: strings.Clone(files.Value(i))})
			}
			out[len(out)-1].Rows = append(out[len(out)-1].Rows, rows.Value(i))
		}
	}
	return out, nil
}

// rounds reports whether converting floats of type from to type to loses precision: 0.1 then has to become another
// number.
func rounds(from, to arrow.DataType) bool {
	if arrow.IsFloating(from.ID()) && arrow.IsFloating(to.ID()) {
		return from.(arrow.FixedWidthDataType).BitWidth() > to.(arrow.FixedWidthDataType).BitWidth()
	}
	a, ok1 := from.(arrow.NestedType)
	b, ok2 := to.(arrow.NestedType)
	if !ok1 || !ok2 || len(a.Fields()) != len(b.Fields()) {
		return false
	}
	for i, f := range a.Fields() {
		if rounds(f.Type, b.Fields()[i].Type) {
			return true
		}
	}
	return false
}
