package cells

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// Distinct refuses fields that would be an object with one key twice, which is not read; path is of what they are in.
func Distinct(fields []arrow.Field, path string) error {
	for _, p := range Repeated(fields) {
		return fault.Unsupportedf(fault.Span{}, path+p,
			"two columns, or two fields of a struct, have this name: an object cannot have a key twice")
	}
	return nil
}

// Repeated are the paths of fields, and of fields of structs at any depth, whose name one before them has.
func Repeated(fields []arrow.Field) (paths []string) {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.Name] {
			paths = append(paths, f.Name)
		}
		seen[f.Name] = true
		for _, p := range repeatedIn(f.Type) {
			paths = append(paths, f.Name+"."+p)
		}
	}
	return paths
}

func repeatedIn(t arrow.DataType) (paths []string) {
	switch t := t.(type) {
	case *arrow.StructType:
		return Repeated(t.Fields())
	case *arrow.DictionaryType:
		return repeatedIn(t.ValueType)
	case arrow.ExtensionType:
		return repeatedIn(t.StorageType())
	case arrow.NestedType: // whose own names are no keys
		for _, f := range t.Fields() {
			for _, p := range repeatedIn(f.Type) {
				paths = append(paths, f.Name+"."+p)
			}
		}
	}
	return paths
}
