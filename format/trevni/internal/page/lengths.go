package page

import (
	"strconv"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/plain"
)

// An array column has for each entry a length, followed by that many values:
//
//	length ≥ 0   an int, zig-zag varint
//	length < 0   a run of n ≥ 2 equal lengths v, which is 0 or 1: (3 − v) − 2n.
//	             So v = (length+1) & 1, n = ((1−length) >> 1) + 1.
//
// Only version 2 has runs. The writer makes runs of ones only where values take no bytes; booleans begin a new byte
// after every length.

// Arrays reads the entries of an array column: lengths, each followed by its values.
type Arrays struct {
	Type   layout.Type
	Bytes  []byte
	Pos    int
	Run    int64 // remaining entries of the current run
	of     int32 // their length
	bit    int   // booleans: used bits of the byte before pos; 0: none
	Runs   bool  // there was a run
	values int64 // so far
}

// Next returns the next length. It does not skip its values.
func (a *Arrays) Next() (int32, error) {
	if a.Run > 0 {
		a.Run--
		return a.of, nil
	}
	v, n := layout.Varint(a.Bytes[a.Pos:])
	if n <= 0 || v != int64(int32(v)) {
		if n == 0 {
			return 0, fault.Rel(len(a.Bytes), 0, "length", "expected a length, found the end of the block")
		}
		return 0, fault.Rel(a.Pos, min(5, len(a.Bytes)-a.Pos), "length", "expected a varint of at most 32 bits")
	}
	a.Pos += n
	a.bit = 0
	if v >= 0 {
		return int32(v), nil
	}
	a.of = int32((v + 1) & 1)
	a.Run = (1 - v) >> 1 // not counting this entry
	a.Runs = true
	return a.of, nil
}

// Values skips n values and returns their location, Bytes[from:to]; booleans begin at bit bit of the first byte.
func (a *Arrays) Values(n int32) (from, to, bit int, err error) {
	a.values += int64(n)
	if n == 0 {
		return a.Pos, a.Pos, 0, nil
	}
	if a.Type == layout.Boolean {
		from, bit = a.Pos, 0
		if a.bit > 0 {
			from, bit = a.Pos-1, a.bit
		}
		end := int64(from)*8 + int64(bit) + int64(n)
		a.bit = int(end & 7)
		if (end+7)/8 > int64(len(a.Bytes)) {
			return 0, 0, 0, a.tooLong(n)
		}
		a.Pos = int((end + 7) / 8)
		return from, a.Pos, bit, nil
	}
	if a.Type.MinBytes(int64(n)) > int64(len(a.Bytes)-a.Pos) {
		return 0, 0, 0, a.tooLong(n)
	}
	k := skipValues(a.Type, a.Bytes[a.Pos:], int(n))
	if k < 0 {
		return 0, 0, 0, a.tooLong(n)
	}
	from = a.Pos
	a.Pos += k
	return from, a.Pos, 0, nil
}

func (a *Arrays) tooLong(n int32) error {
	return fault.Rel(a.Pos, len(a.Bytes)-a.Pos, "", "%d values do not fit the %d bytes that are left", n,
		len(a.Bytes)-a.Pos)
}

// skipEntries skips n entries with their values.
func (a *Arrays) skipEntries(n int64) error {
	for n > 0 {
		l, err := a.Next()
		if err != nil {
			return err
		}
		// skip the rest of a run at once: its values take no bytes
		if a.Run > 0 && (l == 0 || layout.Types[a.Type].Form == layout.FormNone) {
			k := min(a.Run, n-1)
			a.Run -= k
			n -= k
			a.values += k * int64(l)
		}
		if _, _, _, err := a.Values(l); err != nil {
			return err
		}
		n--
	}
	return nil
}

// split is the result of Split.
type split struct {
	values []byte // of all entries, one after the other
	count  int64  // number of values
}

// Split reads len(lengths) entries. It stores their lengths in lengths and their values contiguously in scratch, which
// must have room for the rest of Bytes.
func (a *Arrays) Split(lengths []int32, scratch []byte) (s split, err error) {
	end, bits := 0, 0
	first := a.values
	for i := 0; i < len(lengths); i++ {
		l, err := a.Next()
		if err != nil {
			return s, at(err, "entry["+strconv.Itoa(i)+"]")
		}
		lengths[i] = l
		if a.Run > 0 && (l == 0 || layout.Types[a.Type].Form == layout.FormNone) {
			k := int(min(a.Run, int64(len(lengths)-i-1)))
			for j := range k {
				lengths[i+1+j] = l
			}
			a.Run -= int64(k)
			a.values += int64(k) * int64(l)
			i += k
		}
		from, to, bit, err := a.Values(l)
		if err != nil {
			return s, at(err, "entry["+strconv.Itoa(i)+"]")
		}
		if a.Type == layout.Boolean {
			plain.CopyBits(scratch, bits, a.Bytes[from:to], bit, int(l))
			bits += int(l)
			end = (bits + 7) / 8
			continue
		}
		end += copy(scratch[end:], a.Bytes[from:to])
	}
	s.values, s.count = scratch[:end], a.values-first
	return s, nil
}

// at prefixes the path of a relative error.
func at(err error, path string) error {
	e, ok := err.(*fault.Error)
	if !ok {
		return err
	}
	out := *e
	out.Path = fault.JoinPath(path, e.Path)
	return &out
}
