package rows

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// NullsFit reports whether values of type t can hold the nulls of a. If not, path leads from a to the value that is
// null.
func NullsFit(a arrow.Array, t reflect.Type) (path string, ok bool) {
	nilable := false
	for t.Kind() == reflect.Pointer {
		t, nilable = t.Elem(), true
	}
	if k := t.Kind(); k == reflect.Slice || k == reflect.Map {
		nilable = true
	}
	if a.NullN() > 0 && !nilable {
		return "", false
	}
	switch a := a.(type) {
	case *array.Struct:
		if t.Kind() != reflect.Struct {
			return "", true
		}
		return structNullsFit(a, t)
	case array.ListLike:
		if t.Kind() == reflect.Slice && a.DataType().ID() != arrow.MAP {
			values := a.ListValues()
			return NullsFit(values, t.Elem())
		}
	}
	return "", true
}

// structNullsFit checks the fields of those structs that are not null.
func structNullsFit(a *array.Struct, t reflect.Type) (string, bool) {
	st := a.DataType().(*arrow.StructType)
	for i, f := range st.Fields() {
		for _, g := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(g.Tag.Get("arrow"), ",")
			if name != f.Name && (name != "" || g.Name != f.Name) {
				continue
			}
			child := a.Field(i)
			for row := range a.Len() {
				if a.IsNull(row) || child.IsValid(row) {
					continue
				}
				if k := g.Type.Kind(); k != reflect.Pointer && k != reflect.Slice && k != reflect.Map {
					return fmt.Sprintf(".%s", f.Name), false
				}
			}
		}
	}
	return "", true
}
