// Package thrift reads and writes structs of Apache Thrift, field by field and without generated code, in the compact
// and the binary protocol.
//
// Structs are read through a wire.Cursor, so that the parser that decodes a struct also describes it and locates
// damage. Thrift structs have no length: they end with a stop byte. Fields may come in any order; fields that are not
// read are skipped, and Describe still shows them.
//
// Every length and count is checked against the bytes that are left, and the nesting against MaxDepth, before memory is
// allocated. Source: thrift-compact-protocol.md and thrift-binary-protocol.md of the Thrift project.
package thrift

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Protocol is the encoding of values.
type Protocol uint8

const (
	Compact Protocol = iota
	Binary
)

func (p Protocol) String() string {
	if p == Binary {
		return "binary protocol"
	}
	return "compact protocol"
}

// Type is the type of a value. It is the same for both protocols; its numbers are not those on the wire.
type Type uint8

const (
	Stop Type = iota
	Bool
	I8
	I16
	I32
	I64
	Double
	Bytes // string and binary: the wire does not distinguish them
	List
	Set
	Map
	Struct
	UUID
)

func (t Type) String() string {
	names := [...]string{"stop", "bool", "i8", "i16", "i32", "i64", "double", "string", "list", "set", "map",
		"struct", "uuid"}
	if int(t) < len(names) {
		return names[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// MaxDepth is the maximum nesting depth of structs, lists and maps.
const MaxDepth = 32

// The numbers of the types on the wire. In the compact protocol 1 and 2 are true and false.
var (
	compactTypes = [...]Type{0: Stop, 1: Bool, 2: Bool, 3: I8, 4: I16, 5: I32, 6: I64, 7: Double, 8: Bytes, 9: List,
		10: Set, 11: Map, 12: Struct, 13: UUID}
	binaryTypes = [...]Type{0: Stop, 2: Bool, 3: I8, 4: Double, 6: I16, 8: I32, 10: I64, 11: Bytes, 12: Struct,
		13: Map, 14: Set, 15: List, 16: UUID}

	toCompact = [...]byte{Stop: 0, Bool: 1, I8: 3, I16: 4, I32: 5, I64: 6, Double: 7, Bytes: 8, List: 9, Set: 10,
		Map: 11, Struct: 12, UUID: 13}
	toBinary = [...]byte{Stop: 0, Bool: 2, I8: 3, I16: 6, I32: 8, I64: 10, Double: 4, Bytes: 11, List: 15, Set: 14,
		Map: 13, Struct: 12, UUID: 16}
)

// typeOf returns the type with number n on the wire; ok is false for an undefined number. Stop is a type only where a
// field may begin.
func (p Protocol) typeOf(n byte) (t Type, ok bool) {
	if p == Binary {
		if int(n) >= len(binaryTypes) || n == 1 || n == 5 || n == 7 || n == 9 {
			return 0, false
		}
		return binaryTypes[n], true
	}
	if int(n) >= len(compactTypes) {
		return 0, false
	}
	return compactTypes[n], true
}

// minSize returns the minimum size in bytes of a value of type t as an element of a list.
func (p Protocol) minSize(t Type) int {
	switch t {
	case Double:
		return 8
	case UUID:
		return 16
	case I16, I32, I64:
		if p == Binary {
			return 2 << (t - I16)
		}
	case Bytes:
		if p == Binary {
			return 4
		}
	case List, Set:
		if p == Binary {
			return 5
		}
	case Map:
		if p == Binary {
			return 6
		}
	}
	return 1
}

// parseError is an error at offset off.
type parseError struct {
	off    int
	reason string
	short  bool // more bytes might remove it
}

func malformed(off int, format string, args ...any) *parseError {
	return &parseError{off: off, reason: fmt.Sprintf(format, args...)}
}

func truncated(off int, format string, args ...any) *parseError {
	return &parseError{off, fmt.Sprintf(format, args...), true}
}

// fieldHead reads the head of a field. last is the id of the field before it. n is the size of the head in bytes; truth
// is the value of a compact bool, which has no other bytes.
func (p Protocol) fieldHead(b []byte, last int16) (id int16, t Type, truth bool, n int, bad *parseError) {
	if len(b) == 0 {
		return 0, 0, false, 0, truncated(0, "the bytes end where a field or the end of the struct should be")
	}
	if b[0] == 0 {
		return 0, Stop, false, 1, nil
	}
	if p == Binary {
		t, ok := p.typeOf(b[0])
		if !ok {
			return 0, 0, false, 1, malformed(0, "a field of type %d, which does not exist", b[0])
		}
		if len(b) < 3 {
			return 0, 0, false, 1, truncated(0, "the bytes end within the head of a field")
		}
		id = int16(binary.BigEndian.Uint16(b[1:]))
		return id, t, false, 3, numbered(id, 1)
	}
	t, ok := p.typeOf(b[0] & 15)
	if !ok || t == Stop {
		return 0, 0, false, 1, malformed(0, "a field of type %d, which does not exist", b[0]&15)
	}
	truth = b[0]&15 == 1
	if d := int16(b[0] >> 4); d != 0 {
		return last + d, t, truth, 1, numbered(last+d, 0)
	}
	v, k := binary.Uvarint(b[1:])
	if k <= 0 || v > 1<<16-1 {
		return 0, 0, false, 1, &parseError{1, "the number of a field is not a varint of 16 bits", k == 0}
	}
	id = int16(v>>1) ^ -int16(v&1)
	return id, t, truth, 1 + k, numbered(id, 1)
}

// numbered refuses the number of a field, at off, that no structure of these formats has: each of their definitions
// numbers its fields from 1. Random bytes have such numbers often, and would be skipped as a later version's fields.
func numbered(id int16, off int) *parseError {
	if id < 1 {
		return malformed(off, "field %d, and fields are numbered from 1", id)
	}
	return nil
}

// listHead reads the head of a list or set: the element type, the number of elements, and the size of the head. Unless
// cut is set, the bytes must be enough for that many elements.
func (p Protocol) listHead(b []byte, cut bool) (elem Type, count, n int, bad *parseError) {
	if len(b) == 0 || p == Binary && len(b) < 5 {
		return 0, 0, 0, truncated(0, "the bytes end within the head of a list")
	}
	var many uint64
	number := b[0]
	if p == Binary {
		many, n = uint64(binary.BigEndian.Uint32(b[1:])), 5
	} else {
		number = b[0] & 15
		if many, n = uint64(b[0]>>4), 1; many == 15 {
			v, k := binary.Uvarint(b[1:])
			if k <= 0 {
				return 0, 0, 1, &parseError{1, "the length of a list is not a varint", k == 0}
			}
			many, n = v, 1+k
		}
	}
	elem, ok := p.typeOf(number)
	if many == 0 {
		return elem, 0, n, nil // the type of no elements does not matter; some writers store 0
	}
	if !ok || elem == Stop {
		return 0, 0, n, malformed(0, "elements of type %d, which does not exist", number)
	}
	if limit := uint64(len(b)-n) / uint64(p.minSize(elem)); many > limit && (!cut || many > math.MaxInt32) {
		return 0, 0, n, truncated(0, "%d elements, but the %d bytes left hold at most %d", many, len(b)-n, limit)
	}
	return elem, int(many), n, nil
}

// mapHead reads the head of a map.
func (p Protocol) mapHead(b []byte) (key, value Type, count, n int, bad *parseError) {
	var many uint64
	var kn, vn byte
	if p == Binary {
		if len(b) < 6 {
			return 0, 0, 0, 0, truncated(0, "the bytes end within the head of a map")
		}
		kn, vn, many, n = b[0], b[1], uint64(binary.BigEndian.Uint32(b[2:])), 6
	} else {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return 0, 0, 0, 0, &parseError{0, "the length of a map is not a varint", k == 0}
		}
		if many, n = v, k; many > 0 {
			if len(b) == k {
				return 0, 0, 0, n, truncated(0, "the bytes end within the head of a map")
			}
			kn, vn, n = b[k]>>4, b[k]&15, k+1
		}
	}
	if many == 0 {
		return 0, 0, 0, n, nil
	}
	key, kok := p.typeOf(kn)
	value, vok := p.typeOf(vn)
	if !kok || !vok || key == Stop || value == Stop {
		return 0, 0, 0, n, malformed(0, "keys of type %d and values of type %d: no such type", kn, vn)
	}
	if limit := uint64(len(b)-n) / uint64(p.minSize(key)+p.minSize(value)); many > limit {
		return 0, 0, 0, n, truncated(0, "%d entries, but the %d bytes left hold at most %d", many, len(b)-n, limit)
	}
	return key, value, int(many), n, nil
}

// scalar returns the size of a value without parts, including head bytes of length prefix.
func (p Protocol) scalar(b []byte, t Type) (head, size int, bad *parseError) {
	switch t {
	case Bool, I8:
		size = 1
	case Double:
		size = 8
	case UUID:
		size = 16
	case I16, I32, I64:
		if p == Binary {
			size = 2 << (t - I16)
			break
		}
		if _, size = binary.Uvarint(b); size <= 0 {
			return 0, 0, &parseError{0, "not a varint of at most 64 bits", size == 0}
		}
	case Bytes:
		many := uint64(0)
		if p == Binary {
			if head = 4; len(b) >= 4 {
				many = uint64(binary.BigEndian.Uint32(b))
			}
		} else if many, head = binary.Uvarint(b); head <= 0 {
			return 0, 0, &parseError{0, "the length is not a varint", head == 0}
		}
		if head > len(b) || many > uint64(len(b)-head) {
			return 0, 0, truncated(0, "%d bytes are declared, %d are left", many, max(0, len(b)-head))
		}
		return head, head + int(many), nil
	}
	if size > len(b) {
		return 0, 0, truncated(0, "%d bytes are needed, %d are left", size, len(b))
	}
	return 0, size, nil
}

// extent returns the size of a value of type t that is encoded as an element of a list (there a bool is one byte). On
// error, n is how far it got.
func (p Protocol) extent(b []byte, t Type, depth int) (n int, bad *parseError) {
	if depth >= MaxDepth && (t == Struct || t == List || t == Set || t == Map) {
		return 0, malformed(0, "nested deeper than %d", MaxDepth)
	}
	switch t {
	case Struct:
		return p.structExtent(b, depth)
	case List, Set:
		elem, count, n, bad := p.listHead(b, false)
		for i := 0; i < count && bad == nil; i++ {
			n, bad = p.more(b, n, elem, depth)
		}
		return n, bad
	case Map:
		key, value, count, n, bad := p.mapHead(b)
		for i := 0; i < count && bad == nil; i++ {
			if n, bad = p.more(b, n, key, depth); bad == nil {
				n, bad = p.more(b, n, value, depth)
			}
		}
		return n, bad
	}
	_, n, bad = p.scalar(b, t)
	return n, bad
}

// more returns the offset after the value at offset n, which is a part of a value at depth.
func (p Protocol) more(b []byte, n int, t Type, depth int) (int, *parseError) {
	k, bad := p.extent(b[n:], t, depth+1)
	if bad != nil {
		bad.off += n
	}
	return n + k, bad
}

func (p Protocol) structExtent(b []byte, depth int) (n int, bad *parseError) {
	for last := int16(0); ; {
		id, t, _, head, bad := p.fieldHead(b[n:], last)
		if bad != nil {
			bad.off += n
			return n, bad
		}
		n += head
		if t == Stop {
			return n, nil
		}
		last = id
		if t == Bool && p == Compact {
			continue
		}
		if n, bad = p.more(b, n, t, depth); bad != nil {
			return n, bad
		}
	}
}
