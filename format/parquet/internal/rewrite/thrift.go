package rewrite

import (
	"encoding/binary"
	"errors"
	"slices"
)

// node is a value of Thrift's compact protocol with its whole contents, known or not, so that it can be written again.
// internal/thrift skips unknown fields, so fields that later versions of the format or other writers put into a footer
// would be lost.
type node struct {
	typ    byte
	n      int64  // of integers and booleans
	b      []byte // of bytes, and the eight of a double
	elem   byte   // type of items
	items  []node
	fields []field
}

type field struct {
	id int16
	v  node
}

const (
	isTrue, isFalse    = 1, 2
	isByte             = 3
	isI16, isI32       = 4, 5
	isI64, isDouble    = 6, 7
	isBytes, isList    = 8, 9
	isSet, isStruct    = 10, 12
	longList, maxDepth = 15, 64
)

var errThrift = errors.New("the footer can be read, but not copied as Thrift")

// decoder parses Thrift that internal/thrift has already parsed.
type decoder struct {
	b   []byte
	bad bool
}

func decode(b []byte) (node, int, error) {
	d := decoder{b: b}
	v := d.value(isStruct, 0)
	if d.bad {
		return node{}, 0, errThrift
	}
	return v, len(b) - len(d.b), nil
}

func (d *decoder) take(n int) []byte {
	if d.bad = d.bad || n < 0 || n > len(d.b); d.bad {
		return make([]byte, 8)
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad = d.bad || n <= 0; d.bad {
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) value(typ byte, depth int) (v node) {
	v.typ = typ
	if d.bad = d.bad || depth > maxDepth; d.bad {
		return v
	}
	switch typ {
	case isTrue:
		v.n = 1
	case isFalse:
	case isByte:
		v.n = int64(int8(d.take(1)[0]))
	case isI16, isI32, isI64:
		v.n = d.varint()
	case isDouble:
		v.b = d.take(8)
	case isBytes:
		v.b = d.take(int(min(d.uvarint(), 1<<31)))
	case isList, isSet:
		d.items(&v, depth)
	case isStruct:
		d.structure(&v, depth)
	default:
		d.bad = true
	}
	return v
}

func (d *decoder) items(v *node, depth int) {
	head := d.take(1)[0]
	v.elem = head & 15
	n := uint64(head >> 4)
	if n == longList {
		n = d.uvarint()
	}
	if d.bad = d.bad || n > uint64(len(d.b)); d.bad {
		return
	}
	v.items = make([]node, 0, n)
	for range n {
		if v.elem == isTrue || v.elem == isFalse {
			v.items = append(v.items, node{typ: d.take(1)[0]})
		} else {
			v.items = append(v.items, d.value(v.elem, depth+1))
		}
	}
}

func (d *decoder) structure(v *node, depth int) {
	for id := int16(0); ; {
		head := d.take(1)[0]
		if d.bad || head == 0 {
			return
		}
		if delta := head >> 4; delta > 0 {
			id += int16(delta)
		} else {
			id = int16(d.varint())
		}
		v.fields = append(v.fields, field{id, d.value(head&15, depth+1)})
	}
}

func (v *node) append(b []byte) []byte {
	switch v.typ {
	case isByte:
		return append(b, byte(v.n))
	case isI16, isI32, isI64:
		return binary.AppendVarint(b, v.n)
	case isDouble:
		return append(b, v.b...)
	case isBytes:
		return append(binary.AppendUvarint(b, uint64(len(v.b))), v.b...)
	case isList, isSet:
		if n := len(v.items); n < longList {
			b = append(b, byte(n)<<4|v.elem)
		} else {
			b = binary.AppendUvarint(append(b, longList<<4|v.elem), uint64(n))
		}
		for i := range v.items {
			if v.elem == isTrue || v.elem == isFalse {
				b = append(b, v.items[i].typ)
			} else {
				b = v.items[i].append(b)
			}
		}
		return b
	case isStruct:
		last := int16(0)
		for i := range v.fields {
			f := &v.fields[i]
			if delta := f.id - last; delta > 0 && delta <= 15 {
				b = append(b, byte(delta)<<4|f.v.typ)
			} else {
				b = binary.AppendVarint(append(b, f.v.typ), int64(f.id))
			}
			b, last = f.v.append(b), f.id
		}
		return append(b, 0)
	}
	return b // a boolean has no bytes besides its type
}

// at returns a field; nil if it is not there.
func (v *node) at(id int16) *node {
	for i := range v.fields {
		if v.fields[i].id == id {
			return &v.fields[i].v
		}
	}
	return nil
}

// set sets a field, in order of field numbers.
func (v *node) set(id int16, x node) {
	if f := v.at(id); f != nil {
		*f = x
		return
	}
	i := slices.IndexFunc(v.fields, func(f field) bool { return f.id > id })
	if i < 0 {
		i = len(v.fields)
	}
	v.fields = slices.Insert(v.fields, i, field{id, x})
}

// drop removes fields.
func (v *node) drop(ids ...int16) {
	v.fields = slices.DeleteFunc(slices.Clone(v.fields), func(f field) bool { return slices.Contains(ids, f.id) })
}

func i64(n int64) node { return node{typ: isI64, n: n} }
func i32(n int64) node { return node{typ: isI32, n: n} }

func text(s string) node { return node{typ: isBytes, b: []byte(s)} }
