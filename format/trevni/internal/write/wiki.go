package write

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
	"stoa/internal/coerce"
	"stoa/internal/nest"
)

// userKey reports whether a key of the schema's metadata can be written: neither the format nor our writer uses it.
func userKey(k string) bool {
	if strings.HasPrefix(k, "trevni.") || k == "avro.schema" || k == layout.SchemaKey || k == layout.SealKey {
		return false
	}
	switch w, _ := layout.Wiki.Normal(k); w {
	case "name", "type", "values", "repetition", "definition", "width", "parent", "codec", "checksum":
		return false
	}
	return true
}

// wikiField writes a field as its Dremel leaves, one column per leaf.
type wikiField struct {
	field arrow.Field // as in the batches
	cols  []*outColumn
}

func (w *outFile) planWiki(fields []arrow.Field, original []arrow.Field) error {
	for i, f := range fields {
		if w.planMatrix(f, original[i]) {
			continue
		}
		leaves, err := nest.Leaves(f)
		if err != nil {
			return fault.Unsupportedf(fault.Span{}, f.Name, "%v", err)
		}
		own := original[i]
		own.Nullable = f.Nullable
		as, err := nest.Leaves(own)
		if err != nil || len(as) != len(leaves) {
			return fault.Unsupportedf(fault.Span{}, f.Name, "a Trevni file cannot hold columns of type %s", own.Type)
		}
		wf := &wikiField{field: own}
		for k, l := range leaves {
			if as[k].MaxDef != l.MaxDef || as[k].MaxRep != l.MaxRep {
				return fault.Unsupportedf(fault.Span{}, l.Name, "values of type null within one that cannot be null")
			}
			t, ok := storedAs(l.Type, layout.Wiki)
			if !ok {
				return fault.Unsupportedf(fault.Span{}, l.Name, "a Trevni file cannot hold values of type %s", l.Type)
			}
			c := layout.Column{Name: schema.DremelName(f, l.Path), Type: t, MaxDef: int(l.MaxDef),
				MaxRep: int(l.MaxRep), Parent: -1}
			if len(l.Path) == 0 {
				c.Type = keptType(f, c.Type)
			}
			c.FirstValues = c.MaxDef == 0 && layout.Types[c.Type].Form != layout.FormNone && c.Type != layout.Boolean &&
				(w.opts.keeps(c.Name) || keepsFirst(f))
			c.Meta = wikiMeta(&c)
			o := w.column(c)
			o.unsigned = l.Type.ID() == arrow.UINT32 || l.Type.ID() == arrow.UINT64
			wf.cols = append(wf.cols, o)
		}
		w.fields = append(w.fields, wf)
	}
	return nil
}

// planMatrix makes a column with ArrayWidth from a non-nullable fixed-size list: it has no levels, and the same number
// of values in every row. f is the field with its plain type.
func (w *outFile) planMatrix(f, original arrow.Field) bool {
	t, ok := original.Type.(*arrow.FixedSizeListType)
	if !ok || f.Nullable || t.ElemField().Nullable || t.Len() < 1 {
		return false
	}
	s, ok := storedAs(f.Type.(*arrow.ListType).Elem(), layout.Wiki)
	if !ok || s == layout.Null {
		return false
	}
	c := layout.Column{Name: f.Name, Type: s, Width: int(t.Len()), Parent: -1}
	c.Meta = wikiMeta(&c)
	w.fields = append(w.fields, matrixField{w.column(c)})
	return true
}

// matrixField writes rows of Width values each.
type matrixField struct{ c *outColumn }

func (m matrixField) write(a arrow.Array) error {
	a = coerce.Stored(a)
	l, err := listOf(a, entries{n: a.Len()})
	if err != nil {
		return fault.Locate(err, fault.Span{}, true, m.c.Name)
	}
	items := coerce.Stored(l.ListValues())
	v, err := m.c.valuesOf(items)
	if err != nil {
		return err
	}
	null := isNull(items)
	for row := range a.Len() {
		if err := m.c.startRow(); err != nil {
			return err
		}
		from, to := l.ValueOffsets(row)
		for i := from; i < to; i++ {
			if null(int(i)) {
				return fault.Locate(unexpectedNull(int(i)), fault.Span{}, true, m.c.Name)
			}
			if err := v.write(int(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptType returns the stored type in the field's metadata if it has the same values as t; otherwise t.
func keptType(f arrow.Field, t layout.Type) layout.Type {
	v, _ := f.Metadata.GetValue(schema.MetaType)
	switch k, ok := layout.TypeByName(v); {
	case ok && k == layout.Fixed32 && t == layout.Int && f.Type.ID() == arrow.INT32,
		ok && k == layout.Fixed64 && t == layout.Long && f.Type.ID() == arrow.INT64:
		return k
	}
	return t
}

func keepsFirst(f arrow.Field) bool {
	v, _ := f.Metadata.GetValue(schema.MetaValues)
	return v == "true"
}

// wikiMeta returns the metadata of a column with the wiki's keys.
func wikiMeta(c *layout.Column) []layout.Pair {
	meta := []layout.Pair{{Key: "Name", Value: []byte(c.Name)}, {Key: "Type", Value: []byte(layout.Types[c.Type].Wiki)}}
	if c.FirstValues {
		meta = append(meta, layout.Pair{Key: "HasInitialValue", Value: []byte("true")})
	}
	if c.Width > 0 {
		meta = append(meta, layout.Pair{Key: "ArrayWidth", Value: []byte(strconv.Itoa(c.Width))})
	}
	if c.MaxRep > 0 {
		meta = append(meta, layout.Pair{Key: "MaxRepetition", Value: []byte(strconv.Itoa(c.MaxRep))})
	}
	if c.MaxDef > 0 {
		meta = append(meta, layout.Pair{Key: "MaxDefinition", Value: []byte(strconv.Itoa(c.MaxDef))})
	}
	return meta
}

func (w *wikiField) write(a arrow.Array) error {
	leaves, err := nest.Shred(w.field, a)
	if err != nil {
		return err
	}
	for i := range leaves {
		if err := w.cols[i].leaf(&leaves[i]); err != nil {
			return err
		}
	}
	return nil
}

// leaf writes the entries of a leaf.
func (c *outColumn) leaf(s *nest.Shredded) error {
	v, err := c.valuesOf(s.Values)
	if err != nil {
		return err
	}
	if s.Rep == nil && s.Def == nil && s.Present == nil && s.Entries == s.Values.Len() && s.Values.NullN() == 0 {
		if ok, err := c.flat(coerce.Stored(s.Values)); ok {
			return err
		}
	}
	k := 0
	for e := range s.Entries {
		if s.Rep == nil || s.Rep[e] == 0 {
			if err := c.startRow(); err != nil {
				return err
			}
		} else {
			c.rows++
		}
		if s.Rep != nil {
			c.rep = append(c.rep, s.Rep[e])
		}
		if s.Def != nil {
			c.def = append(c.def, s.Def[e])
			if s.Def[e] != s.MaxDef {
				continue
			}
		}
		i := k
		if s.Present != nil {
			i = int(s.Present[k])
		}
		k++
		if err := v.write(i); err != nil {
			return err
		}
	}
	return nil
}
