package text

import (
	"cmp"
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// rereadCSV implements format.Format.Reread: it returns a format that reads back the output of o with the types of the
// schema.
func rereadCSV(f format.Format, comma byte) func(*arrow.Schema, format.WriteOptions) (format.Format, bool) {
	return func(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
		opts, err := named(csvWriting, f.Name).Parse(o.Opts)
		c := csvOptions{comma: cmp.Or(opts.Delimiter, comma), header: !opts.NoHeader, null: opts.Null, placed: true,
			schema: typed(sc)}
		f.Open = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
			return c.open(ctx, t, o, f.Name)
		}
		return f, err == nil && sc.NumFields() > 0
	}
}

// rereadJSONL implements format.Format.Reread; false if fields share a name, since such objects cannot be read.
func rereadJSONL(f format.Format) func(*arrow.Schema, format.WriteOptions) (format.Format, bool) {
	return func(sc *arrow.Schema, _ format.WriteOptions) (format.Format, bool) {
		c := jsonlOptions{schema: typed(sc)}
		f.Open = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
			return c.open(ctx, t, o)
		}
		return f, sc.NumFields() > 0 && !duplicateNames(sc.Fields())
	}
}

func duplicateNames(fields []arrow.Field) bool {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.Name] {
			return true
		}
		seen[f.Name] = true
		if t, ok := f.Type.(arrow.NestedType); ok && duplicateNames(t.Fields()) {
			return true
		}
	}
	return false
}

// typed returns the schema with which a text is read back: all fields nullable, dictionaries and extensions as their
// values, and utf8 for types that cannot be parsed.
func typed(sc *arrow.Schema) *arrow.Schema {
	return arrow.NewSchema(typedFields(sc.Fields()), nil)
}

func typedFields(fields []arrow.Field) []arrow.Field {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = arrow.Field{Name: f.Name, Type: typedAs(f.Type), Nullable: true}
	}
	return out
}

func typedAs(t arrow.DataType) arrow.DataType {
	switch x := t.(type) {
	case *arrow.DictionaryType:
		return typedAs(x.ValueType)
	case arrow.ExtensionType:
		return typedAs(x.StorageType())
	case *arrow.StructType:
		return arrow.StructOf(typedFields(x.Fields())...)
	case *arrow.MapType:
		return arrow.MapOf(typedAs(x.KeyType()), typedAs(x.ItemType()))
	case *arrow.ListType:
		return arrow.ListOf(typedAs(x.Elem()))
	case *arrow.LargeListType:
		return arrow.LargeListOf(typedAs(x.Elem()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOf(x.Len(), typedAs(x.Elem()))
	}
	switch t.ID() {
	case arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.RUN_END_ENCODED, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		return arrow.BinaryTypes.String
	}
	return t
}
