package schema

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/internal/nest"
)

// Plan maps a file's columns to an Arrow schema.
type Plan struct {
	h        *layout.Header
	Fields   []arrow.Field
	Phys     []*page.Physical
	How      string // text for users
	Mismatch string // why a schema in the metadata is not used

	NotShown bool // Mismatch: the schema may be intact, but stoa does not use it

	// If the schema was inferred from names and levels: for each field, the columns whose levels would also fit other
	// kinds of steps.
	Open [][]int
}

// Metadata keys of fields for properties that Arrow types cannot express, so that a conversion preserves them.
const (
	MetaType    = "stoa.type"         // the stored type, if the Arrow type does not imply it
	MetaValues  = "stoa.first_values" // "true": descriptors hold the first value of a block
	MetaLogical = "stoa.avro_logical" // an Avro logical type without an Arrow type
)

// add adds a physical column of stored column i.
func (p *Plan) add(i int, s page.Shape, has format.Has, parent int, path []int, t arrow.DataType) *page.Physical {
	c := &p.h.Columns[i]
	ph := &page.Physical{Stored: i, StoredType: c.Type, Shape: s}
	ph.Column = format.Column{Name: c.Name, Path: append([]int(nil), path...), Parent: parent, Has: has, Type: t,
		Facts: format.ColumnFacts{Encoding: c.Type.String(), Codec: c.Codec}}
	if ph.Facts.Codec == "" {
		ph.Facts.Codec = "null"
	}
	p.Phys = append(p.Phys, ph)
	return ph
}

// flat adds a column of values. Nulls in nested types need no column.
func (p *Plan) flat(i, parent int, path []int, t arrow.DataType) *page.Physical {
	if t.ID() == arrow.NULL && len(path) > 1 {
		return &page.Physical{}
	}
	return p.add(i, page.ShapeFlat, format.Values, parent, path, t)
}

// lengths adds a column of lengths and returns its index.
func (p *Plan) lengths(i int, s page.Shape, parent int, path []int) int {
	p.add(i, s, format.Lengths, parent, path, arrow.PrimitiveTypes.Int32)
	return len(p.Phys) - 1
}

// PlanOf chooses the schema of a file. seen holds the known facts about the entries of its columns, nil if there are
// none. It returns nil if the columns are nested too deeply.
func PlanOf(h *layout.Header, seen []*nest.Seen) *Plan {
	if h.Dialect != layout.Avro {
		return planLevels(h, seen) // nil if no plan is possible
	}
	text, ok := layout.Get(h.Meta, "avro.schema")
	if !ok {
		return planColumns(h, "")
	}
	p, err := PlanAvro(h, text)
	if err != nil {
		p := planColumns(h, err.Error())
		p.NotShown = errors.As(err, new(notShown))
		return p
	}
	if !utf8.Valid(text) { // JSON is UTF-8: a symbol of an enum, which is a value, may be damaged
		p.Mismatch = "avro.schema is not UTF-8"
	}
	if _, kept := layout.Get(h.Meta, layout.SchemaKey); kept && !p.refine(storedSchema(h)) {
		p.Mismatch = layout.SchemaKey + ", the stored Arrow schema, is not that of the columns, or cannot be parsed"
	}
	return p
}

// planColumns plans without a schema: top-level columns are fields; an array is a list; an array with children is a
// list of structs, whose first field "$" has the array's own values, if any.
func planColumns(h *layout.Header, odd string) *Plan {
	p := &Plan{h: h, How: "columns", Mismatch: odd}
	children := make([][]int, len(h.Columns))
	for i := range h.Columns {
		if up := h.Columns[i].Parent; up >= 0 {
			children[up] = append(children[up], i)
		}
	}
	for i := range h.Columns {
		if h.Columns[i].Parent < 0 {
			t := p.tree(i, children, -1, []int{len(p.Fields)})
			p.Fields = append(p.Fields, arrow.Field{Name: h.Columns[i].Name, Type: t,
				Nullable: h.Columns[i].Type == layout.Null && !h.Columns[i].Array, Metadata: metadataOf(&h.Columns[i])})
		}
	}
	return p
}

// notShown is the reason why a schema that may be intact is not used.
type notShown string

func (n notShown) Error() string { return string(n) }

// ownName is the name of the field with an array's own values, if the array has children.
const ownName = "$"

func (p *Plan) tree(i int, children [][]int, parent int, path []int) arrow.DataType {
	c := &p.h.Columns[i]
	t := layout.Types[c.Type].Arrow
	switch {
	case !c.Array:
		p.flat(i, parent, path, t)
		return t
	case len(children[i]) == 0 && c.Type == layout.Null:
		p.lengths(i, page.ShapeLengths, parent, path)
		return arrow.ListOf(arrow.Null)
	case len(children[i]) == 0:
		l := arrow.ListOfNonNullable(t)
		p.add(i, page.ShapeList, format.Values|format.Lengths, parent, path, l)
		return l
	}
	up := p.lengths(i, page.ShapeLengths, parent, path)
	item := append(path[:len(path):len(path)], 0)
	var fields []arrow.Field
	if c.Type != layout.Null {
		p.add(i, page.ShapeItems, format.Values, up, append(item[:len(item):len(item)], 0), t)
		fields = append(fields, arrow.Field{Name: ownName, Type: t})
	}
	for _, k := range children[i] {
		ct := p.tree(k, children, up, append(item[:len(item):len(item)], len(fields)))
		fields = append(fields, arrow.Field{Name: p.h.Columns[k].Name, Type: ct, Nullable: ct == arrow.Null})
	}
	return arrow.ListOfNonNullable(arrow.StructOf(fields...))
}

// metadataOf returns field metadata for properties that the Arrow type does not express.
func metadataOf(c *layout.Column) arrow.Metadata {
	var keys, values []string
	switch c.Type {
	case layout.Fixed32, layout.Fixed64, layout.Timestamp:
		keys, values = append(keys, MetaType), append(values, c.Type.String())
	}
	if c.FirstValues {
		keys, values = append(keys, MetaValues), append(values, "true")
	}
	return arrow.NewMetadata(keys, values)
}

// PlanAvro plans by an Avro schema. It returns an error unless the columns are exactly those that Avro's shredder makes
// of the schema.
func PlanAvro(h *layout.Header, text []byte) (*Plan, error) {
	t, err := parseAvroSchema(text)
	if err != nil {
		return nil, fmt.Errorf("avro.schema: %w", err)
	}
	s := shredder{Plan: &Plan{h: h, How: "avro.schema"}, byName: map[string]int{}}
	for i := range h.Columns {
		s.byName[h.Columns[i].Name] = i
	}
	p := s.Plan
	if t.Kind == "record" {
		s.within = map[*AvroType]bool{t: true}
		for i, f := range t.Fields {
			field, err := s.field(f.Name, f.Name, f.Type, -1, []int{i})
			if err != nil {
				return nil, err
			}
			p.Fields = append(p.Fields, field)
		}
	} else {
		s.within = map[*AvroType]bool{}
		field, err := s.field("value", "", t, -1, []int{0})
		if err != nil {
			return nil, err
		}
		p.Fields = append(p.Fields, field)
	}
	if s.used != len(h.Columns) {
		return nil, fmt.Errorf("expected %d columns by avro.schema, found %d", s.used, len(h.Columns))
	}
	return p, nil
}

// shredder derives the columns of a schema by Avro's rules:
//
//	record   path#field
//	array    path[]             of simple items: one array column;
//	                            else an array column of nulls, and the items' columns childPath
//	map      path>              an array column of nulls; path>key, path>value childPath
//	union    path/branch        one array column a branch that is not null, as for arrays; lengths are 0 or 1
//
// A column without a path has the name of its type.
type shredder struct {
	*Plan
	byName map[string]int
	within map[*AvroType]bool // types that are being shredded
	used   int
	steps  int
}

// maxSteps is the maximum number of types in a schema with its named types spelled out.
const maxSteps = 1 << 16

// take returns the column of that name, which must have the type, parent and array flag that the schema requires.
func (s *shredder) take(name string, t *AvroType, array bool, parent int) (int, error) {
	want := layout.Null
	if t != nil {
		want = t.Stored()
	}
	i, ok := s.byName[name]
	if !ok {
		return 0, fmt.Errorf("avro.schema makes a column %q, the file has none", name)
	}
	c := &s.h.Columns[i]
	up := -1
	if parent >= 0 {
		up = s.Phys[parent].Stored
	}
	if c.Type != want || c.Array != array || c.Parent != up {
		return 0, fmt.Errorf("column %q is not as avro.schema makes it", name)
	}
	s.used++
	return i, nil
}

// Stored returns the stored type of a simple type's values.
func (t *AvroType) Stored() layout.Type {
	switch t.Kind {
	case "enum":
		return layout.Int
	case "fixed":
		return layout.Bytes
	}
	typ, _ := layout.TypeByName(t.Kind)
	return typ
}

// arrow returns the Arrow type of a simple type's values.
func (t *AvroType) arrow() arrow.DataType {
	switch t.Kind {
	case "enum":
		return arrow.BinaryTypes.String
	case "fixed":
		if t.Logical == "decimal" && t.Size <= 16 {
			return t.decimal(&arrow.FixedSizeBinaryType{ByteWidth: t.Size})
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Size}
	case "bytes":
		if t.Logical == "decimal" {
			return t.decimal(arrow.BinaryTypes.Binary)
		}
	case "int", "long":
		if l, ok := logicals[t.Kind+" "+t.Logical]; ok {
			return l
		}
	}
	return layout.Types[t.Stored()].Arrow
}

// decimal returns the Arrow type of a decimal, or plain if Arrow has none.
func (t *AvroType) decimal(plain arrow.DataType) arrow.DataType {
	if t.Precision < 1 || t.Precision > 38 || t.Scale > t.Precision {
		return plain
	}
	return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
}

// logicals maps the logical types to Arrow types with the same bits.
var logicals = map[string]arrow.DataType{
	"int date":                    arrow.FixedWidthTypes.Date32,
	"int time-millis":             arrow.FixedWidthTypes.Time32ms,
	"long time-micros":            arrow.FixedWidthTypes.Time64us,
	"long timestamp-millis":       &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
	"long timestamp-micros":       &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"long timestamp-nanos":        &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"},
	"long local-timestamp-millis": &arrow.TimestampType{Unit: arrow.Millisecond},
	"long local-timestamp-micros": &arrow.TimestampType{Unit: arrow.Microsecond},
	"long local-timestamp-nanos":  &arrow.TimestampType{Unit: arrow.Nanosecond},
}

// Join appends a step to a path; to an empty path without the separator.
func Join(path, sep, step string) string {
	if path == "" {
		return step
	}
	return path + sep + step
}

// field makes the Arrow field name of type t; path is the name of its columns so far.
func (s *shredder) field(name, path string, t *AvroType, parent int, at []int) (arrow.Field, error) {
	dt, nullable, err := s.build(path, t, parent, at)
	return arrow.Field{Name: name, Type: dt, Nullable: nullable}, err
}

// build adds the columns of t, whose entries parent counts, and returns its Arrow type.
func (s *shredder) build(path string, t *AvroType, parent int, at []int) (dt arrow.DataType, nullable bool, err error) {
	if s.steps++; s.steps > maxSteps || len(at) > maxSchema {
		return nil, false, notShown(fmt.Sprintf("avro.schema has more than %d types", maxSteps))
	}
	if t.Simple() {
		if path == "" {
			path = t.FullName()
		}
		i, err := s.take(path, t, false, parent)
		if err != nil {
			return nil, false, err
		}
		dt = t.arrow()
		ph := s.flat(i, parent, at, dt)
		return dt, t.Kind == "null", s.convert(ph, t, dt)
	}
	if s.within[t] {
		return nil, false, notShown(fmt.Sprintf("avro.schema contains %s within itself", t.FullName()))
	}
	s.within[t] = true
	defer delete(s.within, t)
	switch t.Kind {
	case "record":
		dt, err = s.record(path, t, parent, at)
	case "map":
		dt, err = s.mapType(path+">", t, parent, at)
	case "array":
		dt, err = s.array(path+"[]", t.Items, parent, at)
	default:
		return s.union(path, t, parent, at)
	}
	return dt, false, err
}

// convert sets the conversion from values of t to the Arrow type dt.
func (s *shredder) convert(ph *page.Physical, t *AvroType, dt arrow.DataType) error {
	if t.Kind == "null" {
		return nil
	}
	if t.Kind == "enum" {
		ph.Conv, ph.Enum = page.Enums, t.symbols
		return nil
	}
	var ok bool
	if ph.Conv, ph.Size, ok = page.ConvertTo(ph.StoredType, dt); !ok {
		return fmt.Errorf("%s is not shown as %s", ph.StoredType, dt)
	}
	return nil
}

// childPath appends children to a copy of a path.
func childPath(at []int, child ...int) []int { return append(at[:len(at):len(at)], child...) }

func (s *shredder) record(path string, t *AvroType, parent int, at []int) (arrow.DataType, error) {
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		var err error
		if fields[i], err = s.field(f.Name, Join(path, "#", f.Name), f.Type, parent, childPath(at, i)); err != nil {
			return nil, err
		}
	}
	return arrow.StructOf(fields...), nil
}

func (s *shredder) mapType(path string, t *AvroType, parent int, at []int) (arrow.DataType, error) {
	i, err := s.take(path, nil, true, parent)
	if err != nil {
		return nil, err
	}
	up := s.lengths(i, page.ShapeLengths, parent, at)
	if i, err = s.take(path+"key", &AvroType{Kind: "string"}, false, up); err != nil {
		return nil, err
	}
	s.add(i, page.ShapeFlat, format.Values, up, childPath(at, 0, 0), arrow.BinaryTypes.String)
	vt, nullable, err := s.build(path+"value", t.Items, up, childPath(at, 0, 1))
	if err != nil {
		return nil, err
	}
	m := arrow.MapOf(arrow.BinaryTypes.String, vt)
	m.SetItemNullable(nullable)
	return m, nil
}

func (s *shredder) array(path string, item *AvroType, parent int, at []int) (arrow.DataType, error) {
	if item.Simple() && item.Kind != "null" {
		i, err := s.take(path, item, true, parent)
		if err != nil {
			return nil, err
		}
		l := arrow.ListOfNonNullable(item.arrow())
		ph := s.add(i, page.ShapeList, format.Values|format.Lengths, parent, at, l)
		return l, s.convert(ph, item, item.arrow())
	}
	i, err := s.take(path, nil, true, parent)
	if err != nil {
		return nil, err
	}
	up := s.lengths(i, page.ShapeLengths, parent, at)
	if item.Kind == "null" {
		return arrow.ListOf(arrow.Null), nil
	}
	it, nullable, err := s.build(path, item, up, childPath(at, 0))
	if err != nil {
		return nil, err
	}
	return arrow.ListOfField(arrow.Field{Name: "item", Type: it, Nullable: nullable}), nil
}

// union returns a nullable type for a union of null and one other type, and a dense union for all other unions.
func (s *shredder) union(path string, t *AvroType, parent int, at []int) (dt arrow.DataType, nullable bool, err error) {
	var values []*AvroType
	for _, b := range t.Branches {
		if b.Kind != "null" {
			values = append(values, b)
		}
	}
	if len(values) == 1 && len(t.Branches) == 2 {
		dt, err := s.branch(path, values[0], parent, at)
		return dt, true, err
	}
	if len(t.Branches) > 127 {
		return nil, false, notShown(fmt.Sprintf("a union of %d branches", len(t.Branches)))
	}
	fields := make([]arrow.Field, len(t.Branches))
	codes := make([]arrow.UnionTypeCode, len(t.Branches))
	for i, b := range t.Branches {
		fields[i] = arrow.Field{Name: b.FullName(), Type: arrow.Null, Nullable: true}
		codes[i] = arrow.UnionTypeCode(i)
		if b.Kind != "null" {
			if fields[i].Type, err = s.branch(path, b, parent, childPath(at, i)); err != nil {
				return nil, false, err
			}
		}
	}
	return arrow.DenseUnionOf(fields, codes), false, nil
}

// branch adds the columns of a branch: values that may be missing, or lengths of 0 or 1 and the columns below.
func (s *shredder) branch(path string, b *AvroType, parent int, at []int) (arrow.DataType, error) {
	if b.Kind != "union" {
		path = Join(path, "/", b.FullName())
	}
	if b.Simple() {
		i, err := s.take(path, b, true, parent)
		if err != nil {
			return nil, err
		}
		ph := s.add(i, page.ShapeOptional, format.Values, parent, at, b.arrow())
		return ph.Type, s.convert(ph, b, ph.Type)
	}
	i, err := s.take(path, nil, true, parent)
	if err != nil {
		return nil, err
	}
	up := s.lengths(i, page.ShapePresence, parent, at)
	dt, _, err := s.build(path, b, up, at)
	return dt, err
}
