package schema

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// TestTypesOfV12: a reader of formats 1 and 2 accepts the types that their writers have. Any other type in a file is
// damage of its schema, reported at the schema's place, and never an unsupported type.
func TestTypesOfV12(t *testing.T) {
	at := fault.Span{Object: "f", Off: 7, Len: 9}
	taken, refused := 0, 0
	for typ := layout.DataType(-1); typ < 64; typ++ {
		for version := 1; version <= 2; version++ {
			list := []layout.ColumnSchema{{Name: "id", Type: layout.TypeInt}, {Name: "c", Type: typ}}
			err, writing := CheckV12Types(list, version, at, "columns"), CheckV12(list, version)
			var e *fault.Error
			switch {
			case err == nil:
				taken++
				if writing != nil {
					t.Errorf("type %d: got it read, but not written: %v", typ, writing)
				}
			case !errors.Is(err, fault.Corrupt) || !errors.As(err, &e) || e.At != at || e.Path != "columns":
				t.Errorf("type %d: %v", typ, err)
			default:
				refused++
				if !errors.Is(writing, fault.Unsupported) {
					t.Errorf("type %d: got it written, but not read: %v", typ, writing)
				}
			}
		}
	}
	if taken < 10 || refused < 10 {
		t.Errorf("got %d accepted, %d refused", taken, refused)
	}
}
