package meta

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/internal/thrift"
)

// SchemaElem is a SchemaElement: a column, or a group of the children that follow it.
type SchemaElem struct {
	Typ       Physical // -1 for a group
	Length    int32
	Rep       int32
	Name      string
	children  int32
	converted int32 // -1: none
	scale     int32
	precision int32
	ID        int32 // -1: none
	logical   Logical
}

// Logical is a LogicalType; Kind is the number of its union field, 0 if there is none.
type Logical struct {
	Kind             int
	Scale, Precision int32
	Unit             int // 1 milliseconds, 2 microseconds, 3 nanoseconds
	UTC, Signed      bool
	Bits             int8

	version   int8 // of VARIANT
	crs       string
	algorithm int32 // -1: none
}

// Kinds of logical types: parquet.thrift, LogicalType.
const (
	LogicalString    = 1
	LogicalMap       = 2
	LogicalList      = 3
	logicalEnum      = 4
	LogicalDecimal   = 5
	LogicalDate      = 6
	LogicalTime      = 7
	LogicalTimestamp = 8
	LogicalInteger   = 10
	LogicalUnknown   = 11
	LogicalJSON      = 12
	logicalBSON      = 13
	LogicalUUID      = 14
	LogicalFloat16   = 15
	logicalVariant   = 16
	logicalGeometry  = 17
	logicalGeography = 18
)

// Repetitions, and the converted types that correspond to no logical type.
const (
	RepRequired = 0
	RepOptional = 1
	RepRepeated = 2

	convertedMapKeyValue = 2
	convertedInterval    = 21
)

func parseElement(r *thrift.Reader) SchemaElem {
	e := SchemaElem{Typ: -1, converted: -1, ID: -1}
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			if e.Typ = Physical(r.Enum("type", enumText(physicalTypes))); e.Typ < 0 {
				r.Fail(1, "type", "expected a physical type, found %d", e.Typ)
			}
		case 2:
			e.Length = r.I32("type_length")
		case 3:
			e.Rep = r.Enum("repetition_type", enumText(repetitions))
		case 4:
			e.Name = r.String("name")
		case 5:
			e.children = r.I32("num_children")
		case 6:
			e.converted = r.Enum("converted_type", enumText(convertedTypes))
		case 7:
			e.scale = r.I32("scale")
		case 8:
			e.precision = r.I32("precision")
		case 9:
			e.ID = r.I32("field_id")
		case 10:
			e.logical = parseLogical(r)
		}
	}
	return e
}

func parseLogical(r *thrift.Reader) (l Logical) {
	l.algorithm = -1
	for r.Struct("logical_type"); r.Next(); {
		switch l.Kind = r.Field(); l.Kind {
		case LogicalDecimal:
			for r.Struct("DECIMAL"); r.Next(); {
				switch r.Field() {
				case 1:
					l.Scale = r.I32("scale")
				case 2:
					l.Precision = r.I32("precision")
				}
			}
		case LogicalTime, LogicalTimestamp:
			for r.Struct(logicalType[l.Kind].name); r.Next(); {
				switch r.Field() {
				case 1:
					l.UTC = r.Bool("is_adjusted_to_utc")
				case 2:
					l.Unit = parseUnion(r, "unit", instantType[2].of)
				}
			}
		case LogicalInteger:
			for r.Struct("INTEGER"); r.Next(); {
				switch r.Field() {
				case 1:
					l.Bits = r.I8("bit_width")
				case 2:
					l.Signed = r.Bool("is_signed")
				}
			}
		case logicalVariant, logicalGeometry, logicalGeography:
			l.parseExtra(r)
		default:
			walkOther(r, logicalType)
		}
	}
	return l
}

// parseExtra reads the fields of VARIANT, GEOMETRY and GEOGRAPHY.
func (l *Logical) parseExtra(r *thrift.Reader) {
	for r.Struct(logicalType[l.Kind].name); r.Next(); {
		switch f := r.Field(); {
		case f == 1 && l.Kind == logicalVariant:
			l.version = r.I8("specification_version")
		case f == 1:
			l.crs = r.String("crs")
		case f == 2 && l.Kind == logicalGeography:
			l.algorithm = r.Enum("algorithm", enumText(algorithms))
		}
	}
}

// LogicalType returns the logical type of an element, or the equivalent of its converted type if it has none.
func (e *SchemaElem) LogicalType() Logical {
	// For INTERVAL, which exists only as a converted type, parquet-mr writes the logical type UNKNOWN.
	if e.logical.Kind != 0 && (e.logical.Kind != LogicalUnknown || e.converted < 0) {
		return e.logical
	}
	integer := func(bits int8, signed bool) Logical { return Logical{Kind: LogicalInteger, Bits: bits, Signed: signed} }
	switch EnumName(convertedTypes, e.converted) {
	case "UTF8":
		return Logical{Kind: LogicalString}
	case "MAP", "MAP_KEY_VALUE":
		return Logical{Kind: LogicalMap}
	case "LIST":
		return Logical{Kind: LogicalList}
	case "ENUM":
		return Logical{Kind: logicalEnum}
	case "DECIMAL":
		return Logical{Kind: LogicalDecimal, Scale: e.scale, Precision: e.precision}
	case "DATE":
		return Logical{Kind: LogicalDate}
	case "TIME_MILLIS":
		return Logical{Kind: LogicalTime, Unit: 1, UTC: true}
	case "TIME_MICROS":
		return Logical{Kind: LogicalTime, Unit: 2, UTC: true}
	case "TIMESTAMP_MILLIS":
		return Logical{Kind: LogicalTimestamp, Unit: 1, UTC: true}
	case "TIMESTAMP_MICROS":
		return Logical{Kind: LogicalTimestamp, Unit: 2, UTC: true}
	case "UINT_8", "UINT_16", "UINT_32", "UINT_64":
		return integer(8<<(e.converted-11), false)
	case "INT_8", "INT_16", "INT_32", "INT_64":
		return integer(8<<(e.converted-15), true)
	case "JSON":
		return Logical{Kind: LogicalJSON}
	case "BSON":
		return Logical{Kind: logicalBSON}
	}
	return Logical{}
}

// SchemaNode is an element with its children.
type SchemaNode struct {
	*SchemaElem
	Children []*SchemaNode
	Column   int // of a leaf
}

// Leaf reports whether n is a column.
func (n *SchemaNode) Leaf() bool { return n.Typ >= 0 }

// Only returns the only child of a group; nil if it has more or none.
func (n *SchemaNode) Only() *SchemaNode {
	if len(n.Children) == 1 {
		return n.Children[0]
	}
	return nil
}

// SchemaTree is a schema: its root, and its columns in file order.
type SchemaTree struct {
	Root    *SchemaNode
	Columns []*SchemaColumn
}

// NumColumns returns the number of leaves, Column returns one of them.
func (t *SchemaTree) NumColumns() int            { return len(t.Columns) }
func (t *SchemaTree) Column(i int) *SchemaColumn { return t.Columns[i] }

// SchemaColumn is a leaf with its path and levels.
type SchemaColumn struct {
	*SchemaNode
	Steps          []string
	MaxDef, MaxRep int16
}

// MaxDefinitionLevel returns the definition level of a value that is present, MaxRepetitionLevel the repetition level
// of an item that continues the innermost list.
func (c *SchemaColumn) MaxDefinitionLevel() int16 { return c.MaxDef }
func (c *SchemaColumn) MaxRepetitionLevel() int16 { return c.MaxRep }

// PhysicalType returns the type in which values are stored, TypeLength the size of a FIXED_LEN_BYTE_ARRAY in bytes.
func (c *SchemaColumn) PhysicalType() Physical { return c.Typ }
func (c *SchemaColumn) TypeLength() int        { return int(c.Length) }

// Path returns the names from the root down, joined with dots, ColumnPath the same names as a list.
func (c *SchemaColumn) Path() string         { return strings.Join(c.Steps, ".") }
func (c *SchemaColumn) ColumnPath() []string { return c.Steps }

// Interval reports whether the column is an INTERVAL, which has no order.
func (c *SchemaColumn) Interval() bool {
	return c.logical.Kind == 0 && c.converted == convertedInterval
}

const (
	// maxNesting is the largest depth to which groups may be nested.
	maxNesting = 250
	// maxLevel is the highest supported level: each level is decoded to a byte.
	maxLevel = math.MaxUint8
)

// ReadTree builds the tree of a schema's elements; at is the span of the footer, for errors.
func ReadTree(els []SchemaElem, at fault.Span) (*SchemaTree, error) {
	t := &SchemaTree{}
	if len(els) == 0 {
		return nil, fault.Corruptf(at, "footer/metadata.schema", "it has no elements")
	}
	b := treeBuilder{tree: t, els: els, at: at}
	root, err := b.node(SchemaColumn{}, true, 0)
	if err != nil {
		return nil, err
	}
	if b.next != len(els) {
		return nil, b.fail(b.next, "it belongs to no group")
	}
	t.Root = root
	return t, nil
}

type treeBuilder struct {
	tree *SchemaTree
	els  []SchemaElem
	next int
	at   fault.Span
}

func (b *treeBuilder) fail(i int, format string, args ...any) error {
	return fault.Corruptf(b.at, fmt.Sprintf("footer/metadata.schema[%d]", i), format, args...)
}

func (b *treeBuilder) node(above SchemaColumn, root bool, depth int) (*SchemaNode, error) {
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
	n := &SchemaNode{SchemaElem: e, Column: -1}
	if !root {
		above.Steps = append(slices.Clip(above.Steps), e.Name)
		switch e.Rep {
		case RepRequired:
		case RepOptional:
			above.MaxDef++
		case RepRepeated:
			above.MaxDef++
			above.MaxRep++
		default:
			return nil, b.fail(i, "repetition_type %d", e.Rep)
		}
	}
	switch {
	case e.Typ >= 0 && (e.children != 0 || root):
		return nil, b.fail(i, "a type and children, or a root with a type")
	case int(e.Typ) >= len(physicalTypes):
		return nil, fault.Unsupportedf(b.at, fmt.Sprintf("footer/metadata.schema[%d].type", i), "type %d", e.Typ)
	case e.children < 0 || int(e.children) > len(b.els):
		return nil, b.fail(i, "%d children among %d elements", e.children, len(b.els))
	case above.MaxDef > maxLevel:
		return nil, fault.Unsupportedf(b.at, fmt.Sprintf("footer/metadata.schema[%d]", i), "more than %d levels",
			maxLevel)
	}
	if n.Leaf() {
		n.Column = len(b.tree.Columns)
		above.SchemaNode = n
		b.tree.Columns = append(b.tree.Columns, &above)
		return n, nil
	}
	for range e.children {
		c, err := b.node(above, false, depth+1)
		if err != nil {
			return nil, err
		}
		n.Children = append(n.Children, c)
	}
	return n, nil
}
