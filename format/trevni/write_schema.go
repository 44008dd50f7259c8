package trevni

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// An Arrow schema becomes an Avro schema (avroMaker), and that the columns that Avro's shredder makes of it
// (outShredder).

// planAvro makes schema, columns and nodes.
func (w *outFile) planAvro(fields []arrow.Field) error {
	m := avroMaker{taken: map[string]bool{}}
	root := &avroType{kind: "record", name: m.typeName("Row")}
	names := siblings{}
	for _, f := range fields {
		t, err := m.field(f, f.Name)
		if err != nil {
			return err
		}
		root.fields = append(root.fields, avroSchemaField{names.avro(f.Name), t})
	}
	text, err := json.Marshal(root.json(map[string]bool{}))
	if err != nil {
		return fault.Bugf("trevni: the Avro schema is no JSON: %v", err)
	}
	w.meta = append(w.meta, Pair{Key: "avro.schema", Value: text})
	s := outShredder{w: w}
	for i, f := range root.fields {
		s.kept = &fields[i]
		w.fields = append(w.fields, &avroField{fields[i].Name, s.build(f.name, f.typ, nil)})
	}
	return nil
}

// avroMaker makes Avro types of plain Arrow types.
type avroMaker struct {
	taken map[string]bool // names of types
	fixed map[int]*avroType
}

// typeName is a name for a record that no other has.
func (m *avroMaker) typeName(wish string) string { return siblings(m.taken).avro(wish) }

// field is the type of a field: a union with null if it can be null.
func (m *avroMaker) field(f arrow.Field, path string) (*avroType, error) {
	t, err := m.of(f.Type, path)
	if err != nil || !f.Nullable || t.kind == "null" || t.kind == "union" {
		return t, err
	}
	return &avroType{kind: "union", branches: []*avroType{{kind: "null"}, t}}, nil
}

func (m *avroMaker) of(t arrow.DataType, path string) (*avroType, error) {
	switch t := t.(type) {
	case *arrow.StructType:
		r := &avroType{kind: "record", name: m.typeName(path)}
		names := siblings{}
		for _, f := range t.Fields() {
			ft, err := m.field(f, path+"_"+f.Name)
			if err != nil {
				return nil, err
			}
			r.fields = append(r.fields, avroSchemaField{names.avro(f.Name), ft})
		}
		return r, nil
	case *arrow.MapType:
		if t.KeyType().ID() != arrow.STRING {
			return nil, fault.Unsupportedf(fault.Span{}, path,
				"the keys of Avro's maps are strings, these are of type %s", t.KeyType())
		}
		vt, err := m.field(t.ItemField(), path+"_value")
		return &avroType{kind: "map", items: vt}, err
	case *arrow.ListType:
		it, err := m.field(t.ElemField(), path+"_item")
		return &avroType{kind: "array", items: it}, err
	case *arrow.DenseUnionType:
		return m.union(t, path)
	}
	return m.simple(t, path)
}

// union: branches of one kind that have no name cannot be told apart.
func (m *avroMaker) union(t *arrow.DenseUnionType, path string) (*avroType, error) {
	u := &avroType{kind: "union"}
	seen := map[string]bool{}
	for _, f := range t.Fields() {
		b, err := m.of(f.Type, path+"_"+f.Name)
		if err != nil {
			return nil, err
		}
		if b.kind == "union" || seen[b.fullName()] {
			return nil, fault.Unsupportedf(fault.Span{}, path, "an Avro union cannot have another branch %s",
				b.fullName())
		}
		seen[b.fullName()] = true
		u.branches = append(u.branches, b)
	}
	if len(u.branches) == 2 && (seen["null"]) {
		return nil, fault.Unsupportedf(fault.Span{}, path,
			"a union of null and one other type comes back as a nullable field; write it as one")
	}
	return u, nil
}

// simpleKinds are the Avro types of Arrow types without parameters.
var simpleKinds = map[arrow.Type]avroType{
	arrow.NULL: {kind: "null"}, arrow.BOOL: {kind: "boolean"},
	arrow.INT8: {kind: "int"}, arrow.INT16: {kind: "int"}, arrow.INT32: {kind: "int"}, arrow.UINT8: {kind: "int"},
	arrow.UINT16: {kind: "int"},
	arrow.INT64:  {kind: "long"}, arrow.UINT32: {kind: "long"}, arrow.UINT64: {kind: "long"},
	arrow.FLOAT32: {kind: "float"}, arrow.FLOAT64: {kind: "double"}, arrow.STRING: {kind: "string"},
	arrow.BINARY: {kind: "bytes"},
	arrow.DATE32: {kind: "int", logical: "date"}, arrow.DATE64: {kind: "long"}, arrow.TIME32: {kind: "int"},
	arrow.TIME64:    {kind: "long"},
	arrow.TIMESTAMP: {kind: "long"}, arrow.DURATION: {kind: "long"},
}

func (m *avroMaker) simple(dt arrow.DataType, path string) (*avroType, error) {
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		if t.Scale < 0 || t.Scale > t.Precision {
			return nil, fault.Unsupportedf(fault.Span{}, path, "Avro has no %s", t)
		}
		return &avroType{kind: "bytes", logical: "decimal", precision: int(t.Precision), scale: int(t.Scale)}, nil
	case *arrow.FixedSizeBinaryType:
		if m.fixed[t.ByteWidth] == nil {
			if m.fixed == nil {
				m.fixed = map[int]*avroType{}
			}
			m.fixed[t.ByteWidth] = &avroType{kind: "fixed", name: m.typeName(fmt.Sprintf("Fixed%d", t.ByteWidth)),
				size: t.ByteWidth}
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
			k.logical = "time-millis"
		}
	case *arrow.Time64Type:
		if t.Unit == arrow.Microsecond {
			k.logical = "time-micros"
		}
	case *arrow.TimestampType:
		k.logical = map[arrow.TimeUnit]string{arrow.Millisecond: "timestamp-millis",
			arrow.Microsecond: "timestamp-micros", arrow.Nanosecond: "timestamp-nanos"}[t.Unit]
		if t.TimeZone == "" && k.logical != "" {
			k.logical = "local-" + k.logical
		}
	}
	return &k, nil
}

// outShredder makes the columns of an Avro schema by the rules that shredder has, and the nodes that write them.
type outShredder struct {
	w    *outFile
	kept *arrow.Field // the top-level field that is being shredded
}

func (s *outShredder) column(name string, t Type, array bool, parent *outColumn) *outColumn {
	c := Column{Name: name, Type: t, Array: array, Parent: -1}
	c.FirstValues = !array && parent == nil && types[t].form != formNone && t != Boolean &&
		(s.w.opts.keeps(name) || name == s.kept.Name && keepsFirst(*s.kept))
	c.Meta = []Pair{{Key: "trevni.name", Value: []byte(name)}, {Key: "trevni.type", Value: []byte(t.String())}}
	if c.FirstValues {
		c.Meta = append(c.Meta, Pair{Key: "trevni.values"})
	}
	if array {
		c.Meta = append(c.Meta, Pair{Key: "trevni.array"})
	}
	if parent != nil {
		c.Meta = append(c.Meta, Pair{Key: "trevni.parent", Value: []byte(parent.Name)})
	}
	return s.w.column(c)
}

func (s *outShredder) build(path string, t *avroType, parent *outColumn) node {
	switch t.kind {
	case "record":
		n := structNode{}
		for _, f := range t.fields {
			n.fields = append(n.fields, s.build(join(path, "#", f.name), f.typ, parent))
		}
		return n
	case "map":
		c := s.column(path+">", Null, true, parent)
		key := s.column(path+">key", String, false, c)
		return groupNode{c, structNode{[]node{flatNode{key}, s.build(path+">value", t.items, c)}}}
	case "array":
		path += "[]"
		if t.items.simple() && t.items.kind != "null" {
			return listNode{s.column(path, t.items.stored(), true, parent)}
		}
		c := s.column(path, Null, true, parent)
		if t.items.kind == "null" {
			return groupNode{c, nil}
		}
		return groupNode{c, s.build(path, t.items, c)}
	case "union":
		return s.union(path, t, parent)
	}
	return flatNode{s.column(path, t.stored(), false, parent)}
}

func (s *outShredder) union(path string, t *avroType, parent *outColumn) node {
	u := unionNode{branches: make([]node, len(t.branches))}
	for i, b := range t.branches {
		switch name := join(path, "/", b.fullName()); {
		case b.kind == "null":
			u.null = true
		case b.simple():
			u.branches[i] = optionalNode{s.column(name, b.stored(), true, parent)}
		default:
			c := s.column(name, Null, true, parent)
			u.branches[i] = presenceNode{c, s.build(name, b, c)}
		}
	}
	if u.null && len(u.branches) == 2 { // null and one other: the array is the other's
		if u.branches[0] != nil {
			return u.branches[0]
		}
		return u.branches[1]
	}
	return u
}
