package emit

import (
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/internal/scan/internal/arrays"
	"stoa/internal/scan/internal/plan"
	"stoa/region"
	"stoa/vec"
)

// Collector makes batches of the rows that remain in the windows, and enforces the limit.
type Collector struct {
	plan  *plan.Plan
	Yield func(arrow.RecordBatch, error) bool
	Take  func(*Chunk) error // if not nil, receives the vectors themselves, and nothing is yielded
	Vecs  []*vec.Vector      // one per output; nil until there is a window with few rows
	parts [][]arrow.Array    // of the nested outputs: collected pieces
	held  int64              // bytes of parts, approximately
	rows  int                // in Vecs
	Given int64              // rows that were emitted or are in Vecs

	unknown []bool // of the rows in Vecs; see Chunk
}

func New(p *plan.Plan, yield func(arrow.RecordBatch, error) bool) *Collector {
	return &Collector{plan: p, Yield: yield}
}

// Limit cuts sel to the rows that the limit still allows.
func (c *Collector) Limit(sel *vec.Sel) *vec.Sel {
	max := c.plan.Spec.Limit
	if max <= 0 || c.Given+int64(sel.Count) <= max {
		return sel
	}
	return First(sel, int(max-c.Given))
}

// Room returns the row up to which a window without a filter that begins at row a can be of use.
func (c *Collector) Room(a int64) int64 {
	max := c.plan.Spec.Limit
	if max <= 0 {
		return math.MaxInt64
	}
	return a + max - c.Given
}

// First selects the first k entries that sel selects.
func First(sel *vec.Sel, k int) *vec.Sel {
	bits := make([]byte, (sel.N+7)/8)
	for i := 0; i < sel.N && k > 0; i++ {
		if sel.Has(i) {
			vec.SetBits(bits, i, i+1, true)
			k--
		}
	}
	return vec.NewSel(bits, sel.N)
}

// Full reports whether the limit is reached.
func (c *Collector) Full() bool { return c.plan.Spec.Limit > 0 && c.Given >= c.plan.Spec.Limit }

// Append appends those of the first n entries of v that sel selects to output i.
func (c *Collector) Append(i int, v *vec.Vector, n int, sel *vec.Sel) error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Vecs[i].Append(v, 0, n, sel)
}

// Adopt swaps v for the empty vector of output i, if all n entries of v are selected and nothing was collected before:
// it spares a look-up a copy.
func (c *Collector) Adopt(i int, v **vec.Vector, n int, sel *vec.Sel) bool {
	if c.rows > 0 || c.Take != nil || !sel.IsAll() || (*v).Len() != n || c.plan.Repeated || c.Start() != nil {
		return false
	}
	c.Vecs[i], *v = *v, c.Vecs[i]
	return true
}

// Start allocates the vectors if there are none.
func (c *Collector) Start() error {
	if c.Vecs != nil {
		return nil
	}
	vecs := make([]*vec.Vector, len(c.plan.Outputs))
	for k, o := range c.plan.Outputs {
		var err error
		if o.Nested {
			continue
		}
		if vecs[k], err = vec.New(c.plan.Columns[o.Col].Type, c.plan.Vectors()); err != nil {
			return err
		}
	}
	c.Vecs = vecs
	return nil
}

// Know records, of the rows that sel selects and that are being appended, which have all cells of the postponed filter.
func (c *Collector) Know(sel, known *vec.Sel) {
	for i := range sel.N {
		if sel.Has(i) {
			c.unknown = append(c.unknown, !known.Has(i))
		}
	}
}

// AppendArray appends entries to a nested output.
func (c *Collector) AppendArray(i int, a arrow.Array) error {
	if err := c.Start(); err != nil {
		return err
	}
	if c.parts == nil {
		c.parts = make([][]arrow.Array, len(c.plan.Outputs))
	}
	a.Retain()
	c.parts[i] = append(c.parts[i], a)
	c.held += arrays.Size(a)
	return nil
}

// Added records that n rows were appended to every output.
func (c *Collector) Added(n int) error {
	c.rows += n
	c.Given += int64(n)
	for c.rows >= c.plan.Spec.Batch {
		if err := c.emit(c.plan.Spec.Batch); err != nil {
			return err
		}
	}
	if c.large() {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	if c.Full() {
		if err := c.Flush(); err != nil {
			return err
		}
		return ErrStop
	}
	return nil
}

func (c *Collector) large() bool {
	if c.held > c.plan.Largest {
		return true
	}
	for _, v := range c.Vecs {
		if v == nil {
			continue
		}
		if v.Size() > c.plan.Largest || v.Fit(c.rows, c.plan.Strings()) < c.rows {
			return true
		}
	}
	return false
}

// Flush emits the collected rows.
func (c *Collector) Flush() error {
	if c.rows == 0 {
		return nil
	}
	return c.emit(c.rows)
}

// emit emits the first n collected rows.
func (c *Collector) emit(n int) error {
	if c.Take != nil {
		ch := &Chunk{Vecs: c.Vecs, Rows: c.rows, Unknown: c.unknown}
		c.Vecs, c.rows, c.unknown = nil, 0, nil
		return c.Take(ch)
	}
	c.rows -= n
	cols := make([]arrow.Array, 0, len(c.plan.Outputs))
	defer func() {
		for _, a := range cols {
			a.Release()
		}
	}()
	for i, v := range c.Vecs {
		var a arrow.Array
		var err error
		if v == nil {
			a, err = c.join(i, n)
		} else {
			a, err = c.plan.Outputs[i].Emit(v, n)
		}
		if err != nil {
			return err
		}
		cols = append(cols, a)
	}
	return c.out(cols, n)
}

// join concatenates the first n entries of a nested output.
func (c *Collector) join(i, n int) (arrow.Array, error) {
	whole, err := arrays.Concat(c.parts[i], c.plan.Alloc())
	if err != nil {
		return nil, err
	}
	arrays.ReleaseAll(c.parts[i])
	c.parts[i], c.held = c.parts[i][:0], 0 // later pieces are counted from zero
	if whole.Len() == n {
		return whole, nil
	}
	defer whole.Release()
	c.parts[i] = append(c.parts[i], array.NewSlice(whole, int64(n), int64(whole.Len())))
	return array.NewSlice(whole, 0, int64(n)), nil
}

// EmitColumns emits whole columns as a batch.
func (c *Collector) EmitColumns(cols []arrow.Array, n int) error {
	c.Given += int64(n)
	if err := c.out(cols, n); err != nil {
		return err
	}
	if c.Full() {
		return ErrStop
	}
	return nil
}

// out yields one batch. The caller keeps ownership of the columns.
func (c *Collector) out(cols []arrow.Array, n int) error {
	made := c.plan.Assembled(cols, n)
	defer arrays.ReleaseAll(made)
	shown, err := c.present(made)
	if err != nil {
		return err
	}
	defer arrays.ReleaseAll(shown)
	b := array.NewRecordBatch(c.plan.Schema, shown, int64(n))
	defer b.Release()
	if !c.Yield(b, nil) {
		return ErrLeft
	}
	return nil
}

func (c *Collector) Release() {
	for _, v := range c.Vecs {
		if v != nil {
			v.Release()
		}
	}
	for _, p := range c.parts {
		arrays.ReleaseAll(p)
	}
	c.Vecs, c.parts = nil, nil
}

// present converts columns to the types of the schema. The caller releases them.
func (c *Collector) present(cols []arrow.Array) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, len(cols))
	for i, a := range cols {
		if to := c.plan.Schema.Field(i).Type; c.plan.Present != nil &&
			!arrow.TypeEqual(a.DataType(), to, arrow.CheckMetadata()) {
			made, err := c.plan.Present.Present(a, to, c.plan.Alloc())
			if err != nil {
				arrays.ReleaseAll(out)
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

// Chunk is some rows of a row group, in order: a vector for each output of the plan.
type Chunk struct {
	Vecs    []*vec.Vector
	Rows    int
	Unknown []bool        // of each row, whether a cell of the plan's Postponed columns is lost; nil: there are none
	Losses  []region.Loss // since the previous chunk
}

// Release releases the vectors. A nil Chunk is allowed.
func (c *Chunk) Release() {
	if c == nil {
		return
	}
	for _, v := range c.Vecs {
		v.Release()
	}
}

// Two ways to end without an error: nothing is left to read, or the consumer has stopped.
var (
	ErrStop = errors.New("stop")
	ErrLeft = errors.New("the loop was left")
)
