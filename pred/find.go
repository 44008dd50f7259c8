package pred

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/pred/internal/literal"
	"stoa/pred/internal/syntax"
)

// resolve finds a column.
func (b *binder) resolve(path string) (*Expr, error) {
	if c := b.columns[path]; c != nil {
		return c, nil
	}
	at, f, err := Find(b.fields, path)
	if err != nil {
		return nil, err
	}
	out := &Expr{Path: at, Type: f.Type}
	var names []string
	fields := b.fields
	for i, k := range at {
		names = append(names, fields[k].Name)
		if i < len(at)-1 {
			fields, _ = children(fields[k].Type)
		}
	}
	out.Column = JoinPath(names...)
	b.columns[path] = out
	return out, nil
}

// Find returns the field that a column's path names, and its child indices from the root. The names of a path are those
// of nested fields. If there are no such fields, a name with points needs no quotation marks: a.b is b in the struct a,
// or else the field "a.b". A path that cannot be resolved (a child of a list, an unknown field) is Invalid, with the
// reason.
func Find(fields []arrow.Field, path string) (at []int, f arrow.Field, err error) {
	names := SplitPath(path)
	at, ambiguous := indices(fields, names)
	if ambiguous {
		return nil, f, fault.Invalidf("column %s: there are several of this name", path)
	}
	if at == nil {
		return nil, f, missing(fields, path, names)
	}
	for i, k := range at {
		if i > 0 {
			fields, _ = children(f.Type)
		}
		f = fields[k]
	}
	return at, f, nil
}

// indices resolves names, each as one field if possible, else with some of them joined with points; nil if there is no
// such field. It is ambiguous if two fields on the way have the same name.
func indices(fields []arrow.Field, names []string) (at []int, ambiguous bool) {
	for used := 1; used <= len(names); used++ {
		name := strings.Join(names[:used], ".")
		k := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
		if k < 0 {
			continue
		}
		var rest []int
		if used < len(names) {
			below, _ := children(fields[k].Type)
			if rest, ambiguous = indices(below, names[used:]); rest == nil && !ambiguous {
				continue
			}
		}
		if ambiguous || slices.IndexFunc(fields[k+1:], func(f arrow.Field) bool { return f.Name == name }) >= 0 {
			return nil, true
		}
		return append([]int{k}, rest...), false
	}
	return nil, false
}

// missing says why there is no such column, following names as far as they lead, with as many of them joined as
// possible.
func missing(root []arrow.Field, path string, names []string) error {
	fields := root
	var above []string
	for {
		k, used := match(fields, names)
		if k < 0 || used == len(names) {
			return unknown(path, root, fields, above)
		}
		names, above = names[used:], append(above, fields[k].Name)
		below, reason := children(fields[k].Type)
		if reason != "" {
			return fault.Invalidf("column %s: %s %s", path, JoinPath(above...), reason)
		}
		fields = below
	}
}

// match returns the field whose name is as many of the names as possible, joined with points; -1 if there is none.
func match(fields []arrow.Field, names []string) (k, used int) {
	for used = len(names); used > 0; used-- {
		name := strings.Join(names[:used], ".")
		if k = slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name }); k >= 0 {
			return k, used
		}
	}
	return -1, 0
}

// children returns the fields of a struct, or the reason why a type has no fields that can be named.
func children(t arrow.DataType) ([]arrow.Field, string) {
	if x, ok := t.(arrow.ExtensionType); ok {
		t = x.StorageType()
	}
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Fields(), ""
	case arrow.ListLikeType:
		return nil, fmt.Sprintf("is a %s; what is below it has no single value a row and cannot be tested (only "+
			"the %s itself, with is null)", t.Name(), t.Name())
	}
	return nil, fmt.Sprintf("is of type %s and has no fields", t)
}

// unknown returns the error that there is no column path; fields are those that exist below the names in below.
func unknown(path string, root, fields []arrow.Field, below []string) error {
	var all []string
	var walk func(fields []arrow.Field, names []string)
	walk = func(fields []arrow.Field, names []string) {
		for _, f := range fields {
			if len(all) > 10000 || len(names) > MaxDepth {
				return
			}
			p := append(slices.Clone(names), f.Name)
			all = append(all, syntax.PrintPath(JoinPath(p...)))
			sub, _ := children(f.Type)
			walk(sub, p)
		}
	}
	walk(root, nil)
	if close := literal.CloseNames(path, all); len(close) > 0 {
		return fault.Invalidf("no column %s; did you mean %s?", syntax.PrintPath(path), strings.Join(close, " or "))
	}
	var names []string
	for _, f := range fields {
		names = append(names, syntax.PrintPath(JoinPath(append(slices.Clone(below), f.Name)...)))
	}
	if len(names) > 10 {
		names = append(names[:10], "…")
	}
	return fault.Invalidf("no column %s; there are %s", syntax.PrintPath(path), strings.Join(names, ", "))
}
