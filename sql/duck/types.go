package duck

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// Type numbers of DuckDB.
const (
	typeBoolean     = 1
	typeTinyInt     = 2
	typeSmallInt    = 3
	typeInteger     = 4
	typeBigInt      = 5
	typeUTinyInt    = 6
	typeUSmallInt   = 7
	typeUInteger    = 8
	typeUBigInt     = 9
	typeFloat       = 10
	typeDouble      = 11
	typeTimestamp   = 12
	typeDate        = 13
	typeTime        = 14
	typeInterval    = 15
	typeVarchar     = 17
	typeBlob        = 18
	typeTimestampS  = 20
	typeTimestampMS = 21
	typeTimestampNS = 22
	typeUUID        = 27
	typeTimestampTZ = 31
	typeSQLNull     = 36
	typeTimeNS      = 39 // not in every version
)

// column says how an Arrow column is converted to a DuckDB column.
type column struct {
	name   string
	node   *C.struct_duck_node
	typ    C.duck_handle
	asText string // why its values are converted to text; "": they are not
}

func (c *column) free() {
	C.duck_free_node(c.node)
	C.duck_destroy_type(c.typ)
}

// newColumn converts a field. Types that DuckDB lacks become text.
func newColumn(name string, t arrow.DataType) *column {
	node, typ, err := convert(t)
	if err != nil {
		c := &column{name: name, asText: err.Error()}
		c.node, c.typ, _ = convert(arrow.BinaryTypes.String)
		return c
	}
	return &column{name: name, node: node, typ: typ}
}

// errNoType is a type that DuckDB does not have.
type errNoType struct{ what string }

func (e *errNoType) Error() string { return e.what }

func leaf(kind C.int, size int, typ int) (*C.struct_duck_node, C.duck_handle, error) {
	n := C.duck_new_node(kind, 0)
	n.size, n.out, n.is_signed, n.factor = C.int(size), C.int(size), true, 1
	t := C.duck_create_logical_type(C.int(typ))
	if int(C.duck_get_type_id(t)) != typ {
		C.duck_destroy_type(t)
		C.duck_free_node(n)
		return nil, nil, &errNoType{"this version of DuckDB has no type for it"}
	}
	return n, t, nil
}

// simple are the types whose values are the same on both sides, or nearly.
var simple = map[arrow.Type]struct{ kind, size, typ int }{
	arrow.NULL:              {C.DUCK_NULL, 0, typeSQLNull},
	arrow.BOOL:              {C.DUCK_BIT, 1, typeBoolean},
	arrow.INT8:              {C.DUCK_COPY, 1, typeTinyInt},
	arrow.INT16:             {C.DUCK_COPY, 2, typeSmallInt},
	arrow.INT32:             {C.DUCK_COPY, 4, typeInteger},
	arrow.INT64:             {C.DUCK_COPY, 8, typeBigInt},
	arrow.UINT8:             {C.DUCK_COPY, 1, typeUTinyInt},
	arrow.UINT16:            {C.DUCK_COPY, 2, typeUSmallInt},
	arrow.UINT32:            {C.DUCK_COPY, 4, typeUInteger},
	arrow.UINT64:            {C.DUCK_COPY, 8, typeUBigInt},
	arrow.FLOAT16:           {C.DUCK_HALF, 2, typeFloat},
	arrow.FLOAT32:           {C.DUCK_COPY, 4, typeFloat},
	arrow.FLOAT64:           {C.DUCK_COPY, 8, typeDouble},
	arrow.STRING:            {C.DUCK_TEXT, 0, typeVarchar},
	arrow.LARGE_STRING:      {C.DUCK_LARGE_TEXT, 0, typeVarchar},
	arrow.STRING_VIEW:       {C.DUCK_VIEW_TEXT, 0, typeVarchar},
	arrow.BINARY:            {C.DUCK_BYTES, 0, typeBlob},
	arrow.LARGE_BINARY:      {C.DUCK_LARGE_BYTES, 0, typeBlob},
	arrow.BINARY_VIEW:       {C.DUCK_VIEW_BYTES, 0, typeBlob},
	arrow.DATE32:            {C.DUCK_COPY, 4, typeDate},
	arrow.INTERVAL_MONTHS:   {C.DUCK_MONTHS, 4, typeInterval},
	arrow.INTERVAL_DAY_TIME: {C.DUCK_DAYS, 8, typeInterval},

	arrow.INTERVAL_MONTH_DAY_NANO: {C.DUCK_MONTH_NANO, 16, typeInterval},
}

// convert returns the converter for values of a type, and DuckDB's type. The caller frees both.
func convert(t arrow.DataType) (*C.struct_duck_node, C.duck_handle, error) {
	if s, ok := simple[t.ID()]; ok {
		return leaf(C.int(s.kind), s.size, s.typ)
	}
	switch t := t.(type) {
	case arrow.ExtensionType:
		if storage, ok := t.StorageType().(*arrow.FixedSizeBinaryType); ok && t.ExtensionName() == "arrow.uuid" &&
			storage.ByteWidth == 16 {
			return leaf(C.DUCK_UUID, 16, typeUUID)
		}
		return convert(t.StorageType())
	case *arrow.FixedSizeBinaryType:
		return leaf(C.DUCK_FIXED_BYTES, t.ByteWidth, typeBlob)
	case arrow.DecimalType:
		return convertDecimal(t)
	case *arrow.Date64Type:
		n, typ, err := leaf(C.DUCK_DIVIDE, 8, typeDate)
		if err == nil {
			n.out, n.factor = 4, 86_400_000
		}
		return n, typ, err
	case *arrow.Time32Type:
		return clock(t.Unit, 4)
	case *arrow.Time64Type:
		return clock(t.Unit, 8)
	case *arrow.TimestampType:
		return stamp(t)
	case *arrow.DurationType:
		n, typ, err := leaf(C.DUCK_SPAN, 8, typeInterval)
		if err == nil {
			n.factor = C.int64_t(perMicro(t.Unit))
		}
		return n, typ, err
	case *arrow.DictionaryType:
		n, typ, err := wrapped(C.DUCK_DICTIONARY, t.ValueType, t.IndexType)
		if err == nil {
			n.is_signed = C.bool(arrow.IsSignedInteger(t.IndexType.ID()))
		}
		return n, typ, err
	case *arrow.RunEndEncodedType:
		return wrapped(C.DUCK_RUNS, t.Encoded(), t.RunEnds())
	}
	return convertNested(t)
}

// perMicro is the factor from a unit of time to microseconds; negative: the divisor.
func perMicro(u arrow.TimeUnit) int64 {
	return [...]int64{arrow.Second: 1_000_000, arrow.Millisecond: 1000, arrow.Microsecond: 1,
		arrow.Nanosecond: -1000}[u]
}

func clock(u arrow.TimeUnit, size int) (*C.struct_duck_node, C.duck_handle, error) {
	if u == arrow.Nanosecond {
		return leaf(C.DUCK_COPY, 8, typeTimeNS)
	}
	n, typ, err := leaf(C.DUCK_MULTIPLY, size, typeTime)
	if err == nil {
		n.out, n.factor = 8, C.int64_t(perMicro(u))
	}
	return n, typ, err
}

// stamp converts timestamps. Those in nanoseconds with a zone lose the zone, not digits: DuckDB has no such type.
func stamp(t *arrow.TimestampType) (*C.struct_duck_node, C.duck_handle, error) {
	if t.TimeZone == "" || t.Unit == arrow.Nanosecond {
		return leaf(C.DUCK_COPY, 8, [...]int{arrow.Second: typeTimestampS, arrow.Millisecond: typeTimestampMS,
			arrow.Microsecond: typeTimestamp, arrow.Nanosecond: typeTimestampNS}[t.Unit])
	}
	n, typ, err := leaf(C.DUCK_MULTIPLY, 8, typeTimestampTZ)
	if err == nil {
		n.factor = C.int64_t(perMicro(t.Unit))
	}
	if err == nil && t.Unit == arrow.Microsecond {
		n.kind = C.DUCK_COPY
	}
	return n, typ, err
}

func convertDecimal(t arrow.DecimalType) (*C.struct_duck_node, C.duck_handle, error) {
	p, s := t.GetPrecision(), t.GetScale()
	if p > 38 || t.BitWidth() > 128 {
		return nil, nil, &errNoType{"DuckDB has decimals of at most 38 digits"}
	}
	if s < 0 || s > p || p < 1 {
		return nil, nil, &errNoType{"DuckDB has no decimals of this scale"}
	}
	size := t.BitWidth() / 8
	n := C.duck_new_node(C.DUCK_COPY, 0)
	n.size, n.out, n.is_signed = C.int(size), 16, true
	switch {
	case p <= 4:
		n.out = 2
	case p <= 9:
		n.out = 4
	case p <= 18:
		n.out = 8
	}
	switch {
	case int(n.out) < size:
		n.kind = C.DUCK_NARROW
	case int(n.out) > size:
		n.kind = C.DUCK_WIDEN
	}
	return n, C.duck_create_decimal_type(C.uint8_t(p), C.uint8_t(s)), nil
}

// wrapped converts dictionary and run-end encoded values.
func wrapped(kind C.int, value, code arrow.DataType) (*C.struct_duck_node, C.duck_handle, error) {
	child, typ, err := convert(value)
	if err != nil {
		return nil, nil, err
	}
	n := C.duck_new_node(kind, 1)
	n.size = C.int(code.(arrow.FixedWidthDataType).BitWidth() / 8)
	setChild(n, 0, child)
	return n, typ, nil
}

func setChild(n *C.struct_duck_node, i int, child *C.struct_duck_node) {
	unsafe.Slice(n.children, int(n.n))[i] = child
}

var lists = map[arrow.Type]C.int{arrow.LIST: C.DUCK_LIST, arrow.LARGE_LIST: C.DUCK_LARGE_LIST,
	arrow.LIST_VIEW: C.DUCK_LIST_VIEW, arrow.LARGE_LIST_VIEW: C.DUCK_LARGE_LIST_VIEW}

// maxArray is the maximum number of elements of DuckDB's arrays.
const maxArray = 100_000

func convertNested(t arrow.DataType) (*C.struct_duck_node, C.duck_handle, error) {
	switch t := t.(type) {
	case *arrow.MapType:
		return convertMap(t)
	case *arrow.FixedSizeListType:
		if t.Len() < 1 || t.Len() > maxArray {
			return nil, nil, &errNoType{"DuckDB has arrays of 1 to 100,000 elements"}
		}
		child, typ, err := convert(t.Elem())
		if err != nil {
			return nil, nil, err
		}
		defer C.duck_destroy_type(typ)
		n := C.duck_new_node(C.DUCK_ARRAY, 1)
		n.size = C.int(t.Len())
		setChild(n, 0, child)
		return n, C.duck_create_array_type(typ, C.duck_idx(t.Len())), nil
	case arrow.ListLikeType:
		kind, ok := lists[t.ID()]
		if !ok {
			break
		}
		child, typ, err := convert(t.Elem())
		if err != nil {
			return nil, nil, err
		}
		defer C.duck_destroy_type(typ)
		n := C.duck_new_node(kind, 1)
		setChild(n, 0, child)
		return n, C.duck_create_list_type(typ), nil
	case *arrow.StructType:
		return convertFields(C.DUCK_STRUCT, t.Fields())
	case arrow.UnionType:
		return convertUnion(t)
	}
	return nil, nil, &errNoType{"DuckDB has no type for it"}
}

func convertMap(t *arrow.MapType) (*C.struct_duck_node, C.duck_handle, error) {
	entries, pair, err := convertFields(C.DUCK_STRUCT, []arrow.Field{t.KeyField(), t.ItemField()})
	if err != nil {
		return nil, nil, err
	}
	C.duck_destroy_type(pair)
	key, keyType, _ := convert(t.KeyType())
	item, itemType, _ := convert(t.ItemType())
	C.duck_free_node(key)
	C.duck_free_node(item)
	defer C.duck_destroy_type(keyType)
	defer C.duck_destroy_type(itemType)
	n := C.duck_new_node(C.DUCK_MAP, 1)
	setChild(n, 0, entries)
	return n, C.duck_create_map_type(keyType, itemType), nil
}

func convertUnion(t arrow.UnionType) (*C.struct_duck_node, C.duck_handle, error) {
	kind := C.int(C.DUCK_SPARSE)
	if t.Mode() == arrow.DenseMode {
		kind = C.DUCK_DENSE
	}
	if len(t.Fields()) == 0 {
		return nil, nil, &errNoType{"DuckDB has no unions without members"}
	}
	n, typ, err := convertFields(kind, t.Fields())
	if err != nil {
		return nil, nil, err
	}
	for i := range n.codes {
		n.codes[i] = -1
	}
	for i, code := range t.TypeCodes() {
		n.codes[code] = C.int8_t(i)
	}
	return n, typ, nil
}

// convertFields converts the fields of a struct, or the members of a union.
func convertFields(kind C.int, fields []arrow.Field) (n *C.struct_duck_node, typ C.duck_handle, err error) {
	if len(fields) == 0 { // its rows are null or not, and nothing else
		return nil, nil, &errNoType{"DuckDB has no structs without fields"}
	}
	n = C.duck_new_node(kind, C.int(len(fields)))
	var types []C.duck_handle
	var names []*C.char
	defer func() {
		for i := range types {
			C.duck_destroy_type(types[i])
			C.free(unsafe.Pointer(names[i]))
		}
		if err != nil {
			C.duck_free_node(n)
		}
	}()
	given := Names(fields)
	for i, f := range fields {
		child, t, err := convert(f.Type)
		if err != nil {
			return nil, nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		setChild(n, i, child)
		types, names = append(types, t), append(names, C.CString(given[i]))
	}
	if kind == C.DUCK_STRUCT {
		typ = C.duck_create_struct_type(&types[0], &names[0], C.duck_idx(len(fields)))
	} else {
		typ = C.duck_create_union_type(&types[0], &names[0], C.duck_idx(len(fields)))
	}
	if typ == nil {
		return nil, nil, errors.New("DuckDB refused the type")
	}
	return n, typ, nil
}

// Names returns the names of fields in DuckDB, which ignores case and allows no empty names: of equal names the later
// ones get a number, and then a name that no other field has of its own.
func Names(fields []arrow.Field) []string {
	out := make([]string, len(fields))
	own, taken := map[string]bool{}, map[string]bool{}
	for i, f := range fields {
		out[i] = strings.ToValidUTF8(strings.ReplaceAll(f.Name, "\x00", "\ufffd"), "\ufffd")
		own[strings.ToLower(out[i])] = true
	}
	for i, name := range out {
		if name == "" {
			name = fmt.Sprintf("column%d", i)
		}
		base := name
		for k := 1; taken[strings.ToLower(name)] || name != out[i] && own[strings.ToLower(name)]; k++ {
			name = fmt.Sprintf("%s_%d", base, k)
		}
		taken[strings.ToLower(name)] = true
		out[i] = name
	}
	return out
}
