package parquet

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/vec"
)

// batchesOf scans fields of a row group; rows is a range in it, zero: all.
func batchesOf(ctx context.Context, r *reader, g format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	spec := scan.Spec{Columns: []string{}, Alloc: mem}
	for _, c := range q.Cols {
		spec.Columns = append(spec.Columns, r.Shown.Field(c).Name)
	}
	base, n := int64(0), r.Footer.RowGroups[g.Index].NumRows
	for _, x := range r.Footer.RowGroups[:g.Index] {
		base += x.NumRows
	}
	if rows == (vec.Range{}) {
		rows.To = n
	}
	spec.Rows = vec.Range{From: base + rows.From, To: base + min(rows.To, n)}
	return scanned(ctx, r, spec)
}

// scanned scans a reader.
func scanned(ctx context.Context, r *reader, spec scan.Spec) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		objects := scan.NewObjects(r.Target.Tree)
		defer objects.Close()
		src := scan.Source{Reader: r, Objects: objects, Dicts: scan.NewDicts(), Limits: r.Limits, NoVerify: r.NoVerify}
		for b, err := range scan.Run(ctx, src, spec, nil) {
			if !yield(b, err) {
				return
			}
		}
	}
}
