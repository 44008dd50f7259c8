package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/internal/coerce"
	"stoa/internal/nest"
)

// MetaBlockSize is the field metadata with the size of data blocks, see block.MetaEncoding.
const MetaBlockSize = "stoa.block_size"

// Leaf is a column to be written: an Arrow field that is not a struct, with the path to its array, or the validity of a
// struct.
type Leaf struct {
	Path     string // dotted
	Steps    []int  // index of the top-level column, then of the child in each struct
	Validity bool   // bools: true where the struct at Steps is not null
	Inside   bool   // inside a nullable struct: null where that struct is, even if its field is not nullable
	field    arrow.Field
	Col      Field
}

// HasStructs reports whether a schema has structs.
func HasStructs(sc *arrow.Schema) bool {
	return slices.ContainsFunc(sc.Fields(), func(f arrow.Field) bool { return Struct(f.Type) != nil })
}

// Struct returns t as a struct type, or the struct type that t is an extension of; nil if t is neither.
func Struct(t arrow.DataType) *arrow.StructType {
	st, _ := coerce.Storage(t).(*arrow.StructType)
	return st
}

// LeavesOf returns a schema's columns, depth first; the error names a column that a CFile cannot hold. With validity, a
// nullable struct has a validity column before the columns of its fields; without it, structs are flattened.
func LeavesOf(sc *arrow.Schema, validity bool) ([]Leaf, error) {
	w := leafWalk{validity: validity, out: []Leaf{}}
	for i, f := range sc.Fields() {
		if err := w.add(f, "", []int{i}, false); err != nil {
			return nil, err
		}
	}
	return w.out, nil
}

type leafWalk struct {
	validity bool
	out      []Leaf
}

func (w *leafWalk) add(f arrow.Field, path string, steps []int, inside bool) error {
	if path != "" {
		path += "."
	}
	path += f.Name
	if st := Struct(f.Type); st != nil {
		if st.NumFields() == 0 && !w.validity {
			return fault.Unsupportedf(fault.Span{}, path, "a CFile cannot hold a struct without fields")
		}
		if len(steps) >= maxDepth {
			return fault.Unsupportedf(fault.Span{}, path, "structs nested deeper than %d", maxDepth)
		}
		if w.validity && f.Nullable {
			w.out = append(w.out, Leaf{Path: path, Steps: steps, Validity: true, Inside: inside,
				field: arrow.Field{Name: f.Name, Type: arrow.FixedWidthTypes.Boolean},
				Col:   Field{Name: path, Type: block.Bool}})
		}
		for i, child := range st.Fields() {
			if err := w.add(child, path, append(steps[:len(steps):len(steps)], i), inside || f.Nullable); err != nil {
				return err
			}
		}
		return nil
	}
	f.Nullable = f.Nullable || inside
	col, err := fieldFor(f)
	if err != nil {
		return fault.Unsupportedf(fault.Span{}, path, "%s", err.Error())
	}
	col.Name = path
	w.out = append(w.out, Leaf{Path: path, Steps: steps, Inside: inside, field: f, Col: col})
	return nil
}

// maxDepth is the largest number of nested structs: with the field inside them it is the depth that the assembly of
// rows supports.
const maxDepth = 63

// storage returns the type that an extension type or a dictionary stores.
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

// Array returns the leaf's array in a batch; the caller releases it. Values inside a null struct are null, or with
// strict an error. row is the number of the batch's first row, for messages.
func (l *Leaf) Array(b arrow.RecordBatch, strict bool, row int64) (arrow.Array, error) {
	arr := coerce.Stored(b.Column(l.Steps[0]))
	arr.Retain()
	for _, i := range l.Steps[1:] {
		st, ok := arr.(*array.Struct)
		if !ok {
			arr.Release()
			return nil, fault.Invalidf("column %q: expected a struct array, found %s", l.Path, arr.DataType())
		}
		child, err := l.child(st, i, strict, row)
		st.Release()
		if err != nil {
			return nil, err
		}
		arr = child
	}
	if l.Validity {
		defer arr.Release()
		return validityOf(arr), nil
	}
	return plainArray(arr)
}

func (l *Leaf) child(st *array.Struct, i int, strict bool, row int64) (arrow.Array, error) {
	child := coerce.Stored(st.Field(i))
	if st.NullN() == 0 {
		child.Retain()
		return child, nil
	}
	if strict {
		n := 0
		for st.IsValid(n) {
			n++
		}
		return nil, fault.Unsupportedf(fault.Span{}, l.Path,
			"row %d: null-structs=refuse, and the struct is null (keep keeps it, flatten makes its fields null)",
			row+int64(n))
	}
	return underNulls(st, child), nil
}

// fieldFor chooses Kudu's type for an Arrow field; it honours the field metadata that our reader sets.
func fieldFor(f arrow.Field) (Field, error) {
	col := Field{Name: f.Name, Nullable: f.Nullable}
	t := storage(f.Type)
	switch l := t.(type) {
	case *arrow.MapType: // a map is a list, too
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
	if col.Type, ok = typeFor[t.ID()]; !ok || col.Array && madePlain(storage(f.Type).(arrow.ListLikeType).Elem()) {
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

// madePlain reports whether arrays of type t are converted by plainArray before they are written, because source does
// not support them. It is not meant for the items of a list.
func madePlain(t arrow.DataType) bool {
	if d, ok := coerce.Storage(t).(*arrow.DictionaryType); ok {
		switch storage(d.ValueType).ID() {
		case arrow.BOOL, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY:
			return true
		}
	}
	id := storage(t).ID()
	return id == arrow.STRING_VIEW || id == arrow.BINARY_VIEW
}

// plainArray returns arr itself, or, if madePlain is true for its type, an array with dictionaries decoded and string
// views replaced. It releases arr if it returns another array.
func plainArray(arr arrow.Array) (arrow.Array, error) {
	if d, ok := arr.(*array.Dictionary); ok && madePlain(d.DataType()) {
		defer arr.Release()
		whole, err := nest.Decoded(d, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		return withoutViews(whole), nil
	}
	return withoutViews(arr), nil
}

// typeFor maps each Arrow type to the type that holds it without loss. Distinctions that Kudu's types do not make
// (units, sizes, large offsets) are kept in the metadata, see StoredField; timestamps are converted to microseconds.
var typeFor = map[arrow.Type]block.Type{
	arrow.BOOL: block.Bool, arrow.INT8: block.Int8, arrow.INT16: block.Int16, arrow.INT32: block.Int32,
	arrow.INT64: block.Int64,
	arrow.UINT8: block.Uint8, arrow.UINT16: block.Uint16, arrow.UINT32: block.Uint32, arrow.UINT64: block.Uint64,
	arrow.FLOAT16: block.Float, arrow.FLOAT32: block.Float, arrow.FLOAT64: block.Double,
	arrow.STRING: block.String, arrow.LARGE_STRING: block.String, arrow.STRING_VIEW: block.String,
	arrow.BINARY: block.Binary, arrow.LARGE_BINARY: block.Binary, arrow.BINARY_VIEW: block.Binary,
	arrow.FIXED_SIZE_BINARY: block.Binary,
	arrow.DATE32:            block.Date, arrow.DATE64: block.Date, arrow.TIMESTAMP: block.UnixtimeMicros,
	arrow.TIME32: block.Int32, arrow.TIME64: block.Int64, arrow.DURATION: block.Int64,
}

// decimalField chooses the narrowest of Kudu's decimals, as Kudu does, or a wider one that the metadata names.
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

// Stored returns the metadata pair with the properties that the CFile's own type cannot express.
func (l *Leaf) Stored() Pair {
	s := block.StoredField{Name: l.Path, Nullable: &l.field.Nullable, Precision: l.Col.Precision,
		Scale: l.Col.Scale, Length: l.Col.Length}
	if l.Validity {
		s.Holds = block.HoldsValidity
	}
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

// readAs returns the type as which the leaf's values will be read. alone: the file is not part of a set; noMeta: its
// metadata does not record the Arrow type.
func (l *Leaf) readAs(alone, noMeta bool) arrow.DataType {
	plain, was := l.Col.Type.Arrow(l.Col.Precision, l.Col.Scale), l.field.Type
	if alone && noMeta {
		plain = l.Col.Type.Arrow(0, 0)
	}
	if l.Col.Array {
		plain = arrow.ListOf(plain)
	}
	switch {
	case !alone:
		return block.Shown(was, plain)
	case noMeta:
		return plain
	}
	return block.RestoredFrom(was.String(), plain)
}

// Retyped lists the columns that will be read as another type than was written, with both types; see readAs.
func Retyped(leaves []Leaf, alone, noMeta bool) (out []string) {
	for i := range leaves {
		l := &leaves[i]
		if t := l.readAs(alone, noMeta); t.ID() != l.field.Type.ID() || t.String() != l.field.Type.String() {
			out = append(out, fmt.Sprintf("%s (%s as %s)", l.Path, l.field.Type, t))
		}
	}
	return out
}
