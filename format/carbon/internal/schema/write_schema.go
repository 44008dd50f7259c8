package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/internal/sorted"
)

// Planner derives CarbonData's columns from Arrow's fields.
type Planner struct {
	sort     []string        // names of the sort columns, most significant first
	inverted map[string]bool // columns with an inverted index
	long     map[string]bool // strings that are varchar
	keyed    map[string]bool // columns with a global dictionary, lower case
	version  int
	items    int // counts the items of lists and maps, which are called val0, val1, …
	lists    [5][]layout.ColumnSchema
}

// Columns are written in this order, each kind in the order of the fields.
const (
	ListSort = iota
	ListDimension
	ListVarchar
	ListComplex
	ListMeasure
)

// PlanColumns returns the columns for sc in the order of a data file of format 3: sort columns, other dimensions, long
// strings, nested columns with their children, measures. A type that CarbonData cannot hold is Unsupported; an option
// that does not fit the schema is Invalid.
func PlanColumns(sc *arrow.Schema, o *WriteOptions) ([]layout.ColumnSchema, error) {
	p := &Planner{sort: o.SortColumns, inverted: map[string]bool{}, long: map[string]bool{},
		keyed: map[string]bool{}, version: o.Version}
	for _, n := range o.GlobalDictionaries {
		p.keyed[strings.ToLower(n)] = true
	}
	if sc.NumFields() == 0 {
		return nil, fault.Unsupportedf(fault.Span{}, "", "CarbonData cannot hold a table without columns")
	}
	names := map[string]bool{}
	for i, f := range sc.Fields() {
		if f.Name == "" || strings.Contains(f.Name, ".") {
			return nil, fault.Unsupportedf(fault.Span{}, f.Name, "column %d is called %q: CarbonData needs a name "+
				"without dots, which separate a struct from its children", i, f.Name)
		}
		low := strings.ToLower(f.Name)
		if names[low] {
			return nil, fault.Unsupportedf(fault.Span{}, f.Name,
				"CarbonData needs names that differ in more than their case: %q", f.Name)
		}
		names[low] = true
		for _, n := range o.LongStrings {
			p.long[n] = true
		}
		for _, n := range o.Inverted {
			p.inverted[n] = true
		}
		if _, err := p.column(f, nil, int32(i)); err != nil {
			return nil, err
		}
	}
	if err := p.checkOptions(sc); err != nil {
		return nil, err
	}
	if err := p.orderSort(); err != nil {
		return nil, err
	}
	list := slices.Concat(p.lists[:]...)
	if o.Version < 3 {
		return list, CheckV12(list, o.Version)
	}
	return list, nil
}

// checkOptions returns Invalid if an option names a column that does not exist.
func (p *Planner) checkOptions(sc *arrow.Schema) error {
	for option, list := range map[string][]string{"sort-columns": p.sort,
		"inverted-index": layout.SortedKeys(p.inverted), "long-strings": layout.SortedKeys(p.long),
		"dictionary_include": layout.SortedKeys(p.keyed)} {
		for _, n := range list {
			if !slices.ContainsFunc(sc.Fields(), func(f arrow.Field) bool {
				return f.Name == n || option == "dictionary_include" && strings.EqualFold(f.Name, n)
			}) {
				return fault.Invalidf("carbon: option %s: there is no column %q", option, n)
			}
		}
	}
	return nil
}

// orderSort sorts the sort columns by their position in the option.
func (p *Planner) orderSort() error {
	place := func(c layout.ColumnSchema) int { return slices.Index(p.sort, c.Name) }
	sorted.StablyBy(p.lists[ListSort], func(a, b layout.ColumnSchema) int { return place(a) - place(b) })
	for i, n := range p.sort {
		if slices.Contains(p.sort[:i], n) {
			return fault.Invalidf("carbon: option sort-columns: %q is named twice", n)
		}
	}
	return nil
}

// column adds a field and its children. parent is nil for a top-level column.
func (p *Planner) column(f arrow.Field, parent *layout.ColumnSchema, ordinal int32) (t layout.DataType, err error) {
	c := layout.ColumnSchema{Name: f.Name, ID: f.Name, Group: -1, Scale: -1, Precision: -1, Ordinal: ordinal}
	if parent != nil {
		c.Name = parent.Name + "." + f.Name
		c.Ordinal = -1
	}
	if err := SetType(&c, f, c.Name); err != nil {
		return 0, err
	}
	if p.version < 3 && c.Type == layout.TypeFloat {
		c.Type = layout.TypeDouble // the only floating-point type of formats 1 and 2 holds all values
	}
	top := parent == nil
	if top && p.long[f.Name] {
		if c.Type != layout.TypeString && c.Type != layout.TypeVarchar {
			return 0, fault.Invalidf("carbon: option long-strings: expected strings, %q is of type %s", f.Name, c.Type)
		}
		c.Type = layout.TypeVarchar
	}
	if !top && c.Type == layout.TypeVarchar {
		c.Type = layout.TypeString // in lists and structs strings have a length of four bytes anyway
	}
	isSort := top && slices.Contains(p.sort, f.Name)
	switch c.Type {
	case layout.TypeFloat, layout.TypeDouble, layout.TypeDecimal, layout.TypeBinary, layout.TypeVarchar,
		layout.TypeArray, layout.TypeStruct, layout.TypeMap:
		if isSort {
			return 0, fault.Invalidf("carbon: %q cannot be a sort column: it is of type %s", f.Name, c.Type)
		}
	}
	switch c.Type {
	case layout.TypeString, layout.TypeVarchar, layout.TypeDate, layout.TypeTimestamp, layout.TypeBinary,
		layout.TypeArray, layout.TypeStruct, layout.TypeMap:
		c.Dimension = true
	}
	c.Dimension = c.Dimension || isSort || !top
	if top && c.Type == layout.TypeDate {
		c.Encoders = layout.Encodings{layout.EncDirectDictionary, layout.EncDictionary}
	}
	if err := p.dictionaries(&c, parent); err != nil {
		return 0, err
	}
	if top && p.inverted[f.Name] {
		if !isSort {
			return 0, fault.Invalidf("carbon: option inverted-index: %q is not a sort column", f.Name)
		}
		c.Encoders = append(c.Encoders, layout.EncInvertedIndex)
	}
	if isSort {
		c.Props = map[string]string{"sort_columns": "true"}
	}
	// REFRESH TABLE fails for comments with quotation marks: CarbonData puts them into a statement as they are.
	if s, _ := f.Metadata.GetValue(format.MetaComment); s != "" && top && !strings.ContainsAny(s, `"\`) {
		if c.Props == nil {
			c.Props = map[string]string{}
		}
		c.Props[layout.PropComment] = s
	}
	return c.Type, p.add(c, f.Type, top)
}

// add appends a column, followed by its children, to the list for its kind.
func (p *Planner) add(c layout.ColumnSchema, t arrow.DataType, top bool) error {
	children, err := p.Children(t)
	if err != nil {
		return fault.Locate(err, fault.Span{}, true, c.Name)
	}
	c.NumChild = int32(len(children))
	kind := ListMeasure
	switch {
	case !top || c.Type.Complex():
		kind = ListComplex
	case c.SortColumn():
		kind = ListSort
	case c.Type == layout.TypeVarchar:
		kind = ListVarchar
	case c.Dimension:
		kind = ListDimension
	}
	p.lists[kind] = append(p.lists[kind], c)
	for _, k := range children {
		if _, err := p.column(k, &c, -1); err != nil {
			return err
		}
	}
	return nil
}

// Children returns the fields of the children of a list, map or struct, under CarbonData's names; nil for other types.
func (p *Planner) Children(t arrow.DataType) ([]arrow.Field, error) {
	item := func(f arrow.Field) []arrow.Field {
		f.Name = fmt.Sprintf("val%d", p.items)
		p.items++
		return []arrow.Field{f}
	}
	switch t := t.(type) {
	case arrow.ExtensionType:
		return p.Children(t.StorageType())
	case *arrow.DictionaryType:
		return p.Children(t.ValueType)
	case *arrow.MapType:
		kv := arrow.StructOf(arrow.Field{Name: "key", Type: t.KeyType()},
			arrow.Field{Name: "value", Type: t.ItemType(), Nullable: true})
		return item(arrow.Field{Type: kv}), nil
	case arrow.ListLikeType:
		return item(t.ElemField()), nil
	case *arrow.StructType:
		if t.NumFields() == 0 {
			return nil, fault.Unsupportedf(fault.Span{}, "", "CarbonData has no struct without children")
		}
		return t.Fields(), nil
	}
	return nil, nil
}

// SetType sets the column's type to the one that holds every value of the field; Unsupported if there is none.
func SetType(c *layout.ColumnSchema, f arrow.Field, name string) error {
	stated, _ := f.Metadata.GetValue(MetaType)
	switch t := f.Type.(type) {
	case arrow.ExtensionType:
		f.Type = t.StorageType()
		return SetType(c, f, name)
	case *arrow.DictionaryType:
		f.Type = t.ValueType
		return SetType(c, f, name)
	case arrow.DecimalType:
		if t.GetPrecision() > 38 || t.GetScale() < 0 || t.GetScale() > t.GetPrecision() {
			return fault.Unsupportedf(fault.Span{}, name, "CarbonData has no type for %s: decimals have at most "+
				"38 digits, and no fewer than are after the decimal point", f.Type)
		}
		c.Type, c.Precision, c.Scale = layout.TypeDecimal, t.GetPrecision(), t.GetScale()
		return nil
	}
	t, ok := WrittenAs[f.Type.ID()]
	if !ok {
		return fault.Unsupportedf(fault.Span{}, name, "CarbonData has no type for %s", f.Type)
	}
	c.Type = t
	switch {
	case t == layout.TypeString && stated == "varchar":
		c.Type = layout.TypeVarchar
	case f.Type.ID() == arrow.UINT64:
		c.Precision, c.Scale = 20, 0
	}
	return nil
}

// WrittenAs maps Arrow types to CarbonData's. Unsigned numbers are written as the next wider type.
var WrittenAs = map[arrow.Type]layout.DataType{
	arrow.BOOL: layout.TypeBoolean, arrow.INT8: layout.TypeByte, arrow.UINT8: layout.TypeShort,
	arrow.INT16: layout.TypeShort, arrow.UINT16: layout.TypeInt,
	arrow.INT32: layout.TypeInt, arrow.UINT32: layout.TypeLong, arrow.INT64: layout.TypeLong,
	arrow.UINT64:  layout.TypeDecimal,
	arrow.FLOAT16: layout.TypeFloat, arrow.FLOAT32: layout.TypeFloat, arrow.FLOAT64: layout.TypeDouble,
	arrow.DATE32: layout.TypeDate, arrow.DATE64: layout.TypeDate, arrow.TIMESTAMP: layout.TypeTimestamp,
	arrow.STRING: layout.TypeString, arrow.LARGE_STRING: layout.TypeString, arrow.STRING_VIEW: layout.TypeString,
	arrow.NULL:   layout.TypeString,
	arrow.BINARY: layout.TypeBinary, arrow.LARGE_BINARY: layout.TypeBinary, arrow.BINARY_VIEW: layout.TypeBinary,
	arrow.FIXED_SIZE_BINARY: layout.TypeBinary,
	arrow.LIST:              layout.TypeArray, arrow.LARGE_LIST: layout.TypeArray,
	arrow.FIXED_SIZE_LIST: layout.TypeArray,
	arrow.MAP:             layout.TypeMap, arrow.STRUCT: layout.TypeStruct,
}
