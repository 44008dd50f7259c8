package kudugen

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Delta is an entry of a delta file.
type Delta struct {
	Row, Time uint64
	Op        byte // 1 update, 2 delete, 3 reinsert
	Changes   []Change
}

// Change is the new value of a cell.
type Change struct {
	Column int // id
	Value  Cell
}

// DecodeDelta reads a stored entry: row and time as memcmp-ordered varints (SQLite 4's), the operation, then column id,
// length + 1 (0: NULL) and bytes of each change.
func DecodeDelta(b []byte) (d Delta, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("delta: %v", x)
		}
	}()
	ordered := func() uint64 {
		a := uint64(b[0])
		n := 1
		v := a
		switch {
		case a > 249:
			n = int(a) - 246
			v = 0
			for _, x := range b[1:n] {
				v = v<<8 | uint64(x)
			}
		case a == 249:
			n, v = 3, 2288+256*uint64(b[1])+uint64(b[2])
		case a > 240:
			n, v = 2, 240+256*(a-241)+uint64(b[1])
		}
		b = b[n:]
		return v
	}
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			panic("varint")
		}
		b = b[n:]
		return v
	}
	d.Row, d.Time = ordered(), ordered()
	d.Op, b = b[0], b[1:]
	for len(b) > 0 {
		c := Change{Column: int(number())}
		if n := number(); n > 0 {
			c.Value = Cell(append([]byte{}, b[:n-1]...))
			b = b[n-1:]
		}
		d.Changes = append(d.Changes, c)
	}
	if d.Op < 1 || d.Op > 3 || d.Op == 2 && len(d.Changes) > 0 {
		return d, fmt.Errorf("delta: operation %d with %d changes", d.Op, len(d.Changes))
	}
	return d, nil
}

// Apply applies the delta to a row; live reports whether the row exists afterwards.
func (d Delta) Apply(cols []Column, row []Cell) (live bool, err error) {
	for _, c := range d.Changes {
		found := false
		for i, col := range cols {
			if col.ID == c.Column {
				row[i], found = bytes.Clone(c.Value), true
				if c.Value != nil && row[i] == nil {
					row[i] = Cell{}
				}
				if w := col.Width(); c.Value != nil && w > 0 && len(c.Value) != w {
					return false, fmt.Errorf("column %s gets %d bytes", col.Name, len(c.Value))
				}
			}
		}
		if !found {
			return false, fmt.Errorf("no column has id %d", c.Column)
		}
	}
	return d.Op != 2, nil
}
