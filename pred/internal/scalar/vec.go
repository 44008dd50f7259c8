package scalar

import "github.com/apache/arrow-go/v18/arrow/decimal128"

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
