package redfile

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/internal/nest"
)

// node is a field of a schema as RedFile has it: a leaf with a type, or a group with children.
type node struct {
	name     string
	rep      repetition
	typ      Physical // -1: a group
	conv     converted
	children []*node
}

// leaf is a column: a leaf of the schema and what its chunks must agree with.
type leaf struct {
	path           []string
	typ            Physical
	maxDef, maxRep uint8
	conv           converted // of a guessed schema
	value          value     // how its values become Arrow's
	column         format.Column
}

// maxNesting is how deep groups may stand in each other.
const maxNesting = 48

// leavesOf lists the leaves of a schema in order, below a root without a name.
func leavesOf(root *node) []leaf {
	var out []leaf
	var walk func(n *node, at leaf)
	walk = func(n *node, at leaf) {
		at.path = append(slices.Clip(at.path), n.name)
		if n.rep != required {
			at.maxDef++
		}
		if n.rep == repeated {
			at.maxRep++
		}
		if n.typ >= 0 {
			at.typ, at.conv = n.typ, n.conv
			out = append(out, at)
		}
		for _, c := range n.children {
			walk(c, at)
		}
	}
	for _, c := range root.children {
		walk(c, leaf{})
	}
	return out
}

// treeOfElements makes the tree of the elements of generation D or E.
func treeOfElements(els []element, g Generation, at fault.Span) (*node, error) {
	t := elementTree{els: els, gen: g, at: at, seen: make([]bool, len(els))}
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
	els  []element
	gen  Generation
	at   fault.Span
	seen []bool
	next int // of E: the element behind those that were read
}

func (t *elementTree) fail(i int, format string, args ...any) error {
	return fault.Corruptf(t.at, fmt.Sprintf("file_metadata.schema[%d]", i), format, args...)
}

func (t *elementTree) node(i, depth int) (*node, error) {
	if depth > maxNesting {
		return nil, t.fail(i, "groups nested deeper than %d", maxNesting)
	}
	e := &t.els[i]
	t.seen[i] = true
	t.next = i + 1
	n := &node{name: e.name, rep: e.rep, typ: e.typ, conv: e.conv}
	kids := e.children
	if t.gen == GenD {
		kids = len(e.indices)
	}
	switch {
	case e.typ >= 0 && (kids != 0 || i == 0):
		return nil, t.fail(i, "a type and children, or a root with a type")
	case e.typ > ByteArray:
		return nil, fault.Unsupportedf(t.at, fmt.Sprintf("file_metadata.schema[%d].type", i), "%s", e.typ)
	case e.rep < required || e.rep > repeated:
		return nil, fault.Unsupportedf(t.at, fmt.Sprintf("file_metadata.schema[%d].repetition_type", i), "%s", e.rep)
	case e.typ < 0 && kids == 0 && i > 0:
		return nil, t.fail(i, "neither a type nor children")
	case kids < 0 || kids > len(t.els):
		return nil, t.fail(i, "%d children among %d elements", kids, len(t.els))
	}
	for k := range kids {
		j := t.next
		if t.gen == GenD {
			j = int(e.indices[k])
		}
		if j < 0 || j >= len(t.els) || t.seen[j] {
			return nil, t.fail(i, "child %d is element %d, which is not there or has a parent", k, j)
		}
		c, err := t.node(j, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
	}
	return n, nil
}

// elements is the tree in depth-first order.
func (n *node) elements(to []element) []element {
	to = append(to, element{typ: n.typ, rep: n.rep, name: n.name, children: len(n.children), conv: n.conv})
	for _, c := range n.children {
		to = c.elements(to)
	}
	return to
}

// field is the Arrow field of a node. Repeated is a list that cannot be null, of items that cannot be.
func (n *node) field(o *readOptions) (arrow.Field, error) {
	f := arrow.Field{Name: n.name, Nullable: n.rep == optional}
	var err error
	if f.Type, err = n.arrowType(o); err != nil {
		return f, err
	}
	if n.rep == repeated {
		f.Type = arrow.ListOfNonNullable(f.Type)
	}
	return f, nil
}

func (n *node) arrowType(o *readOptions) (arrow.DataType, error) {
	if n.typ >= 0 {
		return leafType(n.typ, n.conv, o), nil
	}
	if c := n.only(); c != nil && c.rep == repeated {
		switch {
		case n.conv == convMap && c.isPair():
			key, err := c.children[0].field(o)
			if err != nil {
				return nil, err
			}
			item, err := c.children[1].field(o)
			if err != nil {
				return nil, err
			}
			m := arrow.MapOf(key.Type, item.Type)
			m.SetItemNullable(item.Nullable)
			return m, nil
		case n.conv == convList && c.name == "list" && c.only() != nil && c.only().rep != repeated:
			item, err := c.only().field(o)
			return arrow.ListOfField(item), err
		case n.conv == convList:
			item, err := c.arrowType(o)
			return arrow.ListOfNonNullable(item), err
		}
	}
	fields := make([]arrow.Field, 0, len(n.children))
	for _, c := range n.children {
		f, err := c.field(o)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return arrow.StructOf(fields...), nil
}

// only is the one child of a group that has no other.
func (n *node) only() *node {
	if len(n.children) == 1 {
		return n.children[0]
	}
	return nil
}

// isPair reports whether n is the group of a map's key and value.
func (n *node) isPair() bool {
	return len(n.children) == 2 && n.children[0].rep == required && n.children[1].rep != repeated && n.typ < 0
}

func leafType(p Physical, c converted, o *readOptions) arrow.DataType {
	switch p {
	case Boolean:
		return arrow.FixedWidthTypes.Boolean
	case Int32:
		return arrow.PrimitiveTypes.Int32
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case Int96:
		return &arrow.FixedSizeBinaryType{ByteWidth: 12}
	case Float:
		return arrow.PrimitiveTypes.Float32
	case Double:
		return arrow.PrimitiveTypes.Float64
	}
	if c == convUTF8 || o.utf8 {
		return arrow.BinaryTypes.String
	}
	return arrow.BinaryTypes.Binary
}

// treeOf is the RedFile schema of an Arrow schema; its leaves are those of nest.Leaves, in the same order.
func treeOf(sc *arrow.Schema) (*node, error) {
	root := &node{name: "schema", typ: -1, conv: convNone}
	for _, f := range sc.Fields() {
		n, err := nodeOf(f, f.Name)
		if err != nil {
			return nil, err
		}
		root.children = append(root.children, n)
	}
	return root, nil
}

func nodeOf(f arrow.Field, path string) (*node, error) {
	n := &node{name: f.Name, typ: -1, conv: convNone}
	if f.Nullable {
		n.rep = optional
	}
	group := func(c *node, rep repetition, name string) *node {
		c.rep = rep
		if name != "" {
			c.name = name
		}
		return c
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		for _, c := range t.Fields() {
			k, err := nodeOf(c, path+"."+c.Name)
			if err != nil {
				return nil, err
			}
			n.children = append(n.children, k)
		}
		if len(n.children) == 0 {
			return nil, fault.Unsupportedf(fault.Span{}, "",
				"column %s: a struct without fields has no values to keep", path)
		}
		return n, nil
	case *arrow.MapType:
		key, err := nodeOf(arrow.Field{Name: "key", Type: t.KeyType()}, path+".key")
		if err != nil {
			return nil, err
		}
		item, err := nodeOf(arrow.Field{Name: "value", Type: t.ItemType(), Nullable: t.ItemField().Nullable},
			path+".value")
		if err != nil {
			return nil, err
		}
		n.conv = convMap
		n.children = []*node{{name: "map", rep: repeated, typ: -1, conv: convMapKeyValue, children: []*node{key, item}}}
		return n, nil
	case arrow.ListLikeType:
		if !plainList(f.Type) {
			return nil, fault.Unsupportedf(fault.Span{}, "", "column %s: type %s", path, f.Type)
		}
		item, err := nodeOf(t.ElemField(), path+"."+t.ElemField().Name)
		if err != nil {
			return nil, err
		}
		// a repeated field is just that
		if !f.Nullable && !t.ElemField().Nullable && item.conv < 0 && item.rep != repeated {
			return group(item, repeated, f.Name), nil
		}
		n.conv = convList
		n.children = []*node{{name: "list", rep: repeated, typ: -1, conv: convNone, children: []*node{item}}}
		return n, nil
	}
	v, ok := valueOf(f.Type)
	if !ok {
		return nil, fault.Unsupportedf(fault.Span{}, "",
			"column %s: RedFile has no values of type %s; the other columns can be written without it", path, f.Type)
	}
	n.typ = v.typ
	if f.Type.ID() == arrow.STRING || f.Type.ID() == arrow.LARGE_STRING {
		n.conv = convUTF8
	}
	return n, nil
}

func plainList(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		return true
	}
	return false
}

// schemaKey is the metadata key under which the Arrow schema stands, as in Parquet: an encapsulated IPC message
// in base64.
const schemaKey = "ARROW:schema"

func schemaText(sc *arrow.Schema) (string, error) {
	b, err := arrowschema.Encode(sc)
	if err != nil {
		return "", fmt.Errorf("the schema as an Arrow message: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// schemaOfText is the inverse of schemaText.
func schemaOfText(text string, l format.Limits, at fault.Span) (*arrow.Schema, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return arrowschema.DecodeWithin(b, l, at, "file_metadata.key_value_metadata["+schemaKey+"]")
}

// arrowLeaves gives the leaves of an Arrow schema with how their values are stored.
func arrowLeaves(sc *arrow.Schema) ([]leaf, error) {
	var out []leaf
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
			out = append(out, leaf{typ: v.typ, maxDef: l.MaxDef, maxRep: l.MaxRep, value: v, column: col})
		}
	}
	return out, nil
}

// canonical is the type as which t is read back: RedFile has no dictionaries, and the vectors have no large strings.
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

func canonicalSchema(sc *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(sc.Fields())
	for i := range fields {
		fields[i].Type = canonical(fields[i].Type)
	}
	meta := sc.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// annotate marks a group whose one child is repeated and has the name of a list or map.
func (n *node) annotate() {
	if k := n.only(); k != nil && k.rep == repeated && k.typ < 0 && n.rep != repeated {
		switch {
		case k.name == "list" && k.only() != nil:
			n.conv = convList
		case k.name == "map" && k.isPair():
			n.conv = convMap
		}
	}
}

// parseText reads the schema of generation C: redelm's notation,
//
//	message NAME { required int32 NAME; optional group NAME (LIST) { … } }
func parseText(text string, at fault.Span) (*node, error) {
	p := textParser{words: wordsOf(text), at: at}
	if p.word() != "message" {
		return nil, p.fail("it does not begin with the word message")
	}
	root := &node{name: p.word(), typ: -1, conv: convNone}
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
	words []string
	at    fault.Span
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

func (p *textParser) group(n *node, depth int) error {
	if depth > maxNesting {
		return p.fail("groups nested deeper than %d", maxNesting)
	}
	if w := p.word(); w != "{" {
		return p.fail("%q where a group begins with {", w)
	}
	for {
		w := p.word()
		if w == "}" {
			return nil
		}
		c := &node{typ: -1, conv: convNone}
		i := slices.Index([]string{"required", "optional", "repeated"}, strings.ToLower(w))
		if i < 0 {
			return p.fail("%q is no repetition", w)
		}
		c.rep = repetition(i)
		kind := strings.ToLower(p.word())
		if kind != "group" {
			if c.typ = Physical(slices.Index([]string{"boolean", "int32", "int64", "int96", "float", "double",
				"binary"}, kind)); kind == "byte_array" {
				c.typ = ByteArray
			}
			if c.typ < 0 {
				return p.fail("%q is no type", kind)
			}
		}
		c.name = p.word()
		if len(p.words) > 2 && p.words[0] == "(" {
			c.conv = converted(slices.Index([]string{"UTF8", "MAP", "MAP_KEY_VALUE", "LIST"},
				strings.ToUpper(p.words[1])))
			p.words = p.words[3:]
		}
		if c.typ < 0 {
			if err := p.group(c, depth+1); err != nil {
				return err
			}
		} else if w := p.word(); w != ";" {
			return p.fail("%q where a field ends with ;", w)
		}
		n.children = append(n.children, c)
	}
}
