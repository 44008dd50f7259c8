package lake

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// A catalogue states more about a file than its name: its size, the bounds and nulls of columns, the values of its
// partition. A file that contradicts any of these is not the file that was committed, whatever its rows look like, and
// none of its rows are returned.

// Sized returns damage if a file does not exist, or if its size differs from the one in the catalogue.
func Sized(ctx context.Context, tree store.Tree, name, catalogue string, size int64) error {
	info, err := tree.Stat(ctx, name)
	if err != nil {
		return Missing(err, name, catalogue)
	}
	if info.Size != size {
		return fault.Corruptf(fault.Span{Object: name}, "", "expected %d bytes as %s says, found %d: this is not the "+
			"file that was committed", size, catalogue, info.Size)
	}
	return nil
}

// SizeFinding converts the damage found by Sized to a finding, for a listing; other errors are returned.
func SizeFinding(ctx context.Context, tree store.Tree, name, catalogue string, size int64) ([]region.Finding, error) {
	err := Sized(ctx, tree, name, catalogue, size)
	e := new(fault.Error)
	if !errors.As(err, &e) || e.Class != fault.Corrupt {
		return nil, err
	}
	return []region.Finding{{Code: "file.unreadable", Severity: region.Error, At: e.At, Path: e.Path,
		Message: e.Reason, Rows: [2]int64{-1, -1}, Lost: -1}}, nil
}

// held compares the facts about columns in the footer of a file with the catalogue.
func (t *Table) held(f *openInput) error {
	if f.in.LiveBounds { // the footer has bounds of all rows
		return nil
	}
	for i, n := range f.fields {
		k := leafOf(f.plain.Columns(), n.index)
		if k < 0 {
			continue
		}
		name := t.c.Schema.Field(i).Name
		said, known := f.in.Bounds[i]
		if v := f.in.Values[i]; v != nil {
			said, known = onlyValue(t.c.Schema.Field(i).Type, v)
		}
		if !known {
			continue
		}
		nulls := int64(0)
		for _, g := range f.groups {
			own, ok := g.Bounds[k]
			if !ok || own.Nulls < 0 || nulls < 0 {
				nulls = -1
			} else {
				nulls += own.Nulls
			}
			if ok && own.Min != nil && own.Max != nil && contradicts(&said, &own) {
				return fault.Corruptf(fault.Span{Object: f.in.Name}, name, "expected %s as %s says, found values from "+
					"%s to %s in row group %d", describe(&said), t.c.Catalogue, own.Min, own.Max, g.Index)
			}
		}
		if said.Nulls >= 0 && nulls >= 0 && said.Nulls != nulls {
			return fault.Corruptf(fault.Span{Object: f.in.Name}, name, "expected %s as %s says, found %d",
				fault.Count(said.Nulls, "null"), t.c.Catalogue, nulls)
		}
	}
	return nil
}

// leafOf returns the column of a file that is its field number from, provided that it is neither nested nor repeated;
// otherwise -1.
func leafOf(columns []format.Column, from int) int {
	for k, c := range columns {
		if from >= 0 && len(c.Path) == 1 && c.Path[0] == from && c.MaxRep == 0 && c.Parent < 0 {
			return k
		}
	}
	return -1
}

// onlyValue returns the bounds of a column that has the same value in all rows of a file.
func onlyValue(t arrow.DataType, a arrow.Array) (b pred.Bounds, ok bool) {
	b = pred.Bounds{Nulls: -1, Rows: -1}
	if a.IsNull(0) {
		return b, true
	}
	v, ok := ValueOf(t, a, 0)
	b.Min, b.Max, b.Nulls = &v, &v, 0
	return b, ok
}

func describe(b *pred.Bounds) string {
	if b.Min == nil || b.Max == nil {
		return "only nulls"
	}
	return fmt.Sprintf("values from %s to %s", b.Min, b.Max)
}

// contradicts reports whether the bounds of a file exclude those in the catalogue. Bounds of texts may be outside of
// all values, on either side, so texts contradict only if the two ranges do not overlap.
func contradicts(said, own *pred.Bounds) bool {
	if said.Min == nil || said.Max == nil {
		return said.Rows < 0 && said.Nulls < 0 // a partition of nulls
	}
	if isNaN(said.Min) || isNaN(said.Max) {
		return false
	}
	text := own.Min.Kind == pred.KindString || own.Min.Kind == pred.KindBytes
	return above(own.Min, said.Max) || !own.MaxCut && above(said.Min, own.Max) ||
		!text && (above(said.Min, own.Min) || above(own.Max, said.Max))
}

// above reports whether a is greater than b.
func above(a, b *pred.Value) bool {
	c, ok := pred.Compare(*a, *b)
	return ok && c > 0
}

func isNaN(v *pred.Value) bool { return v.Kind == pred.KindFloat && v.Float != v.Float }

// Held implements format.Holder: values outside of the bounds in the catalogue are damage.
func (t *Table) Held(g format.RowGroup, b arrow.RecordBatch) error {
	in, err := t.input(g.Part)
	if err != nil {
		return err
	}
	for i, f := range t.c.Schema.Fields() {
		said, ok := in.Bounds[i]
		if !ok || said.Min == nil || said.Max == nil || in.Values[i] != nil || isNaN(said.Min) || isNaN(said.Max) {
			continue
		}
		a := b.Column(i)
		for r := range a.Len() {
			if a.IsNull(r) {
				continue
			}
			v, ok := ValueOf(f.Type, a, r)
			if !ok {
				break
			}
			if !isNaN(&v) && (above(said.Min, &v) || above(&v, said.Max)) {
				return fault.Corruptf(fault.Span{Object: in.Name}, f.Name, "expected %s as %s says, found %s",
					describe(&said), t.c.Catalogue, v)
			}
		}
	}
	return nil
}

// ValueOf returns value i of an array, for predicates; ok is false for types that have no order there.
func ValueOf(t arrow.DataType, a arrow.Array, i int) (v pred.Value, ok bool) {
	switch x := a.(type) {
	case *array.String:
		return pred.String(x.Value(i)), true
	case *array.Binary:
		return pred.Bytes(x.Value(i)), true
	case *array.Int8:
		return pred.Int(int64(x.Value(i))), true
	case *array.Int16:
		return pred.Int(int64(x.Value(i))), true
	case *array.Int32:
		return pred.Int(int64(x.Value(i))), true
	case *array.Int64:
		return pred.Int(x.Value(i)), true
	case *array.Float32:
		return pred.Float(float64(x.Value(i))), true
	case *array.Float64:
		return pred.Float(x.Value(i)), true
	case *array.Boolean:
		return pred.Bool(x.Value(i)), true
	case *array.Date32:
		return pred.Date(int64(x.Value(i))), true
	case *array.Time64:
		return pred.Typed(t, int64(x.Value(i))), true
	case *array.Timestamp:
		return pred.Typed(t, int64(x.Value(i))), true
	case *array.Decimal128:
		return pred.Decimal(x.Value(i), t.(*arrow.Decimal128Type).Scale), true
	}
	return pred.Value{}, false
}
