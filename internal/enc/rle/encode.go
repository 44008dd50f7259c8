package rle

import (
	"encoding/binary"
	"math/bits"
)

// maxGroups is the largest number of groups in a packed run: the header, for which one byte is reserved, is written
// when the length is known.
const maxGroups = 63

// maxRun is the largest number of values in a repeated run. Kudu keeps header and count in an int32.
const maxRun = 1<<30 - 1

// Encoder encodes values of one width with output identical to that of Kudu's encoder.
//
// Values are examined in groups of 8. A group of 8 equal values begins a repeated run, which continues as long as the
// value repeats; any other group is added to a packed run of up to 63 groups. So a repeated run begins only where a
// group does.
type Encoder struct {
	width int
	buf   []byte
	group [8]uint64 // values of the group that is not full yet
	fill  int       // number of values in group
	last  uint64    // the last value
	same  int       // number of successive repetitions: since the group began, or (8 and more) in a repeated run
	lit   int       // groups in the open packed run; they are in buf
	head  int       // offset of its header, which is written when the run is closed
}

// NewEncoder makes an encoder for values of width bits, 1 to 64.
func NewEncoder(width int) *Encoder {
	if width < 1 || width > 64 {
		panic("rle: width out of range")
	}
	return &Encoder{width: width}
}

// Put adds a value; bits above the width are ignored.
func (e *Encoder) Put(v uint64) {
	v &= ^uint64(0) >> (64 - e.width)
	if v == e.last {
		e.same++
		if e.same > 8 {
			if e.same > maxRun {
				e.same = maxRun
				e.closeRun()
				e.begin(v)
			}
			return
		}
	} else {
		if e.same >= 8 {
			e.closeRun()
		}
		e.same, e.last = 1, v
	}
	e.group[e.fill] = v
	e.fill++
	if e.fill == 8 {
		e.closeGroup()
	}
}

// begin puts v as the first value of a group, after a run was closed at its largest size.
func (e *Encoder) begin(v uint64) {
	e.group[0], e.fill = v, 1
	e.last, e.same = v, 1
}

// PutRun adds v n times.
func (e *Encoder) PutRun(v uint64, n int) {
	v &= ^uint64(0) >> (64 - e.width)
	for n > 0 {
		if v == e.last && e.same >= 8 {
			m := min(n, maxRun-e.same)
			e.same += m
			n -= m
			if n == 0 {
				return
			}
		}
		e.Put(v)
		n--
	}
}

// closeRun writes the repeated run.
func (e *Encoder) closeRun() {
	e.buf = binary.AppendUvarint(e.buf, uint64(e.same)<<1)
	for i := 0; i < e.width; i += 8 {
		e.buf = append(e.buf, byte(e.last>>i))
	}
	e.fill, e.same = 0, 0
}

// closeGroup decides to which run a full group belongs.
func (e *Encoder) closeGroup() {
	if e.same >= 8 {
		e.fill = 0
		e.closePacked()
		return
	}
	e.pack()
	e.same = 0
	if e.lit == maxGroups {
		e.closePacked()
	}
}

// pack writes the group, full or not, to the packed run.
func (e *Encoder) pack() {
	if e.lit == 0 {
		e.head = len(e.buf)
		e.buf = append(e.buf, 0)
	}
	e.lit++
	var acc uint64
	have := 0
	for _, v := range e.group[:e.fill] {
		acc |= v << have
		have += e.width
		if have >= 64 {
			e.buf = binary.LittleEndian.AppendUint64(e.buf, acc)
			have -= 64
			acc = v >> (e.width - have) // 0 if nothing is left of v
		}
	}
	for ; have > 0; have -= 8 {
		e.buf = append(e.buf, byte(acc))
		acc >>= 8
	}
	e.fill = 0
}

// closePacked writes the header of the packed run, if one is open.
func (e *Encoder) closePacked() {
	if e.lit > 0 {
		e.buf[e.head] = byte(e.lit<<1 | 1)
		e.lit = 0
	}
}

// repeats reports whether the pending values are a repeated run: at the very end, fewer than 8 values are one as well
// if they are equal and no packed run is open.
func (e *Encoder) repeats() bool {
	return e.same > 0 && e.lit == 0 && (e.fill == 0 || e.fill == e.same)
}

// Len returns the number of bytes that Finish would return now.
func (e *Encoder) Len() int {
	n := len(e.buf)
	switch {
	case e.repeats():
		n += (bits.Len64(uint64(e.same)<<1)+6)/7 + (e.width+7)/8
	case e.fill > 0:
		n += (e.fill*e.width + 7) / 8
		if e.lit == 0 {
			n++
		}
	}
	return n
}

// Written returns the number of bytes that later values cannot change (except for the header of an open packed run).
// Kudu decides by this number, and not by Len, that a block is full.
func (e *Encoder) Written() int { return len(e.buf) }

// Finish ends the sequence and returns it; it is valid until Reset, which must come before the next Put.
func (e *Encoder) Finish() []byte {
	switch {
	case e.repeats():
		e.closeRun()
	case e.fill > 0:
		e.pack()
	}
	e.closePacked()
	e.same = 0
	return e.buf
}

// Reset returns e to its initial state; it keeps its memory.
func (e *Encoder) Reset() {
	*e = Encoder{width: e.width, buf: e.buf[:0]}
}
