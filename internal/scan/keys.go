package scan

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/vec"
)

// keyColumn is one column of the order in which row groups are merged.
type keyColumn struct {
	output     int // index of the output in the sub-plan
	typ        arrow.DataType
	descending bool
	nullable   bool // nulls sort first
}

// keys are the keys of some rows, encoded so that bytes.Compare gives the order. The first eight bytes of each are also
// kept as a number, which usually decides a comparison.
type keys struct {
	head  []uint64
	bytes []byte
	offs  []int32 // n+1 offsets; nil: every key is wide bytes long
	wide  int     // size of a key if offs is nil
}

func (k *keys) key(i int) []byte {
	if k.offs == nil {
		return k.bytes[i*k.wide : (i+1)*k.wide]
	}
	return k.bytes[k.offs[i]:k.offs[i+1]]
}

// compare compares key i of k with key j of o.
func (k *keys) compare(i int, o *keys, j int) int {
	a, b := k.head[i], o.head[j]
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case k.offs == nil && k.wide <= 8:
		return 0
	}
	return bytes.Compare(k.key(i), o.key(j))
}

// encode encodes the keys of n rows.
func (k *keys) encode(cols []keyColumn, vecs []*vec.Vector, n int) error {
	k.wide, k.bytes, k.offs = 0, k.bytes[:0], k.offs[:0]
	stride := 0
	for _, c := range cols {
		w := fixedKeyWidth(c.typ)
		if w == 0 {
			stride = -1
			break
		}
		stride += w
		if c.nullable {
			stride++
		}
	}
	for _, c := range cols {
		if err := vecs[c.output].Plain(); err != nil {
			return err
		}
	}
	k.offs = append(k.offs, 0)
	for i := range n {
		for _, c := range cols {
			at := len(k.bytes)
			var err error
			if k.bytes, err = appendKey(k.bytes, c, vecs[c.output], i); err != nil {
				return err
			}
			if c.descending {
				for j := at; j < len(k.bytes); j++ {
					k.bytes[j] = ^k.bytes[j]
				}
			}
		}
		if stride < 0 {
			k.offs = append(k.offs, int32(len(k.bytes)))
		}
	}
	if stride >= 0 {
		k.wide, k.offs = stride, nil
	}
	k.head = k.head[:0]
	for i := range n {
		k.head = append(k.head, headOf(k.key(i)))
	}
	return nil
}

func headOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var x uint64
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	return x << (8 * (8 - uint(len(b))))
}

// fixedKeyWidth returns the encoded size of a key column's values, or 0 if it varies.
func fixedKeyWidth(t arrow.DataType) int {
	if t.ID() == arrow.BOOL {
		return 1
	}
	if f, ok := t.(arrow.FixedWidthDataType); ok {
		return f.BitWidth() / 8
	}
	return 0
}

// appendKey appends entry i of v so that encodings sort like the values: integers big-endian with the sign bit flipped,
// strings with their zero bytes escaped and a terminator that sorts before everything.
func appendKey(b []byte, c keyColumn, v *vec.Vector, i int) ([]byte, error) {
	null := !v.Valid(i)
	if c.nullable {
		if null {
			return append(b, make([]byte, 1+fixedKeyWidth(c.typ))...), nil // ignoring the value under the null
		}
		b = append(b, 1)
	} else if null {
		return b, fault.Bugf("a null in a key column that has none")
	}
	switch c.typ.ID() {
	case arrow.BOOL:
		return append(b, v.Bits()[i>>3]>>(i&7)&1), nil
	case arrow.STRING, arrow.BINARY:
		o := v.Offsets(i)
		for _, x := range v.StringBytes()[o[0]:o[1]] {
			if b = append(b, x); x == 0 {
				b = append(b, 1)
			}
		}
		return append(b, 0, 0), nil
	case arrow.FIXED_SIZE_BINARY:
		return append(b, v.Data(i)[:v.Width()]...), nil
	case arrow.FLOAT32, arrow.FLOAT64:
		return appendFloatKey(b, v, i), nil
	}
	at := len(b)
	d, w := v.Data(i), v.Width()
	for j := w - 1; j >= 0; j-- {
		b = append(b, d[j])
	}
	if !arrow.IsUnsignedInteger(c.typ.ID()) {
		b[at] ^= 0x80
	}
	return b, nil
}

// appendFloatKey flips all bits of a negative number, and the sign bit of a positive one.
func appendFloatKey(b []byte, v *vec.Vector, i int) []byte {
	if v.Width() == 4 {
		x := vec.Fixed[uint32](v, i)[0]
		if bits.LeadingZeros32(x) == 0 {
			return binary.BigEndian.AppendUint32(b, ^x)
		}
		return binary.BigEndian.AppendUint32(b, x|1<<31)
	}
	x := vec.Fixed[uint64](v, i)[0]
	if bits.LeadingZeros64(x) == 0 {
		return binary.BigEndian.AppendUint64(b, ^x)
	}
	return binary.BigEndian.AppendUint64(b, x|1<<63)
}
