package layout

import (
	"fmt"
	"math"
)

// Formats 1 and 2 store the parameters of a measure's page as a serialized Java object of class ValueEncoderMeta. The
// parser supports the part of the Java Object Serialization Stream Protocol that plain objects need: objects, strings
// and arrays of bytes.
//
//	stream   AC ED 00 05, content
//	content  70                                          null
//	         71 handle:i32                               an earlier content; handles count from 0x7E0000
//	         72 name uid:i64 flags:u8 n:u16 field×n      class; then annotations until 78, then the superclass
//	         73 class, the fields of each class from the topmost down; annotations until 78
//	                                             if the class writes its own
//	         74 text                                     string: u16 length, UTF-8
//	         75 class n:i32 element×n                    array
//	         77 n:u8, n bytes                            block data, of annotations
//	field    type:u8 name, and of objects and arrays the type's name as content
const (
	javaMagic   = 0xaced
	javaVersion = 5
	javaBase    = 0x7e0000
	javaDepth   = 24

	javaNull      = 0x70
	javaReference = 0x71
	javaClass     = 0x72
	javaObject    = 0x73
	javaString    = 0x74
	javaArray     = 0x75
	javaBlock     = 0x77
	javaEnd       = 0x78

	// Estimated memory, in bytes, of an object, string or array, and of a field of a class or an object.
	perContent = 160
	perField   = 96

	javaWritesOwn = 1 << 0
	javaPlain     = 1 << 1
)

// javaDesc is a class descriptor.
type javaDesc struct {
	name   string
	flags  uint8
	fields []javaField
	super  *javaDesc
}

type javaField struct {
	kind byte // B C D F I J S Z, L for objects, [ for arrays
	name string
}

// JavaValues is an object: its fields by name. Whole numbers are int64, floating-point numbers float64, arrays of bytes
// []byte, objects *JavaValues, strings string.
type JavaValues struct {
	Class  string
	Fields map[string]any
	Own    []any // objects that the classes' writeObject methods wrote as annotations: the keys and values of a HashMap
}

type javaReader struct {
	BigEndian
	handles []any
	depth   int
}

// ParseJavaObject reads a stream of one object. The error is that of c, and the result is then nil.
func ParseJavaObject(c BigEndian) *JavaValues {
	r := &javaReader{BigEndian: c}
	if m, v := r.U16("magic"), r.U16("version"); c.Err() == nil && (m != javaMagic || v != javaVersion) {
		c.Fail(c.Pos()-4, 4, "magic", "not a serialized Java object: expected %04x %d, found %04x %d", javaMagic,
			javaVersion, m, v)
	}
	v, _ := r.content("object").(*JavaValues)
	if c.Err() == nil && v == nil {
		c.Fail(c.Pos(), 0, "object", "the stream has no object")
	}
	return v
}

func (r *javaReader) bad(name, format string, args ...any) {
	r.Fail(r.Pos(), 0, name, format, args...)
}

// content reads the next content of any kind.
func (r *javaReader) content(name string) any {
	r.Spend(perContent)
	if r.depth++; r.depth > javaDepth {
		r.bad(name, "objects nested deeper than %d", javaDepth)
	}
	defer func() { r.depth-- }()
	tag := r.U8(name + ".tag")
	if r.Err() != nil {
		return nil
	}
	switch tag {
	case javaNull:
		return nil
	case javaReference:
		return r.reference(name)
	case javaClass:
		return r.class()
	case javaObject:
		return r.object(name)
	case javaString:
		s := r.text(name)
		r.handles = append(r.handles, s)
		return s
	case javaArray:
		return r.array(name)
	}
	r.bad(name, "unknown tag %02x", tag)
	return nil
}

func (r *javaReader) reference(name string) any {
	h := int(r.I32(name+".handle")) - javaBase
	if r.Err() == nil && (h < 0 || h >= len(r.handles)) {
		r.bad(name, "expected a handle below %d, found %d", len(r.handles), h)
	}
	if r.Err() != nil {
		return nil
	}
	return r.handles[h]
}

func (r *javaReader) class() *javaDesc {
	d := &javaDesc{name: r.text("class")}
	r.I64("serialVersionUID")
	r.handles = append(r.handles, d)
	d.flags = r.U8("flags")
	n := int(r.U16("fields"))
	for i := 0; i < n && r.Err() == nil; i++ {
		r.Spend(perField)
		f := javaField{kind: r.U8("type"), name: r.text("field")}
		if f.kind == 'L' || f.kind == '[' {
			r.content("type")
		}
		d.fields = append(d.fields, f)
	}
	r.annotations()
	d.super = r.classDesc("superclass")
	return d
}

// classDesc reads a content that must be a class or null.
func (r *javaReader) classDesc(name string) *javaDesc {
	v := r.content(name)
	d, ok := v.(*javaDesc)
	if v != nil && !ok && r.Err() == nil {
		r.bad(name, "expected a class or null, found %T", v)
	}
	return d
}

// annotations reads the data that a class's writeObject wrote, and returns the objects in it; block data is skipped.
func (r *javaReader) annotations() (out []any) {
	for r.Err() == nil && r.Left() > 0 {
		switch r.Rest()[0] {
		case javaEnd:
			r.U8("end")
			return out
		case javaBlock:
			r.U8("block")
			r.Bytes("data", int(r.U8("length")))
		default:
			out = append(out, r.content("annotation"))
		}
	}
	if r.Err() == nil {
		r.bad("annotation", "no end tag")
	}
	return out
}

func (r *javaReader) object(name string) *JavaValues {
	d := r.classDesc(name + ".class")
	if r.Err() == nil && d == nil {
		r.bad(name, "an object without a class")
	}
	if r.Err() != nil {
		return nil
	}
	v := &JavaValues{Class: d.name, Fields: map[string]any{}}
	r.handles = append(r.handles, v)
	var line []*javaDesc // the topmost first
	for c := d; c != nil; c = c.super {
		if line = append([]*javaDesc{c}, line...); len(line) > javaDepth {
			r.bad(name, "more than %d superclasses", javaDepth)
			return v
		}
	}
	for _, c := range line {
		if c.flags&javaPlain == 0 {
			r.bad(name, "class %s is not plainly serializable (flags %d)", c.name, c.flags)
		}
		for _, f := range c.fields {
			if r.Err() != nil {
				return v
			}
			r.Spend(perField)
			v.Fields[f.name] = r.value(f)
		}
		if c.flags&javaWritesOwn != 0 {
			v.Own = append(v.Own, r.annotations()...)
		}
	}
	return v
}

func (r *javaReader) value(f javaField) any {
	switch f.kind {
	case 'B':
		return int64(int8(r.U8(f.name)))
	case 'C':
		return int64(r.U16(f.name))
	case 'S':
		return int64(int16(r.U16(f.name)))
	case 'I':
		return int64(r.I32(f.name))
	case 'J':
		return r.I64(f.name)
	case 'Z':
		return int64(r.U8(f.name))
	case 'D':
		return math.Float64frombits(uint64(r.I64(f.name)))
	case 'F':
		return float64(math.Float32frombits(uint32(r.I32(f.name))))
	case 'L', '[':
		return r.content(f.name)
	}
	r.bad(f.name, "a field of type %q", f.kind)
	return nil
}

func (r *javaReader) array(name string) any {
	d := r.classDesc(name + ".class")
	if r.Err() == nil && (d == nil || d.name != "[B") {
		r.bad(name, "expected an array of bytes")
	}
	at := len(r.handles)
	r.handles = append(r.handles, nil)
	n := int(r.I32(name + ".length"))
	if r.Err() != nil {
		return nil
	}
	if n < 0 || n > r.Left() {
		r.bad(name, "expected an array of at most the %d bytes left, found %d", r.Left(), n)
		return nil
	}
	b := r.Bytes(name, n)
	r.handles[at] = b
	return b
}

const encoderClass = "org.apache.carbondata.core.metadata.ValueEncoderMeta"

// MeasureMeta is ValueEncoderMeta: the parameters with which a measure's page is encoded.
type MeasureMeta struct {
	Kind     byte // 'd' whole numbers, 'l' whole numbers of 8 bytes, 'n' floating-point numbers, 'b' decimals
	Digits   int  // after the decimal point, 0 to 400
	Selected int8 // dataTypeSelected: 1 lets the writer choose float
	Max, Min any  // int64, float64, or nil
}

// ParseMeasureMeta reads a serialized ValueEncoderMeta. Errors are those of c.
func ParseMeasureMeta(c BigEndian) (m MeasureMeta) {
	v := ParseJavaObject(c)
	if c.Err() != nil {
		return m
	}
	if v.Class != encoderClass {
		c.Fail(0, c.Pos(), "class", "expected %s, found %s", encoderClass, v.Class)
		return m
	}
	num := func(name string) int64 { n, _ := v.Fields[name].(int64); return n }
	m = MeasureMeta{Kind: byte(num("type")), Digits: int(num("decimal")), Selected: int8(num("dataTypeSelected"))}
	m.Max, m.Min = boxed(v.Fields["maxValue"]), boxed(v.Fields["minValue"])
	if m.Digits < 0 || m.Digits > 400 {
		c.Fail(0, c.Pos(), "decimal", "%d digits after the decimal point", m.Digits)
	}
	return m
}

// boxed returns the number in a java.lang.Long or Double.
func boxed(v any) any {
	o, ok := v.(*JavaValues)
	if !ok {
		return nil
	}
	return o.Fields["value"]
}

func (m MeasureMeta) String() string {
	return fmt.Sprintf("%c, %d digits, %v to %v", m.Kind, m.Digits, m.Min, m.Max)
}
