package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/parquet/internal/order"
	"stoa/internal/thrift"
)

// planSort finds the sorting columns.
func (w *Writer) planSort() error {
	for k := range w.o.sort {
		key := &w.o.sort[k]
		found := false
		for i, f := range w.stored.Fields() {
			for at := w.first[i]; at < len(w.cols) && (i+1 == len(w.first) || at < w.first[i+1]); at++ {
				c := w.cols[at]
				if c.dotted() != key.Name {
					continue
				}
				if found = true; c.MaxRep > 0 || !sortable(c.Leaf.Type) {
					return fault.Invalidf(
						"sorting-columns: column %q of type %s has no order: it is in a list, or an interval",
						key.Name, f.Type)
				}
				key.Leaf = order.LeafField{Path: append([]int{i}, c.Leaf.Path...), Column: at, Typ: c.Leaf.Type}
			}
		}
		if !found {
			return fault.Invalidf("sorting-columns=%s: there is no such column", key.Name)
		}
	}
	return nil
}

// sortable reports whether values of t can be compared.
func sortable(t arrow.DataType) bool {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return sortable(t.StorageType())
	case *arrow.DictionaryType:
		return sortable(t.ValueType)
	case *arrow.NullType, *arrow.MonthIntervalType, *arrow.DayTimeIntervalType, *arrow.MonthDayNanoIntervalType:
		return false
	}
	return true
}

// checkOrder checks that rows are in the promised order within their row group.
func (w *Writer) checkOrder(b arrow.RecordBatch) error {
	if len(w.o.sort) == 0 || b.NumRows() == 0 {
		return nil
	}
	keys := keyViews(w.o.sort, func(k int) arrow.Array { return b.Column(w.o.sort[k].Leaf.Path[0]) })
	for i := range int(b.NumRows()) {
		before, j := keys, i-1
		if i == 0 {
			if w.last == nil { // the row group begins here
				continue
			}
			before, j = keyViews(w.o.sort, func(k int) arrow.Array { return w.last[k] }), 0
		}
		if k := order.OutOfOrder(w.o.sort, before, j, keys, i); k != nil {
			return fault.Invalidf("sorting-columns: row %d should come before row %d by %s (%s)", w.rows+int64(i),
				w.rows+int64(i)-1, k.Name, k)
		}
	}
	w.dropLast()
	for _, k := range w.o.sort { // a copy, because the batch belongs to the caller
		row := array.NewSlice(b.Column(k.Leaf.Path[0]), b.NumRows()-1, b.NumRows())
		one, err := array.Concatenate([]arrow.Array{row}, w.mem)
		row.Release()
		if err != nil {
			return err
		}
		w.last = append(w.last, one)
	}
	return nil
}

// dropLast releases the last row.
func (w *Writer) dropLast() {
	for _, a := range w.last {
		a.Release()
	}
	w.last = nil
}

// keyViews returns views of the keys' leaves in their columns.
func keyViews(keys []order.SortKey, column func(k int) arrow.Array) []*order.View {
	out := make([]*order.View, len(keys))
	for k := range keys {
		out[k] = order.LeafView(column(k), keys[k].Leaf.Path[1:])
	}
	return out
}

// writeSorting writes sorting_columns of a RowGroup.
func writeSorting(t *thrift.Writer, keys []order.SortKey) {
	if len(keys) == 0 {
		return
	}
	t.List(4, thrift.Struct, len(keys))
	for _, k := range keys {
		t.Struct(thrift.Item)
		t.I32(1, int32(k.Leaf.Column))
		t.Bool(2, k.Descending)
		t.Bool(3, k.NullsFirst)
		t.End()
	}
}
