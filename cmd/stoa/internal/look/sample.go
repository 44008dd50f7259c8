package look

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/internal/sorted"
	"stoa/vec"
)

// sampleFlags choose rows at random.
type sampleFlags struct {
	rows int64
	seed uint64
}

func (f *sampleFlags) register(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&f.rows, "sample", 0, "print `N` rows chosen at random, in their order; all have the same "+
		"chance, and N rows are kept in memory")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "with --sample: another `NUMBER` chooses other rows (default 0)")
}

// run prints the sample, or, if none is asked for, the rows that the function rows returns.
func (f *sampleFlags) run(cmd *cobra.Command, a *cli.App, r *reading.Reading, args []string,
	rows func(context.Context, *stoa.Table, stoa.ScanSpec) (cli.Batches, error)) error {
	fl := cmd.Flags()
	switch {
	case !fl.Changed("sample") && fl.Changed("seed"):
		return cli.WrongUse("--seed goes with --sample")
	case !fl.Changed("sample"):
		return r.Run(cmd.Context(), a, args, rows)
	case f.rows < 0:
		return cli.WrongUse("--sample %d: a number of rows is not negative", f.rows)
	case fl.Changed("limit"):
		return cli.WrongUse("--sample and -n both say how many rows")
	}
	r.Whole = false
	return r.Run(cmd.Context(), a, args, func(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (cli.Batches,
		error) {
		if spec.Limit = 0; f.rows == 0 {
			spec.Rows = source.NoRows
		}
		if r.Parallel == 0 {
			spec.Parallel = runtime.NumCPU()
		}
		return func(yield func(arrow.RecordBatch, error) bool) { f.choose(t.Scan(ctx, spec), yield) }, nil
	})
}

// choose yields a sample of the rows of seq.
func (f *sampleFlags) choose(seq iter.Seq2[arrow.RecordBatch, error], yield func(arrow.RecordBatch, error) bool) {
	r := &reservoir{size: f.rows, chance: rand.New(rand.NewPCG(f.seed, 0))}
	defer r.release()
	for b, err := range seq {
		if err == nil {
			err = r.add(b)
		}
		if err != nil {
			yield(nil, err)
			return
		}
	}
	sorted.By(r.rows, func(a, b sampled) int { return int(min(1, max(-1, a.at-b.at))) })
	const batch = 4096
	for rows := range slices.Chunk(r.rows, batch) {
		for _, b := range gather(rows) {
			ok := yield(b, nil)
			b.Release()
			if !ok {
				return
			}
		}
	}
}

// reservoir is a sample of the rows that were added to it, each with the same chance (Vitter's algorithm R).
type reservoir struct {
	size   int64
	chance *rand.Rand
	seen   int64
	rows   []sampled
	held   int64 // rows of the blocks of rows, whether they are still in the sample or not
	blocks map[*block]bool
}

// sampled is a row of the sample: the one at position at of the input.
type sampled struct {
	at    int64
	block *block
	row   int64
}

// block is a batch that has rows of the sample.
type block struct {
	arrow.RecordBatch
	rows int64 // of the sample
}

// add takes part of a batch into the sample.
func (r *reservoir) add(b arrow.RecordBatch) error {
	chosen := map[int64]int64{} // slot: row
	for row := range b.NumRows() {
		if slot := r.seen; slot < r.size {
			chosen[slot] = row
		} else if slot = r.chance.Int64N(r.seen + 1); slot < r.size {
			chosen[slot] = row
		}
		r.seen++
	}
	if len(chosen) == 0 {
		return nil
	}
	whole := &block{RecordBatch: b}
	var rows []sampled
	slots := make([]int64, 0, len(chosen))
	for slot := range chosen {
		slots = append(slots, slot)
	}
	sorted.By(slots, func(a, b int64) int { return int(chosen[a] - chosen[b]) })
	for _, slot := range slots {
		rows = append(rows, sampled{r.seen - b.NumRows() + chosen[slot], whole, chosen[slot]})
	}
	r.keep(rows)
	full := int64(len(r.rows))
	for i, slot := range slots {
		if slot >= full { // it makes no difference in which order slots are filled
			r.rows = append(r.rows, rows[i])
			continue
		}
		r.drop(r.rows[slot].block)
		r.rows[slot] = rows[i]
	}
	if r.held/4-1024 > r.size {
		r.compact()
	}
	return nil
}

// keep moves rows to a block of their own, or keeps their batch if most of its rows are in the sample.
func (r *reservoir) keep(rows []sampled) {
	if r.blocks == nil {
		r.blocks = map[*block]bool{}
	}
	kept := rows[0].block.RecordBatch
	if int64(len(rows)) > kept.NumRows()/2 {
		kept.Retain()
	} else if copied := gather(rows); len(copied) == 1 {
		kept = copied[0]
		for i := range rows {
			rows[i].row = int64(i)
		}
	} else { // it cannot be copied
		for _, c := range copied {
			c.Release()
		}
		kept.Retain()
	}
	k := &block{kept, int64(len(rows))}
	for i := range rows {
		rows[i].block = k
	}
	r.blocks[k] = true
	r.held += kept.NumRows()
}

// drop notes that a row of a block is no longer in the sample.
func (r *reservoir) drop(k *block) {
	if k.rows--; k.rows == 0 {
		r.held -= k.NumRows()
		delete(r.blocks, k)
		k.Release()
	}
}

// compact moves the sample to one block.
func (r *reservoir) compact() {
	copied := gather(r.rows)
	if len(copied) != 1 {
		for _, c := range copied {
			c.Release()
		}
		return
	}
	for k := range r.blocks {
		k.Release()
	}
	k := &block{copied[0], int64(len(r.rows))}
	r.blocks, r.held = map[*block]bool{k: true}, k.NumRows()
	for i := range r.rows {
		r.rows[i].block, r.rows[i].row = k, int64(i)
	}
}

func (r *reservoir) release() {
	for k := range r.blocks {
		k.Release()
	}
	r.blocks = nil
}

// gather copies rows into one batch, or returns them as slices of their batches if they cannot be copied.
func gather(rows []sampled) (out []arrow.RecordBatch) {
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].block == rows[i].block && rows[j].row == rows[j-1].row+1 {
			j++
		}
		out = append(out, rows[i].block.NewSlice(rows[i].row, rows[j-1].row+1))
		i = j
	}
	if len(out) == 0 {
		return out
	}
	joined, err := join(out)
	if err != nil {
		return out
	}
	for _, b := range out {
		b.Release()
	}
	return []arrow.RecordBatch{joined}
}

// join copies batches into one.
func join(batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	sc := batches[0].Schema()
	var columns []arrow.Array
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	for k := range sc.NumFields() {
		parts := make([]arrow.Array, len(batches))
		for i, b := range batches {
			parts[i] = b.Column(k)
		}
		c, err := array.Concatenate(parts, cli.Pool)
		if err != nil {
			return nil, err
		}
		if columns = append(columns, c); int64(c.Len()) != rows {
			return nil, errors.New("rows are missing")
		}
	}
	return array.NewRecordBatch(sc, columns, rows), nil
}

// butLastRows yields the rows of a scan without the last -spec.Limit, if the limit is negative.
func butLastRows(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (cli.Batches, error) {
	if spec.Limit >= 0 {
		return reading.WholeScan(ctx, t, spec)
	}
	n := -max(spec.Limit, -math.MaxInt64)
	spec.Limit = 0
	if spec.Filter == nil && spec.Damaged != stoa.SkipRows {
		rows, err := t.Rows(ctx)
		if err != nil {
			return nil, err
		}
		if rows >= 0 {
			if spec.Rows == (vec.Range{}) {
				spec.Rows.To = rows
			}
			spec.Rows.To = max(spec.Rows.From, min(spec.Rows.To, rows)-n)
			if spec.Rows.Len() == 0 {
				spec.Rows = source.NoRows
			}
			return reading.WholeScan(ctx, t, spec)
		}
	}
	return func(yield func(arrow.RecordBatch, error) bool) { holdBack(t.Scan(ctx, spec), n, yield) }, nil
}

// holdBack yields the rows of seq but for the last n. It keeps batches with n rows.
func holdBack(seq iter.Seq2[arrow.RecordBatch, error], n int64, yield func(arrow.RecordBatch, error) bool) {
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
		for rows += b.NumRows(); len(kept) > 0 && rows-kept[0].NumRows() >= n; {
			first := kept[0]
			kept, rows = kept[1:], rows-first.NumRows()
			ok := yield(first, nil)
			first.Release()
			if !ok {
				return
			}
		}
	}
	for _, b := range kept {
		give := min(b.NumRows(), rows-n)
		if give <= 0 {
			return
		}
		rows -= b.NumRows()
		cut := b.NewSlice(0, give)
		ok := yield(cut, nil)
		cut.Release()
		if !ok {
			return
		}
	}
}
