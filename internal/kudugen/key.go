package kudugen

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// EncodeKey returns Kudu's memcmp-ordered encoding of the key columns of a row: signed numbers are big-endian with the
// sign bit inverted; in strings that are not last, 0x00 becomes 0x00 0x01, and 0x00 0x00 follows the string.
func EncodeKey(cols []Column, row []Cell) []byte {
	keys := 0
	for keys < len(cols) && cols[keys].Key {
		keys++
	}
	var out []byte
	for i, c := range cols[:keys] {
		x := row[i]
		if c.Width() > 0 {
			for j := len(x) - 1; j >= 0; j-- {
				b := x[j]
				if j == len(x)-1 {
					b ^= 0x80
				}
				out = append(out, b)
			}
			continue
		}
		if i == keys-1 {
			out = append(out, x...)
			continue
		}
		out = append(out, bytes.ReplaceAll(x, []byte{0}, []byte{0, 1})...)
		out = append(out, 0, 0)
	}
	return out
}

// SortByKey sorts rows by encoded key, as in a rowset.
func SortByKey(cols []Column, rows [][]Cell) {
	keys := make([][]byte, len(rows))
	for i := range rows {
		keys[i] = EncodeKey(cols, rows[i])
	}
	sort.Sort(byKey{keys, rows})
}

type byKey struct {
	keys [][]byte
	rows [][]Cell
}

func (s byKey) Len() int           { return len(s.keys) }
func (s byKey) Less(i, j int) bool { return bytes.Compare(s.keys[i], s.keys[j]) < 0 }
func (s byKey) Swap(i, j int) {
	s.keys[i], s.keys[j] = s.keys[j], s.keys[i]
	s.rows[i], s.rows[j] = s.rows[j], s.rows[i]
}

// murmur64 is MurmurHash64A, which determines the hash bucket of an encoded column.
func murmur64(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		for i, x := range b {
			h ^= uint64(x) << (8 * i)
		}
		h *= m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}
