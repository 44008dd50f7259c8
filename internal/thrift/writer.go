package thrift

import (
	"encoding/binary"
	"math"
)

// Item is the field number for elements of lists and maps, which have none.
const Item = 0

// Writer writes structs. The outermost struct is begun with Struct(Item) and ended with End:
//
//	w := thrift.NewWriter(thrift.Compact)
//	w.Struct(thrift.Item)
//	w.I32(1, 7)
//	w.List(2, thrift.Bytes, len(names))
//	for _, n := range names {
//		w.String(thrift.Item, n)
//	}
//	w.End()
//	file.Write(w.Encoded())
//
// Only structs are ended; a list ends with its last element. In the compact protocol fields are shortest in
// ascending order.
type Writer struct {
	p     Protocol
	b     []byte
	stack []writing
}

// writing is a struct, list or map that is being written.
type writing struct {
	last int16
	left int // remaining elements of a list; -1: a struct
}

// NewWriter returns an empty Writer.
func NewWriter(p Protocol) *Writer { return &Writer{p: p} }

// Encoded returns the bytes written so far. They are valid until the next Reset.
func (w *Writer) Encoded() []byte { return w.b }

// Reset empties w.
func (w *Writer) Reset() { w.b, w.stack = w.b[:0], w.stack[:0] }

// begin writes the head of a field of type t, unless the value is an element.
func (w *Writer) begin(id int16, t Type) {
	if len(w.stack) == 0 {
		return
	}
	f := &w.stack[len(w.stack)-1]
	if f.left >= 0 {
		return
	}
	if w.p == Binary {
		w.b = binary.BigEndian.AppendUint16(append(w.b, toBinary[t]), uint16(id))
		return
	}
	w.compactHead(f, id, toCompact[t])
}

func (w *Writer) compactHead(f *writing, id int16, number byte) {
	if d := int(id) - int(f.last); d > 0 && d < 16 {
		w.b = append(w.b, byte(d)<<4|number)
	} else {
		w.b = append(w.b, number)
		w.b = binary.AppendUvarint(w.b, uint64(uint16(id<<1)^uint16(id>>15)))
	}
	f.last = id
}

// wrote records that a value is complete, and with it each list of which it was the last element.
func (w *Writer) wrote() {
	for n := len(w.stack); n > 0 && w.stack[n-1].left >= 0; n-- {
		if w.stack[n-1].left--; w.stack[n-1].left > 0 {
			return
		}
		w.stack = w.stack[:n-1]
	}
}

// Struct begins a struct.
func (w *Writer) Struct(id int16) {
	w.begin(id, Struct)
	w.stack = append(w.stack, writing{left: -1})
}

// End ends the innermost struct.
func (w *Writer) End() {
	w.b = append(w.b, 0)
	w.stack = w.stack[:len(w.stack)-1]
	w.wrote()
}

// List begins a list of n elements, which the caller writes next.
func (w *Writer) List(id int16, elem Type, n int) {
	w.begin(id, List)
	switch {
	case w.p == Binary:
		w.b = binary.BigEndian.AppendUint32(append(w.b, toBinary[elem]), uint32(n))
	case n < 15:
		w.b = append(w.b, byte(n)<<4|toCompact[elem])
	default:
		w.b = binary.AppendUvarint(append(w.b, 0xf0|toCompact[elem]), uint64(n))
	}
	w.elements(n)
}

// Map begins a map of n entries; the caller writes key, value, key, value and so on.
func (w *Writer) Map(id int16, key, value Type, n int) {
	w.begin(id, Map)
	if w.p == Binary {
		w.b = binary.BigEndian.AppendUint32(append(w.b, toBinary[key], toBinary[value]), uint32(n))
	} else if w.b = binary.AppendUvarint(w.b, uint64(n)); n > 0 {
		w.b = append(w.b, toCompact[key]<<4|toCompact[value])
	}
	w.elements(2 * n)
}

func (w *Writer) elements(n int) {
	if n == 0 {
		w.wrote()
		return
	}
	w.stack = append(w.stack, writing{left: n})
}

// Bool writes a bool.
func (w *Writer) Bool(id int16, v bool) {
	number := byte(2)
	if v {
		number = 1
	}
	if f := len(w.stack) - 1; w.p == Compact && f >= 0 && w.stack[f].left < 0 {
		w.compactHead(&w.stack[f], id, number)
		w.wrote()
		return
	}
	w.begin(id, Bool)
	if w.p == Binary {
		number &= 1
	}
	w.b = append(w.b, number)
	w.wrote()
}

// I8 writes an i8 (byte).
func (w *Writer) I8(id int16, v int8) {
	w.begin(id, I8)
	w.b = append(w.b, byte(v))
	w.wrote()
}

// I16 writes an i16.
func (w *Writer) I16(id, v int16) { w.int(id, I16, int64(v)) }

// I32 writes an i32, also an enum.
func (w *Writer) I32(id int16, v int32) { w.int(id, I32, int64(v)) }

// I64 writes an i64.
func (w *Writer) I64(id int16, v int64) { w.int(id, I64, v) }

func (w *Writer) int(id int16, t Type, v int64) {
	w.begin(id, t)
	switch {
	case w.p == Compact:
		w.b = binary.AppendUvarint(w.b, uint64(v<<1)^uint64(v>>63))
	case t == I16:
		w.b = binary.BigEndian.AppendUint16(w.b, uint16(v))
	case t == I32:
		w.b = binary.BigEndian.AppendUint32(w.b, uint32(v))
	default:
		w.b = binary.BigEndian.AppendUint64(w.b, uint64(v))
	}
	w.wrote()
}

// Double writes a double.
func (w *Writer) Double(id int16, v float64) {
	w.begin(id, Double)
	if w.p == Compact {
		w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v))
	} else {
		w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(v))
	}
	w.wrote()
}

// String writes a string.
func (w *Writer) String(id int16, v string) {
	w.length(id, len(v))
	w.b = append(w.b, v...)
	w.wrote()
}

// Bytes writes a binary.
func (w *Writer) Bytes(id int16, v []byte) {
	w.length(id, len(v))
	w.b = append(w.b, v...)
	w.wrote()
}

func (w *Writer) length(id int16, n int) {
	w.begin(id, Bytes)
	if w.p == Compact {
		w.b = binary.AppendUvarint(w.b, uint64(n))
	} else {
		w.b = binary.BigEndian.AppendUint32(w.b, uint32(n))
	}
}
