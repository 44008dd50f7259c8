package cells

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// Distinct returns an error for fields that would become an object with a repeated key, which cannot be read back; path
// is the path of the enclosing field.
func Distinct(fields []arrow.Field, path string) error {
	for _, p := range Repeated(fields) {
		return fault.Unsupportedf(fault.Span{}, path+p,
			"two columns, or two fields of a struct, have this name: an object cannot have a key twice")
	}
	return nil
}

// Repeated returns the paths of fields, and of fields of structs at any depth, whose name an earlier sibling has.
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
	case arrow.NestedType: // whose own field names are not keys
		for _, f := range t.Fields() {
			for _, p := range repeatedIn(f.Type) {
				paths = append(paths, f.Name+"."+p)
			}
		}
	}
	return paths
}
