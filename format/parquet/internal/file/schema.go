package file

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/page"
	"stoa/internal/arrowschema"
)

func (r *File) decodeSchema(text, path string) (*arrow.Schema, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, err
	}
	return arrowschema.DecodeWithin(b, r.Limits, r.FooterAt, path)
}

// originalSchema returns the schema under ARROW:schema; nil if there is none or it is ignored. A schema with a type
// that Arrow's library does not know is not damage: it is ignored, and r.SchemaError is set.
func (r *File) originalSchema() (orig *arrow.Schema, err error) {
	if r.SchemaError = nil; r.ignoreSchema {
		return nil, nil
	}
	for i, p := range r.Footer.KeyValues {
		if p.Key != meta.StoredSchema || p.Value == nil {
			continue
		}
		path := fmt.Sprintf("key_value_metadata[%d].%s", i, meta.StoredSchema)
		orig, err = r.decodeSchema(*p.Value, path)
		if fault.OverBudget(err) {
			return nil, err
		}
		if arrowschema.LongInteger(err) {
			r.SchemaError = &fault.Error{Class: fault.Corrupt, At: r.FooterAt, Path: path,
				Reason: "columns are read as Parquet's own types", Cause: err}
			return nil, nil
		}
		if err != nil {
			return nil, &fault.Error{Class: fault.Corrupt, At: r.FooterAt, Path: path,
				Reason: "(arrow-schema=ignore reads the file without it)", Cause: err}
		}
	}
	return orig, nil
}

// schemaMetadata returns the metadata of the original schema combined with the file's own key/value pairs.
func (r *File) schemaMetadata(orig *arrow.Schema) arrow.Metadata {
	var keys, values []string
	if orig != nil {
		keys, values = slices.Clone(orig.Metadata().Keys()), slices.Clone(orig.Metadata().Values())
		if i := slices.Index(keys, meta.SealKey); i >= 0 { // the seal of a file from which this one was made
			keys, values = slices.Delete(keys, i, i+1), slices.Delete(values, i, i+1)
		}
	}
	for _, p := range r.Footer.KeyValues {
		if p.Key != meta.StoredSchema && p.Key != meta.PartKey && p.Key != meta.SealKey && p.Value != nil &&
			!slices.Contains(keys, p.Key) {
			keys, values = append(keys, p.Key), append(values, *p.Value)
		}
	}
	return arrow.NewMetadata(keys, values)
}

// buildSchema derives the fields and the columns.
func (r *File) buildSchema() error {
	orig, err := r.originalSchema()
	if err != nil {
		return err
	}
	own, paths := page.FieldsOf(r.Footer.Schema, r.Int96)
	fields, stored := slices.Clone(own), make([]arrow.Field, len(own))
	for i, f := range own {
		if orig != nil && orig.NumFields() == len(own) && orig.Field(i).Name == f.Name {
			fields[i] = page.Original(f, orig.Field(i))
		}
		stored[i], _ = meta.Ungrouped(page.StoredField(fields[i]))
		fields[i], _ = meta.Emptied(fields[i])
		fields[i], _ = meta.Ungrouped(fields[i])
	}
	pairs := r.schemaMetadata(orig)
	r.Shown, r.Decoded = arrow.NewSchema(fields, &pairs), arrow.NewSchema(stored, &pairs)
	r.FieldLeaves, r.FlatLeaves, r.Leaves = make([][]int, len(fields)), nil, nil
	for k := range r.Footer.Schema.NumColumns() {
		c := r.newColumn(k, paths[k], own, stored)
		r.Leaves = append(r.Leaves, c)
		r.FieldLeaves[paths[k][0]] = append(r.FieldLeaves[paths[k][0]], k)
		if c.MaxRep == 0 {
			r.FlatLeaves = append(r.FlatLeaves, r.LeafOf(k))
		}
	}
	return nil
}

// newColumn makes column k, which is at path in both lists of fields.
func (r *File) newColumn(k int, path []int, own, stored []arrow.Field) *page.FileColumn {
	c := &page.FileColumn{SchemaColumn: r.Footer.Schema.Column(k), Own: page.VectorType(leafAt(own, path))}
	t := leafAt(stored, path)
	form, ok := page.FormOf(c.SchemaElem, t)
	if !ok {
		c.Unread = fault.Unsupportedf(r.FooterAt, "schema."+c.Path(), "%s as %s", c.Typ, t)
	}
	c.Form = &form
	c.Column = format.Column{Name: c.Path(), Path: path, Parent: -1, Has: format.Values, Type: t,
		MaxDef: uint8(c.MaxDef), MaxRep: uint8(c.MaxRep)}
	if len(path) > 1 || c.MaxRep > 0 {
		c.Column.Has |= format.Levels
	}
	c.Column.Coded = r.Footer.Coded(k)
	return c
}

// leafAt returns the type at a path of child indices, counted as in package nest.
func leafAt(fields []arrow.Field, path []int) arrow.DataType {
	f := fields[path[0]]
	for _, i := range path[1:] {
		switch t := f.Type.(type) {
		case *arrow.MapType:
			f = arrow.Field{Type: arrow.StructOf(t.KeyField(), t.ItemField())}
		case arrow.NestedType:
			f = t.Fields()[i]
		}
	}
	return f.Type
}

// LeafOf returns a column with the type by which its bounds are compared.
func (r *File) LeafOf(column int) order.LeafField {
	c := r.Leaves[column]
	return order.LeafField{Path: c.Column.Path, Column: column, Typ: c.Own}
}
