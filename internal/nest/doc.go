// Package nest converts between Arrow's nested arrays and the physical columns of a file. It is independent of formats
// and does no I/O.
//
// Files store nested values in one of two ways:
//
//	levels   every leaf of the type is a column of its own; each of its entries has a definition level (how far down
//	         the path from the root something is there) and a repetition level (which list on the path goes on).
//	         Dremel, RED1, Parquet, Trevni as Impala wrote it.
//	lengths  a list is a column of lengths, and its items are columns whose entries the lengths count. A struct that
//	         may be absent, and a branch of a union, is a list of no or one item. Avro's Trevni, CarbonData, Kudu.
//
// Leaves, Shred and the Assembler agree on the levels of a type:
//
//	a nullable field            +1 definition
//	a list or map of any kind   +1 definition, +1 repetition (a list that is there but empty stops before it)
//	a struct                    nothing of its own
//	the entries of a map, and its keys, cannot be null, whatever their fields say
//
// The two documents of the Dremel paper (Melnik and others, "Dremel: Interactive Analysis of Web-Scale Datasets",
// VLDB 2010, figures 2 and 3) are a test of this package.
package nest

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// maxDepth is the maximum nesting depth of types: levels are bytes, and recursion must end.
const maxDepth = 64

// Leaf is a column of values in a field that is stored by levels.
type Leaf struct {
	Path           []int          // child indices below the field; empty if the field is the leaf
	Name           string         // the names from the field down, joined with dots
	Type           arrow.DataType // of the values
	MaxDef, MaxRep uint8          // the levels of a value that is there, and of the innermost list that goes on
}

// Leaves lists the leaves of a field, depth first. Types that levels cannot represent (unions, structs without
// children, list views, run-end encoding) are Unsupported.
func Leaves(f arrow.Field) ([]Leaf, error) {
	var out []Leaf
	err := leaves(f, Leaf{Name: f.Name}, &out)
	return out, err
}

// leaves appends the leaves at and below f; at is its position and the levels above it.
func leaves(f arrow.Field, at Leaf, out *[]Leaf) error {
	if len(at.Path) > maxDepth {
		return fault.Unsupportedf(fault.Span{}, at.Name, "types nested deeper than %d", maxDepth)
	}
	if f.Nullable {
		at.MaxDef++
	}
	switch shapeOf(f.Type) {
	case shapeLeaf, shapeNull:
		at.Type = f.Type
		*out = append(*out, at)
		return nil
	case shapeList, shapeFixedList, shapeMap:
		at.MaxDef++
		at.MaxRep++
	case shapeStruct:
		if len(children(f.Type)) == 0 {
			return fault.Unsupportedf(fault.Span{}, at.Name, "a struct without fields has no values to keep")
		}
	default:
		return fault.Unsupportedf(fault.Span{}, at.Name, "type %s has no definition and repetition levels", f.Type)
	}
	for i, c := range children(f.Type) {
		below := at
		below.Path = append(at.Path[:len(at.Path):len(at.Path)], i)
		below.Name = at.Name + "." + c.Name
		if err := leaves(c, below, out); err != nil {
			return err
		}
	}
	return nil
}

// shape is the kind of a type for this package.
type shape uint8

const (
	shapeLeaf      shape = iota
	shapeNull            // Arrow's Null: nothing but a count
	shapeList            // list, large list
	shapeFixedList       // list of a fixed size
	shapeMap
	shapeStruct
	shapeUnion // dense
	shapeOther // nested types for which this package has no arrays
)

func shapeOf(t arrow.DataType) shape {
	switch t := t.(type) {
	case *arrow.NullType:
		return shapeNull
	case *arrow.ListType, *arrow.LargeListType:
		return shapeList
	case *arrow.FixedSizeListType:
		return shapeFixedList
	case *arrow.MapType:
		return shapeMap
	case *arrow.StructType:
		return shapeStruct
	case *arrow.DenseUnionType:
		return shapeUnion
	case arrow.ExtensionType:
		if s := shapeOf(t.StorageType()); s != shapeLeaf {
			return shapeOther
		}
		return shapeLeaf
	case arrow.NestedType:
		return shapeOther
	}
	return shapeLeaf
}

// children returns the fields below a nested type in Arrow's order. A map has one, its entries; neither these nor their
// keys are nullable, whatever the type says.
func children(t arrow.DataType) []arrow.Field {
	switch t := t.(type) {
	case *arrow.MapType:
		key := t.KeyField()
		key.Nullable = false
		return []arrow.Field{{Name: "entries", Type: arrow.StructOf(key, t.ItemField())}}
	case arrow.NestedType:
		return t.Fields()
	}
	return nil
}
