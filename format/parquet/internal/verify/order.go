package verify

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/read"
)

// sortKeys returns the sorting columns of a row group up to the first that cannot be compared, because it is in a list
// or has no order.
func sortKeys(r *read.Reader, group int) (keys []order.SortKey, err error) {
	for i, s := range r.Footer.RowGroups[group].SortingColumns {
		if s.ColumnIdx < 0 || int(s.ColumnIdx) >= r.Footer.Schema.NumColumns() {
			return keys, fault.Corruptf(r.FooterAt,
				fmt.Sprintf("row_groups[%d].sorting_columns[%d].column_idx", group, i),
				"there is no such column: the schema has %d", r.Footer.Schema.NumColumns())
		}
		k := slices.IndexFunc(r.FlatLeaves, func(l order.LeafField) bool { return l.Column == int(s.ColumnIdx) })
		d := r.Footer.Schema.Column(int(s.ColumnIdx))
		if k < 0 || d.PhysicalType() == meta.TypeInt96 || d.Interval() {
			break
		}
		keys = append(keys, order.SortKey{Leaf: r.FlatLeaves[k], Name: d.Path(), Descending: s.Descending,
			NullsFirst: s.NullsFirst})
	}
	return keys, nil
}

// rowOrder compares the rows of a row group with sorting_columns. Unreadable columns are ignored: they have already
// been reported.
func (v *verifier) rowOrder(group int) {
	keys, err := sortKeys(v.r, group)
	v.find("parquet.order", err)
	var cols []int
	for _, k := range keys {
		cols = append(cols, k.Leaf.Path[0])
	}
	slices.Sort(cols)
	if cols = slices.Compact(cols); v.Stopped() || len(cols) == 0 {
		return
	}
	var last []*order.View
	var held arrow.RecordBatch
	defer func() {
		if held != nil {
			held.Release()
		}
	}()
	end := int64(0) // of the rows before this batch
	for b, err := range v.r.RowBatches(v.ctx, group, cols) {
		if err != nil {
			v.findUnlessDamage("parquet.order", err)
			return
		}
		now := make([]*order.View, len(keys))
		for i, k := range keys {
			at, _ := slices.BinarySearch(cols, k.Leaf.Path[0])
			now[i] = order.LeafView(b.Column(at), k.Leaf.Path[1:])
		}
		for i := range int(b.NumRows()) {
			before, j := now, i-1
			if i == 0 {
				if last == nil {
					continue
				}
				before, j = last, last[0].Leaf.Len()-1
			}
			if k := order.OutOfOrder(keys, before, j, now, i); k != nil {
				row := end + int64(i)
				v.base.Rows[0], v.base.Lost = v.base.Rows[0]+row, 0
				v.base.Rows[1] = v.base.Rows[0] + 1
				v.base.Column = v.r.Shown.Field(k.Leaf.Path[0]).Name
				v.find("parquet.order", fault.Corruptf(v.r.FooterAt,
					fmt.Sprintf("row_groups[%d].sorting_columns", group),
					"row %d of the row group should come before row %d by %s (%s)", row, row-1, k.Name, k))
				return
			}
		}
		if end += b.NumRows(); b.NumRows() > 0 {
			b.Retain()
			if held != nil {
				held.Release()
			}
			last, held = now, b
		}
	}
}
