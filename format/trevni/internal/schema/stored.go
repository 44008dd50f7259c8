package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
)

// storedField is a field of the Arrow schema that our writer stores in the file's metadata, as JSON.
type storedField struct {
	Name     string        `json:"name"`
	Type     string        `json:"type"` // as Arrow's library prints it, without type parameters
	Nullable bool          `json:"nullable,omitempty"`
	Meta     [][2]string   `json:"metadata,omitempty"`
	Children []storedField `json:"children,omitempty"`
}

// storedSchema returns the Arrow schema that our writer stored; nil if there is none, or it cannot be parsed. It is
// used only to refine the schema of the columns.
func storedSchema(h *layout.Header) []arrow.Field {
	text, ok := layout.Get(h.Meta, layout.SchemaKey)
	if !ok {
		return nil
	}
	var all []storedField
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	fields := make([]arrow.Field, len(all))
	for i := range all {
		if fields[i], ok = all[i].field(0); !ok {
			return nil
		}
	}
	return fields
}

// EncodeSchema encodes fields as the value of layout.SchemaKey.
func EncodeSchema(fields []arrow.Field) ([]byte, error) {
	all := make([]storedField, len(fields))
	for i, f := range fields {
		all[i] = storedOf(f)
	}
	return json.Marshal(all)
}

func storedOf(f arrow.Field) storedField {
	s := storedField{Name: f.Name, Nullable: f.Nullable, Type: f.Type.String()}
	for i, k := range f.Metadata.Keys() {
		s.Meta = append(s.Meta, [2]string{k, f.Metadata.Values()[i]})
	}
	if t, ok := f.Type.(arrow.NestedType); ok {
		s.Type = t.Name()
		children := t.Fields()
		if m, ok := t.(*arrow.MapType); ok {
			children = []arrow.Field{{Name: "key", Type: m.KeyType()}, m.ItemField()}
		}
		for _, c := range children {
			s.Children = append(s.Children, storedOf(c))
		}
	}
	return s
}

// field returns s as an Arrow field; ok is false if its type is not known.
func (s *storedField) field(depth int) (f arrow.Field, ok bool) {
	f = arrow.Field{Name: s.Name, Nullable: s.Nullable}
	var keys, values []string
	for _, m := range s.Meta {
		keys, values = append(keys, m[0]), append(values, m[1])
	}
	f.Metadata = arrow.NewMetadata(keys, values)
	children := make([]arrow.Field, len(s.Children))
	for i := range s.Children {
		if children[i], ok = s.Children[i].field(depth + 1); !ok || depth > maxSchema {
			return f, false
		}
	}
	f.Type, ok = s.nested(children)
	if !ok && len(children) == 0 {
		f.Type, ok = leafByText(s.Type)
	}
	return f, ok
}

func (s *storedField) nested(children []arrow.Field) (arrow.DataType, bool) {
	switch {
	case s.Type == "struct":
		return arrow.StructOf(children...), true
	case s.Type == "list" && len(children) == 1:
		return arrow.ListOfField(children[0]), true
	case s.Type == "map" && len(children) == 2:
		m := arrow.MapOf(children[0].Type, children[1].Type)
		m.SetItemNullable(children[1].Nullable)
		return m, true
	case s.Type == "dense_union" && len(children) < 128:
		codes := make([]arrow.UnionTypeCode, len(children))
		for i := range codes {
			codes[i] = arrow.UnionTypeCode(i)
		}
		return arrow.DenseUnionOf(children, codes), true
	}
	return nil, false
}

// leaves are the types without parameters that our writer stores.
var leaves = []arrow.DataType{
	arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16,
	arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
	arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float32,
	arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Date32,
	arrow.FixedWidthTypes.Date64,
	arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us,
	arrow.FixedWidthTypes.Time64ns,
	arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Duration_us,
	arrow.FixedWidthTypes.Duration_ns,
}

// leafByText returns the type that prints as text.
func leafByText(text string) (arrow.DataType, bool) {
	for _, t := range leaves {
		if t.String() == text {
			return t, true
		}
	}
	var t arrow.DataType
	var n, m int
	switch {
	case scanned(fmt.Sscanf(text, "decimal(%d, %d)", &n, &m)) && n > 0 && n <= 38 && m >= -128 && m <= 128:
		t = &arrow.Decimal128Type{Precision: int32(n), Scale: int32(m)}
	case scanned(fmt.Sscanf(text, "fixed_size_binary[%d]", &n)) && n >= 0:
		t = &arrow.FixedSizeBinaryType{ByteWidth: n}
	case strings.HasPrefix(text, "timestamp["):
		unit, zone, _ := strings.Cut(strings.TrimSuffix(text[len("timestamp["):], "]"), ", tz=")
		u, ok := map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond,
			"ns": arrow.Nanosecond}[unit]
		if !ok {
			return nil, false
		}
		t = &arrow.TimestampType{Unit: u, TimeZone: zone}
	default:
		return nil, false
	}
	return t, t.String() == text
}

func scanned(_ int, err error) bool { return err == nil }

// refine replaces the fields by those of the stored schema if they differ only in properties that columns do not
// record: names, metadata, and types that are stored as other types. It returns false if they differ otherwise: then
// one of the two is damaged.
func (p *Plan) refine(stored []arrow.Field) bool {
	if stored == nil || len(stored) != len(p.Fields) {
		return false
	}
	r := refiner{p, map[string]*page.Physical{}}
	for _, ph := range p.Phys {
		if ph.Has&format.Values != 0 {
			r.at[pathKey(ph.Path)] = ph
		}
	}
	names := AvroNames{}
	for i, f := range p.Fields {
		if f.Name != names.Unique(stored[i].Name) || !r.refines(f, stored[i], []int{i}) {
			return false
		}
	}
	for _, ph := range p.Phys {
		if ph.Has&format.Values == 0 || ph.Enum != nil {
			continue
		}
		t := typeAt(stored, ph.Path)
		if ph.Shape == page.ShapeList {
			ph.Conv, ph.Size, _ = page.ConvertTo(ph.StoredType, t.(*arrow.ListType).Elem())
		} else {
			ph.Conv, ph.Size, _ = page.ConvertTo(ph.StoredType, t)
		}
		ph.Type = t
	}
	p.Fields = stored
	p.How += ", " + layout.SchemaKey
	return true
}

type refiner struct {
	*Plan
	at map[string]*page.Physical
}

func pathKey(path []int) string {
	b := make([]byte, 0, 4*len(path))
	for _, i := range path {
		b = append(b, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	return string(b)
}

// refines reports whether stored is f plus properties that columns do not record.
func (r *refiner) refines(f, stored arrow.Field, path []int) bool {
	// null and union columns have nulls of their own
	if f.Nullable != stored.Nullable && f.Type.ID() != arrow.NULL && f.Type.ID() != arrow.DENSE_UNION {
		return false
	}
	if ph := r.at[pathKey(path)]; ph != nil && ph.Shape != page.ShapeList {
		if ph.Enum != nil || ph.StoredType == layout.Null {
			return arrow.TypeEqual(f.Type, stored.Type)
		}
		_, _, ok := page.ConvertTo(ph.StoredType, stored.Type)
		return ok
	}
	if f.Type.ID() != stored.Type.ID() {
		return false
	}
	if ph := r.at[pathKey(path)]; ph != nil { // a list in one column
		wl, ok := stored.Type.(*arrow.ListType)
		if !ok || wl.ElemField().Nullable {
			return false
		}
		if ph.Enum != nil {
			return arrow.TypeEqual(f.Type, stored.Type)
		}
		_, _, fits := page.ConvertTo(ph.StoredType, wl.Elem())
		return fits
	}
	a, okA := f.Type.(arrow.NestedType)
	b, okB := stored.Type.(arrow.NestedType)
	if !okA || !okB {
		return arrow.TypeEqual(f.Type, stored.Type)
	}
	fa, fb := a.Fields(), b.Fields()
	if len(fa) != len(fb) {
		return false
	}
	names := AvroNames{}
	for i := range fa {
		if record := f.Type.ID() == arrow.STRUCT; record && fa[i].Name != names.Unique(fb[i].Name) ||
			!r.refines(fa[i], fb[i], childPath(path, i)) {
			return false
		}
	}
	return true
}

// typeAt returns the type at a path from the root of the schema.
func typeAt(fields []arrow.Field, path []int) arrow.DataType {
	t := fields[path[0]].Type
	for _, i := range path[1:] {
		t = t.(arrow.NestedType).Fields()[i].Type
	}
	return t
}

// Estimated bytes of memory for a step of a column's path, and for a byte of a schema's text.
const (
	perStep = 512
	perByte = 64
)

// perRow is the size, in bytes of the page limit, that each row of a file without columns counts as: by default 16
// million rows are allowed.
const perRow = 64

// CheckLimits returns an error of class Limit if a schema is nested deeper, or takes more memory, than the limits
// allow. It is called before the schema is made: a few bytes of a column may stand for very many nested lists.
func CheckLimits(f *container.File) error {
	h := &f.Header
	if n := stepsOf(h); n > f.Limits.Fields && !hasUsableSchema(h) {
		return f.Limits.FitSize(n, 0, f.At.Sub(0, h.Size), "column-metadata")
	}
	depth := make([]int64, len(h.Columns))
	spent := int64(0)
	for i := range h.Columns {
		c := &h.Columns[i]
		if depth[i] = int64(c.MaxRep); c.Parent >= 0 {
			depth[i] = depth[c.Parent] + 1
		}
		steps, minSteps := depth[i], (depth[i]+1)/2 // a list takes a step or two
		if h.Dialect == layout.Wiki {
			dots := int64(strings.Count(c.Name, "."))
			steps, minSteps = max(steps, dots), max(depth[i], dots-int64(c.MaxRep))
		}
		path := fmt.Sprintf("column-metadata[%d]", i)
		err := cmp.Or(f.Limits.FitSize(0, minSteps, c.At, path), f.Limits.FitGroups(int(steps), c.At, path))
		if err != nil {
			return err
		}
		spent += perStep * (1 + steps)
	}
	for _, p := range h.Meta {
		if p.Key == "avro.schema" || p.Key == layout.SchemaKey {
			spent += perByte * int64(len(p.Value))
		}
	}
	if maxRows := f.Limits.Page / perRow; len(h.Columns) == 0 && h.Rows > maxRows {
		return fault.Limitf(f.At.Sub(4, 8), "header.row-count", "%s without a column, of which nothing but this "+
			"number is stored; at most %d are read (page limit)", fault.Count(h.Rows, "row"), maxRows)
	}
	if spent > f.Limits.Opening {
		return fault.Limitf(f.At.Sub(0, h.Size), "header",
			"the schema takes some %d bytes of memory, opening a file may take %d", spent, f.Limits.Opening)
	}
	return nil
}

// stepsOf returns the number of fields in the columns' names if they are dotted paths: a step that the previous column
// also has is the same field.
func stepsOf(h *layout.Header) (n int64) {
	if h.Dialect != layout.Wiki {
		return int64(len(h.Columns))
	}
	before := ""
	for i := range h.Columns {
		name := h.Columns[i].Name
		same := 0 // bytes
		for k := 0; k < len(name) && k < len(before) && name[k] == before[k]; k++ {
			if name[k] == '.' {
				same = k + 1
			}
		}
		n += 1 + int64(strings.Count(name[same:], "."))
		before = name
	}
	return n
}

// hasUsableSchema reports whether the file has a stored schema that fits its columns, so that names are not split.
func hasUsableSchema(h *layout.Header) bool {
	sc := storedSchema(h)
	return sc != nil && PlanLeaves(h, sc) != nil
}
