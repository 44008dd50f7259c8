package text

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// node is the destination of the values of one field.
type node struct {
	b        array.Builder
	typ      arrow.DataType
	nullable bool
	width    int64  // values that a null takes: a null struct also has one in each field
	set      setter // of scalars
	isText   bool   // a string: other values are stored as their JSON text
	quoted   bool   // the value must be a JSON string

	// of structs
	names  []string
	fields []*node // nil: the field is not read
	index  map[string]int
	rows   int   // number of objects read
	seen   []int // for each field, the number of the last object that had it

	dryRun bool // of a row: no nulls are appended for missing fields

	// A column that is null in all rows of a batch so far is idle: its builder is empty.
	before *int  // of a column: the rows of the batch; nil: it cannot be idle
	idle   bool  // of a column
	busy   []int // of a row: its fields that are read and not idle
	idlers int64 // of a row: the number of idle fields

	item *node // of lists
	key  *node // of maps; item is the value
}

func newNode(b array.Builder, t arrow.DataType) *node {
	n := &node{b: b, typ: t, nullable: true, width: 1}
	switch b := b.(type) {
	case *array.StructBuilder:
		n.index = map[string]int{}
		for i, f := range t.(*arrow.StructType).Fields() {
			sub := newNode(b.FieldBuilder(i), f.Type)
			sub.nullable = f.Nullable
			n.names, n.fields = append(n.names, f.Name), append(n.fields, sub)
			n.index[f.Name] = i
			n.width += sub.width
		}
		n.seen = make([]int, len(n.fields))
	case *array.MapBuilder:
		m := t.(*arrow.MapType)
		n.key, n.item = newNode(b.KeyBuilder(), m.KeyType()), newNode(b.ItemBuilder(), m.ItemType())
		n.key.nullable = false
	case array.ListLikeBuilder:
		n.item = newNode(b.ValueBuilder(), t.(arrow.ListLikeType).Elem())
		if f, ok := t.(*arrow.FixedSizeListType); ok {
			n.width += int64(f.Len()) * n.item.width
		}
	default:
		n.set = textSetter(b, t)
		switch t.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
			n.isText = true
		case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY, arrow.DATE32,
			arrow.DATE64, arrow.TIME32, arrow.TIME64:
			n.quoted = true
		case arrow.DICTIONARY, arrow.EXTENSION, arrow.RUN_END_ENCODED:
			n.set = nil // see foreign
		}
	}
	return n
}

var errNullKey = errors.New("null where a value is required")

// value appends the next value to n's builder.
func (p *jsonParser) value(n *node) error {
	c := p.peek()
	if c == 'n' {
		if _, err := p.word(); err != nil {
			return err
		}
		if !n.nullable {
			return &jsonError{p.at - 4, errNullKey}
		}
		if n.width > 1 {
			if err := p.fill(n.width); err != nil {
				return err
			}
		}
		n.b.AppendNull()
		return nil
	}
	switch {
	case n.fields != nil || n.index != nil:
		return p.structure(n, c)
	case n.key != nil:
		return p.pairs(n, c)
	case n.item != nil:
		return p.items(n, c)
	case n.set == nil:
		return p.foreign(n)
	}
	return p.scalar(n, c)
}

func (p *jsonParser) scalar(n *node, c byte) error {
	start := p.at
	var s []byte
	var err error
	switch {
	case c == '"':
		s, err = p.text()
	case n.isText:
		s, err = p.skip()
	case c == '{' || c == '[' || n.quoted:
		return p.fail("%q where a value of type %s is expected", c, n.typ)
	default:
		s, err = p.word()
	}
	if err != nil {
		return err
	}
	if err := n.set(s); err != nil {
		return &jsonError{start, err}
	}
	return nil
}

// foreign appends the next value with arrow-go's UnmarshalJSON.
func (p *jsonParser) foreign(n *node) error {
	start := p.at
	raw, err := p.skip()
	if err != nil {
		return err
	}
	list := append(append([]byte{'['}, raw...), ']')
	if err := n.b.UnmarshalJSON(list); err != nil {
		return &jsonError{start, fmt.Errorf("not a value of type %s: %w", n.typ, err)}
	}
	return nil
}

func (p *jsonParser) items(n *node, c byte) error {
	if c != '[' {
		return p.unexpected(fmt.Sprintf("an array (%s)", n.typ))
	}
	start := p.at
	n.b.(array.ListLikeBuilder).Append(true)
	count := 0
	err := p.list(func() error { count++; return p.value(n.item) })
	if f, ok := n.typ.(*arrow.FixedSizeListType); ok && err == nil && count != int(f.Len()) {
		return &jsonError{start, fmt.Errorf("expected %d elements, found %d", f.Len(), count)}
	}
	return err
}

// pairs reads a map: an array of {"key": …, "value": …}, or an object if the keys are strings.
func (p *jsonParser) pairs(n *node, c byte) error {
	b := n.b.(*array.MapBuilder)
	switch {
	case c == '{' && n.key.isText:
		b.Append(true)
		return p.object(func(key []byte) error {
			if err := n.key.set(key); err != nil {
				return err
			}
			return p.value(n.item)
		})
	case c != '[':
		return p.unexpected("an array of key and value")
	}
	b.Append(true)
	return p.list(func() error { return p.pair(n) })
}

func (p *jsonParser) pair(n *node) error {
	if p.peek() != '{' {
		return p.unexpected("an object with key and value")
	}
	var key, value bool
	err := p.object(func(name []byte) error {
		switch {
		case string(name) == "key" && !key:
			key = true
			return p.value(n.key)
		case string(name) == "value" && !value:
			value = true
			return p.value(n.item)
		}
		return p.fail("%q in an entry of a map", name)
	})
	if err != nil {
		return err
	}
	if !key {
		return p.fail("an entry of a map without a key")
	}
	if !value {
		n.item.b.AppendNull()
	}
	return nil
}

func (p *jsonParser) structure(n *node, c byte) error {
	if c != '{' {
		return p.unexpected("an object")
	}
	n.b.(*array.StructBuilder).Append(true)
	return p.members(n)
}

// members appends the members of an object to the fields of n; missing fields are null.
func (p *jsonParser) members(n *node) error {
	expected, count := 0, 0
	n.rows++
	err := p.object(func(key []byte) error {
		i := expected
		if i >= len(n.names) || n.names[i] != string(key) {
			var ok bool
			if i, ok = n.index[string(key)]; !ok {
				if p.lenient {
					_, err := p.skip()
					return err
				}
				return p.fail("the key %q is not in the schema", key)
			}
		}
		if n.seen[i] == n.rows {
			return p.fail("the key %q occurs twice", key)
		}
		n.seen[i] = n.rows
		expected = i + 1
		count++
		return p.member(n, i)
	})
	if err != nil || count == len(n.fields) {
		return err
	}
	if n.busy != nil {
		return p.absent(n)
	}
	return p.missing(n)
}

// member appends the value of field i, or skips it if the field is not read.
func (p *jsonParser) member(n *node, i int) error {
	f := n.fields[i]
	if f == nil {
		_, err := p.skip()
		return err
	}
	if f.idle {
		f.idle = false
		n.busy = append(n.busy, i)
		n.idlers--
		f.b.AppendNulls(*f.before)
	}
	err := p.value(f)
	if err != nil {
		return &fieldError{n.names[i], err}
	}
	return nil
}

// missing appends nulls to the fields of a struct that are not in the current object.
func (p *jsonParser) missing(n *node) error {
	for i, f := range n.fields {
		if n.seen[i] == n.rows || f == nil {
			continue
		}
		if !f.nullable {
			return &fieldError{n.names[i], p.fail("the key is missing, and the field cannot be null")}
		}
		if n.dryRun {
			continue
		}
		if err := p.fill(f.width); err != nil {
			return err
		}
		f.b.AppendNull()
	}
	return nil
}

// absent is missing for the columns of a row: idle columns are only counted, and a column whose builder is still empty
// becomes idle.
func (p *jsonParser) absent(n *node) error {
	if err := p.fill(n.idlers); err != nil {
		return err
	}
	busy := n.busy[:0]
	for k, i := range n.busy {
		f := n.fields[i]
		if n.seen[i] != n.rows {
			var err error
			if !f.nullable {
				err = &fieldError{n.names[i], p.fail("the key is missing, and the field cannot be null")}
			} else {
				err = p.fill(f.width)
			}
			if err != nil {
				n.busy = append(busy, n.busy[k:]...)
				return err
			}
			if f.before != nil && f.b.Len() == 0 {
				f.idle = true
				n.idlers++
				continue
			}
			f.b.AppendNull()
		}
		busy = append(busy, i)
	}
	n.busy = busy
	return nil
}

// fill counts n values that have no text; a row has a limited number of them.
func (p *jsonParser) fill(n int64) error {
	p.filled += n
	if p.room -= n; p.room < 0 {
		return errMissingMembers
	}
	return nil
}

// fieldError names the field in which an error occurred.
type fieldError struct {
	name string
	err  error
}

func (e *fieldError) Error() string { return e.err.Error() }

func (e *fieldError) Unwrap() error { return e.err }
