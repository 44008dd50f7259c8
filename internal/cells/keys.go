package cells

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// Distinct refuses fields that would be an object with one key twice, which is not read; path is of what they are in.
func Distinct(fields []arrow.Field, path string) error {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.Name] {
			return fault.Unsupportedf(fault.Span{}, path+f.Name,
				"two columns, or two fields of a struct, have this name: an object cannot have a key twice")
		}
		seen[f.Name] = true
		if err := distinctIn(f.Type, path+f.Name+"."); err != nil {
			return err
		}
	}
	return nil
}

func distinctIn(t arrow.DataType, path string) error {
	switch t := t.(type) {
	case *arrow.StructType:
		return Distinct(t.Fields(), path)
	case *arrow.DictionaryType:
		return distinctIn(t.ValueType, path)
	case arrow.ExtensionType:
		return distinctIn(t.StorageType(), path)
	case arrow.NestedType: // whose own names are no keys
		for _, f := range t.Fields() {
			if err := distinctIn(f.Type, path+f.Name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}
