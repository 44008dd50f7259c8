package content

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Sum is the result of a Summer. Sums of the two sides of one Plan are equal if the rows are.
type Sum struct {
	Rows    int64
	Row     [2]uint64 // over whole rows: two sums of different hashes
	Columns []Column  // in the order of side 0
	partial bool      // some column is not compared, so Row is meaningless
}

// Column is the sum over one column, modulo 2^64.
type Column struct {
	Name    string
	Nulls   int64
	Hash    uint64
	Unknown bool // nothing is known about it
}

func (c Column) equal(o Column) bool {
	return c.Unknown || o.Unknown || c.Hash == o.Hash && c.Nulls == o.Nulls
}

// Equal reports whether rows and all checksums are the same.
func (s Sum) Equal(o Sum) bool {
	return s.Rows == o.Rows && (s.Row == o.Row || s.partial || o.partial) &&
		slices.EqualFunc(s.Columns, o.Columns, Column.equal)
}

// String returns the checksum over the rows as 32 hexadecimal digits.
func (s Sum) String() string { return fmt.Sprintf("%016x%016x", s.Row[0], s.Row[1]) }

// Plus returns the number of rows, and the checksum, of the rows of both together, without columns.
func (s Sum) Plus(o Sum) Sum {
	return Sum{Rows: s.Rows + o.Rows, Row: [2]uint64{s.Row[0] + o.Row[0], s.Row[1] + o.Row[1]},
		partial: s.partial || o.partial}
}

// Since returns the sum of the rows that were added to s since it was o.
func (s Sum) Since(o Sum) Sum {
	out := Sum{Rows: s.Rows - o.Rows, Row: [2]uint64{s.Row[0] - o.Row[0], s.Row[1] - o.Row[1]}, partial: s.partial}
	for i, c := range s.Columns {
		if i < len(o.Columns) {
			c.Nulls, c.Hash = c.Nulls-o.Columns[i].Nulls, c.Hash-o.Columns[i].Hash
		}
		out.Columns = append(out.Columns, c)
	}
	return out
}

// Parse returns the sum of the given number of rows with a checksum as written by String, without columns.
func Parse(rows int64, checksum string) (Sum, error) {
	s := Sum{Rows: rows}
	_, err := fmt.Sscanf(checksum, "%016x%016x", &s.Row[0], &s.Row[1])
	if err != nil || s.String() != checksum {
		return s, fmt.Errorf("expected a checksum of 32 hexadecimal digits, found %q", checksum)
	}
	return s, nil
}

// Differing returns the names of the columns whose sums differ.
func (s Sum) Differing(o Sum) (names []string) {
	for i, c := range s.Columns {
		if i >= len(o.Columns) || !c.equal(o.Columns[i]) {
			names = append(names, c.Name)
		}
	}
	return names
}

// Difference describes in a sentence how the output o differs from the input s; "" if it does not.
func (s Sum) Difference(o Sum) string {
	if s.Equal(o) {
		return ""
	}
	text := fmt.Sprintf("%d rows went in, %d came back", s.Rows, o.Rows)
	const maxNamed = 5
	switch names := s.Differing(o); {
	case len(names) == 0:
		return text + "; every column has the same values, but not in the same rows"
	case len(names) > maxNamed:
		return text + fmt.Sprintf("; other values in the columns %s and %d more", strings.Join(names[:maxNamed], ", "),
			len(names)-maxNamed)
	case len(names) > 1:
		return text + "; other values in the columns " + strings.Join(names, ", ")
	default:
		return text + "; other values in the column " + names[0]
	}
}

// Summer sums the batches of one side of a Plan. The two Summers of a Plan may work concurrently, each in one
// goroutine.
type Summer struct {
	plan  *Plan
	side  int
	sum   Sum
	rows  []uint64
	cells []uint64
	all   []uint64
}

// window is the number of rows whose hashes stay in the cache.
const window = 4096

// Add adds a batch with the side's schema. Nothing of it is kept.
func (s *Summer) Add(b arrow.RecordBatch) {
	n := int(b.NumRows())
	s.sum.Rows += int64(n)
	for from := 0; from < n; from += window {
		s.window(b, from, min(window, n-from))
	}
}

// Hashes adds a batch, as Add does, and returns a hash of each of its rows: those of equal rows are equal. The result
// is valid until the next call of a method.
func (s *Summer) Hashes(b arrow.RecordBatch) []uint64 {
	s.all = s.all[:0]
	n := int(b.NumRows())
	s.sum.Rows += int64(n)
	for from := 0; from < n; from += window {
		s.window(b, from, min(window, n-from))
		for _, h := range s.rows[:min(window, n-from)] {
			s.all = append(s.all, scramble(h))
		}
	}
	return s.all
}

func (s *Summer) window(b arrow.RecordBatch, from, n int) {
	s.rows, s.cells = sized(s.rows, n), sized(s.cells, n)
	clear(s.rows)
	for i := range s.plan.columns {
		c := &s.plan.columns[i]
		if c.node == nil {
			continue
		}
		a := b.Column(c.at[s.side])
		c.hash(s.cells, a, from, s.side)
		total, rows := uint64(0), s.rows[:len(s.cells)]
		for k, h := range s.cells {
			total += h
			rows[k] = fold(rows[k], h)
		}
		s.sum.Columns[i].Hash += total
		if mayBeNull(a) {
			s.sum.Columns[i].Nulls += int64(nulls(s.cells))
		}
	}
	for _, h := range s.rows {
		h = scramble(h)
		s.sum.Row[0] += h
		s.sum.Row[1] += scramble(h ^ 0x9e3779b97f4a7c15)
	}
}

// hash computes the hashes of a column's cells. A field of a null struct is null.
func (c *column) hash(out []uint64, a arrow.Array, from, side int) {
	if side == 1 || len(c.path) == 0 {
		c.node.hash(out, a, from, side)
		return
	}
	at := make([]arrow.Array, 0, len(c.path))
	for _, k := range c.path {
		at = append(at, a)
		a = a.(*array.Struct).Field(k)
	}
	c.node.hash(out, a, from, side)
	for _, st := range at {
		holes(out, st, from)
	}
}

// Sum returns the sum over all batches so far; of nil, that of nothing.
func (s *Summer) Sum() Sum {
	if s == nil {
		return Sum{}
	}
	out := s.sum
	out.Columns = slices.Clone(out.Columns)
	return out
}

// mayBeNull returns false only if no cell of a has the hash of null.
func mayBeNull(a arrow.Array) bool {
	if a.NullN() > 0 || len(a.Data().Children()) > 0 {
		return true
	}
	id := a.DataType().ID()
	return id == arrow.DICTIONARY || id == arrow.NULL || id == arrow.EXTENSION
}

func nulls(cells []uint64) (n int) {
	for _, h := range cells {
		if h == nullHash {
			n++
		}
	}
	return n
}

func sized(b []uint64, n int) []uint64 {
	if cap(b) < n {
		return make([]uint64, n)
	}
	return b[:n]
}

// AddSum adds the rows of another sum of the same plan. It reports whether the sum is one of it.
func (s *Summer) AddSum(o Sum) bool {
	if len(o.Columns) != len(s.sum.Columns) {
		return false
	}
	s.sum.Rows, s.sum.Row = s.sum.Rows+o.Rows, [2]uint64{s.sum.Row[0] + o.Row[0], s.sum.Row[1] + o.Row[1]}
	for i, c := range o.Columns {
		s.sum.Columns[i].Nulls += c.Nulls
		s.sum.Columns[i].Hash += c.Hash
	}
	return true
}
