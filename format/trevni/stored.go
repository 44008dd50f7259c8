package trevni

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/format"
)

// storedSchema is the Arrow schema that our writer keeps in the file's metadata; nil if there is none. It only ever refines what
// the columns say themselves.
func storedSchema(h *Header) (sc *arrow.Schema) {
	text, ok := get(h.Meta, fileArrowKey)
	if !ok {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil
	}
	defer func() { // the library may panic at bytes that are no schema
		if recover() != nil {
			sc = nil
		}
	}()
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	defer r.Release()
	return r.Schema()
}

// encodeSchema is what storedSchema reads.
func encodeSchema(sc *arrow.Schema) ([]byte, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(b.Bytes())), nil
}

// refine replaces the fields by those of the stored schema, if they are the same but for what the columns cannot say: names,
// metadata, and types that are stored as others.
func (p *plan) refine(was *arrow.Schema) {
	if was == nil || was.NumFields() != len(p.fields) {
		return
	}
	r := refiner{p, map[string]*physical{}}
	for _, ph := range p.phys {
		if ph.Has&format.Values != 0 {
			r.at[pathKey(ph.Path)] = ph
		}
	}
	for i, f := range p.fields {
		if !r.same(f, was.Field(i), []int{i}) {
			return
		}
	}
	for _, ph := range p.phys {
		if ph.Has&format.Values == 0 || ph.enum != nil {
			continue
		}
		t := typeAt(was.Fields(), ph.Path)
		if ph.shape == shapeList {
			ph.conv, ph.size, _ = convertTo(ph.stored, t.(*arrow.ListType).Elem())
		} else {
			ph.conv, ph.size, _ = convertTo(ph.stored, t)
		}
		ph.Type = t
	}
	p.fields = was.Fields()
	p.how += ", " + fileArrowKey
}

type refiner struct {
	*plan
	at map[string]*physical
}

func pathKey(path []int) string {
	b := make([]byte, 0, 4*len(path))
	for _, i := range path {
		b = append(b, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	return string(b)
}

// same reports whether was is a finer f.
func (r *refiner) same(f, was arrow.Field, path []int) bool {
	if f.Nullable != was.Nullable && f.Type.ID() != arrow.NULL && f.Type.ID() != arrow.DENSE_UNION { // these have nulls of their own
		return false
	}
	if ph := r.at[pathKey(path)]; ph != nil && ph.shape != shapeList {
		if ph.enum != nil || ph.stored == Null {
			return arrow.TypeEqual(f.Type, was.Type)
		}
		_, _, ok := convertTo(ph.stored, was.Type)
		return ok
	}
	if f.Type.ID() != was.Type.ID() {
		return false
	}
	if ph := r.at[pathKey(path)]; ph != nil { // a list in one column
		wl, ok := was.Type.(*arrow.ListType)
		if !ok || wl.ElemField().Nullable {
			return false
		}
		if ph.enum != nil {
			return arrow.TypeEqual(f.Type, was.Type)
		}
		_, _, fits := convertTo(ph.stored, wl.Elem())
		return fits
	}
	a, okA := f.Type.(arrow.NestedType)
	b, okB := was.Type.(arrow.NestedType)
	if !okA || !okB {
		return arrow.TypeEqual(f.Type, was.Type)
	}
	fa, fb := a.Fields(), b.Fields()
	if len(fa) != len(fb) {
		return false
	}
	for i := range fa {
		if !r.same(fa[i], fb[i], below(path, i)) {
			return false
		}
	}
	return true
}

// typeAt is the type at a path from the schema's root.
func typeAt(fields []arrow.Field, path []int) arrow.DataType {
	t := fields[path[0]].Type
	for _, i := range path[1:] {
		t = t.(arrow.NestedType).Fields()[i].Type
	}
	return t
}
