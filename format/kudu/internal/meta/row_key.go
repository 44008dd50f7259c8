package meta

import (
	"encoding/binary"

	"stoa/format/cfile"
)

// Key appends the encoded primary key of a row. values are its cells by column, in stored form.
func (s *Schema) Key(dst []byte, values [][]byte) (key []byte, err error) {
	for i := range s.NumKeys {
		if dst, err = cfile.AppendKey(dst, s.Columns[i].Type, values[i], i == s.NumKeys-1); err != nil {
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

// Cells appends the cells of the columns from index from on, as a RowChangeList has them; of those in set, or of all if
// that is nil.
func (s *Schema) Cells(dst []byte, values [][]byte, from int, set []bool) []byte {
	for i := from; i < len(s.Columns); i++ {
		if set == nil || set[i] {
			dst = appendCell(dst, s.Columns[i].ID, values[i])
		}
	}
	return dst
}

// WithoutKey is cells without those of the key columns, which come first.
func (s *Schema) WithoutKey(cells []byte) []byte {
	for range s.NumKeys {
		_, n := binary.Uvarint(cells)
		size, k := binary.Uvarint(cells[n:])
		cells = cells[n+k+max(int(size), 1)-1:]
	}
	return cells
}
