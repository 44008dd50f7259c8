package scan

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
)

// plan is what a scan reads and what it gives, worked out once.
type plan struct {
	spec   Spec
	schema *arrow.Schema
	filter *pred.Expr // bound
	// Rows counts positions among the rows that the overlays leave, so nothing can be passed over without looking.
	logical bool
	query   format.Query

	outputs []output
	filters []int // physical columns that the filter looks at
	others  []int // the other physical columns that are read
	columns []format.Column
}

// output is one field of the batches.
type output struct {
	path []string // names from the reader's schema root
	top  int      // top-level field of the reader's schema
	col  int      // physical column; -1 if the reader has batches
}

func newPlan(r format.Reader, spec Spec) (*plan, error) {
	if spec.Batch <= 0 {
		spec.Batch = defaultBatch
	}
	if spec.Ahead == 0 {
		spec.Ahead = defaultAhead
	}
	p := &plan{spec: spec, columns: r.Columns()}
	_, p.logical = r.(format.Overlayer)
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
	meta := sc.Metadata()
	p.schema = arrow.NewSchema(fields, &meta)
	if spec.Filter != nil {
		if p.filter, err = pred.Bind(spec.Filter, sc); err != nil {
			return nil, err
		}
		for _, name := range p.filter.Columns() {
			_, path, err := resolve(sc, name)
			if err != nil {
				return nil, err
			}
			p.filters = append(p.filters, p.physical(path[0]))
		}
	}
	slices.Sort(p.filters)
	p.filters = slices.Compact(p.filters)
	for _, o := range p.outputs {
		if !slices.Contains(p.filters, o.col) {
			p.others = append(p.others, o.col)
		}
	}
	slices.Sort(p.others)
	p.others = slices.Compact(p.others)
	p.query = format.Query{Cols: slices.Sorted(slices.Values(slices.Concat(p.filters, p.others))), Filter: p.filter}
	return p, nil
}

func (p *plan) alloc() memory.Allocator {
	if p.spec.Alloc == nil {
		return memory.DefaultAllocator
	}
	return p.spec.Alloc
}

// choose works out the outputs and their fields.
func (p *plan) choose(sc *arrow.Schema) ([]arrow.Field, error) {
	names := p.spec.Columns
	if names == nil {
		for i, f := range sc.Fields() {
			p.outputs = append(p.outputs, output{path: []string{f.Name}, top: i, col: p.physical(i)})
		}
		return slices.Clone(sc.Fields()), nil
	}
	fields := make([]arrow.Field, 0, len(names))
	for _, name := range names {
		f, path, err := resolve(sc, name)
		if err != nil {
			return nil, err
		}
		o := output{path: namesOf(sc, path), top: path[0], col: p.physical(path[0])}
		p.outputs = append(p.outputs, o)
		if len(path) > 1 {
			f.Name = name
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// physical is the column that stores top-level field i.
func (p *plan) physical(i int) int {
	for k, c := range p.columns {
		if len(c.Path) > 0 && c.Path[0] == i {
			return k
		}
	}
	return -1
}

// resolve finds a dotted path in the schema: a field whose whole name it is, or a child of structs.
// It returns the field and the child indices from the root.
func resolve(sc *arrow.Schema, name string) (arrow.Field, []int, error) {
	fields := sc.Fields()
	var path []int
	rest := name
	nullable := false
	for {
		if i := indexOf(fields, rest); i >= 0 {
			f := fields[i]
			f.Nullable = f.Nullable || nullable
			return f, append(path, i), nil
		}
		i, tail := longestStruct(fields, rest)
		if i < 0 {
			return arrow.Field{}, nil, unknown(sc, name)
		}
		nullable = nullable || fields[i].Nullable
		path = append(path, i)
		fields, rest = fields[i].Type.(*arrow.StructType).Fields(), tail
	}
}

func indexOf(fields []arrow.Field, name string) int {
	return slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
}

// longestStruct finds the struct whose name and a dot begin path.
func longestStruct(fields []arrow.Field, path string) (int, string) {
	best, tail := -1, ""
	for i, f := range fields {
		if rest, ok := strings.CutPrefix(path, f.Name+"."); ok && f.Type.ID() == arrow.STRUCT {
			if best < 0 || len(f.Name) > len(fields[best].Name) {
				best, tail = i, rest
			}
		}
	}
	return best, tail
}

func namesOf(sc *arrow.Schema, path []int) []string {
	fields := sc.Fields()
	var out []string
	for k, i := range path {
		out = append(out, fields[i].Name)
		if k < len(path)-1 {
			fields = fields[i].Type.(*arrow.StructType).Fields()
		}
	}
	return out
}

func unknown(sc *arrow.Schema, name string) error {
	var have []string
	for _, f := range sc.Fields() {
		if strings.EqualFold(f.Name, name) {
			return fault.Invalidf("there is no column %q; did you mean %q?", name, f.Name)
		}
		have = append(have, f.Name)
	}
	const show = 20
	if len(have) > show {
		have = append(have[:show], "…")
	}
	return fault.Invalidf("there is no column %q; the columns are %s", name, strings.Join(have, ", "))
}
