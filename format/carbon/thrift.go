package carbon

import (
	"fmt"
	"strconv"
	"strings"

	"stoa/internal/thrift"
)

// dataType is DataType of schema.thrift.
type dataType int32

const (
	typeString    dataType = 0
	typeShort     dataType = 1
	typeInt       dataType = 2
	typeLong      dataType = 3
	typeDouble    dataType = 4
	typeDecimal   dataType = 5
	typeTimestamp dataType = 6
	typeDate      dataType = 7
	typeBoolean   dataType = 8
	typeArray     dataType = 20
	typeStruct    dataType = 21
	typeVarchar   dataType = 22
	typeMap       dataType = 23
	typeFloat     dataType = 24
	typeByte      dataType = 25
	typeBinary    dataType = 26
)

var typeNames = map[dataType]string{typeString: "string", typeShort: "short", typeInt: "int", typeLong: "long", typeDouble: "double",
	typeDecimal: "decimal", typeTimestamp: "timestamp", typeDate: "date", typeBoolean: "boolean", typeArray: "array", typeStruct: "struct",
	typeVarchar: "varchar", typeMap: "map", typeFloat: "float", typeByte: "byte", typeBinary: "binary"}

func (t dataType) String() string {
	if s, ok := typeNames[t]; ok {
		return s
	}
	return "data type " + strconv.Itoa(int(t))
}

func (t dataType) complex() bool { return t == typeArray || t == typeStruct || t == typeMap }

// encoding is Encoding of schema.thrift.
type encoding int32

const (
	encDictionary            encoding = 0
	encDelta                 encoding = 1
	encRLE                   encoding = 2
	encInvertedIndex         encoding = 3
	encBitPacked             encoding = 4
	encDirectDictionary      encoding = 5
	encDirectCompress        encoding = 6
	encAdaptiveIntegral      encoding = 7
	encAdaptiveDeltaIntegral encoding = 8
	encRLEIntegral           encoding = 9
	encDirectString          encoding = 10
	encAdaptiveFloating      encoding = 11
	encBoolByte              encoding = 12
	encAdaptiveDeltaFloating encoding = 13
	encDirectCompressVarchar encoding = 14
	encIntLengthChild        encoding = 15
)

var encodingNames = [...]string{"DICTIONARY", "DELTA", "RLE", "INVERTED_INDEX", "BIT_PACKED", "DIRECT_DICTIONARY", "DIRECT_COMPRESS",
	"ADAPTIVE_INTEGRAL", "ADAPTIVE_DELTA_INTEGRAL", "RLE_INTEGRAL", "DIRECT_STRING", "ADAPTIVE_FLOATING", "BOOL_BYTE",
	"ADAPTIVE_DELTA_FLOATING", "DIRECT_COMPRESS_VARCHAR", "INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY"}

func (e encoding) String() string {
	if e >= 0 && int(e) < len(encodingNames) {
		return encodingNames[e]
	}
	return "encoding " + strconv.Itoa(int(e))
}

// encodings is what a page or a column says of how it is stored.
type encodings []encoding

func (e encodings) has(x encoding) bool {
	for _, y := range e {
		if x == y {
			return true
		}
	}
	return false
}

func (e encodings) String() string {
	names := make([]string, len(e))
	for i, x := range e {
		names[i] = x.String()
	}
	return strings.Join(names, ",")
}

// columnSchema is ColumnSchema of schema.thrift. Nested columns are flattened depth first: numChild columns follow.
type columnSchema struct {
	typ       dataType
	name      string // of a child: the parents' names before it, with dots
	id        string
	encoders  encodings
	dimension bool
	group     int32 // column group of format 1 and 2; -1
	scale     int32
	precision int32
	children  int32
	def       []byte // default value, for rows of segments without the column; nil = null
	props     map[string]string
	invisible bool
	ordinal   int32 // place among the columns as the user gave them; -1 not said, or a child
}

func typeText(v int32) string     { return dataType(v).String() }
func encodingText(v int32) string { return encoding(v).String() }

func parseEncodings(r *thrift.Reader, name string) (e encodings) {
	for range r.List(name, thrift.I32) {
		e = append(e, encoding(r.Enum("", encodingText)))
	}
	return e
}

func parseStrings(r *thrift.Reader, name string) (s []string) {
	for range r.List(name, thrift.Bytes) {
		s = append(s, r.String(""))
	}
	return s
}

func parseBinaries(r *thrift.Reader, name string) (s [][]byte) {
	for range r.List(name, thrift.Bytes) {
		s = append(s, r.Bytes(""))
	}
	return s
}

func parseI32s(r *thrift.Reader, name string) (s []int32) {
	for range r.List(name, thrift.I32) {
		s = append(s, r.I32(""))
	}
	return s
}

func parsePairs(r *thrift.Reader, name string) map[string]string {
	m := map[string]string{}
	for range r.Map(name, thrift.Bytes, thrift.Bytes) {
		k := r.String("key")
		m[k] = r.String("value")
	}
	return m
}

func parseColumnSchema(r *thrift.Reader, name string) columnSchema {
	s := columnSchema{group: -1, ordinal: -1}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.typ = dataType(r.Enum("data_type", typeText))
		case 2:
			s.name = r.String("column_name")
		case 3:
			s.id = r.String("column_id")
		case 4:
			r.Bool("columnar")
		case 5:
			s.encoders = parseEncodings(r, "encoders")
		case 6:
			s.dimension = r.Bool("dimension")
		case 7:
			s.group = r.I32("column_group_id")
		case 8:
			s.scale = r.I32("scale")
		case 9:
			s.precision = r.I32("precision")
		case 10:
			s.children = r.I32("num_child")
		case 11:
			r.String("aggregate_function")
		case 12:
			s.def = r.Bytes("default_value")
		case 13:
			s.props = parsePairs(r, "columnProperties")
		case 14:
			s.invisible = r.Bool("invisible")
		case 15:
			r.String("columnReferenceId")
		case 16:
			s.ordinal = r.I32("schemaOrdinal")
		}
	}
	return s
}

func parseColumnSchemas(r *thrift.Reader, name string) (s []columnSchema) {
	for range r.List(name, thrift.Struct) {
		s = append(s, parseColumnSchema(r, ""))
	}
	return s
}

// segmentInfo is SegmentInfo of carbondata.thrift.
type segmentInfo struct {
	columns       int32
	cardinalities []int32
}

func parseSegmentInfo(r *thrift.Reader, name string) (s segmentInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.columns = r.I32("num_cols")
		case 2:
			s.cardinalities = parseI32s(r, "column_cardinalities")
		}
	}
	return s
}

// minMax is BlockletMinMaxIndex: one value a column chunk.
type minMax struct {
	min, max [][]byte
	written  []bool // false: no bounds were kept; nil: all were
}

// at is the bounds of chunk i; ok is false if there are none.
func (m *minMax) at(i int) (lo, hi []byte, ok bool) {
	if m == nil || i >= len(m.min) || i >= len(m.max) || i < len(m.written) && !m.written[i] {
		return nil, nil, false
	}
	return m.min[i], m.max[i], true
}

func parseMinMax(r *thrift.Reader, name string) *minMax {
	m := &minMax{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			m.min = parseBinaries(r, "min_values")
		case 2:
			m.max = parseBinaries(r, "max_values")
		case 3:
			for range r.List("min_max_presence", thrift.Bool) {
				m.written = append(m.written, r.Bool(""))
			}
		}
	}
	return m
}

// blockletIndex is BlockletIndex.
type blockletIndex struct {
	minMax     *minMax
	start, end []byte // keys of the B-tree: mdkeys and no-dictionary values; see startKey
}

func parseBlockletIndex(r *thrift.Reader, name string) (x blockletIndex) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			x.minMax = parseMinMax(r, "min_max_index")
		case 2:
			for r.Struct("b_tree_index"); r.Next(); {
				switch r.Field() {
				case 1:
					x.start = r.Bytes("start_key")
				case 2:
					x.end = r.Bytes("end_key")
				}
			}
		}
	}
	return x
}

// listed names element i of a list in paths and nodes.
func listed(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }
