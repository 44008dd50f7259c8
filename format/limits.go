package format

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/budget"
)

// Limits protect against files that ask for too much. Zero values mean the defaults.
type Limits struct {
	Page     int64 // bytes of one decoded page; default 1 GiB, or Opening if that is less
	Metadata int64 // bytes of one metadata structure; default 256 MiB
	// fields, nested ones counted, that a table, or a row of a text without a schema, may have; default 65,536
	Fields int64
	// how many lists, maps and structs may stand in each other; default 64, as levels cannot tell more
	Depth int64
	// bytes of memory that opening one file, or one place whose files are kept open together, may take, or
	// recovering its metadata; default 1 GiB
	Opening int64

	together *budget.Memory // of the place whose files are opened; nil: each file has its own
}

// leastPage is what pages may have, however little memory there is, if nobody says otherwise.
const leastPage = 16 << 20

// WithDefaults fills the zero fields.
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

// maxMaps is how many maps may stand in each other: the library makes what is below a map twice, for its keys and
// values and for its entries, so that the time of an array doubles with each.
const maxMaps = 12

// Groups is how many groups of a schema by levels, as Dremel has them, may stand in each other: a list or a map
// takes two. A level is a byte.
func (l Limits) Groups() int { return int(min(2*l.WithDefaults().Depth, 250)) }

// FitGroups refuses a column that is in more groups than Groups, at the place that declares it.
func (l Limits) FitGroups(n int, at fault.Span, path string) error {
	if n <= l.Groups() {
		return nil
	}
	return fault.Limitf(at, path, "nested in %d groups or more, and at most %d are read, two for each of %d lists, "+
		"maps and structs (--max-depth)", n, l.Groups(), l.WithDefaults().Depth)
}

// Row is how many bytes what is nested in one row may have.
func (l Limits) Row() int64 { return l.WithDefaults().Opening / 8 }

// Memory is what one opening may take: that of the place for whose files Together made the limits, else a fresh one.
func (l Limits) Memory() *budget.Memory {
	if l.together != nil {
		return l.together
	}
	return budget.Of(l.WithDefaults().Opening)
}

// Together are limits of which all that is opened with them takes from one budget: for a place that keeps what it
// opened. Those that have one keep it.
func (l Limits) Together() Limits {
	l.together = l.Memory()
	return l
}

// Apart are limits with a budget for each file: for files of a place that are opened when their rows are wanted,
// and closed.
func (l Limits) Apart() Limits {
	l.together = nil
	return l
}

// Fit refuses a schema that has more fields, or is nested deeper, than is allowed, at the place that declares it; and
// one with values of no bytes, which are no damage, but of which bytes do not say how many there are.
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

// mapsIn is how many maps are in each other in a type.
func mapsIn(t arrow.DataType) (n int) {
	for _, f := range below(t) {
		n = max(n, mapsIn(f.Type))
	}
	if t.ID() == arrow.MAP {
		n++
	}
	return n
}

// below are the fields in a type; of a map those of its entries.
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

// Afford is Fit, and counts the memory of the schema's fields.
func (l Limits) Afford(sc *arrow.Schema, at fault.Span, path string) error {
	const perField = 1 << 10
	if err := l.Fit(sc, at, path); err != nil {
		return err
	}
	fields, _ := sizeOf(sc)
	return l.Memory().Take(perField*fields, at, path)
}

// FitSize is Fit for so many fields, nested ones counted, and so many lists, maps and structs in each other.
func (l Limits) FitSize(fields, depth int64, at fault.Span, path string) error {
	l = l.WithDefaults()
	switch {
	case fields > l.Fields:
		return fault.Limitf(at, path, "%d fields, and at most %d are read (--max-fields)", fields, l.Fields)
	case depth > l.Depth:
		return fault.Limitf(at, path, "nested %d deep, and at most %d is read (--max-depth)", depth, l.Depth)
	}
	return nil
}

// extent is how many fields a type has below it, and how many lists, maps and structs are in each other in it.
func extent(t arrow.DataType) (fields, depth int64) {
	switch x := t.(type) {
	case *arrow.DictionaryType:
		return extent(x.ValueType)
	case arrow.ExtensionType:
		return extent(x.StorageType())
	case *arrow.MapType:
	case arrow.ListLikeType:
		fields = -1 // its items are no field
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

// sizeOf is how many fields a schema has, nested ones counted, and how deep they are.
func sizeOf(sc *arrow.Schema) (fields, depth int64) {
	for _, f := range sc.Fields() {
		n, d := extent(f.Type)
		fields, depth = fields+n+1, max(depth, d)
	}
	return fields, depth
}
