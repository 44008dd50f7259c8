package iceberg_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/delta"
	"stoa/format/iceberg"
	"stoa/format/icebergdelta"
	"stoa/store"
)

// created returns the error of beginning a table in memory, of which nothing may be there then.
func created(t *testing.T, f format.Format, opts map[string]string, columns ...arrow.Field) error {
	t.Helper()
	tree := store.NewMemory(nil)
	w, err := stoa.Create(t.Context(), "t", arrow.NewSchema(columns, nil), stoa.CreateOptions{To: f.Name,
		Opts: opts, Sink: tree.Sink("t"), Formats: []format.Format{f}})
	for info, listed := range tree.List(t.Context(), "t") {
		t.Errorf("%v is there, %v", info, listed)
	}
	if err != nil {
		return err
	}
	return w.Abort(t.Context())
}

// TestFullNames: a table is begun if and only if no two of its fields have one full name, as readers index fields by
// these names, and refuse what has one twice. A catalogue of Delta alone has no such rule.
func TestFullNames(t *testing.T) {
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	one := func(name string) arrow.Field { return field(name, arrow.PrimitiveTypes.Int64) }
	type column struct {
		arrow.Field
		names []string // by the specification of Iceberg
	}
	columns := []column{{one("a.b"), []string{"a.b"}}, {one("l.element"), []string{"l.element"}},
		{one("l.x"), []string{"l.x"}}, {one("l.element.x"), []string{"l.element.x"}},
		{one("m.key"), []string{"m.key"}}, {one("m.value"), []string{"m.value"}},
		{one("m.value.x.y"), []string{"m.value.x.y"}}, {one("m.key_value"), []string{"m.key_value"}},
		{field("a", arrow.StructOf(one("b"))), []string{"a", "a.b"}},
		{field("a", arrow.StructOf(one("b.c"))), []string{"a", "a.b.c"}},
		{field("a.b", arrow.StructOf(one("c"))), []string{"a.b", "a.b.c"}},
		{field("s", arrow.StructOf(one("b.c"), field("b", arrow.StructOf(one("c"))))),
			[]string{"s", "s.b.c", "s.b", "s.b.c"}},
		{field("l", arrow.ListOf(arrow.PrimitiveTypes.Int32)), []string{"l", "l.element"}},
		{field("l", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32)), []string{"l", "l.element"}},
		{field("l", arrow.LargeListOf(arrow.StructOf(one("x")))), []string{"l", "l.element", "l.element.x"}},
		{field("m", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)),
			[]string{"m", "m.key", "m.value"}},
		{field("m", arrow.MapOf(arrow.BinaryTypes.String, arrow.StructOf(one("x.y"),
			field("x", arrow.StructOf(one("z")))))),
			[]string{"m", "m.key", "m.value", "m.value.x.y", "m.value.x", "m.value.x.z"}}}
	for i, a := range columns {
		for j, b := range columns[:i+1] {
			if (i+j)%2 > 0 {
				a, b = b, a
			}
			names := slices.Sorted(slices.Values(slices.Concat(a.names, b.names)))
			twice := len(slices.Compact(slices.Clone(names))) < len(names)
			for _, f := range []format.Format{iceberg.Format, icebergdelta.Format} {
				err := created(t, f, nil, a.Field, b.Field)
				named := err != nil && slices.ContainsFunc(names, func(n string) bool {
					return strings.Contains(err.Error(), `"`+n+`"`)
				})
				if twice != (errors.Is(err, fault.Invalid) && named) || !twice && err != nil {
					t.Errorf("%s: %v, %v: %v", f.Name, a.Field, b.Field, err)
				}
			}
			if err := created(t, delta.Format, nil, a.Field, b.Field); err != nil && a.Name != b.Name {
				t.Errorf("delta: %v, %v: %v", a.Field, b.Field, err)
			}
		}
	}
}

// TestPartitionNames: partition fields whose names are one in manifests are refused, and so is one that has the full
// name of a field that is not its column.
func TestPartitionNames(t *testing.T) {
	text := func(name string) arrow.Field { return arrow.Field{Name: name, Type: arrow.BinaryTypes.String} }
	for _, c := range []struct {
		columns []arrow.Field
		terms   string
		refused []string
	}{
		{[]arrow.Field{text("1a"), text("_1a")}, "1a, _1a", []string{"1a", "_1a"}},
		{[]arrow.Field{text("a-b"), text("a_x2Db")}, "a_x2Db, a-b", []string{"a_x2Db", "a-b"}},
		{[]arrow.Field{text("é"), text("_xE9")}, "é, _xE9", []string{"é", "_xE9"}},
		{[]arrow.Field{text("1a"), text("_1a")}, "truncate(2, 1a), truncate(3, _1a)",
			[]string{"1a_trunc", "_1a_trunc"}},
		{[]arrow.Field{text("a.b"), {Name: "a", Type: arrow.StructOf(text("b_bucket"))}}, "bucket(4, a.b)",
			[]string{"a.b_bucket"}},
		{[]arrow.Field{text("1a"), text("_1a")}, "1a, bucket(4, _1a)", nil},
		{[]arrow.Field{text("a-b"), text("a_x2db")}, "a-b, a_x2db", nil},
		{[]arrow.Field{text("a-b"), text("a+b"), text("1a")}, "a-b, a+b, 1a", nil},
	} {
		for _, f := range []format.Format{iceberg.Format, icebergdelta.Format} {
			if f.Name != iceberg.Format.Name && strings.Contains(c.terms, "(") {
				continue // Delta has partitions by columns alone
			}
			err := created(t, f, map[string]string{"partition-by": c.terms}, append(c.columns, text("x"))...)
			if errors.Is(err, fault.Invalid) != (c.refused != nil) || err != nil && c.refused == nil {
				t.Errorf("%s, %s: %v", f.Name, c.terms, err)
			}
			for _, name := range c.refused {
				if err != nil && !strings.Contains(err.Error(), name) {
					t.Errorf("%s, %s: %v does not name %s", f.Name, c.terms, err, name)
				}
			}
		}
	}
}
