package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/budget"
	"stoa/internal/scan"
)

// EqualSet are the rows of a file of deletes: a row of the table is deleted that has the same values in its columns.
type EqualSet struct {
	Table  *Table // of the one file, with the columns that are compared
	Memory *budget.Memory

	once sync.Once
	keys map[string]bool
	err  error
}

// rowsOf reads all rows of a file of t, in order. yield takes batches and the position of their first row.
func (t *Table) rowsOf(ctx context.Context, f *opened, cols []int, yield func(b arrow.RecordBatch) error) error {
	var err error
	for _, g := range f.groups {
		t.batches(ctx, f, g, format.Query{Cols: cols}, wholeGroup(f, g), t.mem, func(b arrow.RecordBatch,
			e error) bool {
			if err = e; err == nil {
				err = yield(b)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// load reads the deletes.
func (s *EqualSet) load(ctx context.Context) error {
	s.once.Do(func() {
		s.keys = map[string]bool{}
		in := s.Table.c.Files[0]
		f, err := s.Table.acquire(ctx, in)
		if err != nil {
			s.err = err
			return
		}
		defer s.Table.release(f)
		cols := make([]int, len(s.Table.cols))
		for i := range cols {
			cols[i] = i
		}
		s.err = s.Table.rowsOf(ctx, f, cols, func(b arrow.RecordBatch) error {
			for i := range int(b.NumRows()) {
				key, err := rowKey(nil, b, i)
				if err != nil {
					return err
				}
				if err := s.Memory.Take(int64(len(key))+48, fault.Span{Object: in.Name}, ""); err != nil {
					return err
				}
				s.keys[string(key)] = true
			}
			return nil
		})
	})
	return s.err
}

// equal are the positions of the rows of a file that its equality deletes delete.
func (t *Table) equal(ctx context.Context, f *opened) (gone []int64, err error) {
	for _, s := range f.in.Equality {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
		own := &Table{c: Config{Catalogue: t.c.Catalogue, Tree: t.c.Tree, Schema: s.Table.c.Schema, Match: t.c.Match,
			Open: t.c.Open}, mem: t.mem}
		plain := *f
		plain.src = scan.Source{Reader: f.plain, Objects: f.src.Objects, Dicts: f.src.Dicts, Limits: f.src.Limits,
			NoVerify: f.src.NoVerify}
		plain.drops = nil
		in := *f.in
		in.Values = map[int]arrow.Array{}
		if plain.nodes, err = matched(own.c.Schema.Fields(), f.plain.Schema().Fields(), t.c.Match, nil); err != nil {
			return nil, err
		}
		var cols []int
		for i, x := range own.c.Schema.Fields() {
			cols = append(cols, i)
			for k, y := range t.c.Schema.Fields() {
				if v := f.in.Values[k]; v != nil && IDOf(x) == IDOf(y) {
					in.Values[i] = v
				}
			}
		}
		plain.in = &in
		at := int64(0)
		err := own.rowsOf(ctx, &plain, cols, func(b arrow.RecordBatch) error {
			for i := range int(b.NumRows()) {
				key, err := rowKey(nil, b, i)
				if err != nil {
					return err
				}
				if s.keys[string(key)] {
					if err := s.Memory.Take(8, fault.Span{Object: f.in.Name}, ""); err != nil {
						return err
					}
					gone = append(gone, at+int64(i))
				}
			}
			at += b.NumRows()
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// rowKey appends the values of a row, such that two rows have the same bytes only if their values are equal; null
// equals null.
func rowKey(dst []byte, b arrow.RecordBatch, row int) ([]byte, error) {
	for c := range int(b.NumCols()) {
		a := b.Column(c)
		if a.IsNull(row) {
			dst = append(dst, 0)
			continue
		}
		switch x := a.(type) {
		case *array.Float32:
			dst = binary.LittleEndian.AppendUint32(append(dst, 1), math.Float32bits(x.Value(row)))
			continue
		case *array.Float64:
			dst = binary.LittleEndian.AppendUint64(append(dst, 1), math.Float64bits(x.Value(row)))
			continue
		}
		switch v := plainValue(a, row).(type) {
		case bool:
			dst = fmt.Append(append(dst, 1), v)
		case int32:
			dst = binary.LittleEndian.AppendUint32(append(dst, 1), uint32(v))
		case int64:
			dst = binary.LittleEndian.AppendUint64(append(dst, 1), uint64(v))
		case string:
			dst = append(binary.AppendUvarint(append(dst, 1), uint64(len(v))), v...)
		case []byte:
			dst = append(binary.AppendUvarint(append(dst, 1), uint64(len(v))), v...)
		default:
			return nil, fault.Unsupportedf(fault.Span{}, b.ColumnName(c), "deletes by values of type %s", a.DataType())
		}
	}
	return dst, nil
}
