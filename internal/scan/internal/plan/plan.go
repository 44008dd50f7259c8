package plan

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
	"stoa/internal/sorted"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// Plan is what a scan reads and returns, worked out once.
type Plan struct {
	Spec   Spec
	Schema *arrow.Schema
	Filter *pred.Expr // bound
	// Spec.Rows counts positions among the rows that the overlays leave, so no rows can be skipped unread.
	Logical bool
	Batched bool // the reader returns whole batches
	Query   format.Query
	Largest int64 // a window ends when a column's vector reaches this many bytes

	Outputs  []Output
	Shown    []Shown // the fields of the batches, made of outputs; nil: the outputs themselves
	Repeated bool    // some outputs are the same column
	Filters  []int   // physical columns that the filter uses
	// Postponed are, under NullCells, columns of a filter that is evaluated after a merge: unknown over lost cells.
	Postponed []int
	Keys      []int // those of Filters by which row groups are merged: a row without its key has no position
	Others    []int // the other physical columns that are read
	// The same for nested fields, whose columns are in none of the lists above.
	FilterFields, OtherFields []*FieldPlan
	Columns                   []format.Column
	tops                      []storage        // by top-level field
	Present                   format.Presenter // nil: columns are decoded to the types of the schema
	// of a Batcher: positions of the columns in its batches, by top-level field
	Slots  map[int]int
	Fields []arrow.Field    // of the reader's schema, because Schema.Fields copies them on each call
	byName map[string]int   // top-level fields; -1: the name is ambiguous
	Paths  map[string][]int // of the names in the filter
	// physical columns of the names in the filter, if they may have bounds
	named    map[string]int
	recycled *vec.Recycled // of a scan without an allocator
	// terms of the filter's outermost "and" that involve one flat column alone, by physical column
	Alone map[int]*pred.Expr
}

// Output is one field of the batches.
type Output struct {
	Path   []string // names from the root of the reader's schema
	at     []int    // the same as child indices
	Top    int      // top-level field of the reader's schema
	Col    int      // physical column; -1 if the reader returns batches
	Nested bool     // several columns make up the field: see FieldPlan
	Codes  bool     // a dictionary array
}

func New(r format.Reader, spec Spec) (*Plan, error) {
	if spec.Batch <= 0 {
		spec.Batch = defaultBatch
	}
	if spec.Ahead == 0 {
		spec.Ahead = DefaultAhead
	}
	spec.Parallel = min(spec.Parallel, MaxWorkers)
	p := &Plan{Spec: spec, Columns: r.Columns(), Fields: r.Schema().Fields(), named: map[string]int{},
		Paths: map[string][]int{}}
	_, p.Logical = r.(format.Overlayer)
	_, p.Batched = r.(format.Batcher)
	p.Present, _ = r.(format.Presenter)
	sc, stored := r.Schema(), p.StoredSchema(r)
	p.tops = make([]storage, len(p.Fields))
	for i, columns := range nest.Tops(p.Columns, len(p.Fields)) {
		if p.tops[i].columns = columns; !p.Batched {
			p.tops[i].rows = nest.ByRows(stored.Field(i), i, p.Columns, columns)
		}
	}
	fields, err := p.choose(sc)
	if err != nil {
		return nil, err
	}
	if spec.Damaged == NullCells {
		for i := range fields {
			fields[i].Nullable = true
			if p.Shown != nil && p.Shown[i].Rows != nil {
				fields[i].Type = nest.AllNullable(fields[i].Type)
			}
		}
	}
	p.code(fields)
	if p.Schema = sc; spec.Columns != nil || spec.Damaged == NullCells || spec.Codes != nil {
		meta := sc.Metadata()
		p.Schema = arrow.NewSchema(fields, &meta)
	}
	if spec.Filter != nil {
		if p.Filter, err = pred.Bind(spec.Filter, stored); err != nil {
			return nil, err
		}
	}
	if err := p.split(stored); err != nil {
		return nil, err
	}
	p.fitMemory()
	return p, nil
}

// batcherColumn is how many bytes a Batcher may hold per column besides batches: a page, both as stored and
// decompressed.
const batcherColumn = 2 << 20

// fitMemory divides the budget: a worker decodes one window, keeps some ready, and one is being consumed; half is for
// reading ahead and for pages being decoded.
func (p *Plan) fitMemory() {
	p.Largest = maxVector
	s := &p.Spec
	p.recycled = vec.NewRecycled(maxRecycled)
	if s.Memory <= 0 {
		return
	}
	p.recycled = vec.NewRecycled(min(maxRecycled, s.Memory/8))
	columns := int64(max(1, len(p.Query.Cols)))
	windows := int64(Ready + 2)
	s.Parallel = int(min(int64(s.Parallel), max(1, s.Memory/(2*windows*columns*MinVector))))
	each := s.Memory / 2 / int64(max(1, s.Parallel)) / columns
	p.Largest = min(maxVector, max(MinVector, each/windows))
	if p.Batched {
		s.Parallel = int(min(int64(s.Parallel), max(1, s.Memory/2/(columns*batcherColumn))))
		p.Query.Batch = s.Memory / 2 / int64(max(1, s.Parallel)) / windows
	}
	if s.Ahead > 0 {
		s.Ahead = min(s.Ahead, max(MinAhead, each/4))
	}
}

// query returns the query of the columns that are alone.
func (p *Plan) query() format.Query {
	q := format.Query{Cols: slices.Concat(p.Filters, p.Others), Filter: p.Filter, Strict: p.Spec.Damaged == Fail}
	if p.Spec.Rows != (vec.Range{}) { // rows of parts that a filter leaves out have positions, too
		q.Filter = nil
	}
	return q
}

// split determines which columns are needed, and which of them the filter needs.
func (p *Plan) split(sc *arrow.Schema) error {
	wants := map[int][][]int{} // of nested fields: the requested paths
	inFilter := map[int]bool{}
	if p.Filter != nil {
		for _, name := range p.Filter.Columns() {
			_, path, err := Resolve(p.Fields, name)
			if err != nil {
				return err
			}
			p.Paths[name] = path
			if k := slices.IndexFunc(p.Columns, func(c format.Column) bool {
				return slices.Equal(c.Path, path) && c.Has&format.Values != 0 && c.Parent < 0 && c.MaxRep == 0
			}); k >= 0 {
				p.named[name] = k
			}
			if p.nested(path[0]) {
				wants[path[0]] = append(wants[path[0]], path)
				inFilter[path[0]] = true
			} else if k := p.tested(path); k >= 0 {
				p.Filters = append(p.Filters, k)
			}
		}
	}
	seen := map[int]bool{}
	for _, o := range p.Outputs {
		p.Repeated = p.Repeated || !o.Nested && seen[o.Col]
		seen[o.Col] = true
	}
	p.Filters = distinct(p.Filters)
	p.Alone = p.termsAlone()
	for _, o := range p.Outputs {
		switch {
		case o.Nested:
			wants[o.Top] = append(wants[o.Top], o.at)
		case !slices.Contains(p.Filters, o.Col):
			p.Others = append(p.Others, o.Col)
		}
	}
	p.Others = distinct(p.Others)
	p.Query = p.query()
	for _, top := range slices.Sorted(maps.Keys(wants)) {
		fp, err := p.field(sc, top, wants[top])
		if err != nil {
			return err
		}
		if inFilter[top] {
			p.FilterFields = append(p.FilterFields, fp)
		} else {
			p.OtherFields = append(p.OtherFields, fp)
		}
		p.Query.Cols = append(p.Query.Cols, fp.Cols...)
	}
	p.Query.Cols = distinct(p.Query.Cols)
	if p.Batched {
		return p.slots(sc)
	}
	return nil
}

// slots determines at which position a Batcher's batches have each column, and which children it has to read.
func (p *Plan) slots(sc *arrow.Schema) error {
	p.Slots = make(map[int]int, len(p.Query.Cols))
	for i, k := range p.Query.Cols {
		if _, ok := p.Slots[p.Columns[k].Path[0]]; !ok {
			p.Slots[p.Columns[k].Path[0]] = i
		}
	}
	return p.want(sc)
}

// want lists the children that a Batcher has to read.
func (p *Plan) want(sc *arrow.Schema) error {
	for _, o := range p.Outputs {
		p.Query.Want = append(p.Query.Want, o.at)
	}
	if p.Filter == nil {
		return nil
	}
	for _, name := range p.Filter.Columns() {
		_, path, err := Resolve(p.Fields, name)
		if err != nil {
			return err
		}
		p.Query.Want = append(p.Query.Want, path)
	}
	return nil
}

// termsAlone collects the terms of the filter's outermost "and" that involve a single flat column, by that column.
// Those that may fail are left out: they are evaluated only for the rows that the terms before them leave.
func (p *Plan) termsAlone() map[int]*pred.Expr {
	out := map[int]*pred.Expr{}
	for _, e := range p.Filter.Conjuncts() {
		if names := e.Columns(); len(names) == 1 && !e.MayFail() {
			if k, ok := p.named[names[0]]; ok && slices.Contains(p.Filters, k) {
				out[k] = pred.And(out[k], e)
			}
		}
	}
	return out
}

// Prunes reports whether no row can pass the filter, judging by the bounds of the row group and by those of a page of
// column col (col < 0: no page). Bounds are of stored values, so those of a column whose values an overlay may change
// are ignored.
func (p *Plan) Prunes(g format.RowGroup, o format.Overlay, col int, page *pred.Bounds) bool {
	return (col >= 0 || len(g.Bounds) > 0) && p.judge(g, o, col, page) == pred.None
}

// TakesAll reports whether every row of the group passes the filter, judging by the group's bounds.
func (p *Plan) TakesAll(g format.RowGroup, o format.Overlay) bool {
	return p.judge(g, o, -1, nil) == pred.All
}

func (p *Plan) judge(g format.RowGroup, o format.Overlay, col int, page *pred.Bounds) pred.Verdict {
	if p.Filter == nil {
		return pred.All
	}
	return p.Filter.Prune(func(name string) *pred.Bounds {
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
	})
}

func distinct(cols []int) []int {
	slices.Sort(cols)
	return slices.Compact(cols)
}

// nested reports whether top-level field i consists of several columns, or of one with more than one value per row.
func (p *Plan) nested(i int) bool {
	of := p.tops[i].columns
	if p.Batched || p.tops[i].rows != nil {
		return false
	}
	if len(of) == 0 { // of type null, say, of which nothing is stored
		return true
	}
	c := p.Columns[of[0]]
	return len(of) > 1 || len(c.Path) > 1 || c.MaxRep > 0 || c.Has == format.Lengths
}

// HasPages reports whether any of the columns to be read has pages.
func (p *Plan) HasPages() bool {
	if len(p.Filters)+len(p.Others) > 0 {
		return true
	}
	for _, f := range slices.Concat(p.FilterFields, p.OtherFields) {
		if len(f.Cols) > 0 {
			return true
		}
	}
	return false
}

// Counting returns one column or field whose pages show how many rows there are.
func (p *Plan) Counting(sc *arrow.Schema) ([]int, []*FieldPlan, error) {
	best := -1
	for k, c := range p.Columns {
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
	return nil, []*FieldPlan{f}, err
}

// field plans the assembly of a nested field; want are the requested paths, nil = all.
func (p *Plan) field(sc *arrow.Schema, top int, want [][]int) (*FieldPlan, error) {
	f := sc.Field(top)
	cols, err := nest.Needed(f, want, p.Columns, p.tops[top].columns)
	if err != nil {
		return nil, err
	}
	asm, err := nest.NewAssembler(f, p.Columns, cols, want)
	return &FieldPlan{Top: top, Name: f.Name, Cols: cols, Asm: asm}, err
}

// Alloc returns the allocator of arrays.
func (p *Plan) Alloc() memory.Allocator {
	if p.Spec.Alloc == nil {
		return vec.Fresh{}
	}
	return p.Spec.Alloc
}

// Vectors returns the allocator of the vectors of flat columns.
func (p *Plan) Vectors() memory.Allocator {
	if p.Spec.Alloc == nil && p.recycled != nil {
		return p.recycled
	}
	return p.Alloc()
}

// maxRecycled is how many bytes of released buffers a scan keeps: several windows of many columns.
const maxRecycled = 64 << 20

// choose determines the outputs and their fields.
func (p *Plan) choose(sc *arrow.Schema) ([]arrow.Field, error) {
	names := p.Spec.Columns
	if names == nil {
		for i, f := range p.Fields {
			p.add(Output{Path: []string{f.Name}, at: []int{i}, Top: i, Col: p.physical(i), Nested: p.nested(i)})
		}
		return slices.Clone(p.Fields), nil
	}
	fields := make([]arrow.Field, 0, len(names))
	for _, name := range names {
		f, path, err := p.resolve(name)
		if err != nil {
			return nil, err
		}
		o := Output{Path: NamesOf(p.Fields, path), at: path, Top: path[0], Col: p.physical(path[0]),
			Nested: p.nested(path[0])}
		p.add(o)
		if len(path) > 1 {
			f.Name = name
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// resolve is Resolve with an index by name, as there may be very many names.
func (p *Plan) resolve(name string) (arrow.Field, []int, error) {
	if p.byName == nil {
		p.byName = make(map[string]int, len(p.Fields))
		for i, f := range p.Fields {
			if _, duplicate := p.byName[f.Name]; duplicate {
				i = -1
			}
			p.byName[f.Name] = i
		}
	}
	if parts := pred.SplitPath(name); len(parts) == 1 {
		if i, ok := p.byName[parts[0]]; ok && i >= 0 {
			return p.Fields[i], []int{i}, nil
		}
	}
	return Resolve(p.Fields, name)
}

// physical returns the first column that stores a part of top-level field i; -1 if none does.
func (p *Plan) physical(i int) int {
	if len(p.tops[i].columns) == 0 {
		return -1
	}
	return p.tops[i].columns[0]
}

// storage is the columns that store a top-level field.
type storage struct {
	columns []int
	rows    *nest.RowField // set if it is a struct that is stored row by row
}

// Resolve returns the field that a path names (see pred.Find) and its child indices from the root. A child of a
// nullable field is nullable.
func Resolve(fields []arrow.Field, name string) (arrow.Field, []int, error) {
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

func NamesOf(fields []arrow.Field, path []int) []string {
	var out []string
	for k, i := range path {
		out = append(out, fields[i].Name)
		if k < len(path)-1 {
			fields = fields[i].Type.(*arrow.StructType).Fields()
		}
	}
	return out
}

// StoredSchema returns the schema to which the columns of r are decoded.
func (p *Plan) StoredSchema(r format.Reader) *arrow.Schema {
	if p.Present != nil {
		return p.Present.Stored()
	}
	return r.Schema()
}

// RowsOf returns the requested rows, counted from base.
func (p *Plan) RowsOf(base int64) vec.Range {
	if p.Spec.Rows == (vec.Range{}) {
		return vec.Range{From: 0, To: math.MaxInt64}
	}
	return vec.Range{From: p.Spec.Rows.From - base, To: p.Spec.Rows.To - base}
}

// FieldPlan is how a scan reads a nested field.
type FieldPlan struct {
	Top  int
	Name string
	Cols []int // physical, parents included
	Asm  *nest.Assembler
}

// Clusters divides the row groups of a part into runs that have to be merged.
func (p *Plan) Clusters(groups []format.RowGroup, order []format.Key) [][]format.RowGroup {
	var out [][]format.RowGroup
	if len(order) == 0 || p.Spec.Unordered || len(groups) < 2 {
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
	sorted.StablyBy(groups, func(a, b format.RowGroup) int { return bytes.Compare(a.Low, b.Low) })
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

// TaskWindows is the maximum number of windows in a task, a part of one row group: pages that cross a border between
// tasks are decoded twice.
const TaskWindows = 4

// Ready is how many batches a task may hold before they are due: all of its own, so that its worker does not wait while
// another task's are due.
const Ready = TaskWindows

// maxStrings is how many bytes of strings a window may add to a batch's column when dictionary codes are expanded: a
// few bytes of codes can stand for any number of bytes.
const maxStrings = 64 << 20

// Strings returns maxStrings, or less if the memory budget requires it.
func (p *Plan) Strings() int64 { return min(maxStrings, p.Largest) }

// LossIn returns a loss in a physical column. The caller adds the rows and the error.
func (p *Plan) LossIn(g format.RowGroup, col int) region.Loss {
	c := p.Columns[col]
	l := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Column: p.Fields[c.Path[0]].Name}
	if c.Name != l.Column {
		l.Stored = c.Name
	}
	return l
}
