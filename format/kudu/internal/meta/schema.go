package meta

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/internal/pb"
	"stoa/wire"
)

// Names of field metadata, besides those of package cfile.
const (
	MetaKey           = "stoa.key"            // position in the primary key, from 1
	MetaColumnID      = "stoa.column_id"      // Kudu's id of the column
	MetaDefault       = "stoa.default"        // value of new rows, as PlainText writes it
	MetaReadDefault   = "stoa.read_default"   // value of rows that are older than the column, if it is another one
	MetaAutoIncrement = "stoa.auto_increment" // "true" for the column that makes a non-unique key unique
	MetaImmutable     = "stoa.immutable"      // "true"
	MetaComment       = "stoa.comment"        // format.MetaComment
)

// typeNested is Kudu's DataType NESTED: the type is in the field nested_type, which so far knows only arrays.
const typeNested cfile.Type = 21

// Schema is a SchemaPB: the columns of a table, keys first.
type Schema struct {
	Columns []Column
	NumKeys int           // key columns; they come first
	ByID    map[int32]int // index of the column with an id
}

// Column is a ColumnSchemaPB.
type Column struct {
	ID          int32 // -1: none was stored
	Name        string
	Type        cfile.Type // of the elements, if Array
	Array       bool
	Key         bool
	Nullable    bool
	Encoding    cfile.Encoding
	Compression cfile.Compression
	BlockSize   int32 // bytes; 0 = the server's default

	Precision, Scale, Length int32 // of decimals and varchars

	// Defaults, in stored form: little-endian, or the bytes of a string; nil: none. Rows that were written before the
	// column was added have ReadDefault; without one they are null.
	ReadDefault, WriteDefault []byte

	Comment       string
	Immutable     bool
	AutoIncrement bool
}

// Find is the index of the column with an id; -1 if there is none.
func (s *Schema) Find(id int32) int {
	if i, ok := s.ByID[id]; ok {
		return i
	}
	return -1
}

// NameOf is the name of the column with an id; "" if there is none: rowsets keep the blocks of dropped columns
// until they are compacted.
func (s *Schema) NameOf(id int32) string {
	if i := s.Find(id); i >= 0 {
		return s.Columns[i].Name
	}
	return ""
}

// FindName is the index of the column with a name; -1 if there is none.
func (s *Schema) FindName(name string) int {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// Differs says how o describes another table than s; "" if it describes the same. How values are stored is ignored.
func (s *Schema) Differs(o *Schema) string {
	if len(s.Columns) != len(o.Columns) {
		return fmt.Sprintf("%s, not %d", fault.Count(len(o.Columns), "column"), len(s.Columns))
	}
	for i := range s.Columns {
		a, b := &s.Columns[i], &o.Columns[i]
		same := func(x, y []byte) bool { return (x == nil) == (y == nil) && bytes.Equal(x, y) }
		if a.ID != b.ID || a.Name != b.Name || a.Immutable != b.Immutable || !same(a.ReadDefault, b.ReadDefault) ||
			!same(a.WriteDefault, b.WriteDefault) || !a.sameType(b) {
			return fmt.Sprintf("column %d differs from %s", i, a.Name)
		}
	}
	return ""
}

// Changes are what a later schema of the same table has otherwise, in words: columns are known by their ids.
func (s *Schema) Changes(o *Schema) (out []string) {
	say := func(layout string, args ...any) { out = append(out, fmt.Sprintf(layout, args...)) }
	for i := range s.Columns {
		a := &s.Columns[i]
		k := o.Find(a.ID)
		if k < 0 {
			say("column %s dropped", a.Name)
			continue
		}
		b := &o.Columns[k]
		if a.Name != b.Name {
			say("column %s renamed to %s", a.Name, b.Name)
		}
		if !bytes.Equal(a.WriteDefault, b.WriteDefault) || (a.WriteDefault == nil) != (b.WriteDefault == nil) {
			say("column %s: another default", b.Name)
		}
		if a.Encoding != b.Encoding || a.Compression != b.Compression || a.BlockSize != b.BlockSize {
			say("column %s: stored otherwise", b.Name)
		}
		if a.Comment != b.Comment || a.Immutable != b.Immutable {
			say("column %s: another comment or rule", b.Name)
		}
	}
	for i := range o.Columns {
		if s.Find(o.Columns[i].ID) < 0 {
			say("column %s %s added", o.Columns[i].Name, TypeName(o.Columns[i].Type))
		}
	}
	return out
}

// Conflicts says why o cannot be a schema of the same table at another time; "" if it can. Keys and types of a table
// never change.
func (s *Schema) Conflicts(o *Schema) string {
	if s.NumKeys != o.NumKeys {
		return fmt.Sprintf("%d key columns, not %d", o.NumKeys, s.NumKeys)
	}
	for i := range o.Columns {
		switch k := s.Find(o.Columns[i].ID); {
		case i < s.NumKeys && k != i:
			return fmt.Sprintf("key column %d differs from %s", i, s.Columns[i].Name)
		case k >= 0 && !s.Columns[k].sameType(&o.Columns[i]):
			return fmt.Sprintf("column %d has another type than %s", i, s.Columns[k].Name)
		}
	}
	return ""
}

// sameType reports whether two columns can have the same values.
func (c *Column) sameType(o *Column) bool {
	return c.Type == o.Type && c.Array == o.Array && c.Key == o.Key && c.Nullable == o.Nullable &&
		c.Precision == o.Precision && c.Scale == o.Scale &&
		c.Length == o.Length && c.AutoIncrement == o.AutoIncrement
}

// Unique reports whether the primary key that the user declared is unique. If it is not, Kudu appends an
// auto-incrementing column to it.
func (s *Schema) Unique() bool {
	for i := range s.Columns {
		if s.Columns[i].AutoIncrement {
			return false
		}
	}
	return true
}

// KeyTypes are the types of the key columns, as cfile.DecodeKey takes them.
func (s *Schema) KeyTypes() []cfile.Type {
	types := make([]cfile.Type, s.NumKeys)
	for i := range types {
		types[i] = s.Columns[i].Type
	}
	return types
}

// ParseSchema reads a SchemaPB.
func ParseSchema(c *wire.Cursor) (s Schema) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			off := c.Pos()
			m := r.Message("columns[" + strconv.Itoa(len(s.Columns)) + "]")
			col, problem := parseColumn(m)
			r.Join(m)
			if c.Err() == nil && problem != "" {
				c.Fail(off, c.Pos()-off, "columns["+strconv.Itoa(len(s.Columns))+"]", "%s", problem)
			}
			s.Columns = append(s.Columns, col)
		default:
			r.Unknown()
		}
	}
	s.Index()
	return s
}

// Index sets NumKeys and ByID from Columns.
func (s *Schema) Index() {
	s.NumKeys, s.ByID = 0, make(map[int32]int, len(s.Columns))
	for i := range s.Columns {
		if s.NumKeys == i && s.Columns[i].Key {
			s.NumKeys++
		}
		if id := s.Columns[i].ID; id >= 0 {
			if _, ok := s.ByID[id]; !ok {
				s.ByID[id] = i
			}
		}
	}
}

// parseColumn reads a ColumnSchemaPB. problem is what is wrong with it, if anything.
func parseColumn(c *wire.Cursor) (col Column, problem string) {
	c.Spend(512) // as a column of a table, and a field of its schema
	col.ID = -1
	hasName, hasType := false, false
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			id := r.Uint32("id")
			if id > math.MaxInt32 {
				problem = "the id is too large"
			} else {
				col.ID = int32(id)
			}
		case 2:
			col.Name, hasName = r.String("name"), true
		case 3:
			col.Type, hasType = cfile.Type(r.Enum("type", typeWord)), true
		case 4:
			col.Key = r.Bool("is_key")
		case 5:
			col.Nullable = r.Bool("is_nullable")
		case 6:
			col.ReadDefault = Present(r.Bytes("read_default_value"))
		case 7:
			col.WriteDefault = Present(r.Bytes("write_default_value"))
		case 8:
			col.Encoding = cfile.Encoding(r.Enum("encoding", encodingWord))
		case 9:
			col.Compression = cfile.Compression(r.Enum("compression", compressionWord))
		case 10:
			col.BlockSize = r.Int32("cfile_block_size")
		case 11:
			m := r.Message("type_attributes")
			col.typeAttributes(m)
			r.Join(m)
		case 12:
			col.Comment = r.String("comment")
		case 13:
			col.Immutable = r.Bool("immutable")
		case 14:
			col.AutoIncrement = r.Bool("is_auto_incrementing")
		case 15:
			m := r.Message("nested_type")
			col.nestedType(m)
			r.Join(m)
		default:
			r.Unknown()
		}
	}
	switch {
	case problem != "" || c.Err() != nil:
	case !hasName:
		problem = "a column without a name"
	case !hasType:
		problem = "a column without a type"
	default:
		problem = col.Check()
	}
	return col, problem
}

func typeWord(v int32) string        { return TypeName(cfile.Type(v)) }
func encodingWord(v int32) string    { return cfile.Encoding(v).String() }
func compressionWord(v int32) string { return cfile.Compression(v).String() }

// typeAttributes reads a ColumnTypeAttributesPB.
func (c *Column) typeAttributes(m *wire.Cursor) {
	for r := pb.NewReader(m); r.Next(); {
		switch r.Field() {
		case 1:
			c.Precision = r.Int32("precision")
		case 2:
			c.Scale = r.Int32("scale")
		case 3:
			c.Length = r.Int32("length")
		default:
			r.Unknown()
		}
	}
}

// nestedType reads a NestedDataTypePB: the type of an array's elements.
func (c *Column) nestedType(m *wire.Cursor) {
	for r := pb.NewReader(m); r.Next(); {
		if r.Field() != 1 {
			r.Unknown()
			continue
		}
		c.Array = true
		e := r.Message("array")
		for r := pb.NewReader(e); r.Next(); {
			if r.Field() == 1 {
				c.Type = cfile.Type(r.Enum("type", typeWord))
			} else {
				r.Unknown()
			}
		}
		r.Join(e)
	}
}

// Present is b, or an empty slice if that is nil: an empty value is there, unlike nil.
func Present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// TypeName is Kudu's name of a type, also of those that no CFile has.
func TypeName(t cfile.Type) string {
	switch t {
	case 18:
		return "is_deleted"
	case typeNested:
		return "nested"
	case cfile.Decimal32, cfile.Decimal64, cfile.Decimal128:
		return "decimal"
	}
	return t.String()
}

// Check says what is wrong with the column's type attributes and defaults; "" if nothing is.
func (c *Column) Check() string {
	if d := decimalDigits(c.Type); d > 0 &&
		(c.Precision < 1 || c.Precision > d || c.Scale < 0 || c.Scale > c.Precision) {
		return fmt.Sprintf("column %q: a %s of precision %d and scale %d", c.Name, c.Type, c.Precision, c.Scale)
	}
	for _, d := range [][]byte{c.ReadDefault, c.WriteDefault} {
		if n := StoredWidth(c.Type); !c.Array && d != nil && n > 0 && len(d) != n {
			return fmt.Sprintf("column %q: a default of %d bytes for a %s", c.Name, len(d), c.Type)
		}
	}
	return ""
}

// decimalDigits is the maximum precision of a decimal type; 0 for other types.
func decimalDigits(t cfile.Type) int32 {
	switch t {
	case cfile.Decimal32:
		return 9
	case cfile.Decimal64:
		return 18
	case cfile.Decimal128:
		return 38
	}
	return 0
}

// StoredWidth is the size of a value in stored form, as defaults, row operations and deltas have it, in bytes; 0 if it
// varies.
func StoredWidth(t cfile.Type) int {
	if t == cfile.Bool {
		return 1
	}
	return t.Width()
}

// TypeText is the column's type as Kudu's tools write it: "int32", "decimal(9, 2)", "varchar(30)".
func (c *Column) TypeText() string {
	s := TypeName(c.Type)
	switch {
	case decimalDigits(c.Type) > 0:
		s = fmt.Sprintf("decimal(%d, %d)", c.Precision, c.Scale)
	case c.Type == cfile.Varchar:
		s = fmt.Sprintf("varchar(%d)", c.Length)
	}
	if c.Array {
		s += " 1d-array"
	}
	return s
}

// arrowType is the Arrow type of the column, the same as that of a CFile with its values.
func (c *Column) arrowType() (arrow.DataType, error) {
	var t arrow.DataType
	switch c.Type {
	case cfile.Uint8:
		t = arrow.PrimitiveTypes.Uint8
	case cfile.Int8:
		t = arrow.PrimitiveTypes.Int8
	case cfile.Uint16:
		t = arrow.PrimitiveTypes.Uint16
	case cfile.Int16:
		t = arrow.PrimitiveTypes.Int16
	case cfile.Uint32:
		t = arrow.PrimitiveTypes.Uint32
	case cfile.Int32:
		t = arrow.PrimitiveTypes.Int32
	case cfile.Uint64:
		t = arrow.PrimitiveTypes.Uint64
	case cfile.Int64:
		t = arrow.PrimitiveTypes.Int64
	case cfile.String, cfile.Varchar:
		t = arrow.BinaryTypes.String
	case cfile.Binary:
		t = arrow.BinaryTypes.Binary
	case cfile.Bool:
		t = arrow.FixedWidthTypes.Boolean
	case cfile.Float:
		t = arrow.PrimitiveTypes.Float32
	case cfile.Double:
		t = arrow.PrimitiveTypes.Float64
	case cfile.UnixtimeMicros:
		t = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case cfile.Date:
		t = arrow.FixedWidthTypes.Date32
	case cfile.Int128:
		t = &arrow.Decimal128Type{Precision: 38}
	case cfile.Decimal32, cfile.Decimal64, cfile.Decimal128:
		t = &arrow.Decimal128Type{Precision: c.Precision, Scale: c.Scale}
	default:
		return nil, fault.Unsupportedf(fault.Span{}, "", "column %q has type %s", c.Name, TypeName(c.Type))
	}
	if c.Array {
		t = arrow.ListOf(t)
	}
	return t, nil
}

// Field is the column as an Arrow field. What Arrow cannot express is in its metadata.
func (c *Column) Field() (arrow.Field, error) {
	t, err := c.arrowType()
	if err != nil {
		return arrow.Field{}, err
	}
	keys, vals := []string{cfile.MetaType}, []string{c.Type.String()}
	add := func(k, v string) { keys, vals = append(keys, k), append(vals, v) }
	add(cfile.MetaEncoding, c.Encoding.String())
	add(cfile.MetaCompression, c.Compression.String())
	if c.ID >= 0 {
		add(MetaColumnID, strconv.Itoa(int(c.ID)))
	}
	if c.BlockSize > 0 {
		add(cfile.MetaBlockSize, strconv.Itoa(int(c.BlockSize)))
	}
	if c.Type == cfile.Varchar && c.Length > 0 {
		add(cfile.MetaLength, strconv.Itoa(int(c.Length)))
	}
	if c.WriteDefault != nil {
		add(MetaDefault, c.PlainText(c.WriteDefault))
	}
	if c.ReadDefault != nil && (c.WriteDefault == nil || string(c.ReadDefault) != string(c.WriteDefault)) {
		add(MetaReadDefault, c.PlainText(c.ReadDefault))
	}
	if c.AutoIncrement {
		add(MetaAutoIncrement, "true")
	}
	if c.Immutable {
		add(MetaImmutable, "true")
	}
	if c.Comment != "" {
		add(MetaComment, c.Comment)
	}
	return arrow.Field{Name: c.Name, Type: t, Nullable: c.Nullable, Metadata: arrow.NewMetadata(keys, vals)}, nil
}

// Arrow is the table's Arrow schema. Key columns have their position in the key as metadata.
func (s *Schema) Arrow() (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(s.Columns))
	for i := range s.Columns {
		f, err := s.Columns[i].Field()
		if err != nil {
			return nil, err
		}
		if i < s.NumKeys {
			f.Metadata = arrow.NewMetadata(append(f.Metadata.Keys(), MetaKey),
				append(f.Metadata.Values(), strconv.Itoa(i+1)))
		}
		fields[i] = f
	}
	return arrow.NewSchema(fields, nil), nil
}
