package write

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
)

// avroMaker converts an Arrow schema to an Avro schema, and outShredder makes its columns by the rules of Avro's
// shredder.

// planAvro makes the Avro schema, its columns, and the nodes that write them.
func (w *outFile) planAvro(fields []arrow.Field) error {
	m := avroMaker{taken: map[string]bool{}}
	root := &schema.AvroType{Kind: "record", Name: m.typeName("Row")}
	names := schema.AvroNames{}
	for _, f := range fields {
		t, err := m.field(f, f.Name)
		if err != nil {
			return err
		}
		root.Fields = append(root.Fields, schema.AvroSchemaField{Name: names.Unique(f.Name), Type: t})
	}
	text, err := json.Marshal(root.JSON(map[string]bool{}))
	if err != nil {
		return fault.Bugf("trevni: the Avro schema is no JSON: %v", err)
	}
	w.meta = append(w.meta, layout.Pair{Key: "avro.schema", Value: text})
	s := outShredder{w: w}
	for i, f := range root.Fields {
		s.kept = &fields[i]
		w.fields = append(w.fields, &avroField{fields[i].Name, s.build(f.Name, f.Type, nil)})
	}
	return nil
}

// avroMaker makes Avro types from plain Arrow types.
type avroMaker struct {
	taken map[string]bool // names of types
	fixed map[int]*schema.AvroType
}

// typeName returns an unused name for a type.
func (m *avroMaker) typeName(wish string) string { return schema.AvroNames(m.taken).Unique(wish) }

// field returns the type of a field: a union with null if the field is nullable.
func (m *avroMaker) field(f arrow.Field, path string) (*schema.AvroType, error) {
	t, err := m.of(f.Type, path)
	if err != nil || !f.Nullable || t.Kind == "null" || t.Kind == "union" {
		return t, err
	}
	return &schema.AvroType{Kind: "union", Branches: []*schema.AvroType{{Kind: "null"}, t}}, nil
}

func (m *avroMaker) of(t arrow.DataType, path string) (*schema.AvroType, error) {
	switch t := t.(type) {
	case *arrow.StructType:
		r := &schema.AvroType{Kind: "record", Name: m.typeName(path)}
		names := schema.AvroNames{}
		for _, f := range t.Fields() {
			ft, err := m.field(f, path+"_"+f.Name)
			if err != nil {
				return nil, err
			}
			r.Fields = append(r.Fields, schema.AvroSchemaField{Name: names.Unique(f.Name), Type: ft})
		}
		return r, nil
	case *arrow.MapType:
		if t.KeyType().ID() != arrow.STRING {
			return nil, fault.Unsupportedf(fault.Span{}, path,
				"the keys of Avro's maps are strings, these are of type %s", t.KeyType())
		}
		vt, err := m.field(t.ItemField(), path+"_value")
		return &schema.AvroType{Kind: "map", Items: vt}, err
	case *arrow.ListType:
		it, err := m.field(t.ElemField(), path+"_item")
		return &schema.AvroType{Kind: "array", Items: it}, err
	case *arrow.DenseUnionType:
		return m.union(t, path)
	}
	return m.simple(t, path)
}

// union makes a union. Several unnamed branches of the same kind are ambiguous and are refused.
func (m *avroMaker) union(t *arrow.DenseUnionType, path string) (*schema.AvroType, error) {
	u := &schema.AvroType{Kind: "union"}
	seen := map[string]bool{}
	for _, f := range t.Fields() {
		b, err := m.of(f.Type, path+"_"+f.Name)
		if err != nil {
			return nil, err
		}
		if b.Kind == "union" || seen[b.FullName()] {
			return nil, fault.Unsupportedf(fault.Span{}, path, "an Avro union cannot have another branch %s",
				b.FullName())
		}
		seen[b.FullName()] = true
		u.Branches = append(u.Branches, b)
	}
	if len(u.Branches) == 2 && (seen["null"]) {
		return nil, fault.Unsupportedf(fault.Span{}, path,
			"a union of null and one other type comes back as a nullable field; write it as one")
	}
	return u, nil
}

// simpleKinds maps Arrow types without parameters to Avro types.
var simpleKinds = map[arrow.Type]schema.AvroType{
	arrow.NULL: {Kind: "null"}, arrow.BOOL: {Kind: "boolean"},
	arrow.INT8: {Kind: "int"}, arrow.INT16: {Kind: "int"}, arrow.INT32: {Kind: "int"}, arrow.UINT8: {Kind: "int"},
	arrow.UINT16: {Kind: "int"},
	arrow.INT64:  {Kind: "long"}, arrow.UINT32: {Kind: "long"}, arrow.UINT64: {Kind: "long"},
	arrow.FLOAT32: {Kind: "float"}, arrow.FLOAT64: {Kind: "double"}, arrow.STRING: {Kind: "string"},
	arrow.BINARY: {Kind: "bytes"},
	arrow.DATE32: {Kind: "int", Logical: "date"}, arrow.DATE64: {Kind: "long"}, arrow.TIME32: {Kind: "int"},
	arrow.TIME64:    {Kind: "long"},
	arrow.TIMESTAMP: {Kind: "long"}, arrow.DURATION: {Kind: "long"},
}

func (m *avroMaker) simple(dt arrow.DataType, path string) (*schema.AvroType, error) {
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		if t.Scale < 0 || t.Scale > t.Precision {
			return nil, fault.Unsupportedf(fault.Span{}, path, "Avro has no %s", t)
		}
		return &schema.AvroType{Kind: "bytes", Logical: "decimal", Precision: int(t.Precision),
			Scale: int(t.Scale)}, nil
	case *arrow.FixedSizeBinaryType:
		if m.fixed[t.ByteWidth] == nil {
			if m.fixed == nil {
				m.fixed = map[int]*schema.AvroType{}
			}
			m.fixed[t.ByteWidth] = &schema.AvroType{Kind: "fixed",
				Name: m.typeName(fmt.Sprintf("Fixed%d", t.ByteWidth)),
				Size: t.ByteWidth}
		}
		return m.fixed[t.ByteWidth], nil
	}
	k, ok := simpleKinds[dt.ID()]
	if !ok {
		return nil, fault.Unsupportedf(fault.Span{}, path, "a Trevni file cannot hold values of type %s", dt)
	}
	switch t := dt.(type) {
	case *arrow.Time32Type:
		if t.Unit == arrow.Millisecond {
			k.Logical = "time-millis"
		}
	case *arrow.Time64Type:
		if t.Unit == arrow.Microsecond {
			k.Logical = "time-micros"
		}
	case *arrow.TimestampType:
		k.Logical = map[arrow.TimeUnit]string{arrow.Millisecond: "timestamp-millis",
			arrow.Microsecond: "timestamp-micros", arrow.Nanosecond: "timestamp-nanos"}[t.Unit]
		if t.TimeZone == "" && k.Logical != "" {
			k.Logical = "local-" + k.Logical
		}
	}
	return &k, nil
}

// outShredder makes the columns of an Avro schema by the rules of schema.shredder, and the nodes that write them.
type outShredder struct {
	w    *outFile
	kept *arrow.Field // the top-level field that is being shredded
}

func (s *outShredder) column(name string, t layout.Type, array bool, parent *outColumn) *outColumn {
	c := layout.Column{Name: name, Type: t, Array: array, Parent: -1}
	c.FirstValues = !array && parent == nil && layout.Types[t].Form != layout.FormNone && t != layout.Boolean &&
		(s.w.opts.keeps(name) || name == s.kept.Name && keepsFirst(*s.kept))
	c.Meta = []layout.Pair{{Key: "trevni.name", Value: []byte(name)}, {Key: "trevni.type", Value: []byte(t.String())}}
	if c.FirstValues {
		c.Meta = append(c.Meta, layout.Pair{Key: "trevni.values"})
	}
	if array {
		c.Meta = append(c.Meta, layout.Pair{Key: "trevni.array"})
	}
	if parent != nil {
		c.Meta = append(c.Meta, layout.Pair{Key: "trevni.parent", Value: []byte(parent.Name)})
	}
	return s.w.column(c)
}

func (s *outShredder) build(path string, t *schema.AvroType, parent *outColumn) node {
	switch t.Kind {
	case "record":
		n := structNode{}
		for _, f := range t.Fields {
			n.fields = append(n.fields, s.build(schema.Join(path, "#", f.Name), f.Type, parent))
		}
		return n
	case "map":
		c := s.column(path+">", layout.Null, true, parent)
		key := s.column(path+">key", layout.String, false, c)
		return groupNode{c, structNode{[]node{flatNode{key}, s.build(path+">value", t.Items, c)}}}
	case "array":
		path += "[]"
		if t.Items.Simple() && t.Items.Kind != "null" {
			return listNode{s.column(path, t.Items.Stored(), true, parent)}
		}
		c := s.column(path, layout.Null, true, parent)
		if t.Items.Kind == "null" {
			return groupNode{c, nil}
		}
		return groupNode{c, s.build(path, t.Items, c)}
	case "union":
		return s.union(path, t, parent)
	}
	return flatNode{s.column(path, t.Stored(), false, parent)}
}

func (s *outShredder) union(path string, t *schema.AvroType, parent *outColumn) node {
	u := unionNode{branches: make([]node, len(t.Branches))}
	for i, b := range t.Branches {
		switch name := schema.Join(path, "/", b.FullName()); {
		case b.Kind == "null":
			u.null = true
		case b.Simple():
			u.branches[i] = optionalNode{s.column(name, b.Stored(), true, parent)}
		default:
			c := s.column(name, layout.Null, true, parent)
			u.branches[i] = presenceNode{c, s.build(name, b, c)}
		}
	}
	if u.null && len(u.branches) == 2 { // null and one other branch: the array is the other branch's
		if u.branches[0] != nil {
			return u.branches[0]
		}
		return u.branches[1]
	}
	return u
}
