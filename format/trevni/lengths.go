package trevni

import (
	"strconv"

	"stoa/fault"
	"stoa/internal/enc/plain"
)

// An array column holds for each entry a length, and then so many values:
//
//	length ≥ 0   an int, zig-zag varint
//	length < 0   a run of n ≥ 2 equal lengths v, which is 0 or 1: (3 − v) − 2n. So v = (length+1) & 1, n = ((1−length) >> 1) + 1.
//
// Runs are version 2's. The writer makes one of ones only where values take no bytes; booleans begin a new byte
// behind every length.

// arrays reads lengths. What a run has left is kept for the next step.
type arrays struct {
	t      Type
	src    []byte
	pos    int
	run    int64 // entries of the current run that are left
	of     int32 // their length
	bit    int   // bits used of the byte before pos, of booleans; 0: none
	runs   bool  // there was one
	values int64 // so far
}

// next reads the next length. It does not go over its values.
func (a *arrays) next() (int32, error) {
	if a.run > 0 {
		a.run--
		return a.of, nil
	}
	v, n := varint(a.src[a.pos:])
	if n <= 0 || v != int64(int32(v)) {
		if n == 0 {
			return 0, fault.Rel(len(a.src), 0, "length", "the block ends where a length is wanted")
		}
		return 0, fault.Rel(a.pos, min(5, len(a.src)-a.pos), "length", "no varint of 32 bits")
	}
	a.pos += n
	a.bit = 0
	if v >= 0 {
		return int32(v), nil
	}
	a.of = int32((v + 1) & 1)
	a.run = (1 - v) >> 1 // this one is taken
	a.runs = true
	return a.of, nil
}

// over goes over n values and says where they lie in src: bytes, or, of booleans, bits from bit on.
func (a *arrays) over(n int32) (from, to, bit int, err error) {
	a.values += int64(n)
	if n == 0 {
		return a.pos, a.pos, 0, nil
	}
	if a.t == Boolean {
		from, bit = a.pos, 0
		if a.bit > 0 {
			from, bit = a.pos-1, a.bit
		}
		end := int64(from)*8 + int64(bit) + int64(n)
		a.bit = int(end & 7)
		if (end+7)/8 > int64(len(a.src)) {
			return 0, 0, 0, a.tooLong(n)
		}
		a.pos = int((end + 7) / 8)
		return from, a.pos, bit, nil
	}
	if a.t.least(int64(n)) > int64(len(a.src)-a.pos) {
		return 0, 0, 0, a.tooLong(n)
	}
	k := skipValues(a.t, a.src[a.pos:], int(n))
	if k < 0 {
		return 0, 0, 0, a.tooLong(n)
	}
	from = a.pos
	a.pos += k
	return from, a.pos, 0, nil
}

func (a *arrays) tooLong(n int32) error {
	return fault.Rel(a.pos, len(a.src)-a.pos, "", "%d values do not fit the %d bytes that are left", n,
		len(a.src)-a.pos)
}

// skipEntries goes over n entries with their values.
func (a *arrays) skipEntries(n int64) error {
	for n > 0 {
		l, err := a.next()
		if err != nil {
			return err
		}
		if a.run > 0 && (l == 0 || types[a.t].form == formNone) { // the rest of a run at once: its values take no bytes
			k := min(a.run, n-1)
			a.run -= k
			n -= k
			a.values += k * int64(l)
		}
		if _, _, _, err := a.over(l); err != nil {
			return err
		}
		n--
	}
	return nil
}

// split is what became of an array column's entries.
type split struct {
	values []byte // of all entries, one behind the other
	count  int64  // how many
}

// split reads n entries: lengths go to lengths, and their values together.
// scratch has room for what is left of the source.
func (a *arrays) split(lengths []int32, scratch []byte) (s split, err error) {
	end, bits := 0, 0
	first := a.values
	for i := 0; i < len(lengths); i++ {
		l, err := a.next()
		if err != nil {
			return s, at(err, "entry["+strconv.Itoa(i)+"]")
		}
		lengths[i] = l
		if a.run > 0 && (l == 0 || types[a.t].form == formNone) {
			k := int(min(a.run, int64(len(lengths)-i-1)))
			for j := range k {
				lengths[i+1+j] = l
			}
			a.run -= int64(k)
			a.values += int64(k) * int64(l)
			i += k
		}
		from, to, bit, err := a.over(l)
		if err != nil {
			return s, at(err, "entry["+strconv.Itoa(i)+"]")
		}
		if a.t == Boolean {
			plain.CopyBits(scratch, bits, a.src[from:to], bit, int(l))
			bits += int(l)
			end = (bits + 7) / 8
			continue
		}
		end += copy(scratch[end:], a.src[from:to])
	}
	s.values, s.count = scratch[:end], a.values-first
	return s, nil
}

// at puts a path in front of a relative error's.
func at(err error, path string) error {
	e, ok := err.(*fault.Error)
	if !ok {
		return err
	}
	out := *e
	out.Path = fault.JoinPath(path, e.Path)
	return &out
}
