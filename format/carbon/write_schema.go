package carbon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// planner makes Carbon's columns of Arrow's fields.
type planner struct {
	sort     []string        // names of the sort columns, in their order
	inverted map[string]bool // columns with an inverted index
	long     map[string]bool // strings that are varchar
	keyed    map[string]bool // columns with a global dictionary, lower case
	version  int
	items    int // numbers the items of lists and maps: val0, val1, …
	lists    [5][]columnSchema
}

// Columns are written in this order, each kind in the order of the fields.
const (
	listSort = iota
	listDimension
	listVarchar
	listComplex
	listMeasure
)

// planColumns gives the columns for sc in the order in which format 3 keeps them: sort columns, other dimensions, long strings,
// nested columns with what is in them, measures.
func planColumns(sc *arrow.Schema, o *writeOptions) ([]columnSchema, error) {
	p := &planner{sort: o.sortColumns, inverted: map[string]bool{}, long: map[string]bool{}, keyed: map[string]bool{}, version: o.version}
	for _, n := range o.keyed {
		p.keyed[strings.ToLower(n)] = true
	}
	if sc.NumFields() == 0 {
		return nil, fault.Unsupportedf(fault.Span{}, "", "CarbonData has no tables without columns")
	}
	names := map[string]bool{}
	for i, f := range sc.Fields() {
		if f.Name == "" || strings.Contains(f.Name, ".") {
			return nil, fault.Unsupportedf(fault.Span{}, f.Name, "column %d is called %q: CarbonData wants names, without dots, which stand between a struct and what is in it", i, f.Name)
		}
		low := strings.ToLower(f.Name)
		if f.Name == "" || names[low] {
			return nil, fault.Unsupportedf(fault.Span{}, f.Name, "CarbonData wants names that differ in more than their case: %q", f.Name)
		}
		names[low] = true
		for _, n := range o.longStrings {
			p.long[n] = true
		}
		for _, n := range o.inverted {
			p.inverted[n] = true
		}
		if _, err := p.column(f, nil, int32(i)); err != nil {
			return nil, err
		}
	}
	if err := p.known(sc); err != nil {
		return nil, err
	}
	if err := p.orderSort(); err != nil {
		return nil, err
	}
	list := slices.Concat(p.lists[:]...)
	if o.version < 3 {
		return list, checkOld(list, o.version)
	}
	return list, nil
}

// known refuses options that name columns that are not there.
func (p *planner) known(sc *arrow.Schema) error {
	for option, list := range map[string][]string{"sort-columns": p.sort, "inverted-index": sorted(p.inverted), "long-strings": sorted(p.long), "dictionary_include": sorted(p.keyed)} {
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

// orderSort brings the sort columns into the order that was asked for.
func (p *planner) orderSort() error {
	place := func(c columnSchema) int { return slices.Index(p.sort, c.name) }
	slices.SortStableFunc(p.lists[listSort], func(a, b columnSchema) int { return place(a) - place(b) })
	for i, n := range p.sort {
		if slices.Contains(p.sort[:i], n) {
			return fault.Invalidf("carbon: %q is a sort column twice", n)
		}
	}
	return nil
}

// column adds a field, and what is in it. parent is nil for a column of the table.
func (p *planner) column(f arrow.Field, parent *columnSchema, ordinal int32) (t dataType, err error) {
	c := columnSchema{name: f.Name, id: f.Name, group: -1, scale: -1, precision: -1, ordinal: ordinal}
	if parent != nil {
		c.name = parent.name + "." + f.Name
		c.ordinal = -1
	}
	if err := c.typed(f, c.name); err != nil {
		return 0, err
	}
	if p.version < 3 && c.typ == typeFloat {
		c.typ = typeDouble // the only floating type of formats 1 and 2 holds all of them
	}
	top := parent == nil
	if top && p.long[f.Name] {
		if c.typ != typeString && c.typ != typeVarchar {
			return 0, fault.Invalidf("carbon: option long-strings: %q is no string", f.Name)
		}
		c.typ = typeVarchar
	}
	if !top && c.typ == typeVarchar {
		c.typ = typeString // in lists and structs strings have a length of four bytes anyway
	}
	isSort := top && slices.Contains(p.sort, f.Name)
	switch c.typ {
	case typeFloat, typeDouble, typeDecimal, typeBinary, typeVarchar, typeArray, typeStruct, typeMap:
		if isSort {
			return 0, fault.Invalidf("carbon: %q cannot be a sort column: it is of type %s", f.Name, c.typ)
		}
	}
	switch c.typ {
	case typeString, typeVarchar, typeDate, typeTimestamp, typeBinary, typeArray, typeStruct, typeMap:
		c.dimension = true
	}
	c.dimension = c.dimension || isSort || !top
	if top && c.typ == typeDate {
		c.encoders = encodings{encDirectDictionary, encDictionary}
	}
	if err := p.dictionaries(&c, parent); err != nil {
		return 0, err
	}
	if top && p.inverted[f.Name] {
		if !isSort {
			return 0, fault.Invalidf("carbon: %q has an inverted index only as a sort column", f.Name)
		}
		c.encoders = append(c.encoders, encInvertedIndex)
	}
	if isSort {
		c.props = map[string]string{"sort_columns": "true"}
	}
	return c.typ, p.add(c, f.Type, top)
}

// add puts a column into its list, and its children behind it.
func (p *planner) add(c columnSchema, t arrow.DataType, top bool) error {
	kids, err := p.children(t)
	if err != nil {
		return fault.Locate(err, fault.Span{}, true, c.name)
	}
	c.children = int32(len(kids))
	kind := listMeasure
	switch {
	case !top || c.typ.complex():
		kind = listComplex
	case c.sortColumnSchema():
		kind = listSort
	case c.typ == typeVarchar:
		kind = listVarchar
	case c.dimension:
		kind = listDimension
	}
	p.lists[kind] = append(p.lists[kind], c)
	for _, k := range kids {
		if _, err := p.column(k, &c, -1); err != nil {
			return err
		}
	}
	return nil
}

func (s *columnSchema) sortColumnSchema() bool { return s.props["sort_columns"] == "true" }

// children are the fields in a list, map or struct, with Carbon's names.
func (p *planner) children(t arrow.DataType) ([]arrow.Field, error) {
	item := func(f arrow.Field) []arrow.Field {
		f.Name = fmt.Sprintf("val%d", p.items)
		p.items++
		return []arrow.Field{f}
	}
	switch t := t.(type) {
	case arrow.ExtensionType:
		return p.children(t.StorageType())
	case *arrow.DictionaryType:
		return p.children(t.ValueType)
	case *arrow.MapType:
		kv := arrow.StructOf(arrow.Field{Name: "key", Type: t.KeyType()}, arrow.Field{Name: "value", Type: t.ItemType(), Nullable: true})
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

// typed gives a column the type that holds every value of a field.
func (c *columnSchema) typed(f arrow.Field, name string) error {
	said, _ := f.Metadata.GetValue(MetaType)
	switch t := f.Type.(type) {
	case arrow.ExtensionType:
		f.Type = t.StorageType()
		return c.typed(f, name)
	case *arrow.DictionaryType:
		f.Type = t.ValueType
		return c.typed(f, name)
	case arrow.DecimalType:
		if t.GetPrecision() > 38 || t.GetScale() < 0 || t.GetScale() > t.GetPrecision() {
			return fault.Unsupportedf(fault.Span{}, name, "CarbonData has no type for %s: decimals have at most 38 digits, and no fewer than are behind the point", f.Type)
		}
		c.typ, c.precision, c.scale = typeDecimal, t.GetPrecision(), t.GetScale()
		return nil
	}
	t, ok := writtenAs[f.Type.ID()]
	if !ok {
		return fault.Unsupportedf(fault.Span{}, name, "CarbonData has no type for %s", f.Type)
	}
	c.typ = t
	switch {
	case t == typeString && said == "varchar":
		c.typ = typeVarchar
	case f.Type.ID() == arrow.UINT64:
		c.precision, c.scale = 20, 0
	}
	return nil
}

// writtenAs is Carbon's type for each of Arrow's. Unsigned numbers take the next wider one.
var writtenAs = map[arrow.Type]dataType{
	arrow.BOOL: typeBoolean, arrow.INT8: typeByte, arrow.UINT8: typeShort, arrow.INT16: typeShort, arrow.UINT16: typeInt,
	arrow.INT32: typeInt, arrow.UINT32: typeLong, arrow.INT64: typeLong, arrow.UINT64: typeDecimal,
	arrow.FLOAT16: typeFloat, arrow.FLOAT32: typeFloat, arrow.FLOAT64: typeDouble,
	arrow.DATE32: typeDate, arrow.DATE64: typeDate, arrow.TIMESTAMP: typeTimestamp,
	arrow.STRING: typeString, arrow.LARGE_STRING: typeString, arrow.STRING_VIEW: typeString, arrow.NULL: typeString,
	arrow.BINARY: typeBinary, arrow.LARGE_BINARY: typeBinary, arrow.BINARY_VIEW: typeBinary, arrow.FIXED_SIZE_BINARY: typeBinary,
	arrow.LIST: typeArray, arrow.LARGE_LIST: typeArray, arrow.FIXED_SIZE_LIST: typeArray, arrow.MAP: typeMap, arrow.STRUCT: typeStruct,
}
