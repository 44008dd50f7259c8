package stoa

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/internal/fieldnames"
	"stoa/region"
)

// TestRepeatedNames: every writer refuses a table in which two columns, or two fields of a struct, have the same name,
// before it writes, or the table is read back, and verification reports only a warning about the names.
func TestRepeatedNames(t *testing.T) {
	number := arrow.PrimitiveTypes.Int64
	pair := arrow.StructOf(arrow.Field{Name: "a", Type: number, Nullable: true},
		arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true})
	accepted := 0
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
				want := []string{"file.name.duplicate"}
				if f.Name == "csv" || f.Name == "tsv" { // their reader renames the second to a_2
					want = nil
				}
				if got := warnings(t, name); !slices.Equal(got, want) {
					t.Errorf("%s, %v: verification reports %v, want %v", f.Name, fields, got, want)
				}
				accepted++
			}
		}
	}
	if accepted < 8 {
		t.Errorf("only %d tables were written, expected 8 or more", accepted)
	}
}

// warnings returns the codes of the findings of verification above notes.
func warnings(t *testing.T, name string) (codes []string) {
	t.Helper()
	for f, err := range Verify(t.Context(), name, OpenOptions{Formats: provable}) {
		if err != nil {
			t.Error(err)
		}
		if f.Severity >= region.Warning {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// TestNamesRepeatedElsewhere: names are repeated only within the columns of a table, or the fields of one struct.
func TestNamesRepeatedElsewhere(t *testing.T) {
	number := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64}
	inner := arrow.Field{Name: "a", Type: arrow.StructOf(number)}
	for _, x := range []struct {
		fields []arrow.Field
		want   string
	}{
		{[]arrow.Field{number, {Name: "A", Type: number.Type}}, ""},
		{[]arrow.Field{inner, {Name: "b", Type: arrow.StructOf(number)}}, ""},
		{[]arrow.Field{{Name: "m", Type: arrow.MapOf(inner.Type, inner.Type)}}, ""},
		{[]arrow.Field{number, inner, number}, `"a", "a"`},
		{[]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.StructOf(number, number))}}, `"l.item.a"`},
	} {
		f := fieldnames.Repeated(arrow.NewSchema(x.fields, nil), "p")
		if f == nil && x.want != "" || f != nil && (x.want == "" || !strings.HasSuffix(f.Message, x.want)) {
			t.Errorf("%v: %+v, want %s", x.fields, f, x.want)
		}
	}
}
