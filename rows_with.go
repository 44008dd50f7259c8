package stoa

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/internal/alter"
)

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
