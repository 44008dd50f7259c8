// Package diff compares two tables cell by cell, by what the cells mean and not by how they are stored.
package diff

import (
	"context"
	"fmt"
	"hash/maphash"
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

// Options say what is compared, and how.
type Options struct {
	On       []string // columns that say which rows belong together; nil: their positions
	Absolute float64  // floating-point numbers that are so far apart are the same
	Relative float64  // or by this part of the greater of both
	Examples int      // differing rows that are kept
	Memory   int64    // bytes of rows that On may keep at a time
}

// Result is what differs.
type Result struct {
	Schema   []Column // differences of the schemas
	Rows     [2]int64 // of a and b
	Same     int64    // rows that are in both and equal
	Changed  int64    // rows that are in both and differ
	Only     [2]int64 // rows that are only in a, only in b
	Cells    map[string]int64
	Examples []Row
	Parts    int // how often the tables were read, for lack of memory
}

// Column is a difference of the schemas. Kind: "only in a", "only in b", "type", "nullability" or "order".
type Column struct {
	Kind, Name   string
	A, B         string // the types
	Incomparable bool   // the cells have nothing in common and were not compared
}

// Differs says whether the difference is more than a way of storing the same: nullability and order are not.
func (c Column) Differs() bool { return c.Kind != "nullability" && c.Kind != "order" }

// Row is a row that differs. A position is -1 if the row is not there.
type Row struct {
	At    [2]int64
	Key   []Cell // with On
	Cells []Cell // those that differ; of a row that is on one side only all
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
	r := &run{in: [2]Input{a, b}, o: o, tol: tolerance{o.Absolute, o.Relative}, res: &Result{Cells: map[string]int64{}, Parts: 1}}
	cols := r.pairColumns()
	for _, name := range o.On {
		i := slices.IndexFunc(cols, func(c column) bool { return c.name == name })
		if i < 0 {
			return nil, fault.Invalidf("the column %q, by which rows are to be found, is not in both tables, or has nothing in common there", name)
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
	if len(o.On) > 0 {
		return r.res, r.byKey(ctx)
	}
	return r.res, r.byPosition(ctx)
}

// pairColumns pairs columns by name, and tells how the schemas differ. Of a name that comes twice the first belongs to the first.
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
			r.differ(Column{Kind: "type", Name: f.Name, A: f.Type.String(), B: g.Type.String(), Incomparable: c.kind == none})
		case f.Nullable != g.Nullable:
			r.differ(Column{Kind: "nullability", Name: f.Name, A: nullable(f), B: nullable(g)})
		}
		if c.kind != none {
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

// cursor is where one side stands.
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

// left is how many rows the batch still has, after fetching one if it is empty; 0 at the end.
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

// byPosition compares row by row, as both come.
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

// window compares n rows: first by columns, and row by row those columns that are not equal as a whole.
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
			cells = append(cells, Cell{c.name, c.show(x), c.show(y)})
		}
	}
	if cells != nil {
		r.res.Examples = append(r.res.Examples, Row{At: at, Key: key, Cells: cells})
	}
	return differs
}

// tail counts the rows that only one side has at its end.
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
				r.alone(side, c.batch, c.at+i, c.row+int64(i))
			}
			r.res.Only[side] += int64(n)
			r.res.Rows[side] += int64(n)
			c.advance(n)
		}
	}
	return nil
}

// alone keeps a row that is on one side only as an example.
func (r *run) alone(side int, b arrow.RecordBatch, i int, at int64) {
	if len(r.res.Examples) >= r.o.Examples {
		return
	}
	row := Row{At: [2]int64{-1, -1}}
	row.At[side] = at
	for _, c := range slices.Concat(r.keys, r.rest) {
		cell := Cell{Column: c.name}
		text := c.show(c.append(nil, b.Column(c.at[side]), i, side))
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

// part is the rows whose key's hash is residue modulo modulus.
type part struct{ modulus, residue uint64 }

// kept is a row of a in memory.
type kept struct {
	row  []byte // the cells of rest
	at   int64
	next *kept // the next row with the same key
}

// mostParts bounds how often the tables are read: keys that do not differ cannot be divided.
const mostParts = 1 << 12

// byKey keeps the rows of a in memory, by their key, and asks for each row of b. What does not fit is divided by the keys' hash,
// and both tables are read once for every part.
func (r *run) byKey(ctx context.Context) error {
	seed := maphash.MakeSeed()
	todo := []part{{1, 0}}
	for n := 0; len(todo) > 0; n++ {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		table, more, err := r.keep(ctx, seed, p, n == 0)
		if err != nil {
			return err
		}
		for _, m := range more {
			p.modulus = m.modulus
			todo = append(todo, m)
		}
		r.res.Parts = n + 1
		if err := r.probe(ctx, seed, p, table, n == 0); err != nil {
			return err
		}
	}
	return nil
}

// keyOf appends the cells of the key.
func (r *run) keyOf(dst []byte, b arrow.RecordBatch, i, side int) []byte {
	for _, c := range r.keys {
		dst = c.append(dst, b.Column(c.at[side]), i, side)
	}
	return dst
}

// keep reads part p of a. When memory is short it halves p, as often as needed; more is what was put off.
func (r *run) keep(ctx context.Context, seed maphash.Seed, p part, count bool) (table map[string]*kept, more []part, err error) {
	table, last := map[string]*kept{}, map[string]*kept{}
	used, at := int64(0), int64(-1)
	var key, row []byte
	for b, err := range r.in[0].Scan() {
		if err != nil {
			return nil, nil, err
		}
		if count {
			r.res.Rows[0] += b.NumRows()
		}
		for i := range int(b.NumRows()) {
			at++
			key = r.keyOf(key[:0], b, i, 0)
			if maphash.Bytes(seed, key)%p.modulus != p.residue {
				continue
			}
			row = row[:0]
			for _, c := range r.rest {
				row = c.append(row, b.Column(c.at[0]), i, 0)
			}
			k := &kept{row: slices.Clone(row), at: at}
			if before := last[string(key)]; before != nil {
				before.next = k
			} else {
				table[string(key)] = k
				used += int64(len(key)) + keyCost
			}
			last[string(key)] = k
			used += int64(len(row)) + rowCost
			for used > r.o.Memory {
				if p.modulus >= mostParts {
					return nil, nil, &fault.Error{Class: fault.Limit, Reason: fmt.Sprintf("even divided into %d parts the rows of one do not fit into %d bytes: too many have the same key", mostParts, r.o.Memory)}
				}
				more = append(more, part{p.modulus * 2, p.residue + p.modulus})
				p.modulus *= 2
				used -= dropOthers(table, last, seed, p)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
	}
	return table, more, nil
}

// What a key and a row cost besides their bytes: map entries, headers, pointers.
const keyCost, rowCost = 120, 64

// dropOthers removes the rows that do not belong to p and says how many bytes they took.
func dropOthers(table, last map[string]*kept, seed maphash.Seed, p part) (freed int64) {
	for key, k := range table {
		if maphash.String(seed, key)%p.modulus == p.residue {
			continue
		}
		freed += int64(len(key)) + keyCost
		for ; k != nil; k = k.next {
			freed += int64(len(k.row)) + rowCost
		}
		delete(table, key)
		delete(last, key)
	}
	return freed
}

// probe reads part p of b and looks each row up. Rows with the same key belong together in the order in which they come.
func (r *run) probe(ctx context.Context, seed maphash.Seed, p part, table map[string]*kept, count bool) error {
	at := int64(-1)
	var key []byte
	for b, err := range r.in[1].Scan() {
		if err != nil {
			return err
		}
		if count {
			r.res.Rows[1] += b.NumRows()
		}
		for i := range int(b.NumRows()) {
			at++
			key = r.keyOf(key[:0], b, i, 1)
			if maphash.Bytes(seed, key)%p.modulus != p.residue {
				continue
			}
			k := table[string(key)]
			if k == nil {
				r.res.Only[1]++
				r.alone(1, b, i, at)
				continue
			}
			if k.next == nil {
				delete(table, string(key))
			} else {
				table[string(key)] = k.next
			}
			if r.keptRow(key, k, b, i, at) {
				r.res.Changed++
			} else {
				r.res.Same++
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	r.left(table)
	return nil
}

// keptRow compares a kept row of a with row i of b.
func (r *run) keptRow(key []byte, k *kept, b arrow.RecordBatch, i int, at int64) bool {
	row, differs := k.row, false
	var cells []Cell
	for _, c := range r.rest {
		var x []byte
		x, row = c.cut(row)
		y := c.append(r.buf[1][:0], b.Column(c.at[1]), i, 1)
		r.buf[1] = y
		if c.equal(x, y, r.tol) {
			continue
		}
		differs = true
		r.res.Cells[c.name]++
		if len(r.res.Examples) < r.o.Examples {
			cells = append(cells, Cell{c.name, c.show(x), c.show(y)})
		}
	}
	if cells != nil {
		r.res.Examples = append(r.res.Examples, Row{At: [2]int64{k.at, at}, Key: r.showKey(key), Cells: cells})
	}
	return differs
}

func (r *run) showKey(key []byte) (out []Cell) {
	for _, c := range r.keys {
		var cell []byte
		cell, key = c.cut(key)
		text := c.show(cell)
		out = append(out, Cell{c.name, text, text})
	}
	return out
}

// left tells the rows of a that no row of b asked for, the first ones in the order of a.
func (r *run) left(table map[string]*kept) {
	type entry struct {
		key string
		k   *kept
	}
	var rows []entry
	for key, k := range table {
		for ; k != nil; k = k.next {
			r.res.Only[0]++
			rows = append(rows, entry{key, k})
		}
	}
	slices.SortFunc(rows, func(x, y entry) int { return int(x.k.at - y.k.at) })
	for _, e := range rows {
		if len(r.res.Examples) >= r.o.Examples {
			return
		}
		row := Row{At: [2]int64{e.k.at, -1}}
		for _, c := range r.showKey([]byte(e.key)) {
			row.Key = append(row.Key, Cell{Column: c.Column, A: c.A})
		}
		b := e.k.row
		for _, c := range r.rest {
			var x []byte
			x, b = c.cut(b)
			row.Cells = append(row.Cells, Cell{Column: c.name, A: c.show(x)})
		}
		r.res.Examples = append(r.res.Examples, row)
	}
}
