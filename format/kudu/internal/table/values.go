package table

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
)

// Values reads the values of a block one by one.
type Values struct {
	It    *cfile.Iterator
	At    fault.Span
	width int
	arr   arrow.Array
	i     int
}

// Values reads the values of a block from the first on.
func (t *Table) Values(ctx context.Context, s *RowSet, b meta.BlockRef) (*Values, error) {
	r, err := t.OpenBlock(ctx, s, b)
	if err != nil {
		return nil, err
	}
	it, err := r.SeekToOrdinal(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &Values{It: it, At: r.At(), width: r.Footer().Type.Width()}, nil
}

// Next is the next value, in stored form and valid until the next call; nil is NULL. At the end of the block the error
// is Corrupt, because the caller knows how many values there must be.
func (x *Values) Next(ctx context.Context) ([]byte, error) {
	for x.arr == nil || x.i == x.arr.Len() {
		if x.arr != nil {
			x.arr.Release()
			x.arr = nil
		}
		var err error
		if x.arr, err = x.It.Next(ctx, 4096); err != nil {
			if err == io.EOF {
				err = fault.Corruptf(x.At, "", "the file ends before its rowset does")
			}
			return nil, err
		}
		x.i = 0
	}
	i := x.i
	x.i++
	if x.arr.IsNull(i) {
		return nil, nil
	}
	switch a := x.arr.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return []byte{1}, nil
		}
		return []byte{0}, nil
	case *array.String:
		return []byte(a.Value(i)), nil
	case *array.Binary:
		return a.Value(i), nil
	}
	d := x.arr.Data()
	size := d.DataType().(arrow.FixedWidthDataType).Bytes()
	return d.Buffers()[1].Bytes()[(d.Offset()+i)*size:][:x.width], nil
}
