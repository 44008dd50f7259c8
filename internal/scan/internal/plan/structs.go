package plan

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/internal/nest"
	"stoa/vec"
)

// Shown is a field of the batches of a scan with structs that are stored row by row.
type Shown struct {
	output int            // index of the output that it is; -1: it is made of several
	Rows   *nest.RowField // the struct, if output is -1
	of     map[int]int    // the outputs of the struct's physical columns
}

// add adds an output. A struct that is stored row by row gets one output per physical column.
func (p *Plan) add(o Output) {
	one := Shown{output: len(p.Outputs)}
	if rows := p.tops[o.Top].rows; rows != nil {
		if one.Rows = rows.At(o.at[1:]); one.Rows.Leaf() {
			one.Rows, o.Col = nil, one.Rows.Column
		}
	}
	if one.Rows == nil {
		p.Outputs = append(p.Outputs, o)
		if p.Shown != nil {
			p.Shown = append(p.Shown, one)
		}
		return
	}
	if p.Shown == nil {
		p.Shown = make([]Shown, len(p.Outputs), len(p.Outputs)+1)
		for i := range p.Shown {
			p.Shown[i].output = i
		}
	}
	if one.output, one.of = -1, map[int]int{}; p.Spec.Damaged == NullCells {
		one.Rows = one.Rows.AllNullable()
	}
	for _, c := range one.Rows.Columns() {
		one.of[c] = len(p.Outputs)
		p.Outputs = append(p.Outputs, Output{Path: o.Path, at: o.at, Top: o.Top, Col: c})
	}
	p.Shown = append(p.Shown, one)
}

// Coded returns the names of the top-level columns that r may have stored as codes of dictionaries.
func Coded(r format.Reader) (names []string) {
	if _, batched := r.(format.Batcher); batched {
		return nil
	}
	fields := r.Schema().Fields()
	for _, c := range r.Columns() {
		if c.Coded && len(c.Path) == 1 && c.Has == format.Values && c.Parent < 0 && c.MaxRep == 0 &&
			(c.Type.ID() == arrow.STRING || c.Type.ID() == arrow.BINARY) &&
			arrow.TypeEqual(fields[c.Path[0]].Type, c.Type) {
			names = append(names, fields[c.Path[0]].Name)
		}
	}
	return names
}

// code makes the outputs of Spec.Codes dictionary arrays, and changes the types of their fields.
func (p *Plan) code(fields []arrow.Field) {
	if p.Batched {
		return
	}
	for i := range fields {
		k := i
		if p.Shown != nil {
			k = p.Shown[i].output
		}
		if k < 0 || len(p.Outputs[k].Path) > 1 || !slices.Contains(p.Spec.Codes, p.Outputs[k].Path[0]) {
			continue
		}
		o := &p.Outputs[k]
		if o.Codes = !o.Nested && o.Col >= 0 && arrow.TypeEqual(p.Columns[o.Col].Type, fields[i].Type); o.Codes {
			fields[i].Type = vec.CodesOf(fields[i].Type)
		}
	}
}

// Emit returns the first n entries of v, which are output o, as an array, and keeps the others.
func (o Output) Emit(v *vec.Vector, n int) (arrow.Array, error) {
	if o.Codes {
		return v.EmitCodes(n)
	}
	return v.Emit(n)
}

// Assembled makes the fields of a batch of n rows from the outputs. The caller keeps ownership of the outputs, and
// releases the result.
func (p *Plan) Assembled(outputs []arrow.Array, n int) []arrow.Array {
	if p.Shown == nil {
		for _, a := range outputs {
			a.Retain()
		}
		return outputs
	}
	out := make([]arrow.Array, len(p.Shown))
	for i, s := range p.Shown {
		if s.Rows == nil {
			out[i] = outputs[s.output]
			out[i].Retain()
			continue
		}
		out[i] = s.Rows.Assemble(n, func(col int) arrow.Array { return outputs[s.of[col]] })
	}
	return out
}

// tested returns the column that a filter on a flat path uses; -1: the path names a struct that is never null.
func (p *Plan) tested(path []int) int {
	if rows := p.tops[path[0]].rows; rows != nil {
		return rows.At(path[1:]).Tested()
	}
	return p.physical(path[0])
}

// Test returns the n rows that a filter on a flat path tests; column returns those of a physical column. The caller
// releases the result.
func (p *Plan) Test(path []int, n int, column func(col int) (arrow.Array, error)) (a arrow.Array, err error) {
	k, rows := p.tested(path), p.tops[path[0]].rows
	if k >= 0 {
		if a, err = column(k); err != nil || rows == nil {
			return a, err
		}
		defer a.Release()
	}
	return rows.At(path[1:]).Test(a, n), nil
}
