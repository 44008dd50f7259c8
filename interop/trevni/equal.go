package trevni

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Notation is how expectations are written: there are two notations for bytes and unions.
type Notation int

const (
	Core Notation = iota // bytes in base64
	Avro                 // bytes as ISO 8859-1, values of unions within {"branch": …}
)

// Equal compares value i of a, a column of field f, with want, decoded from JSON with numbers as json.Number. The error
// describes the difference; nil if there is none. It may delete keys of maps in want.
func Equal(d Notation, f arrow.Field, a arrow.Array, i int, want any) error {
	if u, ok := a.(*array.DenseUnion); ok {
		return equalUnion(d, u, i, want)
	}
	if null := a.IsNull(i) || a.DataType().ID() == arrow.NULL; want == nil || null {
		if want != nil || !null {
			return fmt.Errorf("null is %t, want %v", null, want)
		}
		return nil
	}
	if d == Avro && f.Nullable {
		m, ok := want.(map[string]any)
		if !ok || len(m) != 1 {
			return fmt.Errorf("nullable, but want %v", want)
		}
		for _, v := range m {
			want = v
		}
	}
	switch a := a.(type) {
	case *array.Struct:
		return equalStruct(d, a, i, want)
	case *array.Map:
		return equalMap(d, a, i, want)
	case *array.List:
		return equalList(d, a, i, want)
	}
	if got, want := text(d, a, i), Wanted(d, a, want); got != want {
		return fmt.Errorf("%s, want %s", got, want)
	}
	return nil
}

func equalStruct(d Notation, a *array.Struct, i int, want any) error {
	m, ok := want.(map[string]any)
	if !ok || len(m) != a.NumField() {
		return fmt.Errorf("a struct of %d fields, want %v", a.NumField(), want)
	}
	for k := range a.NumField() {
		field := a.DataType().(*arrow.StructType).Field(k)
		w, ok := m[field.Name]
		if !ok && d == Core && m["$"] == nil { // own values of type null have no field
			return fmt.Errorf("no field %q in %v", field.Name, m)
		}
		if err := Equal(d, field, a.Field(k), i, w); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	return nil
}

func equalList(d Notation, a *array.List, i int, want any) error {
	from, to := a.ValueOffsets(i)
	w, ok := want.([]any)
	if !ok || len(w) != int(to-from) {
		return fmt.Errorf("a list of %d, want %v", to-from, want)
	}
	for k, v := range w {
		if m, ok := v.(map[string]any); ok && d == Core {
			if own, ok := m["$"]; ok && own == nil {
				delete(m, "$")
			}
		}
		if err := Equal(d, a.DataType().(*arrow.ListType).ElemField(), a.ListValues(), int(from)+k, v); err != nil {
			return fmt.Errorf("[%d]: %w", k, err)
		}
	}
	return nil
}

func equalMap(d Notation, a *array.Map, i int, want any) error {
	w, ok := want.(map[string]any)
	from, to := a.ValueOffsets(i)
	if !ok || len(w) != int(to-from) {
		return fmt.Errorf("a map of %d, want %v", to-from, want)
	}
	for k := int(from); k < int(to); k++ {
		name := a.Keys().(*array.String).Value(k)
		v, ok := w[name]
		if !ok {
			return fmt.Errorf("no key %q", name)
		}
		if err := Equal(d, a.DataType().(*arrow.MapType).ItemField(), a.Items(), k, v); err != nil {
			return fmt.Errorf("{%s}: %w", name, err)
		}
	}
	return nil
}

func equalUnion(d Notation, u *array.DenseUnion, i int, want any) error {
	b := u.ChildID(i)
	f := u.UnionType().Fields()[b]
	if want == nil {
		if f.Type.ID() != arrow.NULL {
			return fmt.Errorf("branch %s, want null", f.Name)
		}
		return nil
	}
	m, ok := want.(map[string]any)
	if !ok || len(m) != 1 {
		return fmt.Errorf("a union, want %v", want)
	}
	v, ok := m[f.Name]
	if !ok {
		return fmt.Errorf("branch %s, want %v", f.Name, want)
	}
	f.Nullable = false
	return Equal(d, f, u.Field(b), int(u.ValueOffset(i)), v)
}

// text is Text, except that Avro's JSON has only one NaN.
func text(d Notation, a arrow.Array, i int) string {
	switch f := a.(type) {
	case *array.Float32:
		if d == Avro && f.Value(i) != f.Value(i) {
			return "f7fc00000"
		}
	case *array.Float64:
		if d == Avro && f.Value(i) != f.Value(i) {
			return "d7ff8000000000000"
		}
	}
	return Text(a, i)
}

// Text returns value i of a as text that differs for different values: floating-point numbers as their bits, bytes in
// hex.
func Text(a arrow.Array, i int) string {
	switch a := a.(type) {
	case *array.Float32:
		return fmt.Sprintf("f%08x", math.Float32bits(a.Value(i)))
	case *array.Float64:
		return fmt.Sprintf("d%016x", math.Float64bits(a.Value(i)))
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.FixedSizeBinary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Date32:
		return strconv.Itoa(int(a.Value(i)))
	case *array.Time32:
		return strconv.Itoa(int(a.Value(i)))
	case *array.Time64:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	}
	return a.ValueStr(i)
}

// Wanted returns the value v from JSON in the form in which Text returns values of a; for a number that does not parse,
// the error's text.
func Wanted(d Notation, a arrow.Array, v any) string {
	switch a.(type) {
	case *array.Float32, *array.Float64:
		bits := 64
		if _, ok := a.(*array.Float32); ok {
			bits = 32
		}
		s, isText := v.(string)
		if !isText {
			s = fmt.Sprint(v)
		}
		x, err := strconv.ParseFloat(s, bits)
		switch {
		case err != nil:
			return err.Error()
		case math.IsNaN(x) && bits == 32: // Java's, not Go's
			return fmt.Sprintf("f%08x", 0x7fc00000)
		case math.IsNaN(x):
			return fmt.Sprintf("d%016x", uint64(0x7ff8000000000000))
		case bits == 32:
			return fmt.Sprintf("f%08x", math.Float32bits(float32(x)))
		}
		return fmt.Sprintf("d%016x", math.Float64bits(x))
	case *array.String:
		return strconv.Quote(fmt.Sprint(v))
	case *array.Binary, *array.FixedSizeBinary:
		s := fmt.Sprint(v)
		if d == Core {
			b, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("x%x", b)
		}
		return fmt.Sprintf("x%x", latin(s))
	case *array.Decimal128: // bytes, big-endian, two's complement
		b := latin(fmt.Sprint(v))
		n := new(big.Int).SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return n.String()
	}
	return fmt.Sprint(v)
}

// latin returns the bytes that Avro's JSON shows as characters of ISO 8859-1.
func latin(s string) (b []byte) {
	for _, r := range s {
		b = append(b, byte(r))
	}
	return b
}
