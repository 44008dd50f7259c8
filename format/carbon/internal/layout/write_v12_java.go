package layout

import (
	"encoding/binary"
	"math"
	"math/big"
)

// The writer for java_object.go: it writes a ValueEncoderMeta as Java serializes it. The uid of a class is its
// serialVersionUID in the Java library or in CarbonData.

// javaType is a class of which the writer writes objects.
type javaType struct {
	name   string
	uid    uint64
	flags  byte
	fields []javaMember
	super  *javaType
}

type javaMember struct {
	kind     byte
	name     string
	typeName string // the type's name, for objects and arrays
}

var (
	javaNumber = &javaType{name: "java.lang.Number", uid: 0x86ac951d0b94e08b, flags: javaPlain}
	javaLong   = &javaType{name: "java.lang.Long", uid: 0x3b8be490cc8f23df, flags: javaPlain,
		fields: []javaMember{{'J', "value", ""}}, super: javaNumber}
	javaDouble = &javaType{name: "java.lang.Double", uid: 0x80b3c24a296bfb04, flags: javaPlain,
		fields: []javaMember{{'D', "value", ""}}, super: javaNumber}
	javaDecimal = &javaType{name: "java.math.BigDecimal", uid: 0x54c71557f981284f, flags: javaPlain | javaWritesOwn,
		super:  javaNumber,
		fields: []javaMember{{'I', "scale", ""}, {'L', "intVal", "Ljava/math/BigInteger;"}}}
	javaInteger = &javaType{name: "java.math.BigInteger", uid: 0x8cfc9f1fa93bfb1d, flags: javaPlain | javaWritesOwn,
		super: javaNumber,
		fields: []javaMember{{'I', "bitCount", ""}, {'I', "bitLength", ""}, {'I', "firstNonzeroByteNum", ""},
			{'I', "lowestSetBit", ""}, {'I', "signum", ""}, {'[', "magnitude", "[B"}}}
	javaBytes   = &javaType{name: "[B", uid: 0xacf317f8060854e0, flags: javaPlain}
	javaEncoder = &javaType{name: encoderClass, uid: 0xe86a31bb2c82999b, flags: javaPlain,
		fields: []javaMember{{'B', "dataTypeSelected", ""}, {'I', "decimal", ""},
			{'C', "type", ""}, {'L', "maxValue", "Ljava/lang/Object;"}, {'L', "minValue", "Ljava/lang/Object;"},
			{'L', "uniqueValue", "Ljava/lang/Object;"}}}
)

// javaWriter writes one stream of objects. Anything already written is referred to by its handle.
type javaWriter struct {
	b    []byte
	seen map[any]uint32 // handles
	next uint32         // handle
}

func (w *javaWriter) u32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *javaWriter) u64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

// reference writes a reference to what if it has already been written, and reports whether it has.
func (w *javaWriter) reference(what any) bool {
	if h, ok := w.seen[what]; ok {
		w.b = append(w.b, javaReference)
		w.u32(h)
		return true
	}
	return false
}

// assignHandle assigns the next handle to what; nil uses up a handle that is never referred to.
func (w *javaWriter) assignHandle(what any) {
	if what != nil {
		w.seen[what] = w.next
	}
	w.next++
}

// class writes a class descriptor, or a reference to it.
func (w *javaWriter) class(t *javaType) {
	if t == nil {
		w.b = append(w.b, javaNull)
		return
	}
	if w.reference(t) {
		return
	}
	w.b = AppendUTF(append(w.b, javaClass), t.name)
	w.u64(t.uid)
	w.assignHandle(t)
	w.b = append(w.b, t.flags)
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(t.fields)))
	for _, f := range t.fields {
		w.b = AppendUTF(append(w.b, f.kind), f.name)
		if f.typeName != "" && !w.reference(f.typeName) {
			w.b = AppendUTF(append(w.b, javaString), f.typeName)
			w.assignHandle(f.typeName)
		}
	}
	w.b = append(w.b, javaEnd)
	w.class(t.super)
}

// object begins an object, whose fields follow. same identifies it for later references; nil if there are none.
func (w *javaWriter) object(t *javaType, same any) {
	w.b = append(w.b, javaObject)
	w.class(t)
	w.assignHandle(same)
}

// long writes a java.lang.Long. Java has one object for each of the numbers from -128 to 127 (Long.valueOf).
func (w *javaWriter) long(v int64) {
	var same any
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		if same = v; w.reference(same) {
			return
		}
	}
	w.object(javaLong, same)
	w.u64(uint64(v))
}

func (w *javaWriter) double(v float64) {
	w.object(javaDouble, nil)
	w.u64(math.Float64bits(v))
}

// decimal writes a java.math.BigDecimal of scale 0.
func (w *javaWriter) decimal(v *big.Int) {
	w.object(javaDecimal, nil)
	w.u32(0) // scale
	w.object(javaInteger, nil)
	w.u32(math.MaxUint32)     // bitCount; like those below it is marked as not computed
	w.u32(math.MaxUint32)     // bitLength
	w.u32(math.MaxUint32 - 1) // firstNonzeroByteNum
	w.u32(math.MaxUint32 - 1) // lowestSetBit
	w.u32(uint32(v.Sign()))
	magnitude := v.Bytes()
	w.b = append(w.b, javaArray)
	w.class(javaBytes)
	w.assignHandle(nil)
	w.u32(uint32(len(magnitude)))
	w.b = append(append(w.b, magnitude...), javaEnd, javaEnd)
}

// maxDouble is Double.MAX_VALUE, which CarbonData writes as the min of every page of decimals.
var maxDouble, _ = big.NewFloat(math.MaxFloat64).Int(nil)

// Encode serializes a ValueEncoderMeta. Its uniqueValue, which no reader uses, is min - 1.
func (m *MeasureMeta) Encode() []byte {
	w := &javaWriter{seen: map[any]uint32{}, next: javaBase}
	w.b = binary.BigEndian.AppendUint16(w.b, javaMagic)
	w.b = binary.BigEndian.AppendUint16(w.b, javaVersion)
	w.object(javaEncoder, nil)
	w.b = append(w.b, byte(m.Selected))
	w.u32(uint32(m.Digits))
	w.b = append(w.b, 0, m.Kind)
	switch max := m.Max.(type) {
	case int64:
		min := m.Min.(int64)
		w.long(max)
		w.long(min)
		w.long(min - 1)
	case float64:
		min := m.Min.(float64)
		w.double(max)
		w.double(min)
		w.double(min - 1)
	default:
		w.decimal(new(big.Int))
		w.decimal(maxDouble)
		w.decimal(new(big.Int).Sub(maxDouble, big.NewInt(1)))
	}
	return w.b
}

// AppendUTF appends a string as Java's DataOutput.writeUTF does: u16 length, big-endian, and at most 65,535 bytes.
func AppendUTF(b []byte, s string) []byte {
	s = s[:min(len(s), math.MaxUint16)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}
