package scan

import (
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/region"
	"stoa/vec"
)

// collector makes batches of what the windows leave over, and counts against the limit.
type collector struct {
	plan  *plan
	yield func(arrow.RecordBatch, error) bool
	take  func(*chunk) error // instead of yield: the vectors themselves are wanted
	vecs  []*vec.Vector      // one per output; nil until thin windows come
	parts [][]arrow.Array    // of the nested outputs: what was collected, piece by piece
	rows  int                // in vecs
	given int64              // rows that went out or lie in vecs
}

func newCollector(p *plan, yield func(arrow.RecordBatch, error) bool) *collector {
	return &collector{plan: p, yield: yield}
}

// limit cuts sel to the rows that the limit still allows.
func (c *collector) limit(sel *vec.Sel) *vec.Sel {
	max := c.plan.spec.Limit
	if max <= 0 || c.given+int64(sel.Count) <= max {
		return sel
	}
	return first(sel, int(max-c.given))
}

// room is the row up to which a window without a filter that begins at row a can be of use.
func (c *collector) room(a int64) int64 {
	max := c.plan.spec.Limit
	if max <= 0 {
		return math.MaxInt64
	}
	return a + max - c.given
}

// first selects the first k entries that sel selects.
func first(sel *vec.Sel, k int) *vec.Sel {
	bits := make([]byte, (sel.N+7)/8)
	for i := 0; i < sel.N && k > 0; i++ {
		if sel.Has(i) {
			vec.SetBits(bits, i, i+1, true)
			k--
		}
	}
	return vec.NewSel(bits, sel.N)
}

// full reports that the limit is reached.
func (c *collector) full() bool { return c.plan.spec.Limit > 0 && c.given >= c.plan.spec.Limit }

// append takes the selected ones of the first n entries of v for output i.
func (c *collector) append(i int, v *vec.Vector, n int, sel *vec.Sel) error {
	if err := c.start(); err != nil {
		return err
	}
	return c.vecs[i].Append(v, 0, n, sel)
}

// adopt exchanges v, whose n entries are all that is wanted, for the empty vector of output i, if nothing was
// collected before: a look-up copies nothing twice.
func (c *collector) adopt(i int, v **vec.Vector, n int, sel *vec.Sel) bool {
	if c.rows > 0 || c.take != nil || !sel.IsAll() || (*v).Len() != n || c.plan.twice || c.start() != nil {
		return false
	}
	c.vecs[i], *v = *v, c.vecs[i]
	return true
}

// start makes the vectors if there are none.
func (c *collector) start() error {
	if c.vecs != nil {
		return nil
	}
	vecs := make([]*vec.Vector, len(c.plan.outputs))
	for k, o := range c.plan.outputs {
		var err error
		if o.nested {
			continue
		}
		if vecs[k], err = vec.New(c.plan.columns[o.col].Type, c.plan.alloc()); err != nil {
			return err
		}
	}
	c.vecs = vecs
	return nil
}

// appendArray takes entries of a nested output.
func (c *collector) appendArray(i int, a arrow.Array) error {
	if err := c.start(); err != nil {
		return err
	}
	if c.parts == nil {
		c.parts = make([][]arrow.Array, len(c.plan.outputs))
	}
	a.Retain()
	c.parts[i] = append(c.parts[i], a)
	return nil
}

// added says that n rows were appended to every output.
func (c *collector) added(n int) error {
	c.rows += n
	c.given += int64(n)
	for c.rows >= c.plan.spec.Batch {
		if err := c.emit(c.plan.spec.Batch); err != nil {
			return err
		}
	}
	if c.large() {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if c.full() {
		if err := c.flush(); err != nil {
			return err
		}
		return errStop
	}
	return nil
}

func (c *collector) large() bool {
	for _, v := range c.vecs {
		if v == nil {
			continue
		}
		if v.Size() > c.plan.largest || v.Fit(c.rows, c.plan.strings()) < c.rows {
			return true
		}
	}
	return false
}

// flush gives what was collected.
func (c *collector) flush() error {
	if c.rows == 0 {
		return nil
	}
	return c.emit(c.rows)
}

// emit gives the first n rows of what was collected.
func (c *collector) emit(n int) error {
	if c.take != nil {
		ch := &chunk{vecs: c.vecs, rows: c.rows}
		c.vecs, c.rows = nil, 0
		return c.take(ch)
	}
	c.rows -= n
	cols := make([]arrow.Array, 0, len(c.plan.outputs))
	defer func() {
		for _, a := range cols {
			a.Release()
		}
	}()
	for i, v := range c.vecs {
		var a arrow.Array
		var err error
		if v == nil {
			a, err = c.join(i, n)
		} else {
			a, err = v.Emit(n)
		}
		if err != nil {
			return err
		}
		cols = append(cols, a)
	}
	return c.out(cols, n)
}

// join makes one array of the first n entries of a nested output.
func (c *collector) join(i, n int) (arrow.Array, error) {
	whole, err := concat(c.parts[i], c.plan.alloc())
	if err != nil {
		return nil, err
	}
	releaseAll(c.parts[i])
	c.parts[i] = c.parts[i][:0]
	if whole.Len() == n {
		return whole, nil
	}
	defer whole.Release()
	c.parts[i] = append(c.parts[i], array.NewSlice(whole, int64(n), int64(whole.Len())))
	return array.NewSlice(whole, 0, int64(n)), nil
}

// give makes a batch of whole columns.
func (c *collector) give(cols []arrow.Array, n int) error {
	c.given += int64(n)
	if err := c.out(cols, n); err != nil {
		return err
	}
	if c.full() {
		return errStop
	}
	return nil
}

// out yields one batch. The columns stay the caller's.
func (c *collector) out(cols []arrow.Array, n int) error {
	shown, err := c.present(cols)
	if err != nil {
		return err
	}
	defer releaseAll(shown)
	b := array.NewRecordBatch(c.plan.schema, shown, int64(n))
	defer b.Release()
	if !c.yield(b, nil) {
		return errLeft
	}
	return nil
}

func (c *collector) release() {
	for _, v := range c.vecs {
		if v != nil {
			v.Release()
		}
	}
	for _, p := range c.parts {
		releaseAll(p)
	}
	c.vecs, c.parts = nil, nil
}

// present gives columns the types of the schema; the caller releases them.
func (c *collector) present(cols []arrow.Array) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, len(cols))
	for i, a := range cols {
		if to := c.plan.schema.Field(i).Type; c.plan.present != nil &&
			!arrow.TypeEqual(a.DataType(), to, arrow.CheckMetadata()) {
			made, err := c.plan.present.Present(a, to, c.plan.alloc())
			if err != nil {
				releaseAll(out)
				return nil, err
			}
			a = made
		} else {
			a.Retain()
		}
		out = append(out, a)
	}
	return out, nil
}

// chunk is some rows of a row group, in its order: a vector for each output of the plan.
type chunk struct {
	vecs   []*vec.Vector
	rows   int
	losses []region.Loss // met since the chunk before
}

// release gives the vectors back. There may be no chunk.
func (c *chunk) release() {
	if c == nil {
		return
	}
	for _, v := range c.vecs {
		v.Release()
	}
}

// Two ways to end without an error: there is nothing more to read, or nobody listens any more.
var (
	errStop = errors.New("stop")
	errLeft = errors.New("the loop was left")
)
