package parquet

import (
	"encoding/binary"

	"stoa/fault"
)

// Types of the Thrift compact protocol.
const (
	tStop   = 0
	tTrue   = 1
	tFalse  = 2
	tByte   = 3
	tI16    = 4
	tI32    = 5
	tI64    = 6
	tDouble = 7
	tBinary = 8
	tList   = 9
	tSet    = 10
	tMap    = 11
	tStruct = 12
	tUUID   = 13
)

// maxDepth is far deeper than anything that Parquet's metadata has.
const maxDepth = 32

// compact walks a structure of the Thrift compact protocol without knowing its fields. Errors are relative to b.
type compact struct {
	b   []byte
	pos int
}

func (c *compact) fail(path, format string, args ...any) error {
	return fault.Rel(min(c.pos, len(c.b)), 1, path, format, args...)
}

func (c *compact) varint(path string) (uint64, error) {
	v, n := binary.Uvarint(c.b[c.pos:])
	if n <= 0 {
		return 0, c.fail(path, "a number is cut or longer than 64 bits")
	}
	c.pos += n
	return v, nil
}

func (c *compact) zigzag(path string) (int64, error) {
	v, err := c.varint(path)
	return int64(v>>1) ^ -int64(v&1), err
}

func (c *compact) skipBytes(n uint64, path string) error {
	if n > uint64(len(c.b)-c.pos) {
		return c.fail(path, "%d bytes, but only %d are left", n, len(c.b)-c.pos)
	}
	c.pos += int(n)
	return nil
}

func (c *compact) byte(path string) (byte, error) {
	if c.pos >= len(c.b) {
		return 0, c.fail(path, "the bytes end")
	}
	c.pos++
	return c.b[c.pos-1], nil
}

// structure walks one struct. number sees every integer field of this struct (not of the ones inside); inner every
// struct field, and answers whether it has walked it itself. Both may be nil.
func (c *compact) structure(depth int, path string, number func(id int16, v int64), inner func(id int16) (bool, error)) error {
	if depth > maxDepth {
		return c.fail(path, "nested deeper than %d", maxDepth)
	}
	var id int16
	for {
		b, err := c.byte(path)
		if err != nil || b == tStop {
			return err
		}
		if d := int16(b >> 4); d != 0 {
			id += d
		} else {
			v, err := c.zigzag(path)
			if err != nil {
				return err
			}
			id = int16(v)
		}
		if err := c.field(b&15, id, depth, path, number, inner); err != nil {
			return err
		}
	}
}

func (c *compact) field(typ byte, id int16, depth int, path string, number func(int16, int64), inner func(int16) (bool, error)) error {
	switch typ {
	case tI16, tI32, tI64:
		v, err := c.zigzag(path)
		if err == nil && number != nil {
			number(id, v)
		}
		return err
	case tTrue, tFalse:
		return nil // the value is in the type
	case tStruct:
		if inner != nil {
			if done, err := inner(id); done || err != nil {
				return err
			}
		}
	}
	return c.skip(typ, depth, path)
}

// skip walks a value of a type as a field or a list has it.
func (c *compact) skip(typ byte, depth int, path string) error {
	switch typ {
	case tTrue, tFalse, tByte:
		_, err := c.byte(path)
		return err
	case tI16, tI32, tI64:
		_, err := c.varint(path)
		return err
	case tDouble:
		return c.skipBytes(8, path)
	case tUUID:
		return c.skipBytes(16, path)
	case tBinary:
		n, err := c.varint(path)
		if err != nil {
			return err
		}
		return c.skipBytes(n, path)
	case tList, tSet:
		return c.list(depth, path)
	case tMap:
		return c.dict(depth, path)
	case tStruct:
		return c.structure(depth+1, path, nil, nil)
	}
	return c.fail(path, "type %d does not exist", typ)
}

// list walks a list. Every element takes a byte at least, so a length is compared with the bytes left.
func (c *compact) list(depth int, path string) error {
	if depth > maxDepth {
		return c.fail(path, "nested deeper than %d", maxDepth)
	}
	b, err := c.byte(path)
	if err != nil {
		return err
	}
	n := uint64(b >> 4)
	if n == 15 {
		if n, err = c.varint(path); err != nil {
			return err
		}
	}
	if n > uint64(len(c.b)-c.pos) {
		return c.fail(path, "%d elements, but only %d bytes are left", n, len(c.b)-c.pos)
	}
	for range n {
		if err := c.skip(b&15, depth+1, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *compact) dict(depth int, path string) error {
	n, err := c.varint(path)
	if err != nil || n == 0 {
		return err
	}
	types, err := c.byte(path)
	if err != nil {
		return err
	}
	if n > uint64(len(c.b)-c.pos) || depth > maxDepth {
		return c.fail(path, "%d entries, but only %d bytes are left", n, len(c.b)-c.pos)
	}
	for range n {
		if err := c.skip(types>>4, depth+1, path); err != nil {
			return err
		}
		if err := c.skip(types&15, depth+1, path); err != nil {
			return err
		}
	}
	return nil
}
