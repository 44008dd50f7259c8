package kudufs

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/kudu/internal/meta"
)

// keyCells extracts the cells of the key columns, in stored form, from rows of a batch without nulls.
type keyCells struct {
	schema  *meta.Schema
	columns []arrow.Array
	cells   [][]byte
	buf     []byte
}

// row are the key cells of row i of the batch, valid until the next call.
func (k *keyCells) row(i int) ([][]byte, error) {
	k.cells, k.buf = k.cells[:0], k.buf[:0]
	for n, a := range k.columns {
		at := len(k.buf)
		switch a := a.(type) {
		case *array.String:
			k.buf = append(k.buf, a.Value(i)...)
		case *array.Binary:
			k.buf = append(k.buf, a.Value(i)...)
		case *array.Decimal128:
			v := a.Value(i)
			k.buf = binary.LittleEndian.AppendUint64(k.buf, v.LowBits())
			k.buf = binary.LittleEndian.AppendUint64(k.buf, uint64(v.HighBits()))
			k.buf = k.buf[:at+k.schema.Columns[n].Type.Width()]
		default:
			v, ok := fixedCell(a, i)
			if !ok {
				return nil, fault.Bugf("column %q: a key of %s", k.schema.Columns[n].Name, a.DataType())
			}
			k.buf = append(k.buf, v[:k.schema.Columns[n].Type.Width()]...)
		}
		k.cells = append(k.cells, k.buf[at:len(k.buf):len(k.buf)])
	}
	return k.cells, nil
}

// fixedCell is an integer, date or timestamp, little-endian and sign-extended to eight bytes.
func fixedCell(a arrow.Array, i int) (v [8]byte, ok bool) {
	var n int64
	switch a := a.(type) {
	case *array.Int8:
		n = int64(a.Value(i))
	case *array.Int16:
		n = int64(a.Value(i))
	case *array.Int32:
		n = int64(a.Value(i))
	case *array.Int64:
		n = a.Value(i)
	case *array.Date32:
		n = int64(a.Value(i))
	case *array.Timestamp:
		n = int64(a.Value(i))
	default:
		return v, false
	}
	binary.LittleEndian.PutUint64(v[:], uint64(n))
	return v, true
}
