// Package fieldnames finds and replaces names of columns and nested fields that are not UTF-8.
//
// Names are UTF-8 in every format. A name that is not has been damaged, and the original is unknown: reading the table
// fails or reports it, verifying reports it, and outputs written from the table have a replacement name.
package fieldnames

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/internal/cells"
	"stoa/internal/settle"
	"stoa/region"
)

// Invalid returns the paths of fields whose names are not UTF-8, as formatted by textOf.
func Invalid(fields []arrow.Field) (paths []string) {
	for _, f := range fields {
		if !utf8.ValidString(f.Name) {
			paths = append(paths, textOf(f.Name))
		}
		if t, ok := f.Type.(arrow.NestedType); ok {
			for _, p := range Invalid(t.Fields()) {
				paths = append(paths, textOf(f.Name)+"."+p)
			}
		}
	}
	return paths
}

// Findings returns findings about the names in a table's schema; nil if all are UTF-8.
func Findings(sc *arrow.Schema, place string) (out []region.Finding) {
	const maxNamed = 10
	paths := Invalid(sc.Fields())
	for _, p := range paths[:min(len(paths), maxNamed)] {
		say := fmt.Sprintf("the name of column %s is not UTF-8", p)
		if n := len(paths) - maxNamed; n > 0 && len(out) == maxNamed-1 {
			say += fmt.Sprintf(", nor are those of %d more", n)
		}
		out = append(out, region.Finding{Code: "file.name.utf8", Severity: region.Error, Message: say, Part: place,
			At: fault.Span{Object: place}, Column: p, Rows: [2]int64{-1, -1}})
	}
	return out
}

// Repeated returns a finding about names that several columns, or several fields of a struct, share; nil if there are
// none.
func Repeated(sc *arrow.Schema, place string) *region.Finding {
	const maxNamed = 10
	paths := cells.Repeated(sc.Fields())
	if len(paths) == 0 {
		return nil
	}
	var say []string
	for _, p := range paths[:min(len(paths), maxNamed)] {
		say = append(say, fmt.Sprintf("%q", p))
	}
	if n := len(paths) - maxNamed; n > 0 {
		say = append(say, fmt.Sprintf("and %d more", n))
	}
	return &region.Finding{Code: "file.name.duplicate", Severity: region.Warning, Part: place, Column: paths[0],
		Message: "two columns, or two fields of a struct, have the name " + strings.Join(say, ", "),
		At:      fault.Span{Object: place}, Rows: [2]int64{-1, -1}}
}

// Replaced returns findings about names that were replaced in a table written to uri.
func Replaced(sc *arrow.Schema, uri string) (out []region.Finding) {
	for _, f := range Findings(sc, uri) {
		f.Code, f.Message = "output.names.utf8",
			f.Message+`, and was written with \x and two digits for each byte that is none`
		out = append(out, f)
	}
	return out
}

// textOf returns a name with \xNN for each byte that is not UTF-8.
func textOf(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

// Valid returns fields whose names are UTF-8; replacement names differ from the other names at their level.
func Valid(fields []arrow.Field) []arrow.Field {
	out := slices.Clone(fields)
	for i := range out {
		if f := &out[i]; !utf8.ValidString(f.Name) {
			is := func(name string) func(arrow.Field) bool {
				return func(f arrow.Field) bool { return f.Name == name }
			}
			name := textOf(f.Name)
			for n := 2; slices.ContainsFunc(out, is(name)); n++ {
				name = fmt.Sprintf("%s_%d", textOf(f.Name), n)
			}
			f.Name = name
		}
		out[i].Type = validType(out[i].Type)
	}
	return out
}

// validType returns a type in which Valid has been applied to the fields.
func validType(t arrow.DataType) arrow.DataType {
	n, ok := t.(arrow.NestedType)
	if !ok || len(Invalid(n.Fields())) == 0 {
		return t
	}
	return settle.WithFields(n, Valid(n.Fields()))
}

// Rename returns b with the fields of sc, which may differ from its own only in names. The caller releases it.
func Rename(b arrow.RecordBatch, sc *arrow.Schema) arrow.RecordBatch {
	cols := make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		d := retyped(c.Data(), sc.Field(i).Type)
		cols[i] = array.MakeFromData(d)
		d.Release()
		defer cols[i].Release()
	}
	return array.NewRecordBatch(sc, cols, b.NumRows())
}

// retyped returns d with a type that may differ from its own only in names. The caller releases it.
func retyped(d arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	n, ok := t.(arrow.NestedType)
	if was, nested := d.DataType().(arrow.NestedType); !ok || !nested || len(Invalid(was.Fields())) == 0 {
		d.Retain()
		return d
	}
	below := n.Fields()
	if m, ok := t.(*arrow.MapType); ok {
		below = []arrow.Field{m.ElemField()}
	}
	var children []arrow.ArrayData
	for i, k := range d.Children() {
		x := retyped(k, below[i].Type)
		defer x.Release()
		children = append(children, x)
	}
	return array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
}
