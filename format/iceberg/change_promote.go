package iceberg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
)

// promote gives columns the wider types that rows of schema in need, in a new schema of the table with the same field
// ids, where Iceberg promotes their types to these. Fields with default values stay as they are, as these are of the
// narrower type. It returns the new schema, nil if no column needs one, and which columns have another type.
func (op *snapshotReader) promote(in *arrow.Schema) (_ *meta.Schema, widened []string) {
	s := *op.table.Schema(op.table.CurrentSchema)
	s.Fields = slices.Clone(s.Fields)
	fields := slices.Clone(op.fields)
	for i, f := range op.fields {
		at := in.FieldIndices(f.Name)
		if len(at) != 1 || hasDefault(s.Fields[i]) {
			continue
		}
		t := Rules.Widened(f.Type, in.Field(at[0]).Type)
		if !arrow.TypeEqual(t, f.Type) {
			fields[i].Type = t
			s.Fields[i] = s.Fields[i].Retyped(fields[i])
			widened = append(widened, fmt.Sprintf("column %s, of type %s, has type %s", f.Name, f.Type, t))
		}
	}
	if len(widened) == 0 {
		return nil, nil
	}
	for _, x := range op.table.Schemas {
		s.ID = max(s.ID, x.ID)
	}
	s.ID++
	op.fields, op.table.CurrentSchema = fields, s.ID
	op.table.Schemas = append(op.table.Schemas, s)
	return &s, widened
}

// Widened says which columns get a wider type.
func (c *Change) Widened() []string { return c.widened }

// hasDefault reports whether a field, or one in it, has a default value.
func hasDefault(f meta.Field) bool {
	set := func(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }
	return set(f.InitialDefault) || set(f.WriteDefault) || slices.ContainsFunc(f.Type.Fields, hasDefault)
}

// asWide returns the values of a partition with decimals as wide as those of the terms: a column may have had fewer
// digits when a file was written.
func asWide(values map[string]any, terms []lake.Term) map[string]any {
	out := maps.Clone(values)
	for i := range terms {
		for _, name := range []string{terms[i].Name, avroName(terms[i].Name)} {
			if b, ok := out[name].([]byte); ok && len(b) > 0 {
				out[name] = avroValue(&terms[i], b)
			}
		}
	}
	return out
}
