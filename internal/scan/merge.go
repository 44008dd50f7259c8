package scan

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// Row groups of one part whose keys overlap are read side by side and merged in the reader's order; those that do not
// overlap follow one another by their first keys. Merging only orders rows: at any time a key is live in at most one
// row group, which the overlays ensure.

// merger reads a cluster.
type merger struct {
	run     *run
	sub     *plan.Plan
	keys    []keyColumn
	cursors []*cursor
	heap    []int // cursors that have rows, as a heap with the smallest key on top

	// The rows to emit next: row at[i] of cursor from[i].
	from []uint16
	at   []int32
	room int

	// Where positions count, all rows are gathered here first, and positions and the filter then select from them.
	whole []*vec.Vector
}

// merge reads the row groups of one cluster.
func (r *run) merge(ctx context.Context, groups []format.RowGroup) error {
	if r.Plan.RowsOf(r.base).To <= 0 {
		return emit.ErrStop
	}
	if len(groups) > math.MaxUint16 {
		return fault.New(fault.Limit, fault.Span{Object: groups[0].Part}, "",
			"%s overlap, and at most %d can be merged; an unordered scan reads them one by one",
			fault.Count(len(groups), "row group"), math.MaxUint16)
	}
	m := &merger{run: r, room: r.Plan.Spec.Batch}
	if err := m.prepare(len(groups)); err != nil {
		return err
	}
	defer m.Close()
	for i, g := range groups {
		c := newCursor(ctx, r.Src, m.sub, g, m.keys)
		m.cursors = append(m.cursors, c)
		if err := m.next(c); err != nil {
			return err
		}
		if !c.done {
			m.push(i)
		}
	}
	for len(m.heap) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.step(); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the plan by which the row groups are read. Its outputs are the outputs of the scan, then columns that
// only the filter needs (if positions are counted before the filter), then the keys.
func (m *merger) prepare(groups int) error {
	p := m.run.Plan
	sub := *p
	sub.Spec.Limit, sub.Spec.Rows = 0, vec.Range{}
	sub.Spec.Batch = max(1024, p.Spec.Batch/groups) // all row groups are in memory at once
	sub.Largest = max(plan.MinVector, sub.Largest/int64(groups))
	if sub.Spec.Ahead > 0 {
		sub.Spec.Ahead = max(plan.MinAhead, sub.Spec.Ahead/int64(groups))
	}
	sub.Outputs = slices.Clone(p.Outputs)
	if m.positional() {
		sub.Filter, sub.Filters = nil, nil
		sub.Query.Filter = nil
		if p.Spec.Damaged == plan.NullCells {
			sub.Postponed = p.Filters
		}
		for _, col := range p.Filters {
			sub.Outputs = append(sub.Outputs, plan.Output{Top: p.Columns[col].Path[0], Col: col})
		}
	}
	for _, k := range m.run.Src.Reader.Order() {
		c := p.Columns[k.Column]
		f := m.run.Src.Reader.Schema().Field(c.Path[0])
		m.keys = append(m.keys, keyColumn{output: len(sub.Outputs), typ: c.Type, descending: k.Descending,
			nullable: f.Nullable})
		sub.Outputs = append(sub.Outputs, plan.Output{Top: c.Path[0], Col: k.Column})
		sub.Keys = append(sub.Keys, k.Column)
	}
	sub.Others = nil
	for _, o := range sub.Outputs {
		if o.Col < 0 || o.Nested {
			return fault.Bugf("a table with an order has nested columns")
		}
		if !slices.Contains(sub.Filters, o.Col) {
			sub.Others = append(sub.Others, o.Col)
		}
	}
	slices.Sort(sub.Others)
	sub.Others = slices.Compact(sub.Others)
	sub.Query.Cols = slices.Sorted(slices.Values(slices.Concat(sub.Filters, sub.Others)))
	m.sub = &sub
	if !m.positional() {
		return nil
	}
	for _, o := range sub.Outputs {
		v, err := vec.New(p.Columns[o.Col].Type, p.Vectors())
		if err != nil {
			return err
		}
		m.whole = append(m.whole, v)
	}
	return nil
}

// positional reports whether rows are selected by position in the merged sequence, which requires merging before the
// filter.
func (m *merger) positional() bool { return m.run.Plan.Spec.Rows != (vec.Range{}) }

func (m *merger) Close() {
	for _, c := range m.cursors {
		c.stop()
	}
	for _, v := range m.whole {
		v.Release()
	}
}

// next moves c to its next row, reading on if necessary. Planned rows must have been emitted before.
func (m *merger) next(c *cursor) error {
	if err := c.read(); err != nil {
		return err
	}
	for _, l := range c.losses() {
		m.run.Lose(l)
	}
	return nil
}

// step plans rows until one cursor has to read on or the batch is full, and emits them.
func (m *merger) step() error {
	for {
		k := m.heap[0]
		c := m.cursors[k]
		n := m.runOf(c)
		for i := range n {
			m.from = append(m.from, uint16(k))
			m.at = append(m.at, int32(c.pos+i))
		}
		c.pos += n
		if c.pos < c.chunk.Rows && len(m.at) < m.room {
			m.down(0)
			continue
		}
		if err := m.emit(); err != nil {
			return err
		}
		if c.pos == c.chunk.Rows {
			if err := m.next(c); err != nil {
				return err
			}
		}
		if c.done {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		}
		if len(m.heap) > 0 {
			m.down(0)
		}
		return nil
	}
}

// runOf returns how many rows of c, the top of the heap, precede those of all others (and fit).
func (m *merger) runOf(c *cursor) int {
	n := min(c.chunk.Rows-c.pos, m.room-len(m.at))
	if len(m.heap) == 1 {
		return n
	}
	second := m.heap[1]
	if len(m.heap) > 2 && m.less(m.heap[2], second) {
		second = m.heap[2]
	}
	o := m.cursors[second]
	k := 1
	for k < n && c.keys.compare(c.pos+k, &o.keys, o.pos) <= 0 {
		k++
	}
	return k
}

func (m *merger) less(a, b int) bool {
	x, y := m.cursors[a], m.cursors[b]
	switch c := x.keys.compare(x.pos, &y.keys, y.pos); {
	case c != 0:
		return c < 0
	}
	return a < b
}

func (m *merger) push(k int) {
	m.heap = append(m.heap, k)
	for i := len(m.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.less(m.heap[i], m.heap[up]) {
			return
		}
		m.heap[i], m.heap[up] = m.heap[up], m.heap[i]
		i = up
	}
}

// down moves the heap's entry at i down to its place.
func (m *merger) down(i int) {
	for {
		k := 2*i + 1
		if k >= len(m.heap) {
			return
		}
		if k+1 < len(m.heap) && m.less(m.heap[k+1], m.heap[k]) {
			k++
		}
		if !m.less(m.heap[k], m.heap[i]) {
			return
		}
		m.heap[i], m.heap[k] = m.heap[k], m.heap[i]
		i = k
	}
}

// emit gathers the planned rows.
func (m *merger) emit() error {
	defer func() { m.from, m.at = m.from[:0], m.at[:0] }()
	if m.positional() {
		return m.choose()
	}
	out := m.run.Out
	n := len(m.at)
	if limit := m.run.Plan.Spec.Limit; limit > 0 {
		n = int(min(int64(n), limit-out.Given))
	}
	if err := out.Start(); err != nil {
		return err
	}
	for i := range m.run.Plan.Outputs {
		if err := out.Vecs[i].Interleave(m.vectors(i), m.from[:n], m.at[:n]); err != nil {
			return err
		}
	}
	m.run.base += int64(n)
	return out.Added(n)
}

// vectors returns the vectors of output i, one per cursor.
func (m *merger) vectors(i int) []*vec.Vector {
	out := make([]*vec.Vector, len(m.cursors))
	for k, c := range m.cursors {
		if c.done {
			out[k] = &vec.Vector{} // none of its rows are planned
		} else {
			out[k] = c.chunk.Vecs[i]
		}
	}
	return out
}

// choose selects the rows at the wanted positions, and from them those that pass the filter.
func (m *merger) choose() error {
	r := m.run
	n := len(m.at)
	rows := r.Plan.RowsOf(r.base).Intersect(vec.Range{From: 0, To: int64(n)})
	r.base += int64(n)
	if rows.Len() == 0 {
		if r.Plan.RowsOf(r.base).To <= 0 {
			return emit.ErrStop
		}
		return nil
	}
	for i, v := range m.whole {
		v.Reset()
		if err := v.Interleave(m.vectors(i), m.from[rows.From:rows.To], m.at[rows.From:rows.To]); err != nil {
			return err
		}
	}
	n = int(rows.Len())
	sel := vec.All(n)
	if e := r.Plan.Filter; e != nil {
		var err error
		if sel, err = m.evaluate(e, n, m.known(rows)); err != nil {
			return err
		}
	}
	sel = r.Out.Limit(sel)
	for i := range r.Plan.Outputs {
		if err := r.Out.Append(i, m.whole[i], n, sel); err != nil {
			return err
		}
	}
	return r.Out.Added(sel.Count)
}

// known returns those of the planned rows that have all cells of the filter: over a lost cell it is unknown.
func (m *merger) known(rows vec.Range) *vec.Sel {
	n := int(rows.Len())
	if len(m.sub.Postponed) == 0 {
		return vec.All(n)
	}
	bits := make([]byte, (n+7)/8)
	for i := range n {
		at := int(rows.From) + i
		lost := m.cursors[m.from[at]].chunk.Unknown[m.at[at]]
		vec.SetBits(bits, i, i+1, !lost)
	}
	return vec.NewSel(bits, n)
}

func (m *merger) evaluate(e *pred.Expr, n int, sel *vec.Sel) (*vec.Sel, error) {
	views := map[string]arrow.Array{}
	defer func() {
		for _, v := range views {
			v.Release()
		}
	}()
	for _, name := range e.Columns() {
		v, err := m.run.Plan.Test(m.run.Plan.Paths[name], n, func(col int) (arrow.Array, error) {
			k := slices.IndexFunc(m.sub.Outputs, func(o plan.Output) bool { return o.Col == col })
			return m.whole[k].View(n)
		})
		if err != nil {
			return nil, err
		}
		views[name] = v
	}
	return e.Eval(n, func(path string) arrow.Array { return views[path] }, sel)
}

// cursor is one row group of a cluster.
type cursor struct {
	pull  func() (*emit.Chunk, error, bool)
	stop  func()
	cols  []keyColumn
	chunk *emit.Chunk
	keys  keys
	pos   int // row in chunk
	done  bool
}

func newCursor(ctx context.Context, src fetch.Source, p *plan.Plan, g format.RowGroup, cols []keyColumn) *cursor {
	c := &cursor{cols: cols}
	seq := chunks(ctx, src, p, g)
	if p.Spec.Parallel > 1 {
		seq = ahead(seq)
	}
	pull, stop := iter.Pull2(seq)
	c.pull = pull
	c.stop = func() {
		stop()
		c.drop()
	}
	return c
}

// ahead reads the next chunk while the previous one is being used.
func ahead(seq iter.Seq2[*emit.Chunk, error]) iter.Seq2[*emit.Chunk, error] {
	type item struct {
		c   *emit.Chunk
		err error
	}
	return func(yield func(*emit.Chunk, error) bool) {
		items, stop := make(chan item), make(chan struct{})
		go func() {
			defer close(items)
			defer func() {
				if p := recover(); p != nil {
					select {
					case items <- item{nil, fault.Panicked(p, "reading")}:
					case <-stop:
					}
				}
			}()
			for c, err := range seq {
				select {
				case items <- item{c, err}:
				case <-stop:
					c.Release()
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for x := range items {
				x.c.Release()
			}
		}()
		for x := range items {
			if !yield(x.c, x.err) {
				return
			}
		}
	}
}

// read moves to the next chunk that has rows, or to the end.
func (c *cursor) read() error {
	var losses []region.Loss
	for {
		c.drop()
		next, err, ok := c.pull()
		if err != nil {
			return err
		}
		if !ok {
			c.done = true
			c.chunk = &emit.Chunk{Losses: losses}
			return nil
		}
		losses = append(losses, next.Losses...)
		if next.Rows > 0 {
			c.chunk, c.pos = next, 0
			c.chunk.Losses = losses
			return c.keys.encode(c.cols, next.Vecs, next.Rows)
		}
	}
}

// losses returns the losses since the last call.
func (c *cursor) losses() []region.Loss {
	l := c.chunk.Losses
	c.chunk.Losses = nil
	return l
}

// drop releases the chunk.
func (c *cursor) drop() {
	c.chunk.Release()
	c.chunk = nil
}

// chunks reads one row group by a plan. The consumer releases each chunk. The last chunk may have losses only.
func chunks(ctx context.Context, src fetch.Source, p *plan.Plan, g format.RowGroup) iter.Seq2[*emit.Chunk, error] {
	return func(yield func(*emit.Chunk, error) bool) {
		var losses []region.Loss
		own := *p
		own.Spec.Lost = func(l region.Loss) { losses = append(losses, l) }
		r := &run{Shared: window.Shared{Plan: &own, Src: src, Out: emit.New(&own, nil)}}
		send := func(c *emit.Chunk) error {
			c.Losses, losses = losses, nil
			if !yield(c, nil) {
				return emit.ErrLeft
			}
			return nil
		}
		r.Out.Take = send
		err := r.read(ctx, &task{groups: []format.RowGroup{g}})
		if err == nil {
			err = r.Out.Flush()
		}
		r.Out.Release()
		switch {
		case errors.Is(err, emit.ErrLeft):
		case err != nil:
			yield(nil, err)
		case len(losses) > 0:
			yield(&emit.Chunk{Losses: losses}, nil)
		}
	}
}
