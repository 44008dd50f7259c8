package carbon

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// Names of field metadata, for what Arrow has no word for.
const (
	MetaType     = "stoa.type"     // Carbon's name of the type
	MetaEncoding = "stoa.encoding" // encoders of the schema, with commas
	MetaColumnID = "stoa.carbon.column_id"
	MetaSort     = "stoa.sort" // place among the sort columns, from 0
)

// timestamps are instants: milliseconds since 1970 UTC, whatever the zone of who wrote them.
var timestampType = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}

// arrow is the type of a column's values.
func (c *column) arrow() (arrow.DataType, error) {
	switch c.typ {
	case typeString, typeVarchar:
		return arrow.BinaryTypes.String, nil
	case typeBinary:
		return arrow.BinaryTypes.Binary, nil
	case typeBoolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case typeByte:
		return arrow.PrimitiveTypes.Int8, nil
	case typeShort:
		return arrow.PrimitiveTypes.Int16, nil
	case typeInt:
		return arrow.PrimitiveTypes.Int32, nil
	case typeLong:
		return arrow.PrimitiveTypes.Int64, nil
	case typeFloat:
		return arrow.PrimitiveTypes.Float32, nil
	case typeDouble:
		return arrow.PrimitiveTypes.Float64, nil
	case typeDate:
		return arrow.FixedWidthTypes.Date32, nil
	case typeTimestamp:
		return timestampType, nil
	case typeDecimal:
		p, s := c.precision, c.scale
		if p <= 0 {
			p = 38 // files of formats 1 and 2 need not say it
		}
		if p > 38 || s < 0 || s > p {
			return nil, fault.Unsupportedf(fault.Span{}, "", "column %s: a decimal of %d digits, %d of them behind the point", c.name, p, s)
		}
		return &arrow.Decimal128Type{Precision: p, Scale: s}, nil
	}
	return c.nested()
}

func (c *column) nested() (arrow.DataType, error) {
	fields := make([]arrow.Field, len(c.kids))
	for i, k := range c.kids {
		f, err := k.field()
		if err != nil {
			return nil, err
		}
		fields[i] = f
	}
	switch c.typ {
	case typeArray:
		return arrow.ListOfField(arrow.Field{Name: "item", Type: fields[0].Type, Nullable: true, Metadata: fields[0].Metadata}), nil
	case typeStruct:
		return arrow.StructOf(fields...), nil
	case typeMap:
		kv := fields[0].Type.(*arrow.StructType)
		m := arrow.MapOf(kv.Field(0).Type, kv.Field(1).Type)
		m.SetItemNullable(true)
		return m, nil
	}
	return nil, fault.Unsupportedf(fault.Span{}, "", "column %s: %s", c.name, c.typ)
}

// field is the Arrow field of a column. Carbon keeps no promise that a column is never null, so all are nullable.
func (c *column) field() (arrow.Field, error) {
	t, err := c.arrow()
	if err != nil {
		return arrow.Field{}, err
	}
	keys, vals := []string{MetaType, MetaColumnID}, []string{c.typ.String(), c.id}
	if len(c.encoders) > 0 {
		keys, vals = append(keys, MetaEncoding), append(vals, c.encoders.String())
	}
	return arrow.Field{Name: c.leafName(), Type: t, Nullable: true, Metadata: arrow.NewMetadata(keys, vals)}, nil
}

// visible are the columns that a reader sees, in the order in which the user gave them.
func visible(roots []*column) []*column {
	var out []*column
	for _, c := range roots {
		if !c.invisible && !strings.HasPrefix(c.name, "default_dummy_measure") {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *column) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return out
}

// physical is a column of the table that has bytes.
type physical struct {
	format.Column
	root *column // the table's top-level column
	col  *column // nil: the value of a partition, out of the path
}

// physicalColumns lists what stands below each top-level column: arrays, maps and structs have lengths (a struct 0 or 1), the
// others values. A map's entries are a struct that is never null and has no column of its own.
func physicalColumns(roots []*column) (out []physical, err error) {
	var walk func(root, c *column, path []int, parent int) error
	add := func(root, c *column, path []int, parent int, has format.Has, t arrow.DataType) int {
		out = append(out, physical{root: root, col: c, Column: format.Column{Name: c.name, Path: slices.Clone(path), Parent: parent, Has: has, Type: t,
			Facts: format.ColumnFacts{Encoding: c.encoders.String()}}})
		return len(out) - 1
	}
	walk = func(root, c *column, path []int, parent int) error {
		if !c.typ.complex() {
			t, err := c.arrow()
			if err == nil {
				add(root, c, path, parent, format.Values, t)
			}
			return err
		}
		parent = add(root, c, path, parent, format.Lengths, arrow.PrimitiveTypes.Int32)
		kids, below := c.kids, path
		if c.typ == typeMap { // the entries, then key and value
			kids, below = c.kids[0].kids, append(slices.Clone(path), 0)
		}
		for i, k := range kids {
			if err := walk(root, k, append(slices.Clone(below), i), parent); err != nil {
				return err
			}
		}
		return nil
	}
	for i, r := range roots {
		if err := walk(r, r, []int{i}, -1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// arrowSchema is the schema of top-level columns.
func arrowSchema(roots []*column, meta map[string]string) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(roots))
	order := sortColumns(roots)
	for i, c := range roots {
		f, err := c.field()
		if err != nil {
			return nil, err
		}
		if k := slices.Index(order, c); k >= 0 {
			f.Metadata = arrow.NewMetadata(append(f.Metadata.Keys(), MetaSort), append(f.Metadata.Values(), strconv.Itoa(k)))
		}
		fields[i] = f
	}
	if len(meta) == 0 {
		return arrow.NewSchema(fields, nil), nil
	}
	m := arrow.MetadataFrom(meta)
	return arrow.NewSchema(fields, &m), nil
}

// sortColumns are the columns by which rows are sorted, the first one first: they stand so in the schema, before the others,
// whatever order the user gave the columns.
func sortColumns(roots []*column) (out []*column) {
	for _, c := range roots {
		if c.sortColumn() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *column) int { return cmp.Compare(a.chunk, b.chunk) })
	return out
}

// sortColumn reports whether the table is sorted by the column.
func (c *column) sortColumn() bool { return c.props["sort_columns"] == "true" }
