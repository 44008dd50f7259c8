package carbon

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// sinkPlace puts files into a sink.
type sinkPlace struct{ store.Sink }

func (s sinkPlace) create(ctx context.Context, name string) (io.WriteCloser, error) {
	return s.Create(ctx, name)
}

// outTable writes rows as a data file, or as a directory of data files with an index, like CarbonData's SDK. It is a
// format.Writer.
type outTable struct {
	sink store.Sink
	task *taskWriter
	sort *sorter // nil: rows stay in their order
	cols []int   // field of each root of the plan
	rows int64
}

// create begins a table of format 3.
func create(_ context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	o, err := parseWriteOptions(wo.Opts)
	if err != nil {
		return nil, err
	}
	list, err := planColumns(sc, &o)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(list, &o, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	w := &outTable{sink: s, task: newTask(p, sinkPlace{s}, !wo.Dir)}
	for _, r := range p.roots {
		w.cols = append(w.cols, int(r.ordinal))
	}
	if len(o.sortColumns) > 0 {
		w.sort = newSorter(s, sc, o.sortColumns, o.memory)
	}
	return w, nil
}

func (w *outTable) Write(ctx context.Context, b arrow.RecordBatch) error {
	if w.sort != nil {
		return w.sort.add(ctx, b)
	}
	return w.append(ctx, b, 0, int(b.NumRows()))
}

// addSlice is how many rows are added between two looks at the size of the page.
const addSlice = 4 << 10

// append puts rows from…to of a batch into pages.
func (w *outTable) append(ctx context.Context, b arrow.RecordBatch, from, to int) error {
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(to-from, w.task.room(), addSlice)
		cells := w.task.current()
		for i, r := range w.task.roots {
			if err := cells[i].add(r, b.Column(w.cols[i]), from, from+n, w.task.o); err != nil {
				return w.located(err, r, from)
			}
		}
		if err := w.task.added(ctx, n); err != nil {
			return err
		}
		if w.task.rows > 0 && w.task.crowded() {
			if err := w.task.endPage(ctx); err != nil {
				return err
			}
		}
		from += n
		w.rows += int64(n)
	}
	return nil
}

// located names the column and the row of a value that does not fit.
func (w *outTable) located(err error, c *column, from int) error {
	var v *valueError
	if !errors.As(err, &v) {
		return err
	}
	return fault.Invalidf("column %s, row %d: %v", c.name, w.rows+int64(v.row-from), v.err)
}

func (w *outTable) Close(ctx context.Context) (format.Summary, error) {
	if w.sort != nil {
		err := w.sort.each(ctx, func(b arrow.RecordBatch, from, to int) error { return w.append(ctx, b, from, to) })
		if err != nil {
			return format.Summary{}, err
		}
	}
	if err := w.task.close(ctx); err != nil {
		return format.Summary{}, err
	}
	if err := w.sink.Commit(ctx); err != nil {
		return format.Summary{}, err
	}
	sum := format.Summary{Rows: w.rows, Bytes: w.task.bytes}
	if !w.task.single {
		sum.Files = w.task.names
	}
	return sum, nil
}

func (w *outTable) Abort(ctx context.Context) error {
	w.task.abandon()
	if w.sort != nil {
		w.sort.close()
	}
	return w.sink.Abort(ctx)
}
