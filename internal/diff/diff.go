// Package diff compares two tables cell by cell, by the meaning of the cells and not by their storage.
package diff

import (
	"context"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
)

// Input is a table that can be read several times.
type Input struct {
	Schema *arrow.Schema
	Scan   func() iter.Seq2[arrow.RecordBatch, error]
}

// Options select what is compared, and how.
type Options struct {
	On       []string // columns that identify matching rows; nil to match by position
	Absolute float64  // floating-point numbers are equal if they differ by no more than this
	Relative float64  // or by no more than this fraction of the larger one
	Examples int      // number of differing rows that are kept
	Memory   int64    // bytes of rows that On may keep in memory at a time
}

// Result is the differences.
type Result struct {
	Schema   []Column // differences of the schemas
	Rows     [2]int64 // of a and b
	Same     int64    // matched rows that are equal
	Changed  int64    // matched rows that differ
	Only     [2]int64 // rows that are only in a, only in b
	Cells    map[string]int64
	Examples []Row
	Parts    int // how often the tables were read because memory did not suffice
}

// Column is a difference of the schemas. Kind: "only in a", "only in b", "type", "nullability" or "order".
type Column struct {
	Kind, Name   string
	A, B         string // the types
	Incomparable bool   // the cells have nothing in common and were not compared
}

// Differs reports whether the difference is more than a different way to store the same: nullability and order are not.
func (c Column) Differs() bool { return c.Kind != "nullability" && c.Kind != "order" }

// Row is a row that differs. A position is -1 on a side without the row.
type Row struct {
	At    [2]int64
	Key   []Cell // with On
	Cells []Cell // those that differ; all of them if the row is on one side only
}

// Cell is a cell on both sides, as text.
type Cell struct{ Column, A, B string }

// column is a pair of columns that are compared.
type column struct {
	*shape
	name string
	at   [2]int
	same bool // both have the same type
}

type run struct {
	in   [2]Input
	o    Options
	tol  tolerance
	keys []column // with On
	rest []column // all others that are compared
	res  *Result
	buf  [2][]byte
}

// Run compares a and b.
func Run(ctx context.Context, a, b Input, o Options) (*Result, error) {
	r := &run{in: [2]Input{a, b}, o: o, tol: tolerance{o.Absolute, o.Relative},
		res: &Result{Cells: map[string]int64{}, Parts: 1}}
	cols := r.pairColumns()
	for _, name := range o.On {
		i := slices.IndexFunc(cols, func(c column) bool { return c.name == name })
		if i < 0 {
			return nil, fault.Invalidf("the column %q, by which rows are to be found, is not in both tables, or "+
				"has nothing in common there", name)
		}
		if slices.ContainsFunc(r.keys, func(c column) bool { return c.name == name }) {
			return nil, fault.Invalidf("the column %q is named twice", name)
		}
		r.keys = append(r.keys, cols[i])
	}
	for _, c := range cols {
		if !slices.Contains(o.On, c.name) {
			r.rest = append(r.rest, c)
		}
	}
	return r.res, r.bothReadings(ctx)
}

// bothReadings first compares with all text as it is. If cells differ in columns that have bytes on one side and text
// on the other, it compares once more with the text decoded from base64, and keeps this interpretation for the columns
// in which fewer cells differ. A column is always interpreted as a whole.
func (r *run) bothReadings(ctx context.Context) error {
	schema := r.res.Schema
	if err := r.compare(ctx); err != nil {
		return err
	}
	var coded []column
	for _, c := range r.rest {
		if r.res.Cells[c.name] > 0 && c.codes {
			c.read(true)
			coded = append(coded, c)
		}
	}
	plain, back := *r.res, 0
	for len(coded) > back {
		*r.res = Result{Schema: schema, Cells: map[string]int64{}, Parts: 1}
		if err := r.compare(ctx); err != nil || back > 0 {
			return err
		}
		for _, c := range coded {
			if r.res.Cells[c.name] >= plain.Cells[c.name] {
				c.read(false)
				back++
			}
		}
		if back == 0 {
			return nil
		}
	}
	*r.res = plain
	return nil
}

func (r *run) compare(ctx context.Context) error {
	if len(r.keys) > 0 {
		return r.byKey(ctx)
	}
	return r.byPosition(ctx)
}

// pairColumns pairs columns by name, and records how the schemas differ. Columns with a repeated name are paired in
// order.
func (r *run) pairColumns() (out []column) {
	a, b := r.in[0].Schema, r.in[1].Schema
	used := make([]bool, b.NumFields())
	last, ordered := -1, true
	for i, f := range a.Fields() {
		j := slices.IndexFunc(b.FieldIndices(f.Name), func(j int) bool { return !used[j] })
		if j < 0 {
			r.differ(Column{Kind: "only in a", Name: f.Name, A: f.Type.String()})
			continue
		}
		j = b.FieldIndices(f.Name)[j]
		used[j] = true
		ordered, last = ordered && j > last, j
		g := b.Field(j)
		c := column{pair(f.Type, g.Type), f.Name, [2]int{i, j}, arrow.TypeEqual(f.Type, g.Type)}
		switch {
		case !c.same:
			r.differ(Column{Kind: "type", Name: f.Name, A: f.Type.String(), B: g.Type.String(),
				Incomparable: c.kind == None})
		case f.Nullable != g.Nullable:
			r.differ(Column{Kind: "nullability", Name: f.Name, A: nullable(f), B: nullable(g)})
		}
		if c.kind != None {
			out = append(out, c)
		}
	}
	for j, g := range b.Fields() {
		if !used[j] {
			r.differ(Column{Kind: "only in b", Name: g.Name, B: g.Type.String()})
		}
	}
	if !ordered {
		r.differ(Column{Kind: "order"})
	}
	return out
}

func nullable(f arrow.Field) string {
	if f.Nullable {
		return "may be null"
	}
	return "not null"
}

func (r *run) differ(c Column) { r.res.Schema = append(r.res.Schema, c) }

// cursor is the current position on one side.
type cursor struct {
	next  func() (arrow.RecordBatch, error, bool)
	stop  func()
	batch arrow.RecordBatch
	at    int   // in the batch
	row   int64 // in the table
}

func newCursor(in Input) *cursor {
	c := &cursor{}
	c.next, c.stop = iter.Pull2(in.Scan())
	return c
}

// left returns the number of rows left in the batch, after fetching one if it is empty; 0 at the end.
func (c *cursor) left() (int, error) {
	for c.batch == nil || c.at >= int(c.batch.NumRows()) {
		b, err, ok := c.next()
		if !ok || err != nil {
			return 0, err
		}
		c.batch, c.at = b, 0
	}
	return int(c.batch.NumRows()) - c.at, nil
}

func (c *cursor) advance(n int) { c.at, c.row = c.at+n, c.row+int64(n) }

// byPosition compares rows at the same position.
func (r *run) byPosition(ctx context.Context) error {
	a, b := newCursor(r.in[0]), newCursor(r.in[1])
	defer a.stop()
	defer b.stop()
	for {
		na, err := a.left()
		if err != nil {
			return err
		}
		nb, err := b.left()
		if err != nil {
			return err
		}
		if na == 0 || nb == 0 {
			return r.tail(a, b)
		}
		n := min(na, nb)
		r.window(a, b, n)
		a.advance(n)
		b.advance(n)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// window compares n rows: first whole columns, then row by row those columns that differ.
func (r *run) window(a, b *cursor, n int) {
	var differ []column
	for _, c := range r.rest {
		x, y := a.batch.Column(c.at[0]), b.batch.Column(c.at[1])
		if c.same && array.SliceEqual(x, int64(a.at), int64(a.at+n), y, int64(b.at), int64(b.at+n)) {
			continue
		}
		differ = append(differ, c)
	}
	changed := int64(0)
	for i := 0; i < n && len(differ) > 0; i++ {
		if r.row(differ, nil, a.batch, a.at+i, b.batch, b.at+i, [2]int64{a.row + int64(i), b.row + int64(i)}) {
			changed++
		}
	}
	r.res.Changed += changed
	r.res.Same += int64(n) - changed
	r.res.Rows[0] += int64(n)
	r.res.Rows[1] += int64(n)
}

// row compares one row and reports whether it differs.
func (r *run) row(cols []column, key []Cell, a arrow.RecordBatch, i int, b arrow.RecordBatch, j int, at [2]int64) bool {
	var cells []Cell
	differs := false
	for _, c := range cols {
		x := c.append(r.buf[0][:0], a.Column(c.at[0]), i, 0)
		y := c.append(r.buf[1][:0], b.Column(c.at[1]), j, 1)
		r.buf = [2][]byte{x, y}
		if c.equal(x, y, r.tol) {
			continue
		}
		differs = true
		r.res.Cells[c.name]++
		if len(r.res.Examples) < r.o.Examples {
			cells = append(cells, Cell{c.name, c.show(x, 0), c.show(y, 1)})
		}
	}
	if cells != nil {
		r.res.Examples = append(r.res.Examples, Row{At: at, Key: key, Cells: cells})
	}
	return differs
}

// tail counts the extra rows at the end of one side.
func (r *run) tail(a, b *cursor) error {
	for side, c := range []*cursor{a, b} {
		for {
			n, err := c.left()
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			for i := 0; i < n && len(r.res.Examples) < r.o.Examples; i++ {
				r.onlyIn(side, c.batch, c.at+i, c.row+int64(i))
			}
			r.res.Only[side] += int64(n)
			r.res.Rows[side] += int64(n)
			c.advance(n)
		}
	}
	return nil
}

// onlyIn keeps a row that only one side has as an example.
func (r *run) onlyIn(side int, b arrow.RecordBatch, i int, at int64) {
	if len(r.res.Examples) >= r.o.Examples {
		return
	}
	row := Row{At: [2]int64{-1, -1}}
	row.At[side] = at
	for _, c := range slices.Concat(r.keys, r.rest) {
		cell := Cell{Column: c.name}
		text := c.show(c.append(nil, b.Column(c.at[side]), i, side), side)
		if side == 0 {
			cell.A = text
		} else {
			cell.B = text
		}
		row.Cells = append(row.Cells, cell)
	}
	row.Key = row.Cells[:len(r.keys):len(r.keys)]
	row.Cells = row.Cells[len(r.keys):]
	r.res.Examples = append(r.res.Examples, row)
}
