package wal

import (
	"encoding/binary"
	"fmt"

	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
)

// RowOperationsPB.Type.
const (
	RowInsert       = 1
	RowUpdate       = 2
	RowDelete       = 3
	RowUpsert       = 5
	RowInsertIgnore = 10
	RowUpdateIgnore = 11
	RowDeleteIgnore = 12
	RowUpsertIgnore = 13
)

// Operations of a RowChangeList, as delta files have them.
const (
	changeUpdate   = byte(cfile.DeltaUpdate)
	ChangeDelete   = byte(cfile.DeltaDelete)
	ChangeReinsert = byte(cfile.DeltaReinsert)
)

// rowDecoder decodes the rows of a RowOperationsPB:
//
//	type        one byte
//	set         bitmap: the columns of the client's schema that have a value
//	null        bitmap: those whose value is NULL; only if any column of the client's schema is nullable
//	values      of the columns that are set and not NULL; fixed-width types little-endian, bool as one byte, the
//	            others as u64 offset in the indirect data and u64 length
//
// The client's schema has no ids: columns are matched by name with the tablet's schema at that time.
type rowDecoder struct {
	client   *meta.Schema
	tablet   *meta.Schema
	to       []int // of client columns to tablet columns
	nullable bool  // the null bitmap is there
	rest     []byte
	indirect []byte
	counter  int64 // of the auto-incrementing column: the last value that was assigned

	values [][]byte // memory of rowOp
	set    []bool
}

// rowOp is one decoded row operation.
type rowOp struct {
	typ    byte
	values [][]byte // by column of the tablet; see set
	set    []bool   // by column of the tablet: the client gave a value, which is NULL if it is nil
	failed string   // why a server must have refused it; "": nothing is wrong with it
}

// newRowDecoder maps the client's columns to the tablet's. why is not empty if that is impossible.
func newRowDecoder(w *writeRequest, tablet *meta.Schema, counter int64) (d *rowDecoder, why string) {
	d = &rowDecoder{client: &w.schema, tablet: tablet, rest: w.rows, indirect: w.indirect, counter: counter,
		to: make([]int, len(w.schema.Columns))}
	for i := range w.schema.Columns {
		c := &w.schema.Columns[i]
		if d.to[i] = tablet.FindName(c.Name); d.to[i] < 0 {
			return nil, fmt.Sprintf("column %q is not in the tablet's schema", c.Name)
		}
		d.nullable = d.nullable || c.Nullable
	}
	for i := range tablet.NumKeys {
		if i >= len(d.to) || d.to[i] != i {
			if tablet.Columns[i].AutoIncrement {
				continue
			}
			return nil, "the key columns are not those of the tablet's schema"
		}
	}
	return d, ""
}

func bitOf(m []byte, i int) bool { return len(m) > 0 && m[i/8]>>(i%8)&1 == 1 }

// next decodes the next row operation, which is valid until the next call; false at the end. why is not empty if the
// bytes cannot be parsed.
func (d *rowDecoder) next() (op rowOp, ok bool, why string) {
	if len(d.rest) == 0 {
		return op, false, ""
	}
	op.typ = d.rest[0]
	n := (len(d.to) + 7) / 8
	maps := n
	if d.nullable {
		maps = 2 * n
	}
	if len(d.rest) < 1+maps {
		return op, false, "the bitmaps of a row are truncated"
	}
	set, null := d.rest[1:1+n], d.rest[1+n:1+maps]
	d.rest = d.rest[1+maps:]
	if d.values == nil {
		d.values, d.set = make([][]byte, len(d.tablet.Columns)), make([]bool, len(d.tablet.Columns))
	}
	clear(d.values)
	clear(d.set)
	op.values, op.set = d.values, d.set
	switch op.typ {
	case RowInsert, RowInsertIgnore, RowUpsert, RowUpsertIgnore:
		why = d.insert(&op, set, null)
	case RowUpdate, RowUpdateIgnore, RowDelete, RowDeleteIgnore:
		why = d.change(&op, set, null)
	default:
		why = fmt.Sprintf("row operation of type %d", op.typ)
	}
	return op, why == "", why
}

// insert decodes the values of an insert or upsert. Columns that the client did not set get their default, and op.set
// stays false.
func (d *rowDecoder) insert(op *rowOp, set, null []byte) (why string) {
	upsert := op.typ == RowUpsert || op.typ == RowUpsertIgnore
	for i, k := range d.to {
		c := &d.tablet.Columns[k]
		isNull := d.nullable && bitOf(null, i)
		switch {
		case !bitOf(set, i):
			continue
		case isNull && c.Nullable:
			op.set[k] = true
			continue
		case isNull:
			op.failed = "NULL for a column that is not nullable"
		case c.AutoIncrement && !upsert:
			return "a value of the auto-incrementing column is given"
		}
		v, why := d.value(c)
		if why != "" {
			return why
		}
		op.set[k], op.values[k] = true, v
		if c.AutoIncrement {
			d.counter = max(d.counter, int64(binary.LittleEndian.Uint64(v)))
		}
	}
	for k := range d.tablet.Columns {
		c := &d.tablet.Columns[k]
		switch {
		case op.set[k]:
		case c.AutoIncrement && upsert:
			return "an upsert without a value of the auto-incrementing column"
		case c.AutoIncrement:
			d.counter++
			op.values[k], op.set[k] = binary.LittleEndian.AppendUint64(nil, uint64(d.counter)), true
		case c.WriteDefault != nil:
			op.values[k] = c.WriteDefault
		case !c.Nullable:
			op.failed = "no value for a column that must have one"
		}
	}
	return ""
}

// change decodes the values of an update or delete.
func (d *rowDecoder) change(op *rowOp, set, null []byte) (why string) {
	del := op.typ == RowDelete || op.typ == RowDeleteIgnore
	for i, k := range d.to {
		c := &d.tablet.Columns[k]
		isNull := d.nullable && bitOf(null, i)
		switch {
		case !bitOf(set, i):
			if k < d.tablet.NumKeys {
				op.failed = "no value for a key column"
			}
			continue
		case isNull && c.Immutable && !del && k >= d.tablet.NumKeys:
			if op.typ == RowUpdate {
				op.failed = "an immutable column"
			}
			continue
		case isNull && c.Nullable:
			op.set[k] = true
			continue
		case isNull:
			op.failed = "NULL for a column that is not nullable"
		}
		v, why := d.value(c)
		if why != "" {
			return why
		}
		op.set[k], op.values[k] = true, v
		switch {
		case k < d.tablet.NumKeys:
		case del:
			op.failed = "a delete with the value of a column"
		case c.Immutable && op.typ == RowUpdate:
			op.failed = "an immutable column"
		case c.Immutable:
			op.set[k] = false
		}
	}
	return ""
}

// value decodes the next value, of column c.
func (d *rowDecoder) value(c *meta.Column) (v []byte, why string) {
	w := meta.StoredWidth(c.Type)
	indirect := c.Type.IsBinary() || c.Array
	if indirect {
		w = 16
	}
	if w == 0 || len(d.rest) < w {
		return nil, fmt.Sprintf("the value of column %q is truncated", c.Name)
	}
	v, d.rest = d.rest[:w], d.rest[w:]
	if !indirect {
		return v, ""
	}
	off, size := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
	if off > uint64(len(d.indirect)) || size > uint64(len(d.indirect))-off {
		return nil, fmt.Sprintf("the value of column %q lies outside of indirect_data", c.Name)
	}
	return meta.Present(d.indirect[off : off+size : off+size]), ""
}

// slab keeps many small byte slices in few large ones.
type slab struct {
	left []byte
	kept int64 // memory that the slices and the structures around them need, in bytes
}

// perKept is the memory that a kept slice is assumed to need besides its bytes, in bytes.
const perKept = 96

// keep returns a copy of b in the slab.
func (s *slab) keep(b []byte) []byte {
	s.kept += int64(len(b)) + perKept
	if len(b) > len(s.left) {
		s.left = make([]byte, max(len(b), 64<<10))
	}
	out := s.left[:len(b):len(b)]
	s.left = s.left[len(b):]
	copy(out, b)
	return out
}
