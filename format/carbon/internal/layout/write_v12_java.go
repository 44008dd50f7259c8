package layout

import (
	"encoding/binary"
	"math"
	"math/big"
)

// What java_object.go reads, written: a ValueEncoderMeta, as Java serializes it. The numbers of classes are
// those of the Java library and of CarbonData.

// javaType is a class of which objects are written.
type javaType struct {
	name   string
	uid    uint64
	flags  byte
	fields []javaMember
	super  *javaType
}

type javaMember struct {
	kind byte
	name string
	of   string // the type's name, of objects and arrays
}

var (
	javaNumber = &javaType{name: "java.lang.Number", uid: 0x86ac951d0b94e08b, flags: javaPlain}
	javaLongs  = &javaType{name: "java.lang.Long", uid: 0x3b8be490cc8f23df, flags: javaPlain,
		fields: []javaMember{{'J', "value", ""}}, super: javaNumber}
	javaFloats = &javaType{name: "java.lang.Double", uid: 0x80b3c24a296bfb04, flags: javaPlain,
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

// javaWriter writes one stream of objects. What was written before is referred to by its number.
type javaWriter struct {
	b    []byte
	seen map[any]uint32
	next uint32
}

func (w *javaWriter) u32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *javaWriter) u64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

// before refers to what was written before; if it was not, it gets its number.
func (w *javaWriter) before(what any) bool {
	if h, ok := w.seen[what]; ok {
		w.b = append(w.b, javaReference)
		w.u32(h)
		return true
	}
	return false
}

func (w *javaWriter) number(what any) {
	if what != nil {
		w.seen[what] = w.next
	}
	w.next++
}

// class writes a class, or refers to it.
func (w *javaWriter) class(t *javaType) {
	if t == nil {
		w.b = append(w.b, javaNull)
		return
	}
	if w.before(t) {
		return
	}
	w.b = AppendUTF(append(w.b, javaClass), t.name)
	w.u64(t.uid)
	w.number(t)
	w.b = append(w.b, t.flags)
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(t.fields)))
	for _, f := range t.fields {
		w.b = AppendUTF(append(w.b, f.kind), f.name)
		if f.of != "" && !w.before(f.of) {
			w.b = AppendUTF(append(w.b, javaString), f.of)
			w.number(f.of)
		}
	}
	w.b = append(w.b, javaEnd)
	w.class(t.super)
}

// object begins an object; what it holds follows. same is nil, or what later objects that are the same one have.
func (w *javaWriter) object(t *javaType, same any) {
	w.b = append(w.b, javaObject)
	w.class(t)
	w.number(same)
}

// boxed writes a java.lang.Long. Java keeps one object for each of the numbers from -128 to 127.
func (w *javaWriter) long(v int64) {
	var same any
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		if same = v; w.before(same) {
			return
		}
	}
	w.object(javaLongs, same)
	w.u64(uint64(v))
}

func (w *javaWriter) double(v float64) {
	w.object(javaFloats, nil)
	w.u64(math.Float64bits(v))
}

// decimal writes a java.math.BigDecimal without digits after the decimal point.
func (w *javaWriter) decimal(v *big.Int) {
	w.object(javaDecimal, nil)
	w.u32(0) // scale
	w.object(javaInteger, nil)
	w.u32(math.MaxUint32)     // bitCount, as all below: not computed
	w.u32(math.MaxUint32)     // bitLength
	w.u32(math.MaxUint32 - 1) // firstNonzeroByteNum
	w.u32(math.MaxUint32 - 1) // lowestSetBit
	w.u32(uint32(v.Sign()))
	magnitude := v.Bytes()
	w.b = append(w.b, javaArray)
	w.class(javaBytes)
	w.number(nil)
	w.u32(uint32(len(magnitude)))
	w.b = append(append(w.b, magnitude...), javaEnd, javaEnd)
}

// maxDouble is Double.MAX_VALUE, which the writer takes for the smallest of all decimals.
var maxDouble, _ = big.NewFloat(math.MaxFloat64).Int(nil)

// Put serializes the numbers from which a page was made small. unique, which nobody reads, is one less than the
// smallest.
func (m *MeasureMeta) Put() []byte {
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

func AppendUTF(b []byte, s string) []byte {
	s = s[:min(len(s), math.MaxUint16)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}
