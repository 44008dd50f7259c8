package parquet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/internal/thrift"
)

// schemaElem is a SchemaElement: a column, or a group of so many children that follow it.
type schemaElem struct {
	typ       physical // -1: a group
	length    int32
	rep       int32
	name      string
	children  int32
	converted int32 // -1: none
	scale     int32
	precision int32
	id        int32 // -1: none
	logical   logical
}

// logical is a LogicalType; kind is the number of its field, 0: there is none.
type logical struct {
	kind             int
	scale, precision int32
	unit             int // 1 milliseconds, 2 microseconds, 3 nanoseconds
	utc, signed      bool
	bits             int8
}

// Kinds of logical types: parquet.thrift, LogicalType.
const (
	logicalString    = 1
	logicalMap       = 2
	logicalList      = 3
	logicalEnum      = 4
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
	logicalInteger   = 10
	logicalUnknown   = 11
	logicalJSON      = 12
	logicalBSON      = 13
	logicalUUID      = 14
	logicalFloat16   = 15
)

// Repetitions, and the converted types that stand for no logical type of the same meaning.
const (
	repRequired = 0
	repOptional = 1
	repRepeated = 2

	convertedMapKeyValue = 2
	convertedInterval    = 21
)

func parseElement(r *thrift.Reader) schemaElem {
	e := schemaElem{typ: -1, converted: -1, id: -1}
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			e.typ = physical(r.Enum("type", textOf(physicalTypes)))
		case 2:
			e.length = r.I32("type_length")
		case 3:
			e.rep = r.Enum("repetition_type", textOf(repetitions))
		case 4:
			e.name = r.String("name")
		case 5:
			e.children = r.I32("num_children")
		case 6:
			e.converted = r.Enum("converted_type", textOf(convertedTypes))
		case 7:
			e.scale = r.I32("scale")
		case 8:
			e.precision = r.I32("precision")
		case 9:
			e.id = r.I32("field_id")
		case 10:
			e.logical = parseLogical(r)
		}
	}
	return e
}

func parseLogical(r *thrift.Reader) (l logical) {
	for r.Struct("logical_type"); r.Next(); {
		switch l.kind = r.Field(); l.kind {
		case logicalDecimal:
			for r.Struct("DECIMAL"); r.Next(); {
				switch r.Field() {
				case 1:
					l.scale = r.I32("scale")
				case 2:
					l.precision = r.I32("precision")
				}
			}
		case logicalTime, logicalTimestamp:
			for r.Struct(logicalType[l.kind].name); r.Next(); {
				switch r.Field() {
				case 1:
					l.utc = r.Bool("is_adjusted_to_utc")
				case 2:
					l.unit = parseUnion(r, "unit", instantType[2].of)
				}
			}
		case logicalInteger:
			for r.Struct("INTEGER"); r.Next(); {
				switch r.Field() {
				case 1:
					l.bits = r.I8("bit_width")
				case 2:
					l.signed = r.Bool("is_signed")
				}
			}
		default:
			other(r, logicalType)
		}
	}
	return l
}

// meaning is the logical type of an element: that of its converted type if it has no other.
func (e *schemaElem) meaning() logical {
	if e.logical.kind != 0 {
		return e.logical
	}
	integer := func(bits int8, signed bool) logical { return logical{kind: logicalInteger, bits: bits, signed: signed} }
	switch named(convertedTypes, e.converted) {
	case "UTF8":
		return logical{kind: logicalString}
	case "MAP", "MAP_KEY_VALUE":
		return logical{kind: logicalMap}
	case "LIST":
		return logical{kind: logicalList}
	case "ENUM":
		return logical{kind: logicalEnum}
	case "DECIMAL":
		return logical{kind: logicalDecimal, scale: e.scale, precision: e.precision}
	case "DATE":
		return logical{kind: logicalDate}
	case "TIME_MILLIS":
		return logical{kind: logicalTime, unit: 1, utc: true}
	case "TIME_MICROS":
		return logical{kind: logicalTime, unit: 2, utc: true}
	case "TIMESTAMP_MILLIS":
		return logical{kind: logicalTimestamp, unit: 1, utc: true}
	case "TIMESTAMP_MICROS":
		return logical{kind: logicalTimestamp, unit: 2, utc: true}
	case "UINT_8", "UINT_16", "UINT_32", "UINT_64":
		return integer(8<<(e.converted-11), false)
	case "INT_8", "INT_16", "INT_32", "INT_64":
		return integer(8<<(e.converted-15), true)
	case "JSON":
		return logical{kind: logicalJSON}
	case "BSON":
		return logical{kind: logicalBSON}
	}
	return logical{}
}

// schemaNode is an element with its children.
type schemaNode struct {
	*schemaElem
	children []*schemaNode
	column   int // of a leaf
}

func (n *schemaNode) leaf() bool { return n.typ >= 0 }

// only is the one child of a group that has no other.
func (n *schemaNode) only() *schemaNode {
	if len(n.children) == 1 {
		return n.children[0]
	}
	return nil
}

// schemaTree is a schema: its root, and its columns in their order.
type schemaTree struct {
	root    *schemaNode
	columns []*schemaColumn
}

// NumColumns is the number of leaves, Column is one of them.
func (t *schemaTree) NumColumns() int            { return len(t.columns) }
func (t *schemaTree) Column(i int) *schemaColumn { return t.columns[i] }

// schemaColumn is a leaf with what the groups above it add.
type schemaColumn struct {
	*schemaNode
	path           []string
	maxDef, maxRep int16
}

// MaxDefinitionLevel and MaxRepetitionLevel are the levels of a value that is there, and of the innermost list
// that goes on.
func (c *schemaColumn) MaxDefinitionLevel() int16 { return c.maxDef }
func (c *schemaColumn) MaxRepetitionLevel() int16 { return c.maxRep }

// PhysicalType is how values are stored, TypeLength the bytes of one of fixed length.
func (c *schemaColumn) PhysicalType() physical { return c.typ }
func (c *schemaColumn) TypeLength() int        { return int(c.length) }

// Path is the names from the root down, joined with dots.
func (c *schemaColumn) Path() string         { return strings.Join(c.path, ".") }
func (c *schemaColumn) ColumnPath() []string { return c.path }

// interval reports whether the column is of INTERVAL, which has no order.
func (c *schemaColumn) interval() bool {
	return c.logical.kind == 0 && c.converted == convertedInterval
}

const (
	// maxNesting is how deep groups may stand in each other.
	maxNesting = 100
	// maxLevel is the highest level that is read: a byte.
	maxLevel = math.MaxUint8
)

// readTree makes the tree of a schema's elements.
func readTree(els []schemaElem, at fault.Span) (*schemaTree, error) {
	t := &schemaTree{}
	if len(els) == 0 {
		return nil, fault.Corruptf(at, "footer/metadata.schema", "it has no elements")
	}
	b := treeBuilder{tree: t, els: els, at: at}
	root, err := b.node(schemaColumn{}, true, 0)
	if err != nil {
		return nil, err
	}
	if b.next != len(els) {
		return nil, b.fail(b.next, "it belongs to no group")
	}
	t.root = root
	return t, nil
}

type treeBuilder struct {
	tree *schemaTree
	els  []schemaElem
	next int
	at   fault.Span
}

func (b *treeBuilder) fail(i int, format string, args ...any) error {
	return fault.Corruptf(b.at, fmt.Sprintf("footer/metadata.schema[%d]", i), format, args...)
}

func (b *treeBuilder) node(above schemaColumn, root bool, depth int) (*schemaNode, error) {
	i := b.next
	if i >= len(b.els) {
		return nil, b.fail(i, "a group has more children than there are elements")
	}
	if depth > maxNesting {
		return nil, fault.Limitf(b.at, fmt.Sprintf("footer/metadata.schema[%d]", i),
			"groups nested deeper than %d are not read", maxNesting)
	}
	b.next++
	e := &b.els[i]
	n := &schemaNode{schemaElem: e, column: -1}
	if !root {
		above.path = append(slices.Clip(above.path), e.name)
		switch e.rep {
		case repRequired:
		case repOptional:
			above.maxDef++
		case repRepeated:
			above.maxDef++
			above.maxRep++
		default:
			return nil, b.fail(i, "repetition_type %d", e.rep)
		}
	}
	switch {
	case e.typ >= 0 && (e.children != 0 || root):
		return nil, b.fail(i, "a type and children, or a root with a type")
	case int(e.typ) >= len(physicalTypes):
		return nil, fault.Unsupportedf(b.at, fmt.Sprintf("footer/metadata.schema[%d].type", i), "type %d", e.typ)
	case e.children < 0 || int(e.children) > len(b.els):
		return nil, b.fail(i, "%d children among %d elements", e.children, len(b.els))
	case above.maxDef > maxLevel:
		return nil, fault.Unsupportedf(b.at, fmt.Sprintf("footer/metadata.schema[%d]", i), "more than %d levels",
			maxLevel)
	}
	if n.leaf() {
		n.column = len(b.tree.columns)
		above.schemaNode = n
		b.tree.columns = append(b.tree.columns, &above)
		return n, nil
	}
	for range e.children {
		c, err := b.node(above, false, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
	}
	return n, nil
}
