package pred

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/pred/internal/scalar"
	"stoa/pred/internal/syntax"
	"stoa/vec"
)

// Eval returns those of n entries, restricted to in (nil: all), for which e, which must be bound, is TRUE.
//
// col returns the array of a column by its path: n entries, whose nulls include those of the enclosing structs. If it
// returns nil, it is asked for the enclosing struct (and so on outwards), and Eval descends through the fields and
// nulls of that struct by itself. An array need not have the layout of the schema's type (a dictionary for plain
// values, large strings for strings), only the same values.
//
// The terms of and are evaluated from left to right, each only for the entries that still pass; the terms of or only
// for those that do not pass yet. Entries that are not in in are never looked at.
func (e *Expr) Eval(n int, col func(path string) arrow.Array, in *vec.Sel) (*vec.Sel, error) {
	return e.EvalWith(nil, n, col, in)
}

// Memo keeps the results of Eval for dictionaries, for one goroutine: each dictionary is tested once, however many
// arrays use it. It holds on to the last dictionary of each test.
type Memo struct{ tables map[*leaf]tested }

// tested is the set of dictionary values that pass a leaf.
type tested struct {
	dict  *memory.Buffer // identifies the dictionary
	n     int
	table []byte // 1: passes
}

func (m *Memo) get(l *leaf, dict arrow.ArrayData) []byte {
	if m == nil || len(dict.Buffers()) < 2 || dict.Buffers()[1] == nil {
		return nil
	}
	if t := m.tables[l]; t.dict == dict.Buffers()[1] && t.n == dict.Len() && dict.Offset() == 0 {
		return t.table
	}
	return nil
}

func (m *Memo) put(l *leaf, dict arrow.ArrayData, table []byte) {
	if m == nil || len(dict.Buffers()) < 2 || dict.Buffers()[1] == nil || dict.Offset() != 0 {
		return
	}
	if m.tables == nil {
		m.tables = map[*leaf]tested{}
	}
	m.tables[l] = tested{dict.Buffers()[1], dict.Len(), table}
}

// EvalWith is Eval with the dictionary results in m, which may be nil. Dictionaries must not change.
func (e *Expr) EvalWith(m *Memo, n int, col func(path string) arrow.Array, in *vec.Sel) (*vec.Sel, error) {
	if e == nil || !e.bound {
		return nil, fault.Bugf("pred: evaluating an expression that is not bound: %s", e)
	}
	if n < 0 || in != nil && (in.N != n || in.Bits != nil && len(in.Bits) < (n+7)/8) {
		return nil, fault.Bugf("pred: a selection that does not fit %d entries", n)
	}
	acc := load(n, in)
	ev := &evaluation{n: n, col: col, memo: m}
	if err := ev.narrow(e, acc); err != nil {
		return nil, err
	}
	return store(acc, n), nil
}

// EvalDict evaluates e, a bound expression on one column, once on the values of a dictionary. It returns the codes
// whose value makes e TRUE, and whether e is TRUE for an entry without a code (a null).
func (e *Expr) EvalDict(dict arrow.Array) (codes *vec.Sel, null bool, err error) {
	if cols := e.Columns(); len(cols) > 1 || dict == nil {
		return nil, false, fault.Bugf("pred: evaluating on a dictionary what tests %d columns: %s", len(cols), e)
	}
	codes, err = e.Eval(dict.Len(), func(string) arrow.Array { return dict }, nil)
	return codes, err == nil && e.nullTrue(), err
}

// nullTrue reports whether e is TRUE if all its columns are null.
func (e *Expr) nullTrue() bool {
	switch e.Op {
	case OpTrue, OpIsNull:
		return true
	case OpExpr:
		return e.test != nil && e.test.nullTrue
	case OpAnd:
		return !slices.ContainsFunc(e.Args, func(a *Expr) bool { return !a.nullTrue() })
	case OpOr:
		return slices.ContainsFunc(e.Args, (*Expr).nullTrue)
	}
	return false
}

// MayFail reports whether evaluating e, which is bound, may fail for some row, as an overflow does. Such a predicate
// must not be evaluated for rows that another one excludes, and for values of a dictionary that no row may have.
func (e *Expr) MayFail() bool {
	if e == nil {
		return false
	}
	for _, a := range e.Args {
		if a.MayFail() {
			return true
		}
	}
	return e.test != nil && e.test.node.Fails
}

// load converts a selection to words.
func load(n int, in *vec.Sel) []uint64 {
	acc := make([]uint64, (n+63)/64)
	for w := range acc {
		acc[w] = math.MaxUint64
		if in != nil && in.Bits != nil {
			acc[w] = bitWord(in.Bits, 64*w)
		}
	}
	if n%64 != 0 {
		acc[n/64] &= 1<<(n%64) - 1
	}
	return acc
}

// store converts words, whose bits from n on are 0, to a selection.
func store(acc []uint64, n int) *vec.Sel {
	b := make([]byte, 8*len(acc))
	count := 0
	for w, x := range acc {
		binary.LittleEndian.PutUint64(b[8*w:], x)
		count += bits.OnesCount64(x)
	}
	if count == n {
		return vec.All(n)
	}
	return &vec.Sel{Bits: b[:(n+7)/8], N: n, Count: count}
}

// bitWord returns 64 bits of b from bit i on; bits past the end are 0.
func bitWord(b []byte, i int) uint64 {
	k, sh := i>>3, uint(i&7)
	if k+9 <= len(b) {
		return binary.LittleEndian.Uint64(b[k:])>>sh | uint64(b[k+8])<<1<<(63-sh)
	}
	var x uint64
	for j := 0; j < 8 && k+j < len(b); j++ {
		x |= uint64(b[k+j]) << (8 * j)
	}
	x >>= sh
	if sh > 0 && k+8 < len(b) {
		x |= uint64(b[k+8]) << (64 - sh)
	}
	return x
}

// evaluation is one run of Eval.
type evaluation struct {
	n    int
	col  func(path string) arrow.Array
	memo *Memo
}

// narrow clears the bits of acc for which e is not TRUE. As Bind has pushed not down to the leaves, the TRUE entries of
// a node depend only on the TRUE entries of its children; FALSE and unknown need not be distinguished.
func (ev *evaluation) narrow(e *Expr, acc []uint64) error {
	switch e.Op {
	case OpTrue:
		return nil
	case OpFalse, OpUnknown:
		clear(acc)
		return nil
	case OpAnd:
		for _, a := range e.Args {
			if isZero(acc) {
				return nil
			}
			if err := ev.narrow(a, acc); err != nil {
				return err
			}
		}
		return nil
	case OpOr:
		return ev.or(e.Args, acc)
	}
	if e.test != nil {
		return ev.expr(e, acc)
	}
	if e.leaf == nil || isZero(acc) {
		return nil
	}
	c, err := ev.column(e.Column)
	if err != nil {
		return err
	}
	if err := e.leaf.narrow(ev.memo, acc, c); err != nil {
		return fault.Bugf("pred: column %s: %v", e.Column, err)
	}
	return nil
}

// expr clears the bits of acc for which a bound expr is not TRUE.
func (ev *evaluation) expr(e *Expr, acc []uint64) error {
	if isZero(acc) {
		return nil
	}
	failure, err := e.test.node.Where(acc, ev.n, func(path string) (scalar.Input, error) {
		c, err := ev.column(path)
		if err != nil {
			return scalar.Input{}, err
		}
		valid := load(ev.n, nil)
		if err := c.andValid(valid); err != nil {
			return scalar.Input{}, err
		}
		return scalar.Input{Array: c.arr, Valid: valid}, nil
	})
	switch {
	case err != nil:
		return fault.Bugf("pred: %s: %v", e.Text, err)
	case failure != nil:
		return fault.Invalidf("%s%s", failure.Reason, syntax.Show(e.test.text, failure.At))
	}
	return nil
}

// or evaluates each term only where no earlier term was TRUE.
func (ev *evaluation) or(args []*Expr, acc []uint64) error {
	rest, try := slices.Clone(acc), make([]uint64, len(acc))
	for _, a := range args {
		if isZero(rest) {
			break
		}
		copy(try, rest)
		if err := ev.narrow(a, try); err != nil {
			return err
		}
		for w := range rest {
			rest[w] &^= try[w]
		}
	}
	for w := range acc {
		acc[w] &^= rest[w]
	}
	return nil
}

func isZero(acc []uint64) bool {
	for _, x := range acc {
		if x != 0 {
			return false
		}
	}
	return true
}

// column is the array of a column, with the validity of the enclosing structs.
type column struct {
	arr     arrow.Array
	n       int
	parents []validity
}

// validity is a bitmap that begins at bit off; nil: everything is valid.
type validity struct {
	bits []byte
	off  int
}

func validityOf(a arrow.Array) validity {
	if b := a.Data().Buffers(); len(b) > 0 && b[0] != nil && b[0].Len() > 0 {
		return validity{b[0].Bytes(), a.Data().Offset()}
	}
	return validity{}
}

// column returns the array of the column at whole, extracted from the enclosing structs if necessary.
func (ev *evaluation) column(whole string) (column, error) {
	names := SplitPath(whole)
	for k := len(names); k > 0; k-- {
		path := whole
		if k < len(names) {
			path = JoinPath(names[:k]...)
		}
		if a := ev.col(path); a != nil {
			if a.Len() < ev.n {
				return column{}, fault.Bugf("pred: column %s has %d entries, not %d", path, a.Len(), ev.n)
			}
			return descend(column{arr: a, n: ev.n}, whole, names[k:])
		}
	}
	return column{}, fault.Bugf("pred: column %s was not given", whole)
}

// descend descends through structs by field name.
func descend(c column, path string, names []string) (column, error) {
	for {
		if len(names) == 0 {
			return c, nil
		}
		if x, ok := c.arr.(array.ExtensionArray); ok {
			c.arr = x.Storage()
		}
		s, ok := c.arr.(*array.Struct)
		if !ok {
			return c, fault.Bugf("pred: column %s: a %s where a struct was expected", path, c.arr.DataType())
		}
		k, ok := s.DataType().(*arrow.StructType).FieldIdx(names[0])
		if !ok || s.Field(k).Len() < c.n {
			return c, fault.Bugf("pred: column %s: no field %s", path, names[0])
		}
		if v := validityOf(s); v.bits != nil {
			c.parents = append(c.parents, v)
		}
		c.arr, names = s.Field(k), names[1:]
	}
}

// andValid clears the bits of acc that are null in c or in an enclosing struct.
func (c *column) andValid(acc []uint64) error {
	if c.arr.DataType().ID() == arrow.NULL {
		clear(acc)
		return nil
	}
	for _, v := range append([]validity{validityOf(c.arr)}, c.parents...) {
		if v.bits == nil {
			continue
		}
		if len(v.bits)*8 < v.off+c.n {
			return fault.Bugf("a validity bitmap of %d bytes for %d entries at %d", len(v.bits), c.n, v.off)
		}
		for w := range acc {
			if acc[w] != 0 {
				acc[w] &= bitWord(v.bits, v.off+64*w)
			}
		}
	}
	return nil
}

// narrow clears the bits of acc for which the leaf is not TRUE.
func (l *leaf) narrow(m *Memo, acc []uint64, c column) error {
	if x, ok := c.arr.(array.ExtensionArray); ok {
		c.arr = x.Storage()
	}
	if d, ok := c.arr.(*array.Dictionary); ok {
		return l.narrowDict(m, acc, c, d)
	}
	if l.kind == leafNull && !l.neg {
		valid := slices.Clone(acc)
		err := c.andValid(valid)
		for w := range acc {
			acc[w] &^= valid[w]
		}
		return err
	}
	if err := c.andValid(acc); err != nil {
		return err
	}
	switch {
	case l.kind == leafNull, c.arr.DataType().ID() == arrow.NULL:
		return nil
	case l.kind == leafNever, l.empty && !l.neg:
		clear(acc)
		return nil
	case l.empty, isZero(acc):
		return nil
	}
	if domainOf(c.arr.DataType()) != l.dom {
		return fault.Bugf("the predicate is bound to another type than that of the array, %s", c.arr.DataType())
	}
	return l.narrowValues(acc, c)
}

// narrowDict tests the values of the dictionary once, and then looks up codes.
func (l *leaf) narrowDict(m *Memo, acc []uint64, c column, d *array.Dictionary) error {
	table, err := l.testDict(m, d)
	if err != nil {
		return err
	}
	valid := slices.Clone(acc)
	if err := c.andValid(valid); err != nil {
		return err
	}
	var nulls []uint64
	if l.kind == leafNull && !l.neg {
		nulls = slices.Clone(acc)
		for w := range nulls {
			nulls[w] &^= valid[w]
		}
	}
	copy(acc, valid)
	if !isZero(acc) {
		if err := lookUp(acc, c.n, d, table); err != nil {
			return err
		}
	}
	for w := range nulls {
		acc[w] |= nulls[w]
	}
	return nil
}

// testDict returns a table that is 1 for each value of the dictionary that passes the leaf.
func (l *leaf) testDict(m *Memo, d *array.Dictionary) ([]byte, error) {
	data := d.Data().Dictionary()
	if data == nil {
		return nil, fault.Bugf("a dictionary array without dictionary")
	}
	if table := m.get(l, data); table != nil {
		return table, nil
	}
	values := array.MakeFromData(data)
	defer values.Release()
	n := values.Len()
	hits := load(n, nil)
	if err := l.narrow(m, hits, column{arr: values, n: n}); err != nil {
		return nil, err
	}
	table := make([]byte, n)
	for i := range table {
		table[i] = byte(hits[i/64] >> (i % 64) & 1)
	}
	m.put(l, data, table)
	return table, nil
}
