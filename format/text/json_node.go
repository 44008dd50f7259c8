package text

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// node is where the values of one field go.
type node struct {
	b        array.Builder
	typ      arrow.DataType
	nullable bool
	width    int64  // values that a null takes: those of a struct have one in each field
	set      setter // scalars
	isText   bool   // strings: other values are taken as their JSON text
	quoted   bool   // the value must be a JSON string

	// structs
	names  []string
	fields []*node
	index  map[string]int
	rows   int   // objects read
	seen   []int // the object in which a field was seen last

	dryRun bool // of the row itself: what is missing need not be appended

	// of the columns of a row
	before *int  // the rows of the batch; nil: their nulls cannot be appended later
	idle   bool  // all of those are null, and none is appended
	busy   []int // of the row: its wanted fields that are not idle, and how many are
	idlers int64

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
			n.set = nil // the library reads its own form
		}
	}
	return n
}

var errNullKey = errors.New("null where there must be a value")

// value reads one value into n's builder.
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

// foreign hands a value to the library's own reader.
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
		return &jsonError{start, fmt.Errorf("%d elements, there must be %d", count, f.Len())}
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

// members reads an object into the fields of n. Fields that are missing are null.
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

// member reads the value of field i; a field that is not wanted is skipped.
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

// absent is missing of a row's columns: of the idle ones only their number matters.
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

// fill counts values that no text stands for.
func (p *jsonParser) fill(n int64) error {
	p.filled += n
	if p.room -= n; p.room < 0 {
		return errRoom
	}
	return nil
}

// fieldError names the field that an error is in.
type fieldError struct {
	name string
	err  error
}

func (e *fieldError) Error() string { return e.err.Error() }

func (e *fieldError) Unwrap() error { return e.err }
