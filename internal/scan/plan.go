package scan

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/pred"
	"stoa/vec"
)

// plan is what a scan reads and what it gives, worked out once.
type plan struct {
	spec   Spec
	schema *arrow.Schema
	filter *pred.Expr // bound
	// Rows counts positions among the rows that the overlays leave, so nothing can be passed over without looking.
	logical bool
	batched bool // the reader gives whole batches
	query   format.Query
	largest int64 // bytes of a column's vector with which a window ends

	outputs []output
	twice   bool  // several outputs are one column
	filters []int // physical columns that the filter looks at
	keys    []int // of these, those by which row groups are merged: a row without its key has no place
	others  []int // the other physical columns that are read
	// The same of nested fields, whose columns are in none of the lists above.
	filterFields, otherFields []*fieldPlan
	columns                   []format.Column
	tops                      []storage        // by top-level field
	present                   format.Presenter // nil: columns are decoded as what they are given as
	// of a batcher's columns: their positions in its batches, by top-level field
	slots  map[int]int
	fields []arrow.Field    // of the reader's schema, which copies them each time
	paths  map[string][]int // of the names in the filter
	// physical columns of the names in the filter, of those that may have bounds
	named map[string]int
	// what of the filter's outer "and" is about one flat column alone, by physical column
	alone map[int]*pred.Expr
}

// output is one field of the batches.
type output struct {
	path   []string // names from the reader's schema root
	at     []int    // the same as child indices
	top    int      // top-level field of the reader's schema
	col    int      // physical column; -1 if the reader has batches
	nested bool     // several columns make the field: see field
}

func newPlan(r format.Reader, spec Spec) (*plan, error) {
	if spec.Batch <= 0 {
		spec.Batch = defaultBatch
	}
	if spec.Ahead == 0 {
		spec.Ahead = defaultAhead
	}
	spec.Parallel = min(spec.Parallel, MostWorkers)
	p := &plan{spec: spec, columns: r.Columns(), fields: r.Schema().Fields(), named: map[string]int{},
		paths: map[string][]int{}}
	p.tops = storageOf(p.columns, len(p.fields))
	_, p.logical = r.(format.Overlayer)
	_, p.batched = r.(format.Batcher)
	sc := r.Schema()
	fields, err := p.choose(sc)
	if err != nil {
		return nil, err
	}
	if spec.Damaged == NullCells {
		for i := range fields {
			fields[i].Nullable = true
		}
	}
	if p.schema = sc; spec.Columns != nil || spec.Damaged == NullCells {
		meta := sc.Metadata()
		p.schema = arrow.NewSchema(fields, &meta)
	}
	p.present, _ = r.(format.Presenter)
	stored := p.storedSchema(r)
	if spec.Filter != nil {
		if p.filter, err = pred.Bind(spec.Filter, stored); err != nil {
			return nil, err
		}
	}
	if err := p.split(stored); err != nil {
		return nil, err
	}
	p.fitMemory()
	return p, nil
}

// batcherColumn is what a Batcher may hold of a column, besides batches: a page as it is stored and decompressed.
const batcherColumn = 2 << 20

// fitMemory divides the budget: a worker decodes one window, keeps some ready, and one is being used; half is
// for reading ahead and for pages as they are decoded.
func (p *plan) fitMemory() {
	p.largest = maxVector
	s := &p.spec
	if s.Memory <= 0 {
		return
	}
	columns := int64(max(1, len(p.query.Cols)))
	windows := int64(ready + 2)
	s.Parallel = int(min(int64(s.Parallel), max(1, s.Memory/(2*windows*columns*leastVector))))
	each := s.Memory / 2 / int64(max(1, s.Parallel)) / columns
	p.largest = min(maxVector, max(leastVector, each/windows))
	if p.batched {
		s.Parallel = int(min(int64(s.Parallel), max(1, s.Memory/2/(columns*batcherColumn))))
		p.query.Batch = s.Memory / 2 / int64(max(1, s.Parallel)) / windows
	}
	if s.Ahead > 0 {
		s.Ahead = min(s.Ahead, max(leastAhead, each/4))
	}
}

// split finds out which columns are needed, and which of them for the filter.
func (p *plan) split(sc *arrow.Schema) error {
	wants := map[int][][]int{} // of nested fields: the paths that are wanted
	inFilter := map[int]bool{}
	if p.filter != nil {
		for _, name := range p.filter.Columns() {
			_, path, err := resolve(p.fields, name)
			if err != nil {
				return err
			}
			p.paths[name] = path
			if k := slices.IndexFunc(p.columns, func(c format.Column) bool {
				return slices.Equal(c.Path, path) && c.Has&format.Values != 0 && c.Parent < 0 && c.MaxRep == 0
			}); k >= 0 {
				p.named[name] = k
			}
			if p.nested(path[0]) {
				wants[path[0]] = append(wants[path[0]], path)
				inFilter[path[0]] = true
			} else {
				p.filters = append(p.filters, p.physical(path[0]))
			}
		}
	}
	seen := map[int]bool{}
	for _, o := range p.outputs {
		p.twice = p.twice || !o.nested && seen[o.col]
		seen[o.col] = true
	}
	p.filters = sorted(p.filters)
	p.alone = p.termsAlone()
	for _, o := range p.outputs {
		switch {
		case o.nested:
			wants[o.top] = append(wants[o.top], o.at)
		case !slices.Contains(p.filters, o.col):
			p.others = append(p.others, o.col)
		}
	}
	p.others = sorted(p.others)
	p.query = format.Query{Cols: slices.Concat(p.filters, p.others), Filter: p.filter, Strict: p.spec.Damaged == Fail}
	for _, top := range slices.Sorted(maps.Keys(wants)) {
		fp, err := p.field(sc, top, wants[top])
		if err != nil {
			return err
		}
		if inFilter[top] {
			p.filterFields = append(p.filterFields, fp)
		} else {
			p.otherFields = append(p.otherFields, fp)
		}
		p.query.Cols = append(p.query.Cols, fp.cols...)
	}
	p.query.Cols = sorted(p.query.Cols)
	if p.batched {
		p.slots = make(map[int]int, len(p.query.Cols))
		for i, k := range p.query.Cols {
			if _, ok := p.slots[p.columns[k].Path[0]]; !ok {
				p.slots[p.columns[k].Path[0]] = i
			}
		}
		return p.want(sc)
	}
	return nil
}

// want tells a Batcher which children are looked at.
func (p *plan) want(sc *arrow.Schema) error {
	for _, o := range p.outputs {
		p.query.Want = append(p.query.Want, o.at)
	}
	if p.filter == nil {
		return nil
	}
	for _, name := range p.filter.Columns() {
		_, path, err := resolve(p.fields, name)
		if err != nil {
			return err
		}
		p.query.Want = append(p.query.Want, path)
	}
	return nil
}

// termsAlone sorts the terms of the filter's outer "and" by the one flat column that they are about.
func (p *plan) termsAlone() map[int]*pred.Expr {
	out := map[int]*pred.Expr{}
	for _, e := range p.filter.Conjuncts() {
		if names := e.Columns(); len(names) == 1 {
			if k, ok := p.named[names[0]]; ok && slices.Contains(p.filters, k) {
				out[k] = pred.And(out[k], e)
			}
		}
	}
	return out
}

// prunes reports whether no row can pass the filter, by the bounds of the row group and, of column col, those of a page
// (col < 0: none). Bounds are of what is stored, so a column whose values an overlay may change has none.
func (p *plan) prunes(g format.RowGroup, o format.Overlay, col int, page *pred.Bounds) bool {
	if col < 0 && len(g.Bounds) == 0 {
		return false
	}
	return p.filter.Prune(func(name string) *pred.Bounds {
		k, ok := p.named[name]
		if !ok || o != nil && o.Touches(k) {
			return nil
		}
		if k == col {
			return page
		}
		if b, ok := g.Bounds[k]; ok {
			return &b
		}
		return nil
	}) == pred.None
}

func sorted(cols []int) []int {
	slices.Sort(cols)
	return slices.Compact(cols)
}

// nested reports whether top-level field i is made of several columns, or of one that is more than a value a row.
func (p *plan) nested(i int) bool {
	if p.batched {
		return false
	}
	in := p.tops[i]
	if in.n == 0 { // of type null, say: nothing is stored of it
		return true
	}
	c := p.columns[in.first]
	return in.n > 1 || len(c.Path) > 1 || c.MaxRep > 0 || c.Has == format.Lengths
}

// tells reports whether a column is read that has pages.
func (p *plan) tells() bool {
	if len(p.filters)+len(p.others) > 0 {
		return true
	}
	for _, f := range slices.Concat(p.filterFields, p.otherFields) {
		if len(f.cols) > 0 {
			return true
		}
	}
	return false
}

// counting is one column, or field, whose pages tell how many rows there are.
func (p *plan) counting(sc *arrow.Schema) ([]int, []*fieldPlan, error) {
	best := -1
	for k, c := range p.columns {
		if len(c.Path) == 0 {
			continue
		}
		if !p.nested(c.Path[0]) {
			return []int{k}, nil, nil
		}
		if best < 0 {
			best = c.Path[0]
		}
	}
	if best < 0 {
		return nil, nil, nil
	}
	f, err := p.field(sc, best, nil)
	return nil, []*fieldPlan{f}, err
}

// field plans the assembly of a nested field; want are the paths that are wanted, nil = all.
func (p *plan) field(sc *arrow.Schema, top int, want [][]int) (*fieldPlan, error) {
	f := sc.Field(top)
	cols, err := nest.Needed(f, want, p.columns, top)
	if err != nil {
		return nil, err
	}
	asm, err := nest.NewAssembler(f, p.columns, cols, want)
	return &fieldPlan{top: top, name: f.Name, cols: cols, asm: asm}, err
}

func (p *plan) alloc() memory.Allocator {
	if p.spec.Alloc == nil {
		return vec.Fresh{}
	}
	return p.spec.Alloc
}

// choose works out the outputs and their fields.
func (p *plan) choose(sc *arrow.Schema) ([]arrow.Field, error) {
	names := p.spec.Columns
	if names == nil {
		for i, f := range p.fields {
			p.outputs = append(p.outputs,
				output{path: []string{f.Name}, at: []int{i}, top: i, col: p.physical(i), nested: p.nested(i)})
		}
		return slices.Clone(p.fields), nil
	}
	fields := make([]arrow.Field, 0, len(names))
	for _, name := range names {
		f, path, err := resolve(p.fields, name)
		if err != nil {
			return nil, err
		}
		o := output{path: namesOf(p.fields, path), at: path, top: path[0], col: p.physical(path[0]),
			nested: p.nested(path[0])}
		p.outputs = append(p.outputs, o)
		if len(path) > 1 {
			f.Name = name
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// physical is the first column that stores something of top-level field i; -1 if none does.
func (p *plan) physical(i int) int {
	if p.tops[i].n == 0 {
		return -1
	}
	return p.tops[i].first
}

// storage says which columns store a top-level field: the first of them, and how many they are.
type storage struct{ first, n int }

func storageOf(columns []format.Column, fields int) []storage {
	out := make([]storage, fields)
	for k, c := range columns {
		if len(c.Path) == 0 {
			continue
		}
		if t := &out[c.Path[0]]; t.n == 0 {
			*t = storage{k, 1}
		} else {
			t.n++
		}
	}
	return out
}

// resolve finds the field that a path names (see pred.Find) and its child indices from the root.
// A child of something nullable is nullable.
func resolve(fields []arrow.Field, name string) (arrow.Field, []int, error) {
	at, f, err := pred.Find(fields, name)
	if err != nil {
		return f, nil, err
	}
	for _, k := range at[:len(at)-1] {
		f.Nullable = f.Nullable || fields[k].Nullable
		st, ok := fields[k].Type.(*arrow.StructType)
		if !ok {
			return f, nil, fault.Unsupportedf(fault.Span{}, "", "column %s: a child of %s cannot be read alone",
				name, fields[k].Type)
		}
		fields = st.Fields()
	}
	return f, at, nil
}

func namesOf(fields []arrow.Field, path []int) []string {
	var out []string
	for k, i := range path {
		out = append(out, fields[i].Name)
		if k < len(path)-1 {
			fields = fields[i].Type.(*arrow.StructType).Fields()
		}
	}
	return out
}

// storedSchema is the schema of what the columns of r make.
func (p *plan) storedSchema(r format.Reader) *arrow.Schema {
	if p.present != nil {
		return p.present.Stored()
	}
	return r.Schema()
}

// rowsOf is the wanted rows, counted from base.
func (p *plan) rowsOf(base int64) vec.Range {
	if p.spec.Rows == (vec.Range{}) {
		return vec.Range{From: 0, To: math.MaxInt64}
	}
	return vec.Range{From: p.spec.Rows.From - base, To: p.spec.Rows.To - base}
}

// fieldPlan is what a scan needs to know of a nested field.
type fieldPlan struct {
	top  int
	name string
	cols []int // physical, parents included
	asm  *nest.Assembler
}

// clusters cuts the row groups of a part into runs that have to be merged.
func (p *plan) clusters(groups []format.RowGroup, order []format.Key) [][]format.RowGroup {
	var out [][]format.RowGroup
	if len(order) == 0 || p.spec.Unordered || len(groups) < 2 {
		for i := range groups {
			out = append(out, groups[i:i+1])
		}
		return out
	}
	groups = slices.DeleteFunc(slices.Clone(groups), func(g format.RowGroup) bool { return g.Rows == 0 })
	for _, g := range groups {
		if g.Low == nil || g.High == nil {
			return [][]format.RowGroup{groups}
		}
	}
	slices.SortStableFunc(groups, func(a, b format.RowGroup) int { return bytes.Compare(a.Low, b.Low) })
	from := 0
	var high []byte
	for i, g := range groups {
		if i > from && bytes.Compare(g.Low, high) > 0 {
			out = append(out, groups[from:i])
			from = i
		}
		if i == from || bytes.Compare(g.High, high) > 0 {
			high = g.High
		}
	}
	if from < len(groups) {
		out = append(out, groups[from:])
	}
	return out
}

// A task is at most so many windows of one row group: pages that cross its border are decoded twice.
const taskWindows = 4

// ready is how many batches a task may hold that are not due yet: all of one, so that its worker does not wait
// while another's are due.
const ready = taskWindows

// maxStrings is how many bytes of strings a window may add to a batch's column when codes of a dictionary are
// spelled out: a few bytes can stand for any number.
const maxStrings = 64 << 20

// strings is the same within the budget of memory.
func (p *plan) strings() int64 { return min(maxStrings, p.largest) }
