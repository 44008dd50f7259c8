package diff

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/sorted"
)

// With On, the rows of a are kept in memory by key, and each row of b is matched with them. Among rows with the same
// key, equal rows are paired first, then rows that are equal within the tolerance, and then the rest in the order in
// which they come. So a row of b without an equal row has to wait until the end.

// part is the rows whose key's hash is residue modulo modulus.
type part struct{ modulus, residue uint64 }

// row is a row of a or b in memory.
type row struct {
	cells []byte // of the columns in rest
	at    int64
	next  *row
}

// queue is a list of rows in order.
type queue struct {
	first, last *row
	n           int
}

func (q *queue) add(r *row) {
	if q.last == nil {
		q.first = r
	} else {
		q.last.next = r
	}
	q.last = r
	q.n++
}

// take removes a row with these cells, and reports whether there was one.
func (q *queue) take(cells []byte) bool {
	for before, r := (*row)(nil), q.first; r != nil; before, r = r, r.next {
		if !bytes.Equal(r.cells, cells) {
			continue
		}
		if before == nil {
			q.first = r.next
		} else {
			before.next = r.next
		}
		if q.last == r {
			q.last = before
		}
		q.n--
		return true
	}
	return false
}

func (q *queue) rows() (out []*row) {
	for r := q.first; r != nil; r = r.next {
		out = append(out, r)
	}
	return out
}

// keyRows are the rows of one key: those of a that have not been matched with an equal row of b, and those of b that
// wait. If the rows of a are many, they are in queues by a hash of their cells; otherwise all are in one.
type keyRows struct {
	a    queue
	many map[uint64]*queue
	b    queue
}

// maxLinear is the number of rows of one key that are searched linearly.
const maxLinear = 16

// take removes a row of a with these cells, if there is one. All rows of the key must have been added before.
func (k *keyRows) take(seed maphash.Seed, cells []byte) bool {
	if k.many == nil && k.a.n > maxLinear {
		k.many = map[uint64]*queue{}
		for _, r := range k.a.rows() {
			r.next = nil
			h := maphash.Bytes(seed, r.cells)
			if k.many[h] == nil {
				k.many[h] = &queue{}
			}
			k.many[h].add(r)
		}
		k.a = queue{}
	}
	if k.many == nil {
		return k.a.take(cells)
	}
	q := k.many[maphash.Bytes(seed, cells)]
	return q != nil && q.take(cells)
}

// cost returns the memory for the n-th row of a, in bytes.
func (k *keyRows) cost(r *row, n int) int64 {
	if n > maxLinear {
		return int64(len(r.cells)) + rowCost + queueCost
	}
	return int64(len(r.cells)) + rowCost
}

// left returns the remaining rows of a, in order.
func (k *keyRows) left() []*row {
	out := k.a.rows()
	for _, q := range k.many {
		out = append(out, q.rows()...)
	}
	slices.SortFunc(out, func(x, y *row) int { return cmp.Compare(x.at, y.at) })
	return out
}

// Memory for a key and a row in addition to their bytes: map entries, headers, pointers; and for the queue if there are
// many rows with the same key.
const keyCost, rowCost, queueCost = 128, 64, 64

// maxParts limits how often the tables are read: rows with identical keys cannot be divided.
const maxParts = 1 << 12

// errFull means that a part does not fit in memory.
var errFull = errors.New("full")

// keyed compares the rows of one part.
type keyed struct {
	*run
	part
	seed  maphash.Seed
	table map[string]*keyRows
	used  int64
	key   []byte
	cells []byte
}

// byKey compares part by part: rows that do not fit in memory are divided by the hash of their key, and both tables are
// read once for every part.
func (r *run) byKey(ctx context.Context) error {
	seed := maphash.MakeSeed()
	todo := []part{{1, 0}}
	counted := false // the rows of both tables have been counted
	for n := 1; len(todo) > 0; n++ {
		k := &keyed{run: r, part: todo[len(todo)-1], seed: seed, table: map[string]*keyRows{}}
		todo = todo[:len(todo)-1]
		r.res.Parts = n
		before := *r.res
		before.Cells = maps.Clone(r.res.Cells)
		more, err := k.keep(ctx)
		if err == nil {
			err = k.probe(ctx)
		}
		if err == errFull { // rows of b have to wait as well: start again with both halves
			if err = k.splitPart(&more); err == nil {
				more = append(more, k.part)
			}
			k.take(&before)
		} else if err == nil && !counted {
			counted = true
			before.Rows = r.res.Rows
		}
		if err != nil {
			return err
		}
		if counted {
			r.res.Rows = before.Rows
		}
		todo = append(todo, more...)
	}
	return nil
}

// take resets the result to its earlier state.
func (k *keyed) take(before *Result) {
	examples := k.res.Examples[:len(before.Examples)]
	*k.res = *before
	k.res.Examples = examples
}

// splitPart postpones half of the part.
func (k *keyed) splitPart(more *[]part) error {
	if k.modulus >= maxParts {
		return &fault.Error{Class: fault.Limit, Reason: fmt.Sprintf("even divided into %s the rows of one "+
			"do not fit into %d bytes: too many have the same key", fault.Count(maxParts, "part"), k.o.Memory)}
	}
	*more = append(*more, part{k.modulus * 2, k.residue + k.modulus})
	k.modulus *= 2
	return nil
}

// scan iterates over the rows of a side that belong to the part. k.key is set to the key of each row, and k.cells to
// its other cells.
func (k *keyed) scan(ctx context.Context, side int, each func(b arrow.RecordBatch, i int, at int64) error) error {
	at := int64(-1)
	for b, err := range k.in[side].Scan() {
		if err != nil {
			return err
		}
		k.res.Rows[side] += b.NumRows()
		for i := range int(b.NumRows()) {
			at++
			k.key = k.key[:0]
			for _, c := range k.keys {
				k.key = c.append(k.key, b.Column(c.at[side]), i, side)
			}
			if maphash.Bytes(k.seed, k.key)%k.modulus != k.residue {
				continue
			}
			k.cells = k.cells[:0]
			for _, c := range k.rest {
				k.cells = c.append(k.cells, b.Column(c.at[side]), i, side)
			}
			if err := each(b, i, at); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// keep reads the part's rows of a into memory. If memory does not suffice, it halves the part as often as necessary;
// more is the postponed rest.
func (k *keyed) keep(ctx context.Context) (more []part, err error) {
	err = k.scan(ctx, 0, func(_ arrow.RecordBatch, _ int, at int64) error {
		same := k.table[string(k.key)]
		if same == nil {
			same = &keyRows{}
			k.table[string(k.key)] = same
			k.used += int64(len(k.key)) + keyCost
		}
		same.a.add(&row{cells: slices.Clone(k.cells), at: at})
		k.used += same.cost(same.a.last, same.a.n)
		for k.used > k.o.Memory {
			if err := k.splitPart(&more); err != nil {
				return err
			}
			k.dropOthers()
		}
		return nil
	})
	return more, err
}

// dropOthers removes the rows that no longer belong to the part.
func (k *keyed) dropOthers() {
	for key, same := range k.table {
		if maphash.String(k.seed, key)%k.modulus == k.residue {
			continue
		}
		k.used -= int64(len(key)) + keyCost
		for i, r := range same.a.rows() {
			k.used -= same.cost(r, i+1)
		}
		delete(k.table, key)
	}
}

// probe matches the rows of b. Rows without an equal row wait, and are paired at the end.
func (k *keyed) probe(ctx context.Context) error {
	shown := len(k.res.Examples)
	err := k.scan(ctx, 1, func(b arrow.RecordBatch, i int, at int64) error {
		same := k.table[string(k.key)]
		if same == nil {
			k.res.Only[1]++
			k.onlyIn(1, b, i, at)
			return nil
		}
		if same.take(k.seed, k.cells) {
			k.res.Same++
			return nil
		}
		same.b.add(&row{cells: slices.Clone(k.cells), at: at})
		if k.used += int64(len(k.cells)) + rowCost; k.used > k.o.Memory {
			return errFull
		}
		return nil
	})
	if err == nil {
		k.pairRest(shown)
	}
	return err
}

// pairing is two rows of a key that differ; one of them is nil if the other has no partner.
type pairing struct {
	key  string
	a, b *row
}

// pairRest pairs the remaining rows. The part's examples, which begin at shown, are in the order of b, followed by the
// rows that only a has.
func (k *keyed) pairRest(shown int) {
	var both, onlyA []pairing // both: the pairs that include a row of b
	for key, same := range k.table {
		a, b := k.near(same.left(), same.b.rows())
		for i := range max(len(a), len(b)) {
			switch {
			case i >= len(b):
				onlyA = append(onlyA, pairing{key, a[i], nil})
			case i >= len(a):
				both = append(both, pairing{key, nil, b[i]})
			default:
				both = append(both, pairing{key, a[i], b[i]})
			}
		}
	}
	sorted.By(both, func(x, y pairing) int { return cmp.Compare(x.b.at, y.b.at) })
	sorted.By(onlyA, func(x, y pairing) int { return cmp.Compare(x.a.at, y.a.at) })
	alone := slices.Clone(k.res.Examples[shown:])
	k.res.Examples = k.res.Examples[:shown]
	for _, p := range both {
		for len(alone) > 0 && alone[0].At[1] < p.b.at {
			k.example(alone[0])
			alone = alone[1:]
		}
		k.differ(p)
	}
	for _, x := range alone {
		k.example(x)
	}
	for _, p := range onlyA {
		k.differ(p)
	}
}

func (k *keyed) example(x Row) {
	if len(k.res.Examples) < k.o.Examples {
		k.res.Examples = append(k.res.Examples, x)
	}
}

// differ counts two rows that differ, or one without a partner.
func (k *keyed) differ(p pairing) {
	x := Row{At: [2]int64{-1, -1}}
	var cells [2][]byte
	for side, r := range []*row{p.a, p.b} {
		if r != nil {
			x.At[side], cells[side] = r.at, r.cells
		}
	}
	switch {
	case p.b == nil:
		k.res.Only[0]++
	case p.a == nil:
		k.res.Only[1]++
	default:
		k.res.Changed++
	}
	show := len(k.res.Examples) < k.o.Examples
	for _, c := range k.rest {
		var text [2]string
		var cell [2][]byte
		for side := range cells {
			if cells[side] == nil {
				continue
			}
			if cell[side], cells[side] = c.cut(cells[side]); show {
				text[side] = c.show(cell[side], side)
			}
		}
		if p.a != nil && p.b != nil {
			if c.equal(cell[0], cell[1], k.tol) {
				continue
			}
			k.res.Cells[c.name]++
		}
		if show {
			x.Cells = append(x.Cells, Cell{c.name, text[0], text[1]})
		}
	}
	if show {
		x.Key = k.showKey([]byte(p.key), x.At)
		k.example(x)
	}
}

// showKey returns the key of a row, on each side that has the row.
func (k *keyed) showKey(key []byte, at [2]int64) (out []Cell) {
	for _, c := range k.keys {
		var cell []byte
		cell, key = c.cut(key)
		shown := Cell{Column: c.name}
		if at[0] >= 0 {
			shown.A = c.show(cell, 0)
		}
		if at[1] >= 0 {
			shown.B = c.show(cell, 1)
		}
		out = append(out, shown)
	}
	return out
}

// maxPairs is the number of pairs of rows of one key up to which as many rows as possible are matched within the
// tolerance. If there are more, up to maxTried, each row of a gets the first match, and beyond that only rows at the
// same position are compared.
const maxPairs, maxTried = 1 << 14, 1 << 24

// near counts the pairs of rows of a and b that are equal within the tolerance, and returns the other rows.
func (k *keyed) near(a, b []*row) (restA, restB []*row) {
	if len(a) == 0 || len(b) == 0 || !slices.ContainsFunc(k.rest, func(c column) bool { return c.inexact(k.tol) }) {
		return a, b
	}
	pairs := int64(len(a)) * int64(len(b))
	of := make([]int, len(b)) // the row of a for each row of b; -1 if none
	for j := range of {
		of[j] = -1
	}
	used := make([]bool, len(a))
	for i := range a {
		if pairs > maxTried {
			if used[i] = i < len(b) && k.sameRow(a[i].cells, b[i].cells); used[i] {
				of[i] = i
			}
			continue
		}
		used[i] = k.pairUp(a, b, i, of, make([]bool, len(b)), pairs <= maxPairs)
	}
	for i, r := range a {
		if !used[i] {
			restA = append(restA, r)
		}
	}
	for j, r := range b {
		if of[j] < 0 {
			restB = append(restB, r)
		}
	}
	k.res.Same += int64(len(a) - len(restA))
	return restA, restB
}

// pairUp finds a row of b for row i of a: a free one or, with move, one whose row of a can be matched with another.
func (k *keyed) pairUp(a, b []*row, i int, of []int, seen []bool, move bool) bool {
	for j := range b {
		if seen[j] || !move && of[j] >= 0 || !k.sameRow(a[i].cells, b[j].cells) {
			continue
		}
		seen[j] = true
		if of[j] < 0 || k.pairUp(a, b, of[j], of, seen, move) {
			of[j] = i
			return true
		}
	}
	return false
}

// sameRow compares the cells of two rows within the tolerance.
func (k *keyed) sameRow(a, b []byte) bool {
	for _, c := range k.rest {
		var x, y []byte
		x, a = c.cut(a)
		y, b = c.cut(b)
		if !c.equal(x, y, k.tol) {
			return false
		}
	}
	return true
}
