package write

import (
	"encoding/json"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
)

// MetaBlockSize is the field metadata of the size of data blocks, see MetaEncoding.
const MetaBlockSize = "stoa.block_size"

// Leaf is a column to be written: an Arrow field that is no struct, with the way to its array.
type Leaf struct {
	Path  string // dotted
	Steps []int  // the top-level column, then the child of each struct
	field arrow.Field
	Col   Field
}

// LeavesOf flattens a schema; what a CFile cannot hold is refused by name.
func LeavesOf(sc *arrow.Schema) ([]Leaf, error) {
	var out []Leaf
	for i, f := range sc.Fields() {
		var err error
		if out, err = appendLeaves(out, f, "", []int{i}, false); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func appendLeaves(out []Leaf, f arrow.Field, path string, steps []int, nullable bool) ([]Leaf, error) {
	if path != "" {
		path += "."
	}
	path += f.Name
	f.Nullable = f.Nullable || nullable
	if st, ok := storage(f.Type).(*arrow.StructType); ok {
		if st.NumFields() == 0 {
			return nil, fault.Unsupportedf(fault.Span{}, path, "a CFile cannot hold a struct without fields")
		}
		for i, child := range st.Fields() {
			var err error
			if out, err = appendLeaves(out, child, path, append(steps[:len(steps):len(steps)], i),
				f.Nullable); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	col, err := fieldFor(f)
	if err != nil {
		return nil, fault.Unsupportedf(fault.Span{}, path, "%s", err.Error())
	}
	col.Name = path
	return append(out, Leaf{path, steps, f, col}), nil
}

// storage is what an extension type, or a dictionary, stores.
func storage(t arrow.DataType) arrow.DataType {
	for {
		switch x := t.(type) {
		case arrow.ExtensionType:
			t = x.StorageType()
		case *arrow.DictionaryType:
			t = x.ValueType
		default:
			return t
		}
	}
}

// Array finds the leaf's array in a batch. A null struct has no place in a set of CFiles: flatten makes its children
// null, otherwise it is refused. row is the number of the batch's first row.
func (l *Leaf) Array(b arrow.RecordBatch, flatten bool, row int64) (arrow.Array, error) {
	arr := unextended(b.Column(l.Steps[0]))
	arr.Retain()
	for _, i := range l.Steps[1:] {
		st, ok := arr.(*array.Struct)
		if !ok {
			arr.Release()
			return nil, fault.Invalidf("column %q: a struct array is wanted, %s came", l.Path, arr.DataType())
		}
		child, err := l.child(st, i, flatten, row)
		st.Release()
		if err != nil {
			return nil, err
		}
		arr = child
	}
	return arr, nil
}

func (l *Leaf) child(st *array.Struct, i int, flatten bool, row int64) (arrow.Array, error) {
	child := unextended(st.Field(i))
	if st.NullN() == 0 {
		child.Retain()
		return child, nil
	}
	if !flatten {
		n := 0
		for st.IsValid(n) {
			n++
		}
		return nil, fault.Unsupportedf(fault.Span{}, l.Path,
			"row %d: a set of CFiles cannot hold a null struct (null-structs=flatten makes its fields null)",
			row+int64(n))
	}
	return underNulls(st, child), nil
}

// unextended is the storage of an extension array.
func unextended(a arrow.Array) arrow.Array {
	for {
		e, ok := a.(array.ExtensionArray)
		if !ok {
			return a
		}
		a = e.Storage()
	}
}

// fieldFor chooses Kudu's type for an Arrow field; the metadata that our reader gives fields is honoured.
func fieldFor(f arrow.Field) (Field, error) {
	col := Field{Name: f.Name, Nullable: f.Nullable}
	t := storage(f.Type)
	switch l := t.(type) {
	case *arrow.MapType: // which is a list, too
		return col, fault.Unsupportedf(fault.Span{}, "", "a CFile cannot hold %s", t)
	case *arrow.ListType:
		col.Array, t = true, storage(l.Elem())
	case *arrow.LargeListType:
		col.Array, t = true, storage(l.Elem())
	case *arrow.FixedSizeListType:
		col.Array, t = true, storage(l.Elem())
	}
	if d, ok := t.(arrow.DecimalType); ok {
		return decimalField(col, d, f)
	}
	var ok bool
	if col.Type, ok = typeFor[t.ID()]; !ok {
		return col, fault.Unsupportedf(fault.Span{}, "", "a CFile cannot hold %s", f.Type)
	}
	if name, _ := f.Metadata.GetValue(block.MetaType); name == "varchar" && col.Type == block.String {
		s, _ := f.Metadata.GetValue(block.MetaLength)
		n, _ := strconv.Atoi(s)
		col.Type, col.Length = block.Varchar, max(n, 0)
	}
	if b, ok := t.(*arrow.FixedSizeBinaryType); ok && b.ByteWidth == 16 {
		if name, _ := f.Metadata.GetValue(block.MetaType); name == "int128" {
			col.Type = block.Int128
		}
	}
	return col, nil
}

// typeFor says which type holds an Arrow type without loss. What Arrow tells finer than Kudu (units, sizes,
// large offsets) is kept in the metadata, see storedField; timestamps are converted to microseconds, exactly or
// not at all.
var typeFor = map[arrow.Type]block.Type{
	arrow.BOOL: block.Bool, arrow.INT8: block.Int8, arrow.INT16: block.Int16, arrow.INT32: block.Int32,
	arrow.INT64: block.Int64,
	arrow.UINT8: block.Uint8, arrow.UINT16: block.Uint16, arrow.UINT32: block.Uint32, arrow.UINT64: block.Uint64,
	arrow.FLOAT16: block.Float, arrow.FLOAT32: block.Float, arrow.FLOAT64: block.Double,
	arrow.STRING: block.String, arrow.LARGE_STRING: block.String,
	arrow.BINARY: block.Binary, arrow.LARGE_BINARY: block.Binary, arrow.FIXED_SIZE_BINARY: block.Binary,
	arrow.DATE32: block.Date, arrow.DATE64: block.Date, arrow.TIMESTAMP: block.UnixtimeMicros,
	arrow.TIME32: block.Int32, arrow.TIME64: block.Int64, arrow.DURATION: block.Int64,
}

// decimalField takes the narrowest of Kudu's decimals, as Kudu does, or a wider one that the metadata names.
func decimalField(col Field, d arrow.DecimalType, f arrow.Field) (Field, error) {
	p, s := int(d.GetPrecision()), int(d.GetScale())
	col.Precision, col.Scale = p, s
	switch {
	case p > 38 || s < 0 || s > p:
		return col, fault.Unsupportedf(fault.Span{}, "", "a CFile cannot hold %s", f.Type)
	case p <= 9:
		col.Type = block.Decimal32
	case p <= 18:
		col.Type = block.Decimal64
	default:
		col.Type = block.Decimal128
	}
	switch name, _ := f.Metadata.GetValue(block.MetaType); {
	case name == "int128" && s == 0 && d.BitWidth() == 128:
		col.Type, col.Precision = block.Int128, 0
	case name == "decimal128", name == "decimal64" && p <= 18:
		col.Type = map[string]block.Type{"decimal64": block.Decimal64, "decimal128": block.Decimal128}[name]
	}
	return col, nil
}

// Stored is the metadata pair that keeps what the CFile's own type does not say.
func (l *Leaf) Stored() Pair {
	s := block.StoredField{Name: l.Path, Nullable: &l.field.Nullable, Precision: l.Col.Precision,
		Scale: l.Col.Scale, Length: l.Col.Length}
	plain := l.Col.Type.Arrow(l.Col.Precision, l.Col.Scale)
	if l.Col.Array {
		plain = arrow.ListOf(plain)
	}
	if !arrow.TypeEqual(plain, l.field.Type) {
		s.Type = l.field.Type.String()
	}
	b, _ := json.Marshal(s)
	return Pair{block.FieldKey, b}
}
