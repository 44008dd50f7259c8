package datafile

import (
	"bufio"
	"bytes"
	"container/heap"
	"context"
	"errors"
	"io"
	"slices"

	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// sortedRun is a temporary file of sorted rows.
type sortedRun struct {
	file  store.Scratch
	size  int64 // bytes
	in    *ipc.Reader
	b     arrow.RecordBatch // current batch
	i     int               // the current row of b
	key   []byte            // of that row
	cols  []sortKey
	n     int   // ordinal of the run: breaks ties between equal keys
	level int   // number of merges that its rows have been through
	at    int32 // index of b in merged.held; -1: it is not there
}

// newRun writes sorted rows to a temporary file.
func (s *Sorter) newRun(ctx context.Context, level int,
	rows func(yield func(b arrow.RecordBatch) error) error) (*sortedRun, error) {
	file, err := s.sink.Scratch(ctx)
	if err != nil {
		return nil, err
	}
	s.made++
	r := &sortedRun{file: file, cols: s.cols, n: s.made, at: -1, level: level}
	counted := &counter{w: file}
	buf := bufio.NewWriterSize(counted, 256<<10)
	out := ipc.NewWriter(buf, ipc.WithSchema(s.schema))
	err = rows(out.Write)
	if err = errors.Join(err, out.Close(), buf.Flush()); err != nil {
		r.close()
		return nil, err
	}
	r.size = counted.n
	return r, nil
}

func (r *sortedRun) close() {
	if r.in != nil {
		r.in.Release()
		r.in = nil
	}
	r.file.Close() // removes it
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Each calls yield with batches of all rows in order. A batch is valid until yield returns. The sorter is empty
// afterwards.
func (s *Sorter) Each(ctx context.Context, yield func(b arrow.RecordBatch) error) error {
	if len(s.runs) == 0 {
		return s.inMemory(ctx, yield)
	}
	if len(s.batches) > 0 {
		if err := s.Spill(ctx); err != nil {
			return err
		}
	}
	defer s.Close()
	return s.merge(ctx, s.runs, yield)
}

// merge calls yield with batches of the rows of runs in order.
func (s *Sorter) merge(ctx context.Context, runs []*sortedRun, yield func(b arrow.RecordBatch) error) error {
	h := make(runHeap, 0, len(runs))
	for _, r := range runs {
		in, err := ipc.NewReader(bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.size), 256<<10))
		if err != nil {
			return err
		}
		r.in = in
		if ok, err := r.next(); err != nil {
			return err
		} else if ok {
			h = append(h, r)
		}
	}
	heap.Init(&h)
	m := merged{rows: make([]SortedRow, 0, s.chunk)}
	for len(h) > 0 {
		r := h[0]
		m.add(r)
		// r.next invalidates the batch after its last row, so the batch's rows must be gathered before that
		if r.i++; len(m.rows) == cap(m.rows) || r.i >= int(r.b.NumRows()) {
			if err := errors.Join(ctx.Err(), m.flush(s, yield)); err != nil {
				return err
			}
		}
		ok, err := r.next()
		switch {
		case err != nil:
			return err
		case ok:
			heap.Fix(&h, 0)
		default:
			heap.Pop(&h)
		}
	}
	return m.flush(s, yield)
}

func (s *Sorter) inMemory(ctx context.Context, yield func(b arrow.RecordBatch) error) error {
	rows, err := s.order()
	if err != nil {
		return err
	}
	defer s.Close()
	for part := range slices.Chunk(rows, s.step(len(rows))) {
		if err := errors.Join(ctx.Err(), s.gather(s.batches, part, yield)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// merged has sorted rows, from the current batches of the runs, that have not been gathered yet.
type merged struct {
	from []*sortedRun
	held []arrow.RecordBatch // batches that the rows are in
	rows []SortedRow
}

// add appends the current row of a run.
func (m *merged) add(r *sortedRun) {
	if r.at < 0 {
		r.at = int32(len(m.held))
		m.from, m.held = append(m.from, r), append(m.held, r.b)
	}
	m.rows = append(m.rows, SortedRow{batch: r.at, Row: int32(r.i)})
}

func (m *merged) flush(s *Sorter, yield func(b arrow.RecordBatch) error) error {
	if len(m.rows) == 0 {
		return nil
	}
	err := s.gather(m.held, m.rows, yield)
	for _, r := range m.from {
		r.at = -1
	}
	m.from, m.held, m.rows = m.from[:0], m.held[:0], m.rows[:0]
	return err
}

// next makes sure that there is a current row, reading the next batch if needed, and computes its key; ok is false at
// the end.
func (r *sortedRun) next() (ok bool, err error) {
	for r.b == nil || r.i >= int(r.b.NumRows()) {
		if !r.in.Next() {
			return false, r.in.Err()
		}
		r.b, r.i = r.in.RecordBatch(), 0
	}
	r.key, err = appendSortKey(r.key[:0], r.b, r.cols, r.i)
	return err == nil, err
}

type runHeap []*sortedRun

func (h runHeap) Len() int { return len(h) }

func (h runHeap) Less(i, j int) bool {
	c := bytes.Compare(h[i].key, h[j].key)
	return c < 0 || c == 0 && h[i].n < h[j].n
}

func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *runHeap) Push(x any) { *h = append(*h, x.(*sortedRun)) }

func (h *runHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
