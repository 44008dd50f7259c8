package parquet

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // arrow.uuid and the others are known by their names
)

// shaper makes Arrow fields of a Parquet schema: what its own types say. Old ways to write a list are read by
// the rules of LogicalTypes.md.
type shaper struct {
	paths [][]int // per column: child indices from the schema's root, as nest counts them
}

// fieldsOf are the top-level fields of a tree, and the path of each column.
func fieldsOf(t *schemaTree) ([]arrow.Field, [][]int) {
	s := &shaper{paths: make([][]int, t.NumColumns())}
	out := make([]arrow.Field, len(t.root.children))
	for i, n := range t.root.children {
		out[i] = s.field(n, []int{i})
	}
	return out, s.paths
}

func below(path []int, i int) []int { return append(slices.Clip(path), i) }

// field is a node as a field. Repeated is a list that cannot be null, of items that cannot be.
func (s *shaper) field(n *schemaNode, path []int) arrow.Field {
	f := arrow.Field{Name: n.name, Nullable: n.rep == repOptional, Metadata: idOf(n)}
	if n.rep == repRepeated {
		f.Type = arrow.ListOfField(arrow.Field{Name: n.name, Type: s.typeOf(n, below(path, 0))})
		return f
	}
	f.Type = s.typeOf(n, path)
	return f
}

// idOf is the metadata of a field with an id.
func idOf(n *schemaNode) (m arrow.Metadata) {
	if n.id >= 0 {
		m = arrow.NewMetadata([]string{fieldID}, []string{strconv.Itoa(int(n.id))})
	}
	return m
}

// typeOf is the type of a node, leaving its own repetition aside.
func (s *shaper) typeOf(n *schemaNode, path []int) arrow.DataType {
	if n.leaf() {
		s.paths[n.column] = path
		return leafType(n.schemaElem)
	}
	c := n.only()
	if c != nil && c.rep == repRepeated {
		switch kind := n.meaning().kind; {
		case kind == logicalMap && isPair(c):
			entry := below(path, 0)
			return arrow.MapOfFields(s.field(c.children[0], below(entry, 0)), s.field(c.children[1], below(entry, 1)))
		case kind == logicalMap && c.only() != nil && c.only().rep != repRepeated:
			return arrow.ListOfField(s.field(c.children[0], below(path, 0)))
		case kind == logicalList:
			return arrow.ListOfField(s.item(n, c, below(path, 0)))
		}
	}
	fields := make([]arrow.Field, len(n.children))
	for i, c := range n.children {
		fields[i] = s.field(c, below(path, i))
	}
	return arrow.StructOf(fields...)
}

// isPair reports whether n is the group of a map's key and value.
func isPair(n *schemaNode) bool {
	return len(n.children) == 2 && n.children[0].rep == repRequired && n.children[1].rep != repRepeated
}

// item is the item of a list n whose repeated node is c: what c holds, or c itself, as lists were written
// before they had three levels.
func (s *shaper) item(n, c *schemaNode, path []int) arrow.Field {
	if in := c.only(); in != nil && in.rep != repRepeated && c.name != "array" && c.name != n.name+"_tuple" {
		return s.field(in, path)
	}
	return arrow.Field{Name: c.name, Type: s.typeOf(c, path)}
}

// leafType is the Arrow type of a column. A logical type that does not fit the physical one, or that nobody
// here knows, says nothing.
func leafType(e *schemaElem) arrow.DataType {
	l := e.meaning()
	if l.kind == logicalUnknown {
		return arrow.Null
	}
	if l.kind == logicalDecimal && e.typ != typeBoolean && e.typ != typeInt96 && e.typ != typeFloat &&
		e.typ != typeDouble {
		if t := decimalType(l); t != nil {
			return t
		}
	}
	switch e.typ {
	case typeBoolean:
		return arrow.FixedWidthTypes.Boolean
	case typeInt32:
		return int32Type(l)
	case typeInt64:
		return int64Type(l)
	case typeInt96:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	case typeFloat:
		return arrow.PrimitiveTypes.Float32
	case typeDouble:
		return arrow.PrimitiveTypes.Float64
	case typeBytes:
		if l.kind == logicalString || l.kind == logicalJSON {
			return arrow.BinaryTypes.String
		}
		return arrow.BinaryTypes.Binary
	}
	switch {
	case l.kind == logicalFloat16 && e.length == 2:
		return arrow.FixedWidthTypes.Float16
	case l.kind == logicalUUID && e.length == 16:
		if t := arrow.GetExtensionType("arrow.uuid"); t != nil {
			return t
		}
	}
	return &arrow.FixedSizeBinaryType{ByteWidth: int(e.length)}
}

func decimalType(l logical) arrow.DataType {
	switch {
	case l.precision <= 0 || l.precision > 76 || l.scale > l.precision || l.scale < -76:
		return nil
	case l.precision <= 38:
		return &arrow.Decimal128Type{Precision: l.precision, Scale: l.scale}
	}
	return &arrow.Decimal256Type{Precision: l.precision, Scale: l.scale}
}

func int32Type(l logical) arrow.DataType {
	switch {
	case l.kind == logicalDate:
		return arrow.FixedWidthTypes.Date32
	case l.kind == logicalTime && l.unit == 1:
		return arrow.FixedWidthTypes.Time32ms
	case l.kind == logicalInteger && l.bits == 8 && l.signed:
		return arrow.PrimitiveTypes.Int8
	case l.kind == logicalInteger && l.bits == 8:
		return arrow.PrimitiveTypes.Uint8
	case l.kind == logicalInteger && l.bits == 16 && l.signed:
		return arrow.PrimitiveTypes.Int16
	case l.kind == logicalInteger && l.bits == 16:
		return arrow.PrimitiveTypes.Uint16
	case l.kind == logicalInteger && l.bits == 32 && !l.signed:
		return arrow.PrimitiveTypes.Uint32
	}
	return arrow.PrimitiveTypes.Int32
}

func int64Type(l logical) arrow.DataType {
	units := [...]arrow.TimeUnit{1: arrow.Millisecond, 2: arrow.Microsecond, 3: arrow.Nanosecond}
	switch {
	case l.kind == logicalTime && l.unit == 2:
		return arrow.FixedWidthTypes.Time64us
	case l.kind == logicalTime && l.unit == 3:
		return arrow.FixedWidthTypes.Time64ns
	case l.kind == logicalTimestamp && l.unit >= 1 && l.unit < len(units):
		t := &arrow.TimestampType{Unit: units[l.unit]}
		if l.utc {
			t.TimeZone = "UTC"
		}
		return t
	case l.kind == logicalInteger && l.bits == 64 && !l.signed:
		return arrow.PrimitiveTypes.Uint64
	}
	return arrow.PrimitiveTypes.Int64
}

// original is field f, which Parquet's own types say, as the Arrow schema in the file has it: the name, and
// whether it can be null, as Parquet says; its type and metadata as orig says, as far as what is stored can be
// that.
func original(f, orig arrow.Field) arrow.Field {
	f.Type, f.Metadata = originalType(f.Type, orig.Type), withID(orig.Metadata, f.Metadata)
	return f
}

func originalType(t, orig arrow.DataType) arrow.DataType {
	if arrow.TypeEqual(t, orig, arrow.CheckMetadata()) || becomes(t, orig) {
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
	}
	return t
}

// renamed is original of an item: "item" or "element", Parquet has its own word for it.
func renamed(f, orig arrow.Field) arrow.Field {
	f.Name = orig.Name
	return original(f, orig)
}

func originalStruct(t arrow.DataType, o *arrow.StructType) arrow.DataType {
	st, ok := t.(*arrow.StructType)
	if !ok || st.NumFields() != o.NumFields() {
		return t
	}
	fields := st.Fields()
	for i, f := range fields {
		if f.Name == o.Field(i).Name {
			fields[i] = original(f, o.Field(i))
		}
	}
	return arrow.StructOf(fields...)
}

// becomes reports whether a column of type t can be given as orig: what Arrow's libraries write as t because
// Parquet has no such type.
func becomes(t, orig arrow.DataType) bool {
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

// vectorType is the type as which a column of type t is decoded: one that vectors have.
func vectorType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return vectorType(t.StorageType())
	case *arrow.DictionaryType:
		return vectorType(t.ValueType)
	case *arrow.LargeStringType, *arrow.StringViewType:
		return arrow.BinaryTypes.String
	case *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary
	}
	return t
}

// storedField is a field with the types as which its columns are decoded.
func storedField(f arrow.Field) arrow.Field {
	switch t := f.Type.(type) {
	case *arrow.ListType:
		f.Type = arrow.ListOfField(storedField(t.ElemField()))
	case *arrow.LargeListType:
		f.Type = arrow.LargeListOfField(storedField(t.ElemField()))
	case *arrow.FixedSizeListType:
		f.Type = arrow.FixedSizeListOfField(t.Len(), storedField(t.ElemField()))
	case *arrow.MapType:
		m := arrow.MapOfFields(storedField(t.KeyField()), storedField(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		f.Type = m
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			fields[i] = storedField(fields[i])
		}
		f.Type = arrow.StructOf(fields...)
	default:
		f.Type = vectorType(t)
	}
	return f
}

// withID adds the field id that Parquet has, if it has one.
func withID(orig, lib arrow.Metadata) arrow.Metadata {
	id, ok := lib.GetValue(fieldID)
	if !ok || id == "-1" || orig.FindKey(fieldID) >= 0 {
		return orig
	}
	keys, values := orig.Keys(), orig.Values()
	return arrow.NewMetadata(append(keys[:len(keys):len(keys)], fieldID), append(values[:len(values):len(values)], id))
}
