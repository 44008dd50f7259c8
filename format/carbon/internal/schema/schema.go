package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
)

// Keys of field metadata, for attributes that Arrow does not have.
const (
	MetaType     = format.MetaType // CarbonData's name of the type
	MetaEncoding = "stoa.encoding" // encoders of the schema, separated by commas
	MetaColumnID = "stoa.carbon.column_id"
	MetaSort     = "stoa.sort" // position among the sort columns, from 0
)

// timestampType is an instant in milliseconds since 1970 UTC, independent of the writer's time zone.
var timestampType = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}

// Arrow returns the Arrow type of a column. Errors are Unsupported, without a place.
func (c *Column) Arrow() (arrow.DataType, error) {
	switch c.Type {
	case layout.TypeString, layout.TypeVarchar:
		return arrow.BinaryTypes.String, nil
	case layout.TypeBinary:
		return arrow.BinaryTypes.Binary, nil
	case layout.TypeBoolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case layout.TypeByte:
		return arrow.PrimitiveTypes.Int8, nil
	case layout.TypeShort:
		return arrow.PrimitiveTypes.Int16, nil
	case layout.TypeInt:
		return arrow.PrimitiveTypes.Int32, nil
	case layout.TypeLong:
		return arrow.PrimitiveTypes.Int64, nil
	case layout.TypeFloat:
		return arrow.PrimitiveTypes.Float32, nil
	case layout.TypeDouble:
		return arrow.PrimitiveTypes.Float64, nil
	case layout.TypeDate:
		return arrow.FixedWidthTypes.Date32, nil
	case layout.TypeTimestamp:
		return timestampType, nil
	case layout.TypeDecimal:
		p, s := c.Precision, c.Scale
		if p <= 0 {
			p = 38 // files of formats 1 and 2 may lack the precision
		}
		if p > 38 || s < 0 || s > p {
			return nil, fault.Unsupportedf(fault.Span{}, "",
				"column %s: a decimal of %d digits, %d of them after the decimal point", c.Name, p, s)
		}
		return &arrow.Decimal128Type{Precision: p, Scale: s}, nil
	}
	return c.nested()
}

func (c *Column) nested() (arrow.DataType, error) {
	fields := make([]arrow.Field, len(c.Children))
	for i, k := range c.Children {
		f, err := k.field()
		if err != nil {
			return nil, err
		}
		fields[i] = f
	}
	switch c.Type {
	case layout.TypeArray:
		return arrow.ListOfField(arrow.Field{Name: "item", Type: fields[0].Type, Nullable: true,
			Metadata: fields[0].Metadata}), nil
	case layout.TypeStruct:
		return arrow.StructOf(fields...), nil
	case layout.TypeMap:
		kv := fields[0].Type.(*arrow.StructType)
		m := arrow.MapOf(kv.Field(0).Type, kv.Field(1).Type)
		m.SetItemNullable(true)
		return m, nil
	}
	return nil, fault.Unsupportedf(fault.Span{}, "", "column %s: %s", c.Name, c.Type)
}

// field is the Arrow field of a column. CarbonData has no columns that are never null, so all are nullable.
func (c *Column) field() (arrow.Field, error) {
	t, err := c.Arrow()
	if err != nil {
		return arrow.Field{}, err
	}
	keys, vals := []string{MetaType, MetaColumnID}, []string{c.Type.String(), c.ID}
	if len(c.Encoders) > 0 {
		keys, vals = append(keys, MetaEncoding), append(vals, c.Encoders.String())
	}
	if s := c.Props[layout.PropComment]; s != "" {
		keys, vals = append(keys, format.MetaComment), append(vals, s)
	}
	return arrow.Field{Name: c.LeafName(), Type: t, Nullable: true, Metadata: arrow.NewMetadata(keys, vals)}, nil
}

// Visible returns the columns that readers see, in the user's order: without dropped columns, and without the measure
// that CarbonData adds to a table that has none.
func Visible(roots []*Column) []*Column {
	var out []*Column
	for _, c := range roots {
		if !c.Invisible && !strings.HasPrefix(c.Name, "default_dummy_measure") {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *Column) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return out
}

// Physical is a column that is stored.
type Physical struct {
	format.Column
	Root *Column // the table's top-level column
	Col  *Column // the stored column: Root, or below it
}

// PhysicalColumns lists the stored columns of each top-level column, depth first: arrays, maps and structs store
// lengths (a struct 0 or 1), the others store values. The entries of a map are a struct that is never null and is not a
// stored column itself. Errors are those of Arrow.
func PhysicalColumns(roots []*Column) (out []Physical, err error) {
	var walk func(root, c *Column, path []int, parent int) error
	add := func(root, c *Column, path []int, parent int, has format.Has, t arrow.DataType) int {
		out = append(out, Physical{Root: root, Col: c,
			Column: format.Column{Name: c.Name, Path: slices.Clone(path), Parent: parent, Has: has, Type: t,
				Coded: true,
				Facts: format.ColumnFacts{Encoding: c.Encoders.String()}}})
		return len(out) - 1
	}
	walk = func(root, c *Column, path []int, parent int) error {
		if !c.Type.Complex() {
			t, err := c.Arrow()
			if err == nil {
				add(root, c, path, parent, format.Values, t)
			}
			return err
		}
		parent = add(root, c, path, parent, format.Lengths, arrow.PrimitiveTypes.Int32)
		children, below := c.Children, path
		if c.Type == layout.TypeMap { // the entries, then key and value
			children, below = c.Children[0].Children, append(slices.Clone(path), 0)
		}
		for i, k := range children {
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

// ArrowSchema is the schema of top-level columns, with the metadata meta. Errors are those of Arrow.
func ArrowSchema(roots []*Column, meta map[string]string) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(roots))
	order := SortColumns(roots)
	for i, c := range roots {
		f, err := c.field()
		if err != nil {
			return nil, err
		}
		if k := slices.Index(order, c); k >= 0 {
			f.Metadata = arrow.NewMetadata(append(f.Metadata.Keys(), MetaSort),
				append(f.Metadata.Values(), strconv.Itoa(k)))
		}
		fields[i] = f
	}
	if len(meta) == 0 {
		return arrow.NewSchema(fields, nil), nil
	}
	m := arrow.MetadataFrom(meta)
	return arrow.NewSchema(fields, &m), nil
}

// SortColumns returns the columns by which rows are sorted, the most significant first. Their chunks have that order,
// independent of the user's column order.
func SortColumns(roots []*Column) (out []*Column) {
	for _, c := range roots {
		if c.SortColumn() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Column) int { return cmp.Compare(a.Chunk, b.Chunk) })
	return out
}
