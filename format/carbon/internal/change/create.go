package change

import (
	"context"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// sinkPlace is a datafile.OutPlace that creates files in a sink.
type sinkPlace struct{ store.Sink }

func (s sinkPlace) CreateFile(ctx context.Context, name string) (io.WriteCloser, error) {
	return s.Create(ctx, name)
}

// outTable is a format.Writer of a data file, or of a directory of data files with an index, like CarbonData's SDK.
type outTable struct {
	sink store.Sink
	task *datafile.TaskWriter
	sort *datafile.Sorter // nil: rows are not sorted
	cols []int            // field of each root of the plan
	rows int64

	taken int64 // rows that went into sort
}

// Create is format.Format.Create: a data file, or a directory of them.
func Create(_ context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	o, err := parseWriteOptions(wo.Opts)
	if err != nil {
		return nil, err
	}
	if o.Rows {
		return nil, fault.Invalidf("carbon: option layout=rows is for loads into a table")
	}
	if o.Version == 1 && !wo.Dir && wo.Name != "" && !strings.HasSuffix(wo.Name, layout.DataExt) {
		return nil, fault.Invalidf("%s: a data file of format 1 is recognized by its name only: it must end in %s",
			wo.Name, layout.DataExt)
	}
	list, err := schema.PlanColumns(sc, &o)
	if err != nil {
		return nil, err
	}
	stamp := int64(0) // 0 so that equal rows produce equal bytes; in a directory the file names need the time
	if wo.Dir {
		stamp = status.NowMillis()
	}
	p, err := datafile.NewPlan(list, &o, stamp)
	if err != nil {
		return nil, err
	}
	w := &outTable{sink: s, task: datafile.NewTask(p, sinkPlace{s}, !wo.Dir)}
	for _, r := range p.Roots {
		w.cols = append(w.cols, int(r.Ordinal))
	}
	if len(o.SortColumns) > 0 {
		if w.sort, err = datafile.NewSorter(s, sc, o.SortColumns, p.Roots, o.Memory); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Write is format.Writer.Write.
func (w *outTable) Write(ctx context.Context, b arrow.RecordBatch) error {
	if w.sort != nil {
		before := w.taken
		w.taken += b.NumRows()
		return datafile.Located(w.sort.Add(ctx, b, func(i int) int64 { return before + int64(i) }), before)
	}
	return w.append(ctx, b, 0, int(b.NumRows()))
}

// append writes rows [from, to) of a batch.
func (w *outTable) append(ctx context.Context, b arrow.RecordBatch, from, to int) error {
	before := w.rows
	w.rows += int64(to - from)
	return datafile.Located(w.task.Add(ctx, b, w.cols, from, to), before-int64(from))
}

// Close is format.Writer.Close.
func (w *outTable) Close(ctx context.Context) (format.Summary, error) {
	if w.sort != nil {
		err := w.sort.Each(ctx, func(b arrow.RecordBatch) error {
			w.rows += b.NumRows()
			return datafile.LocatedSorted(w.task.Add(ctx, b, w.cols, 0, int(b.NumRows())), b)
		})
		if err != nil {
			return format.Summary{}, err
		}
	}
	if err := w.task.Close(ctx); err != nil {
		return format.Summary{}, err
	}
	if err := w.sink.Commit(ctx); err != nil {
		return format.Summary{}, err
	}
	sum := format.Summary{Rows: w.rows, Bytes: w.task.Bytes}
	if !w.task.Single {
		sum.Files = w.task.Names
	}
	return sum, nil
}

// Abort is format.Writer.Abort.
func (w *outTable) Abort(ctx context.Context) error {
	w.task.Abandon()
	if w.sort != nil {
		w.sort.Close()
	}
	return w.sink.Abort(ctx)
}
