package kudu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// encodeKey returns Kudu's memcmp encoding of a primary key: a second implementation, independent of the writer's.
func encodeKey(cols []column, row []cell) []byte {
	var b []byte
	for i, c := range cols {
		switch v := row[i].(type) {
		case int64:
			w := keyWidth(c.Type)
			u := uint64(v) ^ 1<<(8*w-1)
			for j := int(w) - 1; j >= 0; j-- {
				b = append(b, byte(u>>(8*j)))
			}
		case *big.Int:
			u := new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), 127))
			b = append(b, u.FillBytes(make([]byte, 16))...)
		case []byte:
			if i == len(cols)-1 {
				b = append(b, v...)
				break
			}
			b = append(b, bytes.ReplaceAll(v, []byte{0}, []byte{0, 1})...)
			b = append(b, 0, 0)
		default:
			panic("no key: " + c.Type)
		}
	}
	return b
}

func keyWidth(typ string) uint {
	switch typ {
	case "INT8":
		return 1
	case "INT16":
		return 2
	case "INT32", "DATE", "DECIMAL32":
		return 4
	}
	return 8
}

// A change is one entry of a delta file.
type change struct {
	Row  uint64
	Time uint64
	Kind byte // 1 update, 2 delete, 3 reinsert
	Cols []colChange
}

type colChange struct {
	ID   int
	Null bool
	Raw  []byte // as stored: little-endian, or the bytes of a string
}

// encode is the entry as stored: SQLite4's varints of row and time, then the list of changes.
func (c change) encode() []byte {
	b := appendSQLite4(appendSQLite4(nil, c.Row), c.Time)
	b = append(b, c.Kind)
	for _, x := range c.Cols {
		b = binary.AppendUvarint(b, uint64(x.ID))
		if x.Null {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(x.Raw))+1)
		b = append(b, x.Raw...)
	}
	return b
}

func appendSQLite4(b []byte, v uint64) []byte {
	switch {
	case v <= 240:
		return append(b, byte(v))
	case v <= 2287:
		return append(b, byte((v-240)>>8+241), byte(v-240))
	case v <= 67823:
		return append(b, 249, byte((v-2288)>>8), byte(v-2288))
	}
	n := 3
	for n < 8 && v>>(8*n) != 0 {
		n++
	}
	b = append(b, byte(247+n))
	for j := n - 1; j >= 0; j-- {
		b = append(b, byte(v>>(8*j)))
	}
	return b
}

func cutSQLite4(b []byte) (uint64, []byte, bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	a, n := b[0], 0
	switch {
	case a <= 240:
		return uint64(a), b[1:], true
	case a <= 248:
		n = 1
	case a == 249:
		n = 2
	default:
		n = int(a) - 247
	}
	if len(b) < 1+n {
		return 0, nil, false
	}
	v := uint64(0)
	for _, x := range b[1 : 1+n] {
		v = v<<8 | uint64(x)
	}
	switch {
	case a <= 248:
		v += uint64(a-241)<<8 + 240
	case a == 249:
		v += 2288
	}
	return v, b[1+n:], true
}

func decodeChange(b []byte) (c change, ok bool) {
	if c.Row, b, ok = cutSQLite4(b); !ok {
		return
	}
	if c.Time, b, ok = cutSQLite4(b); !ok || len(b) == 0 {
		return c, false
	}
	c.Kind, b = b[0], b[1:]
	for len(b) > 0 {
		id, n := binary.Uvarint(b)
		if n <= 0 {
			return c, false
		}
		l, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return c, false
		}
		b = b[n+m:]
		x := colChange{ID: int(id), Null: l == 0}
		if l > 0 {
			if uint64(len(b)) < l-1 {
				return c, false
			}
			x.Raw, b = b[:l-1], b[l-1:]
		}
		c.Cols = append(c.Cols, x)
	}
	return c, true
}

// stored is a cell as a delta holds it.
func stored(typ string, v cell) []byte {
	switch x := v.(type) {
	case bool:
		if x {
			return []byte{1}
		}
		return []byte{0}
	case int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(x))[:keyWidth(typ)]
	case *big.Int:
		b := new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128),
			big.NewInt(1))).FillBytes(make([]byte, 16))
		for i := range 8 {
			b[i], b[15-i] = b[15-i], b[i]
		}
		return b
	case float32, float64:
		b, _ := binary.Append(nil, binary.LittleEndian, x)
		return b
	case []byte:
		return x
	}
	panic("no delta of " + typ)
}

// stats is DeltaStatsPB with columns in a fixed order: Kudu writes them in that of a hash table.
type stats struct {
	deletes, reinserts, lo, hi uint64
	updates                    map[uint64]uint64
}

func statsOf(entries []change) stats {
	s := stats{lo: math.MaxUint64, updates: map[uint64]uint64{}}
	for _, e := range entries {
		s.lo, s.hi = min(s.lo, e.Time), max(s.hi, e.Time)
		for _, c := range e.Cols { // those of a reinsert count as updates, too: seen
			s.updates[uint64(c.ID)]++
		}
		switch e.Kind {
		case 2:
			s.deletes++
		case 3:
			s.reinserts++
		}
	}
	return s
}

// parseStats parses the value as printed in the dump's footer.
func parseStats(text string) (s stats, err error) {
	b, err := unescapeOctal(text[:len(text)/2])
	if err != nil {
		return s, err
	}
	s.updates = map[uint64]uint64{}
	fields := func(b []byte, f func(n, v uint64, sub []byte)) {
		for len(b) > 0 && err == nil {
			tag, n := binary.Uvarint(b)
			if b = b[max(n, 0):]; n <= 0 || len(b) == 0 {
				err = fmt.Errorf("cut protobuf")
				return
			}
			switch tag & 7 {
			case 0:
				v, n := binary.Uvarint(b)
				b = b[max(n, 1):]
				f(tag>>3, v, nil)
			case 1:
				if len(b) < 8 {
					err = fmt.Errorf("cut protobuf")
					return
				}
				f(tag>>3, binary.LittleEndian.Uint64(b), nil)
				b = b[8:]
			case 2:
				l, n := binary.Uvarint(b)
				if n <= 0 || uint64(len(b)-n) < l {
					err = fmt.Errorf("cut protobuf")
					return
				}
				f(tag>>3, 0, b[n:n+int(l)])
				b = b[n+int(l):]
			default:
				err = fmt.Errorf("wire type %d", tag&7)
			}
		}
	}
	fields(b, func(n, v uint64, sub []byte) {
		switch n {
		case 1:
			s.deletes = v
		case 3:
			s.lo = v
		case 4:
			s.hi = v
		case 5:
			var id, count uint64
			fields(sub, func(n, v uint64, _ []byte) {
				if n == 1 {
					id = v
				} else if n == 2 {
					count = v
				}
			})
			s.updates[id] += count
		case 6:
			s.reinserts = v
		}
	})
	return s, err
}

// unescapeOctal parses a quoted value of protobuf's text form.
func unescapeOctal(l string) ([]byte, error) {
	l = strings.Trim(l, `"`)
	var b []byte
	for i := 0; i < len(l); i++ {
		if l[i] != '\\' {
			b = append(b, l[i])
			continue
		}
		if i++; i >= len(l) {
			return nil, fmt.Errorf("it ends with a backslash")
		}
		if j := strings.IndexByte("nrt\"'\\", l[i]); j >= 0 {
			b = append(b, "\n\r\t\"'\\"[j])
			continue
		}
		if i+2 >= len(l) {
			return nil, fmt.Errorf("strange escape")
		}
		v, err := strconv.ParseUint(l[i:i+3], 8, 8)
		if err != nil {
			return nil, err
		}
		b = append(b, byte(v))
		i += 2
	}
	return b, nil
}
