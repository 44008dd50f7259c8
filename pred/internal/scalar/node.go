package scalar

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
)

// Node is an expression with a type.
type Node struct {
	Type   Type
	At     int  // its place in the text, for failures
	Fails  bool // may have no value for a row
	Strict bool // null, unless it fails, whenever one of the columns in it is null

	args []*Node
	eval func(r *run, live []bool) *vec
	one  *vec   // of a constant
	name string // of a column
	any  bool   // any or all of a list: see Any
	all  bool

	placed bool // At is set
}

// Place sets where n and what it is made of is in the text, unless that is known already.
func (n *Node) Place(at int) {
	if n.one != nil || n.placed {
		return
	}
	n.At, n.placed = at, true
	for _, a := range n.args {
		a.Place(at)
	}
}

// IsConst reports whether n is a constant.
func (n *Node) IsConst() bool { return n.one != nil }

// IsNull reports whether n is the constant null.
func (n *Node) IsNull() bool { return n.one != nil && n.one.isNull(0) }

// Name returns the path of a column, "" of anything else.
func (n *Node) Name() string { return n.name }

// IsAny reports whether n is any(list) or all(list), which only comparisons take.
func (n *Node) IsAny() bool { return n.any || n.all }

// node returns a node over args that is null where they are: a strict one.
func node(t Type, args []*Node, eval func(r *run, live []bool) *vec) *Node {
	n := &Node{Type: t, args: args, eval: eval, Strict: true}
	for _, a := range args {
		n.Fails = n.Fails || a.Fails
		n.Strict = n.Strict && (a.Strict || a.one != nil)
	}
	return n
}

// mayFail marks n as one that may fail by itself.
func (n *Node) mayFail() *Node {
	n.Fails = true
	return n
}

// loose marks n as one that may have a value where a column is null.
func (n *Node) loose() *Node {
	n.Strict = false
	return n
}

// Column returns the column at path.
func Column(path string, t Type) *Node {
	n := node(t, nil, nil)
	n.name = path
	n.eval = func(r *run, live []bool) *vec { return r.inputs[path].block(r) }
	return n
}

func constant(t Type, v *vec) *Node {
	n := &Node{Type: t, one: v, Strict: true}
	n.eval = func(*run, []bool) *vec { return v }
	return n
}

// Constant returns the constant x: a bool, int64, float64, decimal128.Num or string by the kind of t, or seconds and
// nanoseconds of a timestamp, which chooses the unit; nil is null.
func Constant(t Type, x any) (*Node, error) {
	v := &vec{}
	switch x := x.(type) {
	case nil:
		return null, nil
	case bool:
		v.bools = []bool{x}
	case int64:
		v.ints = []int64{x}
	case float64:
		v.floats = []float64{x}
	case decimal128.Num:
		for ; t.Scale < 0; t.Scale++ {
			var ok bool
			if x, ok = rescale(x, 1); !ok {
				return nil, fault.Invalidf("the number has more than %d digits", DigitsMax)
			}
		}
		if t.Scale > DigitsMax {
			return nil, fault.Invalidf("the number has more than %d digits after the point", DigitsMax)
		}
		v.decs = []decimal128.Num{x}
	case string:
		v.texts = []string{x}
	case [2]int64:
		for t.Per = 1e6; ; t.Per = 1 {
			p, ok := multiply(x[0], t.Per)
			if x[1]%1e3 != 0 {
				t.Per = 1e9
				p, ok = multiply(x[0], t.Per)
			}
			if q := x[1] / (1e9 / t.Per); ok && p <= math.MaxInt64-q {
				v.ints = []int64{p + q}
				break
			}
			if t.Per != 1e6 || x[1] != 0 {
				return nil, fault.Invalidf("the timestamp is out of range")
			}
		}
	}
	return constant(t, v), nil
}

// Const returns the value of a constant that is not null, as for Constant; nil if n is none.
func (n *Node) Const() any {
	if n.one == nil || n.one.isNull(0) {
		return nil
	}
	switch v := n.one; n.Type.Kind {
	case Null:
		return nil
	case Bool:
		return v.bools[0]
	case Decimal:
		return v.decs[0]
	case Float:
		return v.floats[0]
	case String, Binary:
		return v.texts[0]
	default:
		return v.ints[0]
	}
}

// Fold returns n, or the constant that it is if it is made of constants only. It returns a failure if that constant has
// no value.
func (n *Node) Fold() (*Node, *Failure) {
	if n.one != nil || n.name != "" || n.IsAny() || n.Type.Kind == List {
		return n, nil
	}
	for _, a := range n.args {
		if a.one == nil {
			return n, nil
		}
	}
	r := &run{n: 1}
	v := n.eval(r, nil)
	if r.err != nil {
		return n, r.err
	}
	one := *v
	one.mask = 0
	c := constant(n.Type, &one)
	c.At = n.At
	if one.isNull(0) {
		c.one = &vec{null: []bool{true}, bools: one.bools, ints: one.ints, decs: one.decs, floats: one.floats,
			texts: one.texts}
	}
	return c, nil
}

// columns adds the columns in n to seen.
func (n *Node) columns(seen map[string]Type) {
	if n.name != "" {
		seen[n.name] = n.Type
	}
	for _, a := range n.args {
		a.columns(seen)
	}
}

// Where clears the bits of acc, of rows 0 to n, for which the boolean node is not TRUE. get returns the columns.
func (n *Node) Where(acc []uint64, rows int, get func(path string) (Input, error)) (*Failure, error) {
	r := &run{inputs: map[string]*input{}}
	seen := map[string]Type{}
	n.columns(seen)
	for path := range seen {
		in, err := get(path)
		if err == nil {
			in.Type = seen[path]
			r.inputs[path], err = open(in)
		}
		if err != nil {
			return nil, fault.Bugf("column %s: %v", path, err)
		}
	}
	for r.at = 0; r.at < rows; r.at += blockRows {
		r.n = min(blockRows, rows-r.at)
		words := acc[r.at/64 : (r.at+r.n+63)/64]
		r.reset()
		live, some := r.unpack(words)
		if !some {
			continue
		}
		v := n.eval(r, live)
		for _, in := range r.inputs {
			if in.err != nil {
				return nil, in.err
			}
		}
		if r.err != nil {
			return r.err, nil
		}
		keep(words, v)
	}
	return nil, nil
}

// unpack returns bits as bools; nil if all are set.
func (r *run) unpack(words []uint64) (live []bool, some bool) {
	count := 0
	for _, w := range words {
		count += bits.OnesCount64(w)
	}
	if count == r.n {
		return nil, true
	}
	live = r.boolPool.get(r.n)
	for i := range live {
		live[i] = words[i/64]>>(i%64)&1 != 0
	}
	return live, count > 0
}

// keep clears the bits for which v is not TRUE.
func keep(words []uint64, v *vec) {
	for w, x := range words {
		for m := x; m != 0; m &= m - 1 {
			i := 64*w + bits.TrailingZeros64(m)
			if v.isNull(i) || v.bools == nil || !v.bools[i&v.mask] {
				x &^= m & -m
			}
		}
		words[w] = x
	}
}

// TrueForNulls reports whether n is TRUE if all its columns are null. If that would fail, it is not.
func (n *Node) TrueForNulls() bool {
	r := &run{n: 1, inputs: map[string]*input{}}
	seen := map[string]Type{}
	n.columns(seen)
	for path, t := range seen {
		r.inputs[path] = &input{Input: Input{Type: t}, nothing: true}
	}
	v := n.eval(r, nil)
	return r.err == nil && !v.isNull(0) && v.bools != nil && v.bools[0]
}

// vec is the values of an expression for the rows of a block, in the slice of its kind. A constant has one, and mask 0;
// else mask is -1, so that value i is at i&mask.
type vec struct {
	mask   int
	null   []bool // nil: no nulls
	bools  []bool
	ints   []int64
	decs   []decimal128.Num
	floats []float64
	texts  []string

	from, to []int // of lists: the elements of each
	elems    *vec
}

func (v *vec) isNull(i int) bool { return v.null != nil && v.null[i&v.mask] }

// pool hands out slices that are used again for the next block.
type pool[T any] struct {
	all  [][]T
	used int
}

func (p *pool[T]) get(n int) []T {
	if p.used == len(p.all) {
		p.all = append(p.all, make([]T, max(n, blockRows)))
	}
	s := p.all[p.used]
	if len(s) < n {
		s = make([]T, n)
		p.all[p.used] = s
	}
	p.used++
	return s[:n]
}

// blockRows is how many rows are evaluated at a time.
const blockRows = 2048

// Failure is why an expression has no value for some row.
type Failure struct {
	At     int // the place of the node in the text, as given by its maker
	Reason string
}

// run is an evaluation: one block after the other.
type run struct {
	n, at  int // rows of the block, and the first
	inputs map[string]*input
	err    *Failure
	shared map[*Node]*vec // see share

	boolPool  pool[bool]
	intPool   pool[int64]
	decPool   pool[decimal128.Num]
	floatPool pool[float64]
	textPool  pool[string]
}

func (r *run) reset() {
	r.boolPool.used, r.intPool.used, r.decPool.used, r.floatPool.used, r.textPool.used = 0, 0, 0, 0, 0
}

// falses returns n times false.
func (r *run) falses(n int) []bool {
	b := r.boolPool.get(n)
	clear(b)
	return b
}

func (r *run) fail(at int, reason string) {
	if r.err == nil {
		r.err = &Failure{at, reason}
	}
}

// alloc returns a vec for values of type t for all rows of the block.
func (r *run) alloc(t Type, null []bool) *vec {
	v := &vec{mask: -1, null: null}
	switch t.Kind {
	case Null:
	case Bool:
		v.bools = r.boolPool.get(r.n)
	case Decimal:
		v.decs = r.decPool.get(r.n)
	case Float:
		v.floats = r.floatPool.get(r.n)
	case String, Binary:
		v.texts = r.textPool.get(r.n)
	case List:
		v.from, v.to = make([]int, r.n), make([]int, r.n)
	default:
		v.ints = r.intPool.get(r.n)
	}
	return v
}

// copyFrom sets value i to value j of o, which is not null and of the same type.
func (v *vec) copyFrom(i int, o *vec, j int) {
	j &= o.mask
	switch {
	case v.bools != nil:
		v.bools[i] = o.bools[j]
	case v.ints != nil:
		v.ints[i] = o.ints[j]
	case v.decs != nil:
		v.decs[i] = o.decs[j]
	case v.floats != nil:
		v.floats[i] = o.floats[j]
	case v.texts != nil:
		v.texts[i] = o.texts[j]
	case v.from != nil:
		v.from[i], v.to[i] = o.from[j], o.to[j]
	}
}

// nulls returns where one of vs is null; nil if nowhere.
func (r *run) nulls(vs ...*vec) []bool {
	var out []bool
	for _, v := range vs {
		if v.null == nil {
			continue
		}
		if out == nil {
			out = r.falses(r.n)
		}
		for i := range out {
			out[i] = out[i] || v.null[i&v.mask]
		}
	}
	return out
}

// asked reports whether row i is asked for and not null.
func asked(live, null []bool, i int) bool {
	return (live == nil || live[i]) && (null == nil || !null[i])
}
