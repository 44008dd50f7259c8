package arrowschema

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// Joined returns the keys of both metadata. If both have a key, the value is the one in a.
func Joined(a, b arrow.Metadata) arrow.Metadata {
	keys, values := slices.Clone(a.Keys()), slices.Clone(a.Values())
	for i, key := range b.Keys() {
		if !slices.Contains(keys, key) {
			keys, values = append(keys, key), append(values, b.Values()[i])
		}
	}
	if len(keys) == a.Len() {
		return a
	}
	return arrow.NewMetadata(keys, values)
}

// Fit returns the schema of a table to which a source with the schema more is added: both have the same names and
// types, and a column is nullable if it is nullable in one of them. first and name are those of the table's first
// source, and of this one.
func Fit(table, more *arrow.Schema, first, name string) (*arrow.Schema, error) {
	if len(more.Fields()) != len(table.Fields()) {
		return nil, fault.Invalidf("%s: expected %s, as %s has, found %d: they are not one table", name,
			fault.Count(len(table.Fields()), "column"), first, len(more.Fields()))
	}
	fields := slices.Clone(table.Fields())
	for i, f := range more.Fields() {
		have := &fields[i]
		if f.Name != have.Name || !arrow.TypeEqual(f.Type, have.Type) {
			return nil, fault.Invalidf("column %d of %s is %s %s, in %s it is %s %s: they are not one table", i+1,
				name, f.Name, f.Type, first, have.Name, have.Type)
		}
		have.Nullable = have.Nullable || f.Nullable
	}
	meta := Joined(table.Metadata(), more.Metadata())
	return arrow.NewSchema(fields, &meta), nil
}
