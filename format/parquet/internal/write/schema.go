package write

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
)

// Repetition: parquet.thrift, FieldRepetitionType.
const (
	required = 0
	optional = 1
	repeated = 2
)

// ordering is the comparison of a leaf's values in statistics.
type ordering uint8

const (
	orderNone ordering = iota
	orderBool
	orderSigned
	orderUnsigned
	orderFloat
	orderHalf
	orderBytes   // unsigned bytes
	orderDecimal // big-endian, two's complement
)

// element is a SchemaElement.
type element struct {
	name       string
	phys       int32 // -1 for a group
	length     int   // of FIXED_LEN_BYTE_ARRAY
	rep        int32
	children   int
	annotation annotation
	id         int // field id, -1 if none
	order      ordering
}

// annotation is a logical type: its number in the union LogicalType, and the ConvertedType for older readers, -1 if
// there is none.
type annotation struct {
	logical          int16 // 0 if none
	converted        int32
	precision, scale int32
	unit             int16 // of times and timestamps, 1 to 3
	utc, signed      bool
	bits             int8
	version          int8 // of VARIANT
	crs              string
	algorithm        int32 // of GEOGRAPHY; -1 if none
}

// text reports whether values are UTF-8.
func (m annotation) text() bool { return m.logical == 1 || m.logical == logicalJSON }

var noAnnotation = annotation{converted: -1}

// elementsOf appends the elements of a field, depth first.
func elementsOf(f arrow.Field, name string, rep int32, out []element) ([]element, error) {
	e := element{name: name, phys: -1, rep: rep, annotation: noAnnotation, id: fieldID(f)}
	var err error
	switch t := f.Type.(type) {
	case *arrow.StructType:
		e.children = t.NumFields()
		if m, ok := annotationOf(f); ok && m.logical == logicalVariant {
			e.annotation = m
		}
		out = append(out, e)
		for _, c := range t.Fields() {
			if out, err = elementsOf(c, c.Name, repetition(c), out); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *arrow.MapType:
		e.children, e.annotation = 1, annotation{logical: 2, converted: 1}
		out = append(out, e, element{name: "key_value", phys: -1, rep: repeated, children: 2,
			annotation: noAnnotation, id: -1})
		if out, err = elementsOf(t.KeyField(), "key", required, out); err != nil {
			return nil, err
		}
		return elementsOf(t.ItemField(), "value", repetition(t.ItemField()), out)
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
		item := t.(arrow.ListLikeType).ElemField()
		e.children, e.annotation = 1, annotation{logical: 3, converted: 3}
		out = append(out, e, element{name: "list", phys: -1, rep: repeated, children: 1,
			annotation: noAnnotation, id: -1})
		return elementsOf(item, "element", repetition(item), out)
	}
	if err := e.leaf(f); err != nil {
		return nil, err
	}
	e.annotate(f)
	return append(out, e), nil
}

// Logical types that do not exist in Arrow.
const (
	logicalTime      = 7
	logicalJSON      = 12
	logicalVariant   = 16
	logicalGeometry  = 17
	logicalGeography = 18
)

// annotationOf is the logical type in a field's metadata.
func annotationOf(f arrow.Field) (annotation, bool) {
	text, ok := f.Metadata.GetValue(meta.LogicalKey)
	if !ok {
		return noAnnotation, false
	}
	m, ok := meta.ParseAnnotation(text)
	return annotation{logical: m.Logical, converted: m.Converted, version: m.Version, crs: m.CRS,
		algorithm: m.Algorithm, utc: m.UTC}, ok
}

// annotate applies the logical type in a field's metadata to a leaf, provided that it still fits the values.
func (e *element) annotate(f arrow.Field) {
	const interval = 12 // bytes
	m, ok := annotationOf(f)
	text := e.annotation.logical == 1
	switch {
	case !ok || m.logical == logicalVariant:
	case m.logical == logicalTime:
		if e.annotation.logical == logicalTime {
			e.annotation.setUTC(m.utc)
		}
	case m.logical == 0:
		if e.phys == meta.TypeFixed && e.length == interval && e.annotation == noAnnotation {
			e.annotation, e.order = m, orderNone
		}
	case e.phys != meta.TypeBytes || text != (m.logical == logicalJSON):
	case m.logical == logicalGeometry || m.logical == logicalGeography: // these have no order
		e.annotation, e.order = m, orderNone
	default:
		e.annotation = m
	}
}

// setUTC sets whether a time of day is in UTC. Older readers know only times in UTC.
func (m *annotation) setUTC(utc bool) {
	if m.utc = utc; utc {
		m.converted = []int32{1: 7, 2: 8, 3: -1}[m.unit]
	}
}

func repetition(f arrow.Field) int32 {
	if f.Nullable {
		return optional
	}
	return required
}

// fieldID returns the field id in a field's metadata, -1 if there is none.
func fieldID(f arrow.Field) int {
	if v, ok := f.Metadata.GetValue(meta.FieldID); ok {
		if n, err := strconv.ParseInt(v, 10, 32); err == nil {
			return int(n)
		}
	}
	return -1
}

// leaf sets the physical and the logical type of a field without children.
func (e *element) leaf(f arrow.Field) error {
	if e.number(f.Type) || e.time(f.Type) {
		return nil
	}
	switch t := f.Type.(type) {
	case *arrow.NullType:
		if !f.Nullable {
			return fault.Unsupportedf(fault.Span{}, f.Name, "a column of type null that cannot be null")
		}
		e.set(meta.TypeInt32, 0, orderNone, annotation{logical: 11, converted: -1})
	case *arrow.BooleanType:
		e.set(meta.TypeBoolean, 0, orderBool, noAnnotation)
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		e.set(meta.TypeBytes, 0, orderBytes, annotation{logical: 1, converted: 0})
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		e.set(meta.TypeBytes, 0, orderBytes, noAnnotation)
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth < 1 {
			return fault.Unsupportedf(fault.Span{}, f.Name, "values of no bytes")
		}
		e.set(meta.TypeFixed, t.ByteWidth, orderBytes, noAnnotation)
	case arrow.DecimalType:
		a := annotation{logical: 5, converted: 5, precision: t.GetPrecision(), scale: t.GetScale()}
		if a.precision < 1 || a.scale < 0 || a.scale > a.precision {
			return fault.Unsupportedf(fault.Span{}, f.Name,
				"type %s: a scale is from 0 to the precision in Parquet", f.Type)
		}
		e.set(meta.TypeFixed, decimalBytes(a.precision), orderDecimal, a)
	case *arrow.DictionaryType:
		f.Type = t.ValueType
		return e.leaf(f)
	case arrow.ExtensionType:
		f.Type = t.StorageType()
		if err := e.leaf(f); err != nil {
			return err
		}
		switch name := t.ExtensionName(); {
		case name == "arrow.uuid" && e.length == 16:
			e.annotation = annotation{logical: 14, converted: -1}
		case name == "arrow.json" && e.phys == meta.TypeBytes:
			e.annotation = annotation{logical: 12, converted: 19}
		}
	default:
		return fault.Unsupportedf(fault.Span{}, f.Name, "type %s cannot be written as Parquet", f.Type)
	}
	return nil
}

// set sets the types of a leaf and returns true.
func (e *element) set(phys int32, length int, o ordering, a annotation) bool {
	e.phys, e.length, e.order, e.annotation = phys, length, o, a
	return true
}

// integer sets the types of an integer that has a logical type.
func (e *element) integer(phys int32, bits int8, signed bool, converted int32) bool {
	o := orderUnsigned
	if signed {
		o = orderSigned
	}
	return e.set(phys, 0, o, annotation{logical: 10, converted: converted, bits: bits, signed: signed})
}

// number sets the types of integers and floats. It returns false if t is neither.
func (e *element) number(t arrow.DataType) bool {
	switch t.(type) {
	case *arrow.Int8Type:
		return e.integer(meta.TypeInt32, 8, true, 15)
	case *arrow.Int16Type:
		return e.integer(meta.TypeInt32, 16, true, 16)
	case *arrow.Int32Type:
		return e.set(meta.TypeInt32, 0, orderSigned, noAnnotation)
	case *arrow.Int64Type:
		return e.set(meta.TypeInt64, 0, orderSigned, noAnnotation)
	case *arrow.Uint8Type:
		return e.integer(meta.TypeInt32, 8, false, 11)
	case *arrow.Uint16Type:
		return e.integer(meta.TypeInt32, 16, false, 12)
	case *arrow.Uint32Type:
		return e.integer(meta.TypeInt32, 32, false, 13)
	case *arrow.Uint64Type:
		return e.integer(meta.TypeInt64, 64, false, 14)
	case *arrow.Float16Type:
		return e.set(meta.TypeFixed, 2, orderHalf, annotation{logical: 15, converted: -1})
	case *arrow.Float32Type:
		return e.set(meta.TypeFloat, 0, orderFloat, noAnnotation)
	case *arrow.Float64Type:
		return e.set(meta.TypeDouble, 0, orderFloat, noAnnotation)
	}
	return false
}

// time sets the types of dates, times, timestamps, durations and intervals. It returns false if t is none of these.
// Intervals get no order because no reader compares them.
func (e *element) time(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.Date32Type, *arrow.Date64Type:
		return e.set(meta.TypeInt32, 0, orderSigned, annotation{logical: 6, converted: 6})
	case *arrow.Time32Type:
		return e.set(meta.TypeInt32, 0, orderSigned, annotation{logical: 7, converted: -1, unit: 1})
	case *arrow.Time64Type:
		return e.set(meta.TypeInt64, 0, orderSigned, annotation{logical: 7, converted: -1, unit: int16(t.Unit)})
	case *arrow.TimestampType:
		unit := max(1, int16(t.Unit))                  // seconds become milliseconds
		converted := []int32{1: 9, 2: 10, 3: -1}[unit] // for older readers, with and without a zone
		a := annotation{logical: 8, converted: converted, unit: unit, utc: t.TimeZone != ""}
		return e.set(meta.TypeInt64, 0, orderSigned, a)
	case *arrow.DurationType:
		return e.set(meta.TypeInt64, 0, orderSigned, noAnnotation)
	case *arrow.MonthIntervalType:
		return e.set(meta.TypeInt32, 0, orderNone, noAnnotation)
	case *arrow.DayTimeIntervalType:
		return e.set(meta.TypeFixed, 8, orderNone, noAnnotation)
	case *arrow.MonthDayNanoIntervalType:
		return e.set(meta.TypeFixed, 16, orderNone, noAnnotation)
	}
	return false
}

// write writes a SchemaElement.
func (e *element) write(w *thrift.Writer, root bool) {
	w.Struct(thrift.Item)
	if e.phys >= 0 {
		w.I32(1, e.phys)
	}
	if e.phys == meta.TypeFixed {
		w.I32(2, int32(e.length))
	}
	if !root {
		w.I32(3, e.rep)
	}
	w.String(4, e.name)
	if e.phys < 0 {
		w.I32(5, int32(e.children))
	}
	if e.annotation.converted >= 0 {
		w.I32(6, e.annotation.converted)
	}
	if e.annotation.logical == 5 {
		w.I32(7, e.annotation.scale)
		w.I32(8, e.annotation.precision)
	}
	if e.id >= 0 {
		w.I32(9, int32(e.id))
	}
	e.annotation.write(w)
	w.End()
}

// write writes the LogicalType of an element.
func (m annotation) write(w *thrift.Writer) {
	if m.logical == 0 {
		return
	}
	w.Struct(10)
	w.Struct(m.logical)
	switch m.logical {
	case 5:
		w.I32(1, m.scale)
		w.I32(2, m.precision)
	case 7, 8:
		w.Bool(1, m.utc)
		w.Struct(2)
		w.Struct(m.unit)
		w.End()
		w.End()
	case 10:
		w.I8(1, m.bits)
		w.Bool(2, m.signed)
	case logicalVariant:
		if m.version != 0 {
			w.I8(1, m.version)
		}
	case logicalGeometry, logicalGeography:
		if m.crs != "" {
			w.String(1, m.crs)
		}
		if m.logical == logicalGeography && m.algorithm >= 0 {
			w.I32(2, m.algorithm)
		}
	}
	w.End()
	w.End()
}

// treeOf returns the schema elements of a file, root first.
func treeOf(sc *arrow.Schema) ([]element, error) {
	out := []element{{name: "schema", phys: -1, children: sc.NumFields(), annotation: noAnnotation, id: -1}}
	for _, f := range sc.Fields() {
		var err error
		if out, err = elementsOf(f, f.Name, repetition(f), out); err != nil {
			return nil, fault.New(fault.Unsupported, fault.Span{}, "",
				"column %q of type %s cannot be written as Parquet: %v", f.Name, f.Type, err)
		}
	}
	return out, nil
}

// treeLeaves returns the leaves of a schema with their paths and levels.
func treeLeaves(tree []element) (out []treeLeaf) {
	at := 1
	var walk func(path []string, def, rep uint8)
	walk = func(path []string, def, rep uint8) {
		e := &tree[at]
		at++
		if e.rep != required {
			def++
		}
		if e.rep == repeated {
			rep++
		}
		path = append(path[:len(path):len(path)], e.name)
		if e.phys >= 0 {
			out = append(out, treeLeaf{path, e, def, rep})
			return
		}
		for range e.children {
			walk(path, def, rep)
		}
	}
	for at < len(tree) {
		walk(nil, 0, 0)
	}
	return out
}

// treeLeaf is a leaf of the file's schema.
type treeLeaf struct {
	path []string
	*element
	def, repLevel uint8
}

func (l treeLeaf) dotted() string { return strings.Join(l.path, ".") }
