package schema

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/arrowschema"
	"stoa/internal/nest"
)

// Node is a field of a RedFile schema: a leaf with a type, or a group with children.
type Node struct {
	Name       string
	Repetition layout.Repetition
	Type       layout.Physical // -1: a group
	Converted  layout.Converted
	Children   []*Node
}

// Leaf is a column: a leaf of the schema, with the properties that are compared with its chunks.
type Leaf struct {
	Path           []string
	Type           layout.Physical
	MaxDef, MaxRep uint8
	Converted      layout.Converted // of an inferred schema
	Value          value            // how its values are stored
	Column         format.Column
}

// LeavesOf returns the leaves of a tree in order, with paths and maximum levels. Paths do not include the root.
func LeavesOf(root *Node) []Leaf {
	var out []Leaf
	var walk func(n *Node, at Leaf)
	walk = func(n *Node, at Leaf) {
		at.Path = append(slices.Clip(at.Path), n.Name)
		if n.Repetition != layout.Required {
			at.MaxDef++
		}
		if n.Repetition == layout.Repeated {
			at.MaxRep++
		}
		if n.Type >= 0 {
			at.Type, at.Converted = n.Type, n.Converted
			out = append(out, at)
		}
		for _, c := range n.Children {
			walk(c, at)
		}
	}
	for _, c := range root.Children {
		walk(c, Leaf{})
	}
	return out
}

// TreeOfElements returns the tree of the elements of generation D or E, whose span is at. Elements that do not form a
// tree are an error of class Corrupt; unknown types, Unsupported; a tree that is too deep, Limit.
func TreeOfElements(els []layout.Element, g layout.Generation, l format.Limits, at fault.Span) (*Node,
	error) {
	t := elementTree{els: els, gen: g, limits: l, at: at, seen: make([]bool, len(els))}
	root, err := t.node(0, 0)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(t.seen, false); i >= 0 {
		return nil, t.fail(i, "it belongs to no group")
	}
	return root, nil
}

type elementTree struct {
	els    []layout.Element
	gen    layout.Generation
	limits format.Limits
	at     fault.Span
	seen   []bool
	next   int // of generation E: the first element that has not been read
}

func (t *elementTree) fail(i int, format string, args ...any) error {
	return fault.Corruptf(t.at, fmt.Sprintf("file_metadata.schema[%d]", i), format, args...)
}

func (t *elementTree) node(i, depth int) (*Node, error) {
	if err := t.limits.FitGroups(depth-1, t.at, fmt.Sprintf("file_metadata.schema[%d]", i)); err != nil {
		return nil, err
	}
	e := &t.els[i]
	t.seen[i] = true
	t.next = i + 1
	n := &Node{Name: e.Name, Repetition: e.Repetition, Type: e.Type, Converted: e.Converted}
	children := e.Children
	if t.gen == layout.GenD {
		children = len(e.Indices)
	}
	switch {
	case e.Type >= 0 && (children != 0 || i == 0):
		return nil, t.fail(i, "a type and children, or a root with a type")
	case e.Type > layout.ByteArray:
		return nil, fault.Unsupportedf(t.at, fmt.Sprintf("file_metadata.schema[%d].type", i), "%s", e.Type)
	case e.Repetition < layout.Required || e.Repetition > layout.Repeated:
		return nil, fault.Unsupportedf(t.at, fmt.Sprintf("file_metadata.schema[%d].repetition_type", i), "%s",
			e.Repetition)
	case e.Type < 0 && children == 0 && i > 0:
		return nil, t.fail(i, "neither a type nor children")
	case children < 0 || children > len(t.els):
		return nil, t.fail(i, "%d children among %d elements", children, len(t.els))
	}
	for k := range children {
		j := t.next
		if t.gen == layout.GenD {
			j = int(e.Indices[k])
		}
		if j < 0 || j >= len(t.els) || t.seen[j] {
			return nil, t.fail(i, "child %d is element %d, which is not there or has a parent", k, j)
		}
		c, err := t.node(j, depth+1)
		if err != nil {
			return nil, err
		}
		n.Children = append(n.Children, c)
	}
	return n, nil
}

// Elements appends the tree, depth first.
func (n *Node) Elements(to []layout.Element) []layout.Element {
	to = append(to, layout.Element{Type: n.Type, Repetition: n.Repetition, Name: n.Name, Children: len(n.Children),
		Converted: n.Converted})
	for _, c := range n.Children {
		to = c.Elements(to)
	}
	return to
}

// Field returns the Arrow field of a node. A repeated node is a non-null list of non-null items.
func (n *Node) Field(o *layout.ReadOptions) (arrow.Field, error) {
	f := arrow.Field{Name: n.Name, Nullable: n.Repetition == layout.Optional}
	var err error
	if f.Type, err = n.arrowType(o); err != nil {
		return f, err
	}
	if n.Repetition == layout.Repeated {
		f.Type = arrow.ListOfNonNullable(f.Type)
	}
	return f, nil
}

func (n *Node) arrowType(o *layout.ReadOptions) (arrow.DataType, error) {
	if n.Type >= 0 {
		return leafType(n.Type, n.Converted, o), nil
	}
	if c := n.onlyChild(); c != nil && c.Repetition == layout.Repeated {
		switch {
		case n.Converted == layout.ConvMap && c.isPair():
			key, err := c.Children[0].Field(o)
			if err != nil {
				return nil, err
			}
			item, err := c.Children[1].Field(o)
			if err != nil {
				return nil, err
			}
			m := arrow.MapOf(key.Type, item.Type)
			m.SetItemNullable(item.Nullable)
			return m, nil
		case n.Converted == layout.ConvList && c.Name == "list" && c.onlyChild() != nil &&
			c.onlyChild().Repetition != layout.Repeated:
			item, err := c.onlyChild().Field(o)
			return arrow.ListOfField(item), err
		case n.Converted == layout.ConvList:
			item, err := c.arrowType(o)
			return arrow.ListOfNonNullable(item), err
		}
	}
	fields := make([]arrow.Field, 0, len(n.Children))
	for _, c := range n.Children {
		f, err := c.Field(o)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return arrow.StructOf(fields...), nil
}

// onlyChild returns the child of a group that has exactly one; otherwise nil.
func (n *Node) onlyChild() *Node {
	if len(n.Children) == 1 {
		return n.Children[0]
	}
	return nil
}

// isPair reports whether n can be the repeated group of a map: a required key and a value.
func (n *Node) isPair() bool {
	return len(n.Children) == 2 && n.Children[0].Repetition == layout.Required &&
		n.Children[1].Repetition != layout.Repeated && n.Type < 0
}

func leafType(p layout.Physical, c layout.Converted, o *layout.ReadOptions) arrow.DataType {
	switch p {
	case layout.Boolean:
		return arrow.FixedWidthTypes.Boolean
	case layout.Int32:
		return arrow.PrimitiveTypes.Int32
	case layout.Int64:
		return arrow.PrimitiveTypes.Int64
	case layout.Int96:
		return &arrow.FixedSizeBinaryType{ByteWidth: 12}
	case layout.Float:
		return arrow.PrimitiveTypes.Float32
	case layout.Double:
		return arrow.PrimitiveTypes.Float64
	}
	if c == layout.ConvUTF8 || o.UTF8 {
		return arrow.BinaryTypes.String
	}
	return arrow.BinaryTypes.Binary
}

// TreeOf returns the RedFile schema of an Arrow schema. Its leaves correspond to those of nest.Leaves, in the same
// order. If RedFile cannot store a type, the error is Unsupported.
func TreeOf(sc *arrow.Schema) (*Node, error) {
	root := &Node{Name: "schema", Type: -1, Converted: layout.ConvNone}
	for _, f := range sc.Fields() {
		n, err := nodeOf(f, f.Name)
		if err != nil {
			return nil, err
		}
		root.Children = append(root.Children, n)
	}
	return root, nil
}

func nodeOf(f arrow.Field, path string) (*Node, error) {
	n := &Node{Name: f.Name, Type: -1, Converted: layout.ConvNone}
	if f.Nullable {
		n.Repetition = layout.Optional
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		for _, c := range t.Fields() {
			k, err := nodeOf(c, path+"."+c.Name)
			if err != nil {
				return nil, err
			}
			n.Children = append(n.Children, k)
		}
		if len(n.Children) == 0 {
			return nil, fault.Unsupportedf(fault.Span{}, "",
				"column %s: a struct without fields has no values to keep", path)
		}
		return n, nil
	case *arrow.MapType:
		return mapNode(n, t, path)
	case arrow.ListLikeType:
		if !plainList(f.Type) {
			return nil, fault.Unsupportedf(fault.Span{}, "", "column %s: type %s", path, f.Type)
		}
		return listNode(n, f, t.ElemField(), path)
	}
	v, ok := valueOf(f.Type)
	if !ok {
		return nil, fault.Unsupportedf(fault.Span{}, "",
			"column %s: RedFile has no values of type %s; the other columns can be written without it", path, f.Type)
	}
	n.Type = v.typ
	if f.Type.ID() == arrow.STRING || f.Type.ID() == arrow.LARGE_STRING {
		n.Converted = layout.ConvUTF8
	}
	return n, nil
}

// mapNode turns n into a map of keys and values according to Parquet's rules.
func mapNode(n *Node, t *arrow.MapType, path string) (*Node, error) {
	key, err := nodeOf(arrow.Field{Name: "key", Type: t.KeyType()}, path+".key")
	if err != nil {
		return nil, err
	}
	value, err := nodeOf(arrow.Field{Name: "value", Type: t.ItemType(), Nullable: t.ItemField().Nullable},
		path+".value")
	if err != nil {
		return nil, err
	}
	n.Converted = layout.ConvMap
	n.Children = []*Node{{Name: "map", Repetition: layout.Repeated, Type: -1, Converted: layout.ConvMapKeyValue,
		Children: []*Node{key, value}}}
	return n, nil
}

// listNode turns n into the list f of elem: with three levels, or a repeated field if neither list nor items are
// nullable.
func listNode(n *Node, f, elem arrow.Field, path string) (*Node, error) {
	item, err := nodeOf(elem, path+"."+elem.Name)
	if err != nil {
		return nil, err
	}
	if !f.Nullable && !elem.Nullable && item.Converted < 0 && item.Repetition != layout.Repeated {
		if item.Repetition = layout.Repeated; f.Name != "" {
			item.Name = f.Name
		}
		return item, nil
	}
	n.Converted = layout.ConvList
	n.Children = []*Node{{Name: "list", Repetition: layout.Repeated, Type: -1, Converted: layout.ConvNone,
		Children: []*Node{item}}}
	return n, nil
}

func plainList(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		return true
	}
	return false
}

// SchemaKey is the metadata key of the Arrow schema, as in Parquet: an encapsulated IPC message in base64.
const SchemaKey = "ARROW:schema"

// SchemaText encodes an Arrow schema as the value of SchemaKey.
func SchemaText(sc *arrow.Schema) (string, error) {
	b, err := arrowschema.Encode(sc)
	if err != nil {
		return "", fmt.Errorf("the schema as an Arrow message: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// schemaOfText is the inverse of SchemaText.
func schemaOfText(text string, l format.Limits, at fault.Span) (*arrow.Schema, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return arrowschema.DecodeWithin(b, l, at, "file_metadata.key_value_metadata["+SchemaKey+"]")
}

// ArrowLeaves returns the leaves of an Arrow schema, without paths, and the stored form of their values. If RedFile
// cannot store a type, the error is Unsupported.
func ArrowLeaves(sc *arrow.Schema) ([]Leaf, error) {
	var out []Leaf
	for i, f := range sc.Fields() {
		ls, err := nest.Leaves(f)
		if err != nil {
			return nil, err
		}
		for _, l := range ls {
			v, ok := valueOf(l.Type)
			if !ok {
				return nil, fault.Unsupportedf(fault.Span{}, l.Name, "RedFile has no values of type %s", l.Type)
			}
			col := format.Column{Name: l.Name, Path: append([]int{i}, l.Path...), Parent: -1, Has: format.Values,
				Type: l.Type}
			if len(l.Path) > 0 {
				col.Has |= format.Levels
				col.MaxDef, col.MaxRep = l.MaxDef, l.MaxRep
			}
			out = append(out, Leaf{Type: v.typ, MaxDef: l.MaxDef, MaxRep: l.MaxRep, Value: v, Column: col})
		}
	}
	return out, nil
}

// canonical returns the type as which t is read back: RedFile has no dictionaries, and vectors have no large strings.
func canonical(t arrow.DataType) arrow.DataType {
	field := func(f arrow.Field) arrow.Field { f.Type = canonical(f.Type); return f }
	switch t := t.(type) {
	case *arrow.LargeStringType:
		return arrow.BinaryTypes.String
	case *arrow.LargeBinaryType:
		return arrow.BinaryTypes.Binary
	case *arrow.DictionaryType:
		return canonical(t.ValueType)
	case *arrow.StructType:
		fields := slices.Clone(t.Fields())
		for i := range fields {
			fields[i] = field(fields[i])
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		m := arrow.MapOf(canonical(t.KeyType()), canonical(t.ItemType()))
		m.SetItemNullable(t.ItemField().Nullable)
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.ListType:
		return arrow.ListOfField(field(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(field(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), field(t.ElemField()))
	}
	return t
}

// CanonicalSchema returns the schema with which a table of schema sc is read back.
func CanonicalSchema(sc *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(sc.Fields())
	for i := range fields {
		fields[i].Type = canonical(fields[i].Type)
	}
	meta := sc.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// Annotate marks a group as a list or map if its only child is repeated and named "list" or "map".
func (n *Node) Annotate() {
	k := n.onlyChild()
	if k != nil && k.Repetition == layout.Repeated && k.Type < 0 && n.Repetition != layout.Repeated {
		switch {
		case k.Name == "list" && k.onlyChild() != nil:
			n.Converted = layout.ConvList
		case k.Name == "map" && k.isPair():
			n.Converted = layout.ConvMap
		}
	}
}

// ParseText parses the schema of generation C, whose span is at, in redelm's notation:
//
//	message NAME { required int32 NAME; optional group NAME (LIST) { … } }
func ParseText(text string, l format.Limits, at fault.Span) (*Node, error) {
	p := textParser{words: wordsOf(text), limits: l, at: at}
	if p.word() != "message" {
		return nil, p.fail("expected the word message at the beginning")
	}
	root := &Node{Name: p.word(), Type: -1, Converted: layout.ConvNone}
	if err := p.group(root, 0); err != nil {
		return nil, err
	}
	return root, nil
}

func wordsOf(text string) []string {
	for _, c := range []string{"{", "}", "(", ")", ";", "="} {
		text = strings.ReplaceAll(text, c, " "+c+" ")
	}
	return strings.Fields(text)
}

type textParser struct {
	words  []string
	limits format.Limits
	at     fault.Span
}

func (p *textParser) fail(format string, args ...any) error {
	return fault.Corruptf(p.at, "file_metadata.schema", format, args...)
}

func (p *textParser) word() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *textParser) group(n *Node, depth int) error {
	if err := p.limits.FitGroups(depth-1, p.at, "file_metadata.schema"); err != nil {
		return err
	}
	if w := p.word(); w != "{" {
		return p.fail("expected { at the beginning of a group, found %q", w)
	}
	for {
		w := p.word()
		if w == "}" {
			return nil
		}
		c := &Node{Type: -1, Converted: layout.ConvNone}
		i := slices.Index([]string{"required", "optional", "repeated"}, strings.ToLower(w))
		if i < 0 {
			return p.fail("expected required, optional or repeated, found %q", w)
		}
		c.Repetition = layout.Repetition(i)
		kind := strings.ToLower(p.word())
		if kind != "group" {
			if c.Type = layout.Physical(slices.Index([]string{"boolean", "int32", "int64", "int96", "float", "double",
				"binary"}, kind)); kind == "byte_array" {
				c.Type = layout.ByteArray
			}
			if c.Type < 0 {
				return p.fail("expected a type, found %q", kind)
			}
		}
		c.Name = p.word()
		if len(p.words) > 2 && p.words[0] == "(" {
			c.Converted = layout.Converted(slices.Index([]string{"UTF8", "MAP", "MAP_KEY_VALUE", "LIST"},
				strings.ToUpper(p.words[1])))
			p.words = p.words[3:]
		}
		if c.Type < 0 {
			if err := p.group(c, depth+1); err != nil {
				return err
			}
		} else if w := p.word(); w != ";" {
			return p.fail("expected ; at the end of a field, found %q", w)
		}
		n.Children = append(n.Children, c)
	}
}
