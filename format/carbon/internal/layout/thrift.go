package layout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stoa/internal/thrift"
)

// DataType is DataType of schema.thrift.
type DataType int32

const (
	TypeString    DataType = 0
	TypeShort     DataType = 1
	TypeInt       DataType = 2
	TypeLong      DataType = 3
	TypeDouble    DataType = 4
	TypeDecimal   DataType = 5
	TypeTimestamp DataType = 6
	TypeDate      DataType = 7
	TypeBoolean   DataType = 8
	TypeArray     DataType = 20
	TypeStruct    DataType = 21
	TypeVarchar   DataType = 22
	TypeMap       DataType = 23
	TypeFloat     DataType = 24
	TypeByte      DataType = 25
	TypeBinary    DataType = 26
)

// TypeNames has the names of all known types.
var TypeNames = map[DataType]string{TypeString: "string", TypeShort: "short", TypeInt: "int", TypeLong: "long",
	TypeDouble:  "double",
	TypeDecimal: "decimal", TypeTimestamp: "timestamp", TypeDate: "date", TypeBoolean: "boolean",
	TypeArray: "array", TypeStruct: "struct",
	TypeVarchar: "varchar", TypeMap: "map", TypeFloat: "float", TypeByte: "byte", TypeBinary: "binary"}

func (t DataType) String() string {
	if s, ok := TypeNames[t]; ok {
		return s
	}
	return "data type " + strconv.Itoa(int(t))
}

// Complex reports whether a column of the type has child columns.
func (t DataType) Complex() bool { return t == TypeArray || t == TypeStruct || t == TypeMap }

// Encoding is Encoding of schema.thrift.
type Encoding int32

const (
	EncDictionary            Encoding = 0
	EncDelta                 Encoding = 1
	EncRLE                   Encoding = 2
	EncInvertedIndex         Encoding = 3
	encBitPacked             Encoding = 4
	EncDirectDictionary      Encoding = 5
	EncDirectCompress        Encoding = 6
	EncAdaptiveIntegral      Encoding = 7
	EncAdaptiveDeltaIntegral Encoding = 8
	EncRLEIntegral           Encoding = 9
	EncDirectString          Encoding = 10
	EncAdaptiveFloating      Encoding = 11
	EncBoolByte              Encoding = 12
	EncAdaptiveDeltaFloating Encoding = 13
	EncDirectCompressVarchar Encoding = 14
	EncIntLengthChild        Encoding = 15
)

var encodingNames = [...]string{"DICTIONARY", "DELTA", "RLE", "INVERTED_INDEX", "BIT_PACKED", "DIRECT_DICTIONARY",
	"DIRECT_COMPRESS",
	"ADAPTIVE_INTEGRAL", "ADAPTIVE_DELTA_INTEGRAL", "RLE_INTEGRAL", "DIRECT_STRING", "ADAPTIVE_FLOATING", "BOOL_BYTE",
	"ADAPTIVE_DELTA_FLOATING", "DIRECT_COMPRESS_VARCHAR", "INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY"}

func (e Encoding) String() string {
	if e >= 0 && int(e) < len(encodingNames) {
		return encodingNames[e]
	}
	return "encoding " + strconv.Itoa(int(e))
}

// Encodings are the encoders of a page or a column.
type Encodings []Encoding

// Has reports whether x is among the encoders.
func (e Encodings) Has(x Encoding) bool { return slices.Contains(e, x) }

func (e Encodings) String() string {
	names := make([]string, len(e))
	for i, x := range e {
		names[i] = x.String()
	}
	return strings.Join(names, ",")
}

// PropComment is the key of a column's comment in its Props.
const PropComment = "comment"

// ColumnSchema is ColumnSchema of schema.thrift. Lists of columns are flattened depth first: a column is followed by
// its NumChild children, each with its own children.
type ColumnSchema struct {
	Type      DataType
	Name      string // a child's name is that of its parent, a dot, and its own
	ID        string
	Reference string // columnReferenceId: the id again, or that of a column whose dictionary is shared
	Encoders  Encodings
	Dimension bool
	Group     int32 // column group of formats 1 and 2; -1: none
	Scale     int32
	Precision int32
	NumChild  int32
	Default   []byte            // default value, for rows of segments without the column; nil: null
	Props     map[string]string // columnProperties
	Invisible bool              // the column was dropped
	Ordinal   int32             // schemaOrdinal: position in the user's column order, from 0; -1: unknown, or a child
}

func typeText(v int32) string     { return DataType(v).String() }
func encodingText(v int32) string { return Encoding(v).String() }

func parseEncodings(r *thrift.Reader, name string) (e Encodings) {
	for range r.List(name, thrift.I32) {
		e = append(e, Encoding(r.Enum("", encodingText)))
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

// ParseI32s reads a list of i32. Errors are those of r.
func ParseI32s(r *thrift.Reader, name string) (s []int32) {
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

func parseColumnSchema(r *thrift.Reader, name string) ColumnSchema {
	s := ColumnSchema{Group: -1, Ordinal: -1}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.Type = DataType(r.Enum("data_type", typeText))
		case 2:
			s.Name = r.String("column_name")
		case 3:
			s.ID = r.String("column_id")
		case 4:
			r.Bool("columnar")
		case 5:
			s.Encoders = parseEncodings(r, "encoders")
		case 6:
			s.Dimension = r.Bool("dimension")
		case 7:
			s.Group = r.I32("column_group_id")
		case 8:
			s.Scale = r.I32("scale")
		case 9:
			s.Precision = r.I32("precision")
		case 10:
			s.NumChild = r.I32("num_child")
		case 11:
			r.String("aggregate_function")
		case 12:
			s.Default = r.Bytes("default_value")
		case 13:
			s.Props = parsePairs(r, "columnProperties")
		case 14:
			s.Invisible = r.Bool("invisible")
		case 15:
			s.Reference = r.String("columnReferenceId")
		case 16:
			s.Ordinal = r.I32("schemaOrdinal")
		}
	}
	return s
}

func parseColumnSchemas(r *thrift.Reader, name string) (s []ColumnSchema) {
	for range r.List(name, thrift.Struct) {
		s = append(s, parseColumnSchema(r, ""))
	}
	return s
}

// SegmentInfo is SegmentInfo of carbondata.thrift.
type SegmentInfo struct {
	Columns       int32
	Cardinalities []int32
}

func parseSegmentInfo(r *thrift.Reader, name string) (s SegmentInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.Columns = r.I32("num_cols")
		case 2:
			s.Cardinalities = ParseI32s(r, "column_cardinalities")
		}
	}
	return s
}

// MinMax is BlockletMinMaxIndex: min and max of each column chunk, encoded by the type of its column.
type MinMax struct {
	Min, Max [][]byte
	Written  []bool // false: the chunk has no bounds; nil: all chunks have bounds
}

// At returns the bounds of chunk i; ok is false if there are none.
func (m *MinMax) At(i int) (lo, hi []byte, ok bool) {
	if m == nil || i >= len(m.Min) || i >= len(m.Max) || i < len(m.Written) && !m.Written[i] {
		return nil, nil, false
	}
	return m.Min[i], m.Max[i], true
}

func parseMinMax(r *thrift.Reader, name string) *MinMax {
	m := &MinMax{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			m.Min = parseBinaries(r, "min_values")
		case 2:
			m.Max = parseBinaries(r, "max_values")
		case 3:
			for range r.List("min_max_presence", thrift.Bool) {
				m.Written = append(m.Written, r.Bool(""))
			}
		}
	}
	return m
}

// BlockletIndex is BlockletIndex: bounds of a blocklet, or of a data file.
type BlockletIndex struct {
	MinMax     *MinMax
	Start, End []byte // keys of the B-tree: mdkeys and no-dictionary values
}

// ParseBlockletIndex reads BlockletIndex. Errors are those of r.
func ParseBlockletIndex(r *thrift.Reader, name string) (x BlockletIndex) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			x.MinMax = parseMinMax(r, "min_max_index")
		case 2:
			for r.Struct("b_tree_index"); r.Next(); {
				switch r.Field() {
				case 1:
					x.Start = r.Bytes("start_key")
				case 2:
					x.End = r.Bytes("end_key")
				}
			}
		}
	}
	return x
}

// ElementName returns the name of element i of a list, as used in paths and nodes.
func ElementName(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// SortedKeys returns the keys of a map, sorted.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// HasGlobalDictionary reports whether the encoders of a column name a global dictionary.
func (s *ColumnSchema) HasGlobalDictionary() bool {
	return s.Encoders.Has(EncDictionary) && !s.Encoders.Has(EncDirectDictionary)
}

// SortColumn reports whether rows are sorted by the column.
func (s *ColumnSchema) SortColumn() bool { return s.Props["sort_columns"] == "true" }
