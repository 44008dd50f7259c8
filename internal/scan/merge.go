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
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// Row groups of one part whose keys overlap are read side by side and merged in the reader's order; those that do not
// overlap come one after the other, by their first keys. Merging is ordering only: at one moment a key is live in one
// row group at most, which the overlays see to.

// merger reads a cluster.
type merger struct {
	run     *run
	sub     *plan
	keys    []keyColumn
	cursors []*cursor
	heap    []int // cursors that have rows, the one with the least key first

	// The rows that come out next: row at[i] of cursor from[i].
	from []uint16
	at   []int32
	room int

	// Where positions count, all rows come here first, and positions and the filter choose among them.
	whole []*vec.Vector
}

// merge reads the row groups of one cluster.
func (r *run) merge(ctx context.Context, groups []format.RowGroup) error {
	if r.plan.rowsOf(r.base).To <= 0 {
		return errStop
	}
	if len(groups) > math.MaxUint16 {
		return fault.New(fault.Limit, fault.Span{Object: groups[0].Part}, "",
			"%d row groups overlap; --unordered reads them one by one", len(groups))
	}
	m := &merger{run: r, room: r.plan.spec.Batch}
	if err := m.prepare(len(groups)); err != nil {
		return err
	}
	defer m.close()
	for i, g := range groups {
		c := newCursor(ctx, r.src, m.sub, g, m.keys)
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

// prepare makes the plan by which the row groups are read: the outputs, then what only the filter needs (if positions
// are to be counted before it), then the keys.
func (m *merger) prepare(groups int) error {
	p := m.run.plan
	sub := *p
	sub.spec.Limit, sub.spec.Rows = 0, vec.Range{}
	sub.spec.Batch = max(1024, p.spec.Batch/groups) // all of them are in memory at once
	sub.largest = max(leastVector, sub.largest/int64(groups))
	if sub.spec.Ahead > 0 {
		sub.spec.Ahead = max(leastAhead, sub.spec.Ahead/int64(groups))
	}
	sub.outputs = slices.Clone(p.outputs)
	if m.positional() {
		sub.filter, sub.filters = nil, nil
		sub.query.Filter = nil
		for _, col := range p.filters {
			sub.outputs = append(sub.outputs, output{top: p.columns[col].Path[0], col: col})
		}
	}
	for _, k := range m.run.src.Reader.Order() {
		c := p.columns[k.Column]
		f := m.run.src.Reader.Schema().Field(c.Path[0])
		m.keys = append(m.keys, keyColumn{output: len(sub.outputs), typ: c.Type, descending: k.Descending,
			nullable: f.Nullable})
		sub.outputs = append(sub.outputs, output{top: c.Path[0], col: k.Column})
		sub.keys = append(sub.keys, k.Column)
	}
	sub.others = nil
	for _, o := range sub.outputs {
		if o.col < 0 || o.nested {
			return fault.Bugf("a table with an order has nested columns")
		}
		if !slices.Contains(sub.filters, o.col) {
			sub.others = append(sub.others, o.col)
		}
	}
	slices.Sort(sub.others)
	sub.others = slices.Compact(sub.others)
	sub.query.Cols = slices.Sorted(slices.Values(slices.Concat(sub.filters, sub.others)))
	m.sub = &sub
	if !m.positional() {
		return nil
	}
	for _, o := range sub.outputs {
		v, err := vec.New(p.columns[o.col].Type, p.alloc())
		if err != nil {
			return err
		}
		m.whole = append(m.whole, v)
	}
	return nil
}

// positional: rows are wanted by their position in the merged sequence, so they are merged before the filter.
func (m *merger) positional() bool { return m.run.plan.spec.Rows != (vec.Range{}) }

func (m *merger) close() {
	for _, c := range m.cursors {
		c.stop()
	}
	for _, v := range m.whole {
		v.Release()
	}
}

// next has c show its next row, reading on if it has to. Rows that are planned must have gone out before.
func (m *merger) next(c *cursor) error {
	if err := c.read(); err != nil {
		return err
	}
	for _, l := range c.told() {
		m.run.lose(l)
	}
	return nil
}

// step plans rows until one cursor needs more or the batch is full, and gives them out.
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
		if c.pos < c.chunk.rows && len(m.at) < m.room {
			m.down(0)
			continue
		}
		if err := m.give(); err != nil {
			return err
		}
		if c.pos == c.chunk.rows {
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

// runOf is how many rows of c, the first in the heap, come before those of all others (and fit).
func (m *merger) runOf(c *cursor) int {
	n := min(c.chunk.rows-c.pos, m.room-len(m.at))
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

// down moves the entry at i of the heap to its place below.
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

// give gathers the planned rows.
func (m *merger) give() error {
	defer func() { m.from, m.at = m.from[:0], m.at[:0] }()
	if m.positional() {
		return m.choose()
	}
	out := m.run.out
	n := len(m.at)
	if limit := m.run.plan.spec.Limit; limit > 0 {
		n = int(min(int64(n), limit-out.given))
	}
	if err := out.start(); err != nil {
		return err
	}
	for i := range m.run.plan.outputs {
		if err := out.vecs[i].Interleave(m.vectors(i), m.from[:n], m.at[:n]); err != nil {
			return err
		}
	}
	m.run.base += int64(n)
	return out.added(n)
}

// vectors are the vectors of output i, one a cursor.
func (m *merger) vectors(i int) []*vec.Vector {
	out := make([]*vec.Vector, len(m.cursors))
	for k, c := range m.cursors {
		if c.done {
			out[k] = &vec.Vector{} // no row of it is planned
		} else {
			out[k] = c.chunk.vecs[i]
		}
	}
	return out
}

// choose takes the rows at the wanted positions, and of them those that pass the filter.
func (m *merger) choose() error {
	r := m.run
	n := len(m.at)
	rows := r.plan.rowsOf(r.base).Intersect(vec.Range{From: 0, To: int64(n)})
	r.base += int64(n)
	if rows.Len() == 0 {
		if r.plan.rowsOf(r.base).To <= 0 {
			return errStop
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
	if e := r.plan.filter; e != nil {
		var err error
		if sel, err = m.evaluate(e, n); err != nil {
			return err
		}
	}
	sel = r.out.limit(sel)
	for i := range r.plan.outputs {
		if err := r.out.append(i, m.whole[i], n, sel); err != nil {
			return err
		}
	}
	return r.out.added(sel.Count)
}

func (m *merger) evaluate(e *pred.Expr, n int) (*vec.Sel, error) {
	views := map[string]arrow.Array{}
	defer func() {
		for _, v := range views {
			v.Release()
		}
	}()
	for _, name := range e.Columns() {
		path := m.run.plan.paths[name]
		col := m.run.plan.physical(path[0])
		k := slices.IndexFunc(m.sub.outputs, func(o output) bool { return o.col == col })
		v, err := m.whole[k].View(n)
		if err != nil {
			return nil, err
		}
		views[name] = v
	}
	return e.Eval(n, func(path string) arrow.Array { return views[path] }, nil)
}

// cursor is one row group of a cluster.
type cursor struct {
	pull  func() (*chunk, error, bool)
	stop  func()
	cols  []keyColumn
	chunk *chunk
	keys  keys
	pos   int // in chunk
	done  bool
}

func newCursor(ctx context.Context, src Source, p *plan, g format.RowGroup, cols []keyColumn) *cursor {
	c := &cursor{cols: cols}
	seq := chunks(ctx, src, p, g)
	if p.spec.Parallel > 1 {
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

// ahead has the next chunk read while the last one is being used.
func ahead(seq iter.Seq2[*chunk, error]) iter.Seq2[*chunk, error] {
	type item struct {
		c   *chunk
		err error
	}
	return func(yield func(*chunk, error) bool) {
		items, stop := make(chan item), make(chan struct{})
		go func() {
			defer close(items)
			defer func() {
				if p := recover(); p != nil {
					select {
					case items <- item{nil, fault.Bugf("reading panicked: %v", p)}:
					case <-stop:
					}
				}
			}()
			for c, err := range seq {
				select {
				case items <- item{c, err}:
				case <-stop:
					c.release()
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for x := range items {
				x.c.release()
			}
		}()
		for x := range items {
			if !yield(x.c, x.err) {
				return
			}
		}
	}
}

// read goes to the next chunk that has rows, or is done.
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
			c.chunk = &chunk{losses: losses}
			return nil
		}
		losses = append(losses, next.losses...)
		if next.rows > 0 {
			c.chunk, c.pos = next, 0
			c.chunk.losses = losses
			return c.keys.encode(c.cols, next.vecs, next.rows)
		}
	}
}

// told is what was lost since the last call.
func (c *cursor) told() []region.Loss {
	l := c.chunk.losses
	c.chunk.losses = nil
	return l
}

// drop releases the chunk.
func (c *cursor) drop() {
	c.chunk.release()
	c.chunk = nil
}

// chunks reads one row group by a plan. Who takes a chunk releases its vectors. The last one may have losses only.
func chunks(ctx context.Context, src Source, p *plan, g format.RowGroup) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		var losses []region.Loss
		mine := *p
		mine.spec.Lost = func(l region.Loss) { losses = append(losses, l) }
		r := &run{reading: reading{plan: &mine, src: src, out: newCollector(&mine, nil)}}
		give := func(c *chunk) error {
			c.losses, losses = losses, nil
			if !yield(c, nil) {
				return errLeft
			}
			return nil
		}
		r.out.take = give
		err := r.read(ctx, g, r.wanted(g))
		if err == nil {
			err = r.out.flush()
		}
		r.out.release()
		switch {
		case errors.Is(err, errLeft):
		case err != nil:
			yield(nil, err)
		case len(losses) > 0:
			yield(&chunk{losses: losses}, nil)
		}
	}
}
