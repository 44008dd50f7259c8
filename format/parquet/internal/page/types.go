package page

import (
	"slices"
	"strconv"

	"stoa/format/parquet/internal/meta"

	"github.com/apache/arrow-go/v18/arrow"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // registers arrow.uuid and others
)

// fieldBuilder derives Arrow fields from a Parquet schema alone. Legacy list structures follow the rules of
// LogicalTypes.md.
type fieldBuilder struct {
	paths [][]int // per column: child indices from the schema's root, counted as in package nest
	int96 arrow.TimeUnit
}

// FieldsOf returns the top-level fields of a schema, and for each column its path of child indices. int96 is the unit
// of the timestamps as which INT96 is read.
func FieldsOf(t *meta.SchemaTree, int96 arrow.TimeUnit) ([]arrow.Field, [][]int) {
	s := &fieldBuilder{paths: make([][]int, t.NumColumns()), int96: int96}
	out := make([]arrow.Field, len(t.Root.Children))
	for i, n := range t.Root.Children {
		out[i] = s.field(n, []int{i})
	}
	return out, s.paths
}

func childPath(path []int, i int) []int { return append(slices.Clip(path), i) }

// field converts a node. A repeated node is a non-null list of non-null items.
func (s *fieldBuilder) field(n *meta.SchemaNode, path []int) arrow.Field {
	f := arrow.Field{Name: n.Name, Nullable: n.Rep == meta.RepOptional, Metadata: metadataOf(n)}
	if n.Rep == meta.RepRepeated {
		f.Type = arrow.ListOfField(arrow.Field{Name: n.Name, Type: s.typeOf(n, childPath(path, 0))})
		return f
	}
	f.Type = s.typeOf(n, path)
	return f
}

// metadataOf returns the metadata of a field: its id, and its logical type if Arrow has no equivalent.
func metadataOf(n *meta.SchemaNode) (m arrow.Metadata) {
	pairs := map[string]string{}
	if n.ID >= 0 {
		pairs[meta.FieldID] = strconv.Itoa(int(n.ID))
	}
	if text := n.Annotation(); text != "" {
		pairs[meta.LogicalKey] = text
	}
	if len(pairs) > 0 {
		m = arrow.MetadataFrom(pairs)
	}
	return m
}

// typeOf returns the type of a node, ignoring its own repetition.
func (s *fieldBuilder) typeOf(n *meta.SchemaNode, path []int) arrow.DataType {
	if n.Leaf() {
		s.paths[n.Column] = path
		return s.leafType(n.SchemaElem)
	}
	c := n.Only()
	if c != nil && c.Rep == meta.RepRepeated {
		switch kind := n.LogicalType().Kind; {
		case kind == meta.LogicalMap && isPair(c):
			entry := childPath(path, 0)
			return arrow.MapOfFields(s.field(c.Children[0], childPath(entry, 0)),
				s.field(c.Children[1], childPath(entry, 1)))
		case kind == meta.LogicalMap && c.Only() != nil && c.Only().Rep != meta.RepRepeated:
			return arrow.ListOfField(s.field(c.Children[0], childPath(path, 0)))
		case kind == meta.LogicalList:
			return arrow.ListOfField(s.item(n, c, childPath(path, 0)))
		}
	}
	fields := make([]arrow.Field, len(n.Children))
	for i, c := range n.Children {
		fields[i] = s.field(c, childPath(path, i))
	}
	return arrow.StructOf(fields...)
}

// isPair reports whether n is the key-value group of a map.
func isPair(n *meta.SchemaNode) bool {
	return len(n.Children) == 2 && n.Children[0].Rep == meta.RepRequired && n.Children[1].Rep != meta.RepRepeated
}

// item returns the item of list n, whose repeated node is c: the child of c, or c itself if the list has only two
// levels.
func (s *fieldBuilder) item(n, c *meta.SchemaNode, path []int) arrow.Field {
	if in := c.Only(); in != nil && in.Rep != meta.RepRepeated && c.Name != "array" && c.Name != n.Name+"_tuple" {
		return s.field(in, path)
	}
	return arrow.Field{Name: c.Name, Type: s.typeOf(c, path)}
}

// leafType returns the Arrow type of a column. A logical type that is unknown, or does not match the physical type, is
// ignored.
func (s *fieldBuilder) leafType(e *meta.SchemaElem) arrow.DataType {
	l := e.LogicalType()
	if l.Kind == meta.LogicalUnknown {
		return arrow.Null
	}
	if l.Kind == meta.LogicalDecimal && e.Typ != meta.TypeBoolean && e.Typ != meta.TypeInt96 &&
		e.Typ != meta.TypeFloat &&
		e.Typ != meta.TypeDouble {
		if t := decimalType(l); t != nil {
			return t
		}
	}
	switch e.Typ {
	case meta.TypeBoolean:
		return arrow.FixedWidthTypes.Boolean
	case meta.TypeInt32:
		return int32Type(l)
	case meta.TypeInt64:
		return int64Type(l)
	case meta.TypeInt96:
		return &arrow.TimestampType{Unit: s.int96}
	case meta.TypeFloat:
		return arrow.PrimitiveTypes.Float32
	case meta.TypeDouble:
		return arrow.PrimitiveTypes.Float64
	case meta.TypeBytes:
		if l.Kind == meta.LogicalString || l.Kind == meta.LogicalJSON {
			return arrow.BinaryTypes.String
		}
		return arrow.BinaryTypes.Binary
	}
	switch {
	case l.Kind == meta.LogicalFloat16 && e.Length == 2:
		return arrow.FixedWidthTypes.Float16
	case l.Kind == meta.LogicalUUID && e.Length == 16:
		if t := arrow.GetExtensionType("arrow.uuid"); t != nil {
			return t
		}
	}
	return &arrow.FixedSizeBinaryType{ByteWidth: int(e.Length)}
}

func decimalType(l meta.Logical) arrow.DataType {
	switch {
	case l.Precision <= 0 || l.Precision > 76 || l.Scale > l.Precision || l.Scale < -76:
		return nil
	case l.Precision <= 38:
		return &arrow.Decimal128Type{Precision: l.Precision, Scale: l.Scale}
	}
	return &arrow.Decimal256Type{Precision: l.Precision, Scale: l.Scale}
}

func int32Type(l meta.Logical) arrow.DataType {
	switch {
	case l.Kind == meta.LogicalDate:
		return arrow.FixedWidthTypes.Date32
	case l.Kind == meta.LogicalTime && l.Unit == 1:
		return arrow.FixedWidthTypes.Time32ms
	case l.Kind == meta.LogicalInteger && l.Bits == 8 && l.Signed:
		return arrow.PrimitiveTypes.Int8
	case l.Kind == meta.LogicalInteger && l.Bits == 8:
		return arrow.PrimitiveTypes.Uint8
	case l.Kind == meta.LogicalInteger && l.Bits == 16 && l.Signed:
		return arrow.PrimitiveTypes.Int16
	case l.Kind == meta.LogicalInteger && l.Bits == 16:
		return arrow.PrimitiveTypes.Uint16
	case l.Kind == meta.LogicalInteger && l.Bits == 32 && !l.Signed:
		return arrow.PrimitiveTypes.Uint32
	}
	return arrow.PrimitiveTypes.Int32
}

func int64Type(l meta.Logical) arrow.DataType {
	units := [...]arrow.TimeUnit{1: arrow.Millisecond, 2: arrow.Microsecond, 3: arrow.Nanosecond}
	switch {
	case l.Kind == meta.LogicalTime && l.Unit == 2:
		return arrow.FixedWidthTypes.Time64us
	case l.Kind == meta.LogicalTime && l.Unit == 3:
		return arrow.FixedWidthTypes.Time64ns
	case l.Kind == meta.LogicalTimestamp && l.Unit >= 1 && l.Unit < len(units):
		t := &arrow.TimestampType{Unit: units[l.Unit]}
		if l.UTC {
			t.TimeZone = "UTC"
		}
		return t
	case l.Kind == meta.LogicalInteger && l.Bits == 64 && !l.Signed:
		return arrow.PrimitiveTypes.Uint64
	}
	return arrow.PrimitiveTypes.Int64
}

// Original returns field f, derived from Parquet's types, with the type and metadata of orig, from ARROW:schema, as far
// as the stored values can be read as that type. Name and nullability remain those of Parquet.
func Original(f, orig arrow.Field) arrow.Field {
	f.Type, f.Metadata = originalType(f.Type, orig.Type), withParquetMetadata(orig.Metadata, f.Metadata)
	return f
}

func originalType(t, orig arrow.DataType) arrow.DataType {
	if arrow.TypeEqual(t, orig, arrow.CheckMetadata()) || convertible(t, orig) {
		return orig
	}
	switch o := orig.(type) {
	case arrow.ExtensionType:
		if arrow.TypeEqual(originalType(t, o.StorageType()), o.StorageType()) {
			return orig
		}
		return t
	case *arrow.DictionaryType:
		if t.ID() == arrow.STRING || t.ID() == arrow.BINARY {
			return &arrow.DictionaryType{IndexType: o.IndexType, ValueType: t, Ordered: o.Ordered}
		}
		return t
	case *arrow.FixedSizeListType:
		if l, ok := t.(*arrow.ListType); ok {
			return arrow.FixedSizeListOfField(o.Len(), renamed(l.ElemField(), o.ElemField()))
		}
		return t
	case *arrow.LargeListType:
		if l, ok := t.(*arrow.ListType); ok {
			return arrow.LargeListOfField(renamed(l.ElemField(), o.ElemField()))
		}
		return t
	case *arrow.ListType:
		if l, ok := t.(*arrow.ListType); ok {
			return arrow.ListOfField(renamed(l.ElemField(), o.ElemField()))
		}
	case *arrow.MapType:
		if m, ok := t.(*arrow.MapType); ok {
			out := arrow.MapOfFields(renamed(m.KeyField(), o.KeyField()), renamed(m.ItemField(), o.ItemField()))
			out.KeysSorted = o.KeysSorted
			return out
		}
	case *arrow.StructType:
		return originalStruct(t, o)
	case *arrow.TimestampType: // the writer changed its unit, but not its zone
		if x, ok := t.(*arrow.TimestampType); ok && x.TimeZone == "UTC" && o.TimeZone != "" {
			return &arrow.TimestampType{Unit: x.Unit, TimeZone: o.TimeZone}
		}
	}
	return t
}

// renamed is Original for an item, whose name is also taken from Arrow: Parquet uses its own, such as "element".
func renamed(f, orig arrow.Field) arrow.Field {
	f.Name = orig.Name
	return Original(f, orig)
}

func originalStruct(t arrow.DataType, o *arrow.StructType) arrow.DataType {
	st, ok := t.(*arrow.StructType)
	if !ok || st.NumFields() != o.NumFields() {
		return t
	}
	fields := st.Fields()
	for i, f := range fields {
		if f.Name == o.Field(i).Name {
			fields[i] = Original(f, o.Field(i))
		}
	}
	return arrow.StructOf(fields...)
}

// convertible reports whether a column of type t can be returned as orig. Such types are written as t by Arrow's
// libraries because Parquet lacks them.
func convertible(t, orig arrow.DataType) bool {
	switch o := orig.(type) {
	case *arrow.LargeStringType, *arrow.StringViewType:
		return t.ID() == arrow.STRING
	case *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return t.ID() == arrow.BINARY
	case *arrow.TimestampType:
		x, ok := t.(*arrow.TimestampType)
		zone := ok && (x.TimeZone == o.TimeZone || x.TimeZone == "UTC" && o.TimeZone != "")
		return zone && (x.Unit == o.Unit || x.Unit == arrow.Millisecond && o.Unit == arrow.Second)
	case *arrow.Time32Type:
		return t.ID() == arrow.TIME32
	case *arrow.Date64Type:
		return t.ID() == arrow.DATE32
	case *arrow.DurationType:
		return t.ID() == arrow.INT64
	case *arrow.MonthIntervalType:
		return t.ID() == arrow.INT32
	case *arrow.DayTimeIntervalType:
		return isFixed(t, 8)
	case *arrow.MonthDayNanoIntervalType:
		return isFixed(t, 16)
	case arrow.DecimalType:
		x, ok := t.(arrow.DecimalType)
		return ok && x.GetScale() == o.GetScale() && x.GetPrecision() == o.GetPrecision()
	}
	return false
}

func isFixed(t arrow.DataType, width int) bool {
	f, ok := t.(*arrow.FixedSizeBinaryType)
	return ok && f.ByteWidth == width
}

// VectorType returns the type to which a column of type t is decoded, which must be one that vectors support.
func VectorType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return VectorType(t.StorageType())
	case *arrow.DictionaryType:
		return VectorType(t.ValueType)
	case *arrow.LargeStringType, *arrow.StringViewType:
		return arrow.BinaryTypes.String
	case *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary
	}
	return t
}

// StoredField returns a field with the types to which its columns are decoded.
func StoredField(f arrow.Field) arrow.Field {
	f, _ = meta.MapTypes(f, func(t arrow.DataType) (arrow.DataType, bool) { return VectorType(t), true })
	return f
}

// withParquetMetadata adds Parquet's own metadata of a field: its id, and its logical type if Arrow has no equivalent.
func withParquetMetadata(orig, own arrow.Metadata) arrow.Metadata {
	keys, values := slices.Clone(orig.Keys()), slices.Clone(orig.Values())
	for _, key := range []string{meta.FieldID, meta.LogicalKey} {
		v, ok := own.GetValue(key)
		if !ok || key == meta.FieldID && v == "-1" || orig.FindKey(key) >= 0 {
			continue
		}
		keys, values = append(keys, key), append(values, v)
	}
	if len(keys) == orig.Len() {
		return orig
	}
	return arrow.NewMetadata(keys, values)
}
