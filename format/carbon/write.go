package carbon

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

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
	stamp := int64(0) // a file of its own is the same bytes for the same rows; the names in a directory want the time
	if wo.Dir {
		stamp = now()
	}
	p, err := newPlan(list, &o, stamp)
	if err != nil {
		return nil, err
	}
	w := &outTable{sink: s, task: newTask(p, sinkPlace{s}, !wo.Dir)}
	for _, r := range p.roots {
		w.cols = append(w.cols, int(r.ordinal))
	}
	if len(o.sortColumns) > 0 {
		if w.sort, err = newSorter(s, sc, o.sortColumns, p.roots, o.memory); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *outTable) Write(ctx context.Context, b arrow.RecordBatch) error {
	if w.sort != nil {
		return w.sort.add(ctx, b)
	}
	return w.append(ctx, b, 0, int(b.NumRows()))
}

// append puts rows from…to of a batch into pages.
func (w *outTable) append(ctx context.Context, b arrow.RecordBatch, from, to int) error {
	before := w.rows
	w.rows += int64(to - from)
	return located(w.task.add(ctx, b, w.cols, from, to), before-int64(from))
}

func (w *outTable) Close(ctx context.Context) (format.Summary, error) {
	if w.sort != nil {
		err := w.sort.each(ctx, func(b arrow.RecordBatch) error { return w.append(ctx, b, 0, int(b.NumRows())) })
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
