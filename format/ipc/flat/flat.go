// Package flat parses the metadata of Arrow IPC, which are flatbuffers, without trusting them: every offset, length and
// count is checked against the available bytes. Errors are relative to those bytes (fault.Rel).
package flat

import (
	"encoding/binary"

	"stoa/fault"
)

// table is a flatbuffers table. Every access is checked: a table or field outside of its bytes is a relative error
// (fault.Rel).
type table struct {
	b      []byte
	pos    int // of the table
	vtable int
	fields int // number of entries in the vtable
}

// rootTable returns the root table of a flatbuffer.
func rootTable(b []byte) (table, error) {
	off, err := u32(b, 0, "root")
	if err != nil {
		return table{}, err
	}
	return tableAt(b, int64(off), "root")
}

func u32(b []byte, at int64, path string) (uint32, error) {
	if at < 0 || at+4 > int64(len(b)) {
		return 0, fault.Rel(int(min(at, int64(len(b)))), 4, path, "past the end of the %d bytes of metadata", len(b))
	}
	return binary.LittleEndian.Uint32(b[at:]), nil
}

func tableAt(b []byte, at int64, path string) (table, error) {
	back, err := u32(b, at, path)
	if err != nil {
		return table{}, err
	}
	vt := at - int64(int32(back))
	if vt < 0 || vt+4 > int64(len(b)) {
		return table{}, fault.Rel(int(at), 4, path+".vtable", "at %d, outside of the %d bytes of metadata", vt, len(b))
	}
	size := int64(binary.LittleEndian.Uint16(b[vt:]))
	if size < 4 || size%2 != 0 || vt+size > int64(len(b)) {
		return table{}, fault.Rel(int(vt), 2, path+".vtable", "a length of %d bytes cannot be", size)
	}
	return table{b, int(at), int(vt), int(size-4) / 2}, nil
}

// field returns the offset of field n, of width bytes; 0 if it is absent.
func (t table) field(n, width int, path string) (int, error) {
	if n >= t.fields {
		return 0, nil
	}
	off := int(binary.LittleEndian.Uint16(t.b[t.vtable+4+2*n:]))
	if off == 0 {
		return 0, nil
	}
	at := t.pos + off
	if at+width > len(t.b) {
		return 0, fault.Rel(t.pos, 4, path, "at %d, past the end of the %d bytes of metadata", at, len(t.b))
	}
	return at, nil
}

// number reads an integer field of width bytes, sign-extended; def if it is absent.
func (t table) number(n, width int, def int64, path string) (int64, error) {
	at, err := t.field(n, width, path)
	if err != nil || at == 0 {
		return def, err
	}
	switch width {
	case 1:
		return int64(int8(t.b[at])), nil
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(t.b[at:]))), nil
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(t.b[at:]))), nil
	}
	return int64(binary.LittleEndian.Uint64(t.b[at:])), nil
}

// table returns the table that field n refers to; ok is false if it is absent.
func (t table) table(n int, path string) (sub table, ok bool, err error) {
	at, err := t.field(n, 4, path)
	if err != nil || at == 0 {
		return table{}, false, err
	}
	sub, err = tableAt(t.b, int64(at)+int64(binary.LittleEndian.Uint32(t.b[at:])), path)
	return sub, err == nil, err
}

// vector returns the bytes of a vector field of elements of width bytes, and their offset.
func (t table) vector(n, width int, path string) (elems []byte, at int, err error) {
	pos, err := t.field(n, 4, path)
	if err != nil || pos == 0 {
		return nil, 0, err
	}
	start := int64(pos) + int64(binary.LittleEndian.Uint32(t.b[pos:]))
	count, err := u32(t.b, start, path)
	if err != nil {
		return nil, 0, err
	}
	end := start + 4 + int64(count)*int64(width)
	if end > int64(len(t.b)) {
		return nil, 0, fault.Rel(int(start), 4, path, "%d elements do not fit into the %d bytes of metadata", count,
			len(t.b))
	}
	return t.b[start+4 : end], int(start) + 4, nil
}

// tables calls each for the tables of a vector of tables.
func (t table) tables(n int, path string, each func(table) error) error {
	elems, at, err := t.vector(n, 4, path)
	if err != nil {
		return err
	}
	for i := 0; i+4 <= len(elems); i += 4 {
		sub, err := tableAt(t.b, int64(at+i)+int64(binary.LittleEndian.Uint32(elems[i:])), path)
		if err != nil {
			return err
		}
		if err := each(sub); err != nil {
			return err
		}
	}
	return nil
}
