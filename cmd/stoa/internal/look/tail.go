package look

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/vec"
)

func TailCmd(a *cli.App) *cobra.Command {
	r := reading.Reading{}
	cmd := &cobra.Command{
		Use:   "tail PATH...",
		Short: "Print the last rows",
		Long: `Print the last rows (of those that --where and --rows select), 10 unless -n says
otherwise. Where the file says how many rows it has, only the last ones are read.`,
		Example: "  stoa tail -n 3 block.cfile\n  stoa tail logs/monday.csv --source-opt header=true -f jsonl",
		Args:    a.Paths,
		RunE:    func(cmd *cobra.Command, args []string) error { return r.Run(cmd.Context(), a, args, lastRows) },
	}
	r.Register(a, cmd)
	r.RegisterLimit(cmd, 10, "print the last `N` rows")
	return cli.First(cmd, "limit", "columns", "where")
}

// lastRows yields the last spec.Limit rows of a scan.
func lastRows(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (cli.Batches, error) {
	n := spec.Limit
	spec.Limit = 0
	if n <= 0 {
		return reading.WholeScan(ctx, t, spec)
	}
	if spec.Filter == nil && spec.Damaged != stoa.SkipRows {
		rows, err := t.Rows(ctx)
		if err != nil {
			return nil, err
		}
		if rows >= 0 {
			spec.Rows = LastOf(spec.Rows, rows, n)
			return reading.WholeScan(ctx, t, spec)
		}
	}
	return func(yield func(arrow.RecordBatch, error) bool) { keepLast(t.Scan(ctx, spec), n, yield) }, nil
}

// LastOf returns the last n of the wanted rows of a table with this many rows.
func LastOf(want vec.Range, rows, n int64) vec.Range {
	if want == (vec.Range{}) {
		want.To = rows
	}
	want.To = min(want.To, rows)
	want.From = max(want.From, want.To-n)
	if want.Len() == 0 {
		return source.NoRows
	}
	return want
}

// keepLast keeps the batches with the last n rows, and yields them, cut to n rows, at the end.
func keepLast(seq iter.Seq2[arrow.RecordBatch, error], n int64, yield func(arrow.RecordBatch, error) bool) {
	var kept []arrow.RecordBatch
	var rows int64
	defer func() {
		for _, b := range kept {
			b.Release()
		}
	}()
	for b, err := range seq {
		if err != nil {
			yield(nil, err)
			return
		}
		b.Retain()
		kept = append(kept, b)
		rows += b.NumRows()
		for rows-kept[0].NumRows() >= n {
			rows -= kept[0].NumRows()
			kept[0].Release()
			kept = kept[1:]
		}
	}
	for i, b := range kept {
		from := int64(0)
		if i == 0 {
			from = max(0, rows-n)
		}
		cut := b.NewSlice(from, b.NumRows())
		ok := yield(cut, nil)
		cut.Release()
		if !ok {
			return
		}
	}
}
