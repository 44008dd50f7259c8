package stoa

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
)

// TestNamesThatAreThereTwice: a table in which two columns, or two fields of a struct, have one name is refused by
// every writer before anything is there, or it is read back and passes verification.
func TestNamesThatAreThereTwice(t *testing.T) {
	number := arrow.PrimitiveTypes.Int64
	pair := arrow.StructOf(arrow.Field{Name: "a", Type: number, Nullable: true},
		arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true})
	for i, fields := range [][]arrow.DataType{{number, arrow.BinaryTypes.String}, {pair}, {arrow.ListOf(pair)},
		{arrow.StructOf(arrow.Field{Name: "s", Type: pair, Nullable: true})}} {
		b := provenBatch(uint64(i), 20, fields...)
		if len(fields) > 1 {
			both := []arrow.Field{b.Schema().Field(0), b.Schema().Field(1)}
			both[1].Name = both[0].Name
			b = array.NewRecordBatch(arrow.NewSchema(both, nil), b.Columns(), b.NumRows())
		}
		for k := range Formats {
			f := &Formats[k]
			if f.Create == nil {
				continue
			}
			name := filepath.Join(t.TempDir(), "out") + ext(f)
			_, err := written(t.Context(), name, b, CreateOptions{To: f.Name})
			switch {
			case errors.Is(err, fault.Unsupported), errors.Is(err, fault.Invalid):
			case err != nil:
				t.Errorf("%s, %v: %v", f.Name, fields, err)
			default:
				sound(t, name, f.Name)
			}
		}
	}
}
