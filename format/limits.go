package format

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/budget"
)

// Limits protect against files that demand too many resources. Zero values mean the defaults.
type Limits struct {
	Page     int64 // bytes of one decoded page; default 1 GiB, or Opening if that is less
	Metadata int64 // bytes of one metadata structure; default 256 MiB
	// number of fields of a table, or of a row of a text without a schema, including nested ones; default 65,536
	Fields int64
	// maximum nesting of lists, maps and structs; default 64, because Dremel levels do not allow more
	Depth int64
	// bytes of memory for opening one file, or one place whose files are kept open together, or for recovering its
	// metadata; default 1 GiB
	Opening int64

	together *budget.Memory // shared by the files of the place; nil: each file has its own
}

// leastPage is a lower bound for the default of Page, however small Opening is.
const leastPage = 16 << 20

// WithDefaults returns l with defaults in place of zero fields.
func (l Limits) WithDefaults() Limits {
	if l.Page == 0 {
		l.Page = 1 << 30
		if l.Opening > 0 {
			l.Page = min(l.Page, max(l.Opening, leastPage))
		}
	}
	if l.Metadata == 0 {
		l.Metadata = 256 << 20
	}
	if l.Fields == 0 {
		l.Fields = 1 << 16
	}
	if l.Depth == 0 {
		l.Depth = 64
	}
	if l.Opening == 0 {
		l.Opening = 1 << 30
	}
	return l
}

// maxMaps is the maximum nesting of maps. arrow-go creates the children of a map twice, as keys and values and as
// entries, so the time to create an array doubles with each level.
const maxMaps = 12

// Groups returns the maximum nesting of groups in a Dremel schema, where a list or a map takes two. A level is one
// byte.
func (l Limits) Groups() int { return int(min(2*l.WithDefaults().Depth, 250)) }

// FitGroups returns an error, at the place that declares a column nested in n groups, if n exceeds Groups.
func (l Limits) FitGroups(n int, at fault.Span, path string) error {
	if n <= l.Groups() {
		return nil
	}
	return fault.Limitf(at, path, "nested in %d groups or more, and at most %d are read, two for each of %d lists, "+
		"maps and structs (depth limit)", n, l.Groups(), l.WithDefaults().Depth)
}

// Row returns the limit, in bytes, for the nested values of one row.
func (l Limits) Row() int64 { return l.WithDefaults().Opening / 8 }

// Memory returns the budget of one opening: the shared one if l comes from Together, else a new one.
func (l Limits) Memory() *budget.Memory {
	if l.together != nil {
		return l.together
	}
	return budget.Of(l.WithDefaults().Opening)
}

// Together returns limits with one budget for everything that is opened with them: for a place that keeps its files
// open. Limits that already share a budget keep it.
func (l Limits) Together() Limits {
	l.together = l.Memory()
	return l
}

// Apart returns limits with a separate budget for each file: for a place that opens a file only when its rows are
// wanted, and closes it again.
func (l Limits) Apart() Limits {
	l.together = nil
	return l
}

// Fit returns an error, at the place that declares the schema, if it has too many fields or is nested too deeply. It
// also refuses values without bytes: they are not damage, but no number of bytes limits how many there may be.
func (l Limits) Fit(sc *arrow.Schema, at fault.Span, path string) error {
	fields, depth := sizeOf(sc)
	for _, f := range sc.Fields() {
		if withoutWidth(f.Type) {
			return fault.Unsupportedf(at, path, "column %s: fixed-size values of width 0", f.Name)
		}
		if n := mapsIn(f.Type); n > maxMaps {
			return fault.Limitf(at, path, "%s has %d maps in each other, and at most %d are read", f.Name, n, maxMaps)
		}
	}
	return l.FitSize(fields, depth, at, path)
}

func withoutWidth(t arrow.DataType) bool {
	if f, ok := t.(*arrow.FixedSizeBinaryType); ok {
		return f.ByteWidth == 0
	}
	if d, ok := t.(*arrow.DictionaryType); ok {
		return withoutWidth(d.ValueType)
	}
	return slices.ContainsFunc(below(t), func(f arrow.Field) bool { return withoutWidth(f.Type) })
}

// mapsIn returns the nesting depth of maps in a type.
func mapsIn(t arrow.DataType) (n int) {
	for _, f := range below(t) {
		n = max(n, mapsIn(f.Type))
	}
	if t.ID() == arrow.MAP {
		n++
	}
	return n
}

// below returns the child fields of a type; for a map those of its entries.
func below(t arrow.DataType) []arrow.Field {
	switch x := t.(type) {
	case *arrow.DictionaryType:
		return below(x.ValueType)
	case arrow.ExtensionType:
		return below(x.StorageType())
	case *arrow.MapType:
		return []arrow.Field{x.KeyField(), x.ItemField()}
	case arrow.ListLikeType:
		return []arrow.Field{x.ElemField()}
	case arrow.NestedType:
		return x.Fields()
	}
	return nil
}

// Afford is Fit, and also charges the memory of the schema's fields to the budget.
func (l Limits) Afford(sc *arrow.Schema, at fault.Span, path string) error {
	const perField = 1 << 10
	if err := l.Fit(sc, at, path); err != nil {
		return err
	}
	fields, _ := sizeOf(sc)
	return l.Memory().Take(perField*fields, at, path)
}

// FitSize is Fit for a number of fields, including nested ones, and a nesting depth of lists, maps and structs.
func (l Limits) FitSize(fields, depth int64, at fault.Span, path string) error {
	l = l.WithDefaults()
	switch {
	case fields > l.Fields:
		return fault.Limitf(at, path, "%d fields, and at most %d are read (field limit)", fields, l.Fields)
	case depth > l.Depth:
		return fault.Limitf(at, path, "nested %d deep, and at most %d is read (depth limit)", depth, l.Depth)
	}
	return nil
}

// extent returns the number of fields below a type, and the nesting depth of lists, maps and structs in it.
func extent(t arrow.DataType) (fields, depth int64) {
	switch x := t.(type) {
	case *arrow.DictionaryType:
		return extent(x.ValueType)
	case arrow.ExtensionType:
		return extent(x.StorageType())
	case *arrow.MapType:
	case arrow.ListLikeType:
		fields = -1 // an item is not counted as a field
	case arrow.NestedType:
	default:
		return 0, 0
	}
	for _, f := range below(t) {
		n, d := extent(f.Type)
		fields, depth = fields+n+1, max(depth, d)
	}
	return fields, depth + 1
}

// sizeOf returns the number of fields of a schema, including nested ones, and their nesting depth.
func sizeOf(sc *arrow.Schema) (fields, depth int64) {
	for _, f := range sc.Fields() {
		n, d := extent(f.Type)
		fields, depth = fields+n+1, max(depth, d)
	}
	return fields, depth
}
