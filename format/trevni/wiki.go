package trevni

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/internal/nest"
)

// planLevels shows columns with Dremel levels: by the Arrow schema that our writer keeps; else by their names, if they are the
// dotted paths of leaves; else each on its own.
func planLevels(h *Header) *plan {
	if sc := storedSchema(h); sc != nil {
		if p := planLeaves(h, sc); p != nil {
			p.how, p.odd = schemaKey, misnamed(h, sc)
			return p
		}
	}
	p := planBare(h)
	if _, kept := get(h.Meta, schemaKey); kept && p != nil {
		p.odd = schemaKey + ", the schema that was kept, is not that of the columns, or cannot be read"
	}
	return p
}

// planBare is planLevels without a schema.
func planBare(h *Header) *plan {
	if h.Dialect == Wiki {
		if fields, ok := fieldsByNames(h); ok {
			if p := planLeaves(h, fields); p != nil {
				p.how = "names and levels"
				return p
			}
		}
	}
	var fields []arrow.Field
	for i := range h.Columns {
		fields = append(fields, alone(&h.Columns[i]))
	}
	p := planLeaves(h, fields) // nil if they are nested too deep
	if p != nil {
		p.how = "columns"
	}
	return p
}

// misnamed says which column has another name than our writer gives it by the schema that it keeps: one of the two was changed. The fields have
// as many leaves as there are columns.
func misnamed(h *Header, fields []arrow.Field) string {
	next := 0
	for _, f := range fields {
		leaves, err := nest.Leaves(f)
		if err != nil {
			return ""
		}
		for _, l := range leaves {
			c := &h.Columns[next]
			next++
			name := dremelName(f, l.Path)
			if c.Width > 0 {
				name = f.Name
			}
			if h.Dialect == Wiki && c.Name != name {
				return fmt.Sprintf("a column is named %q, by %s it is %q", c.Name, schemaKey, name)
			}
		}
	}
	return ""
}

// planLeaves gives each leaf of the fields the column whose turn it is; nil if they do not fit.
func planLeaves(h *Header, fields []arrow.Field) *plan {
	p := &plan{h: h}
	next := 0
	for k, f := range fields {
		leaves, err := nest.Leaves(f)
		if err != nil {
			return nil
		}
		for _, l := range leaves {
			if next == len(h.Columns) || !p.leaf(next, k, l, f) {
				return nil
			}
			next++
		}
		if f.Type.ID() == arrow.NULL { // Arrow has no nulls that are none
			f.Nullable = true
		}
		p.fields = append(p.fields, f)
	}
	if next != len(h.Columns) {
		return nil
	}
	return p
}

// leaf makes the physical column of stored column i, which is leaf l of field k.
func (p *plan) leaf(i, k int, l nest.Leaf, f arrow.Field) bool {
	c := &p.h.Columns[i]
	at := append([]int{k}, l.Path...)
	if c.Width > 0 {
		list, ok := f.Type.(*arrow.ListType)
		if !ok || len(l.Path) != 1 || f.Nullable || list.ElemField().Nullable && c.Type != Null {
			return false
		}
		ph := p.add(i, shapeMatrix, format.Values|format.Lengths, -1, at[:1], f.Type)
		var fits bool
		ph.conv, ph.size, fits = convertTo(c.Type, l.Type)
		ph.width = c.Width
		return fits
	}
	if int(l.MaxDef) != c.MaxDef || int(l.MaxRep) != c.MaxRep {
		return false
	}
	shape, has := shapeLevels, format.Values|format.Levels
	if len(l.Path) == 0 {
		shape, has = shapeFlat, format.Values
		if c.MaxDef == 1 {
			shape = shapeNullable
		}
	}
	ph := p.add(i, shape, has, -1, at, l.Type)
	if shape == shapeLevels {
		ph.MaxDef, ph.MaxRep = l.MaxDef, l.MaxRep
	}
	var fits bool
	ph.conv, ph.size, fits = convertTo(c.Type, l.Type)
	return fits
}

// alone is a column as a field of its own: as many lists in each other as it has repetition levels; what is left of the definition
// levels makes values, and then lists from within, nullable.
func alone(c *Column) arrow.Field {
	f := arrow.Field{Name: c.Name, Type: types[c.Type].arrow, Nullable: c.Type == Null && c.Width > 0}
	if c.Width > 0 {
		f.Name = "item"
		return arrow.Field{Name: c.Name, Type: arrow.ListOfField(f), Metadata: metadataOf(c)}
	}
	extra := c.MaxDef - c.MaxRep
	f.Nullable, extra = extra > 0, extra-1
	for range c.MaxRep {
		f.Name = "item"
		f = arrow.Field{Name: c.Name, Type: arrow.ListOfField(f), Nullable: extra > 0}
		extra--
	}
	for ; extra > 0; extra-- { // more than lists can take
		f.Name = "value"
		f = arrow.Field{Name: c.Name, Type: arrow.StructOf(f), Nullable: true}
	}
	f.Metadata = metadataOf(c)
	return f
}

// guessed reports whether the column's name and levels by themselves leave open which steps are optional or repeated.
func (c *Column) guessed() bool {
	steps := strings.Count(c.Name, ".") + 1
	return c.MaxDef > 0 && (c.MaxDef != steps || c.MaxRep > 0 && c.MaxRep != c.MaxDef)
}

// kindOf is what a step of a path is in Dremel's data model.
type kindOf uint8

const (
	required kindOf = iota
	optional
	repeated
	noKind
)

// group is a name in the dotted paths of columns.
type group struct {
	name     string
	kind     kindOf
	column   *Column // of a leaf
	children []*group
	answers  map[[2]int]kindOf // by the levels used above; noKind: there is none
}

// search counts the steps of looking for an answer: they are limited, because names and levels are a stranger's.
type search struct{ left int }

const mostSteps = 1 << 22 // a second's work; ten thousand columns of ten steps take a tenth of it

// fieldsByNames makes the fields of which the columns' names are the dotted paths. Levels say how many steps of a path are optional
// or repeated, not which; columns of one group help each other. Where several answers are left, steps are required if they can
// be, and repeated as far down as they can be. ok is false if there is no answer, or it takes too long to find one.
func fieldsByNames(h *Header) (fields []arrow.Field, ok bool) {
	root := &group{}
	for i := range h.Columns {
		c := &h.Columns[i]
		at := root
		steps := strings.Split(c.Name, ".")
		for k, s := range steps {
			n := len(at.children)
			if n == 0 || at.children[n-1].name != s || k == len(steps)-1 {
				at.children = append(at.children, &group{name: s})
				n++
			}
			if at = at.children[n-1]; at.column != nil {
				return nil, false
			}
		}
		at.column = c
		if c.Width > 0 && len(steps) > 1 || len(steps) > 60 {
			return nil, false
		}
	}
	s := &search{left: mostSteps}
	for _, g := range root.children {
		if g.solve(s, 0, 0) == noKind {
			return nil, false
		}
		g.choose(0, 0)
		fields = append(fields, g.field())
	}
	return fields, true
}

// solve finds the kind of g with which the levels of everything below come out, given how many are used above.
func (g *group) solve(s *search, def, rep int) kindOf {
	if k, ok := g.answers[[2]int{def, rep}]; ok {
		return k
	}
	answer := noKind
	for _, k := range g.order() {
		if g.fits(s, def+k.def(), rep+k.rep()) {
			answer = k
			break
		}
	}
	if g.answers == nil {
		g.answers = map[[2]int]kindOf{}
	}
	g.answers[[2]int{def, rep}] = answer
	return answer
}

// def and rep are how many levels a step of a kind takes.
func (k kindOf) def() int {
	if k == optional || k == repeated {
		return 1
	}
	return 0
}

func (k kindOf) rep() int {
	if k == repeated {
		return 1
	}
	return 0
}

// choose takes the answers that were found.
func (g *group) choose(def, rep int) {
	g.kind = g.answers[[2]int{def, rep}]
	for _, c := range g.children {
		c.choose(def+g.kind.def(), rep+g.kind.rep())
	}
}

// order is in which order kinds are tried. A step of a name that lists of other formats have, and the one around a lone "item", is repeated
// rather than not.
func (g *group) order() [3]kindOf {
	if g.name == "list" || g.name == "entries" || len(g.children) == 1 && g.children[0].name == "item" {
		return [3]kindOf{repeated, required, optional}
	}
	return [3]kindOf{required, optional, repeated}
}

// fits reports whether everything below g can be solved when def and rep levels are used up to g.
func (g *group) fits(s *search, def, rep int) bool {
	if s.left--; s.left < 0 {
		return false
	}
	if g.column != nil {
		return def == g.column.MaxDef && rep == g.column.MaxRep && len(g.children) == 0
	}
	if def > 255 {
		return false
	}
	for _, c := range g.children {
		if c.solve(s, def, rep) == noKind {
			return false
		}
	}
	return true
}

// field is g as Arrow has it. A repeated step is a list that cannot be null, of items that cannot.
func (g *group) field() arrow.Field {
	f := arrow.Field{Name: g.name, Nullable: g.kind == optional}
	if g.column != nil {
		if g.column.Width > 0 {
			return alone(g.column)
		}
		f.Type, f.Metadata = types[g.column.Type].arrow, metadataOf(g.column)
	} else {
		var fields []arrow.Field
		for _, c := range g.children {
			fields = append(fields, c.field())
		}
		f.Type = arrow.StructOf(fields...)
	}
	if g.kind == repeated {
		f.Type = arrow.ListOfField(arrow.Field{Name: "item", Type: f.Type})
	}
	return f
}
