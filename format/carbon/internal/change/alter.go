package change

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// Alters is format.Format.Alters: timestamps=truncate drops fractions of a millisecond (in formats 1 and 2 of a
// second), and with nulls=merge lists of one null and structs of nulls become null.
func Alters(sc *arrow.Schema, o format.WriteOptions) []format.Alteration {
	unit := func(f arrow.Field) time.Duration {
		if v := o.Opts["version"]; (v == "1" || v == "2") && f.Type.ID() == arrow.TIMESTAMP {
			return time.Second
		}
		return time.Millisecond
	}
	return alterations(sc, o.Opts, unit, func(arrow.Field) bool { return false })
}

// loadAlters is format.Changer.Alters: Alters for loads into a table, where a direct dictionary also drops fractions of
// a second, and an empty string in a partition column becomes null.
func loadAlters(p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) ([]format.Alteration, error) {
	t, err := ReadTableSchema(p.Dir)
	if err != nil {
		return nil, err
	}
	unit := func(f arrow.Field) time.Duration {
		if c := t.FindColumn(f.Name); c != nil && c.Type == layout.TypeTimestamp &&
			c.Encoders.Has(layout.EncDirectDictionary) {
			return time.Second
		}
		return time.Millisecond
	}
	parts := func(f arrow.Field) bool {
		return t.Partition != nil && slices.ContainsFunc(t.Partition.Columns,
			func(c layout.ColumnSchema) bool { return strings.EqualFold(c.Name, f.Name) })
	}
	return alterations(sc, o.Opts, unit, parts), nil
}

func alterations(sc *arrow.Schema, opts map[string]string, unit func(arrow.Field) time.Duration,
	part func(arrow.Field) bool) (out []format.Alteration) {
	const truncating, merging = "timestamps=truncate", "nulls=merge"
	truncate, merge := opts["timestamps"] == "truncate", opts["nulls"] == "merge"
	for _, f := range sc.Fields() {
		if u := unit(f); truncate && format.Finer(f.Type, u) {
			out = append(out, format.Rounding(f.Name, truncating, u, false))
		}
		switch {
		case !merge:
		case part(f):
			out = append(out, format.Alteration{Column: f.Name, Option: merging, Changed: unnamed})
		case arrow.IsNested(f.Type.ID()):
			out = append(out, format.Alteration{Column: f.Name, Option: merging, Changed: merged})
		}
	}
	return out
}

// unnamed reports whether a string or number cannot name a partition directory because it would be read as null.
func unnamed(a arrow.Array, i int) bool {
	if f, ok := a.(interface{ Value(int) float64 }); ok {
		return a.IsValid(i) && f.Value(i)-f.Value(i) != 0 // not finite
	}
	if f, ok := a.(interface{ Value(int) float32 }); ok {
		return a.IsValid(i) && f.Value(i)-f.Value(i) != 0
	}
	s, ok := a.(interface{ Value(int) string })
	return ok && a.IsValid(i) && (s.Value(i) == "" || s.Value(i) == schema.HiveNull)
}

// merged reports whether a list, map or struct, or one inside it, is not null but would be read as null; see
// page.Cells.Check.
func merged(a arrow.Array, i int) bool {
	if a.IsNull(i) {
		return false
	}
	if format.AnyChild(a, i, func(child arrow.Array, k int) bool { return merged(child, k) || noBytes(child, k) }) {
		return true
	}
	if list, ok := a.(array.ListLike); ok {
		from, to := list.ValueOffsets(i)
		return to-from == 1 && readsAsNull(list.ListValues(), int(from))
	}
	_, ok := a.(*array.Struct)
	return ok && readsAsNull(a, i)
}

// readsAsNull reports whether entry i of a child of a list or struct would be read as null.
func readsAsNull(a arrow.Array, i int) bool {
	if st, ok := a.(*array.Struct); ok && a.IsValid(i) {
		return !format.AnyChild(st, i, func(child arrow.Array, k int) bool { return !readsAsNull(child, k) })
	}
	return a.IsNull(i) || noBytes(a, i)
}

func noBytes(a arrow.Array, i int) bool {
	b, ok := a.(interface{ Value(int) []byte })
	return ok && a.IsValid(i) && len(b.Value(i)) == 0
}
