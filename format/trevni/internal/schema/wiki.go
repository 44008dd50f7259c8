package schema

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/internal/nest"
)

// planLevels plans columns with Dremel levels: by the stored Arrow schema; otherwise by their names, if these are
// dotted paths of leaves; otherwise with each column as a field of its own.
func planLevels(h *layout.Header, seen []*nest.Seen) *Plan {
	if sc := storedSchema(h); sc != nil {
		if p := PlanLeaves(h, sc); p != nil {
			p.How, p.Mismatch = layout.SchemaKey, misnamed(h, sc)
			return p
		}
	}
	p := planWithoutSchema(h, seen)
	if _, kept := layout.Get(h.Meta, layout.SchemaKey); kept && p != nil {
		p.Mismatch = layout.SchemaKey + ", the stored Arrow schema, is not that of the columns, or cannot be parsed"
	}
	return p
}

// planWithoutSchema is planLevels without a stored schema.
func planWithoutSchema(h *layout.Header, seen []*nest.Seen) *Plan {
	if h.Dialect == layout.Wiki {
		if p := planNames(h, seen); p != nil {
			return p
		}
	}
	var fields []arrow.Field
	for i := range h.Columns {
		fields = append(fields, ownField(&h.Columns[i]))
	}
	p := PlanLeaves(h, fields) // nil if they are nested too deeply
	if p != nil {
		p.How = "columns"
	}
	return p
}

// misnamed describes the first column whose name is not the one that our writer uses for the stored schema; "" if there
// is none. The fields have as many leaves as there are columns.
func misnamed(h *layout.Header, fields []arrow.Field) string {
	next := 0
	for _, f := range fields {
		leaves, err := nest.Leaves(f)
		if err != nil {
			return ""
		}
		for _, l := range leaves {
			c := &h.Columns[next]
			next++
			name := DremelName(f, l.Path)
			if c.Width > 0 {
				name = f.Name
			}
			if h.Dialect == layout.Wiki && c.Name != name {
				return fmt.Sprintf("a column is named %q, by %s it is %q", c.Name, layout.SchemaKey, name)
			}
		}
	}
	return ""
}

// PlanLeaves assigns the columns to the leaves of the fields, in order; nil if they do not fit.
func PlanLeaves(h *layout.Header, fields []arrow.Field) *Plan {
	p := &Plan{h: h}
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
		if f.Type.ID() == arrow.NULL { // a null column in Arrow cannot be required
			f.Nullable = true
		}
		p.Fields = append(p.Fields, f)
	}
	if next != len(h.Columns) {
		return nil
	}
	return p
}

// leaf adds the physical column of stored column i, which is leaf l of field k.
func (p *Plan) leaf(i, k int, l nest.Leaf, f arrow.Field) bool {
	c := &p.h.Columns[i]
	at := append([]int{k}, l.Path...)
	if c.Width > 0 {
		list, ok := f.Type.(*arrow.ListType)
		if !ok || len(l.Path) != 1 || f.Nullable || list.ElemField().Nullable && c.Type != layout.Null {
			return false
		}
		ph := p.add(i, page.ShapeMatrix, format.Values|format.Lengths, -1, at[:1], f.Type)
		var fits bool
		ph.Conv, ph.Size, fits = page.ConvertTo(c.Type, l.Type)
		ph.Width = c.Width
		return fits
	}
	if int(l.MaxDef) != c.MaxDef || int(l.MaxRep) != c.MaxRep {
		return false
	}
	shape, has := page.ShapeLevels, format.Values|format.Levels
	if len(l.Path) == 0 {
		shape, has = page.ShapeFlat, format.Values
		if c.MaxDef == 1 {
			shape = page.ShapeNullable
		}
	}
	ph := p.add(i, shape, has, -1, at, l.Type)
	if shape == page.ShapeLevels {
		ph.MaxDef, ph.MaxRep = l.MaxDef, l.MaxRep
	}
	var fits bool
	ph.Conv, ph.Size, fits = page.ConvertTo(c.Type, l.Type)
	return fits
}

// ownField returns a column as a field of its own, with one nested list per repetition level. The other definition
// levels make values nullable, then lists from the inside out.
func ownField(c *layout.Column) arrow.Field {
	f := arrow.Field{Name: c.Name, Type: layout.Types[c.Type].Arrow, Nullable: c.Type == layout.Null && c.Width > 0}
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
	for ; extra > 0; extra-- { // more than the lists can use
		f.Name = "value"
		f = arrow.Field{Name: c.Name, Type: arrow.StructOf(f), Nullable: true}
	}
	f.Metadata = metadataOf(c)
	return f
}

// listLike reports whether a step has a name that lists have in other formats, or has "item" as its only child.
func listLike(s *nest.Step, _ int) bool {
	return s.Name == "list" || s.Name == "entries" || len(s.Children) == 1 && s.Children[0].Name == "item"
}

// planNames plans columns whose names are the dotted paths of leaves; nil if they are not. seen holds the known facts
// about the columns' entries.
func planNames(h *layout.Header, seen []*nest.Seen) *Plan {
	paths := make([]nest.Path, len(h.Columns))
	for i := range h.Columns {
		c := &h.Columns[i]
		paths[i] = nest.Path{Steps: strings.Split(c.Name, "."), MaxDef: c.MaxDef, MaxRep: c.MaxRep}
		if c.Width > 0 && len(paths[i].Steps) > 1 || i > 0 && strings.HasPrefix(c.Name, h.Columns[i-1].Name+".") {
			return nil
		}
		if seen != nil {
			paths[i].Seen = seen[i]
		}
	}
	steps, ok := nest.Infer(paths, listLike)
	if !ok {
		return nil
	}
	var fields []arrow.Field
	for _, s := range steps {
		fields = append(fields, fieldOf(h, s))
	}
	p := PlanLeaves(h, fields)
	if p == nil {
		return nil
	}
	p.How = "names and levels"
	for _, s := range steps {
		if s.Open {
			p.Open = append(p.Open, s.Columns(nil))
		}
	}
	return p
}

// fieldOf returns a step as an Arrow field. A repeated step is a non-nullable list of non-nullable items.
func fieldOf(h *layout.Header, s *nest.Step) arrow.Field {
	f := arrow.Field{Name: s.Name, Nullable: s.Kind == nest.Optional}
	if s.Column >= 0 {
		c := &h.Columns[s.Column]
		if c.Width > 0 {
			return ownField(c)
		}
		f.Type, f.Metadata = layout.Types[c.Type].Arrow, metadataOf(c)
	} else {
		var fields []arrow.Field
		for _, c := range s.Children {
			fields = append(fields, fieldOf(h, c))
		}
		f.Type = arrow.StructOf(fields...)
	}
	if s.Kind == nest.Repeated {
		f.Type = arrow.ListOfField(arrow.Field{Name: "item", Type: f.Type})
	}
	return f
}

// DremelName returns the dotted path of a leaf in Dremel's data model, where a step is required, optional or repeated:
// a non-nullable list is one repeated step; its items, and nullable lists, have steps of their own if they need a
// level.
func DremelName(f arrow.Field, path []int) string {
	steps := []string{f.Name}
	for _, i := range path {
		switch t := f.Type.(type) {
		case *arrow.MapType:
			if f.Nullable {
				steps = append(steps, "entries")
			}
			f = t.Fields()[0]
			f.Nullable = false
			continue
		case *arrow.ListType:
			if f.Nullable {
				steps = append(steps, "list")
			}
			f = t.ElemField()
			if _, isMap := f.Type.(*arrow.MapType); f.Nullable || isMap || f.Type.ID() == arrow.LIST {
				steps = append(steps, "item")
			}
			continue
		case *arrow.StructType:
			f = t.Field(i)
		}
		steps = append(steps, f.Name)
	}
	return strings.Join(steps, ".")
}
