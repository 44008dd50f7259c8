package kudu

import (
	"encoding/binary"
	"stoa/format/cfile"
)

// key appends the encoded primary key of the row.
func (s *Schema) key(dst []byte, values [][]byte) (key []byte, err error) {
	for i := range s.keys {
		if dst, err = cfile.AppendKey(dst, s.Columns[i].Type, values[i], i == s.keys-1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendCell appends a column's value as a RowChangeList has it; nil is NULL.
func appendCell(dst []byte, id int32, v []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(id))
	if v == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(v))+1), v...)
}

// cells appends the cells of columns from, …, as a RowChangeList has them; set: only of those (nil: of all).
func (s *Schema) cells(dst []byte, values [][]byte, from int, set []bool) []byte {
	for i := from; i < len(s.Columns); i++ {
		if set == nil || set[i] {
			dst = appendCell(dst, s.Columns[i].ID, values[i])
		}
	}
	return dst
}

// withoutKey is cells behind those of the key, which are the first.
func (s *Schema) withoutKey(cells []byte) []byte {
	for range s.keys {
		_, n := binary.Uvarint(cells)
		size, k := binary.Uvarint(cells[n:])
		cells = cells[n+k+max(int(size), 1)-1:]
	}
	return cells
}
