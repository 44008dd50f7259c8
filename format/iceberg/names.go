package iceberg

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/internal/lake"
)

// distinct returns the full names of the columns and of the fields in them, or an error if two are the same: Iceberg
// finds fields by these names, in which dots stand between a column and the fields in it, and readers refuse the table.
func distinct(columns []arrow.Field) (names map[string]bool, err error) {
	names = map[string]bool{}
	top := map[string]bool{}
	for _, f := range columns {
		if top[f.Name] {
			return nil, fault.Invalidf("two columns are named %q: Iceberg cannot tell them apart", f.Name)
		}
		top[f.Name] = true
	}
	var add func(name string, f arrow.Field) error
	add = func(name string, f arrow.Field) error {
		if names[name] {
			return fault.Invalidf("two fields have the full name %q, as a column with a dot in its name and a field "+
				"in another column do: Iceberg cannot tell them apart", name)
		}
		names[name] = true
		parts, fields := partsOf(f.Type)
		for i, p := range fields {
			if err := add(name+"."+parts[i], p); err != nil {
				return err
			}
		}
		return nil
	}
	for _, f := range columns {
		if err := add(f.Name, f); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// partsOf returns the fields in a type, and how Iceberg names them.
func partsOf(t arrow.DataType) (names []string, fields []arrow.Field) {
	switch t := t.(type) {
	case *arrow.MapType: // which is a list, too
		return []string{"key", "value"}, []arrow.Field{t.KeyField(), t.ItemField()}
	case *arrow.StructType:
		for _, f := range t.Fields() {
			names = append(names, f.Name)
		}
		return names, t.Fields()
	case arrow.ListLikeType:
		return []string{"element"}, []arrow.Field{t.ElemField()}
	}
	return nil, nil
}

// distinctTerms returns an error if a partition field would have the name of a field of the table, which names are, or
// if manifests, in whose schemas characters are replaced, would have two partition fields of one name.
func distinctTerms(terms []lake.Term, names map[string]bool) error {
	avro := map[string]string{}
	for _, t := range terms {
		if names[t.Name] && t.Transform != "identity" {
			return fault.Invalidf("partition-by: the partition field of %s would have the name of column %s", t.Column,
				t.Name)
		}
		name := avroName(t.Name)
		if other, ok := avro[name]; ok {
			return fault.Invalidf("partition-by: the partition fields %q and %q would both be named %s in manifests",
				other, t.Name, name)
		}
		avro[name] = t.Name
	}
	return nil
}
