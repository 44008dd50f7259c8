package parquet

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
	"stoa/format/ipc/flat"
)

const (
	// fieldID is what the library notes in the metadata of a field; -1 says that the file has none.
	fieldID = "PARQUET:field_id"
	// storedSchema is the key under which Arrow's libraries keep the Arrow schema of a file.
	storedSchema = "ARROW:schema"
)

// stored types are those that the library cannot write, and what stands for them in the file: what Arrow's other
// libraries use, where they have something. The schema under ARROW:schema says what it was.
func storedType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StringViewType:
		return arrow.BinaryTypes.String
	case *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary
	case *arrow.DurationType:
		return arrow.PrimitiveTypes.Int64
	case *arrow.Decimal32Type:
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}
	case *arrow.Decimal64Type:
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}
	case *arrow.MonthIntervalType:
		return arrow.PrimitiveTypes.Int32
	case *arrow.DayTimeIntervalType:
		return &arrow.FixedSizeBinaryType{ByteWidth: 8}
	case *arrow.MonthDayNanoIntervalType:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	case *arrow.FixedSizeListType: // the library cannot write those that are null
		f := t.ElemField()
		f.Type = storedType(f.Type)
		return arrow.ListOfField(f)
	}
	return rebuild(t, func(f arrow.Field) arrow.Field { f.Type = storedType(f.Type); return f })
}

// rebuild makes a nested type of changed children; other types stay as they are.
func rebuild(t arrow.DataType, change func(arrow.Field) arrow.Field) arrow.DataType {
	switch t := t.(type) {
	case *arrow.ListType:
		return arrow.ListOfField(change(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(change(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), change(t.ElemField()))
	case *arrow.MapType:
		m := arrow.MapOfFields(change(t.KeyField()), change(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = change(f)
		}
		return arrow.StructOf(fields...)
	}
	return t
}

// lower is the schema that the library writes. The original goes along under ARROW:schema.
func lower(sc *arrow.Schema) (*arrow.Schema, error) {
	text, err := encodeSchema(sc)
	if err != nil {
		return nil, err
	}
	keys, values := sc.Metadata().Keys(), sc.Metadata().Values()
	meta := arrow.NewMetadata(append(keys[:len(keys):len(keys)], storedSchema), append(values[:len(values):len(values)], text))
	return arrow.NewSchema(storedFields(sc), &meta), nil
}

func storedFields(sc *arrow.Schema) []arrow.Field {
	fields := make([]arrow.Field, sc.NumFields())
	for i, f := range sc.Fields() {
		f.Type = storedType(f.Type)
		fields[i] = f
	}
	return fields
}

// encodeSchema makes the text of ARROW:schema.
func encodeSchema(sc *arrow.Schema) (string, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	if err := w.Close(); err != nil {
		return "", err
	}
	b.Truncate(b.Len() - 8) // the end mark
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

func decodeSchema(text string) (*arrow.Schema, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if err := flat.CheckSchema(b); err != nil {
		return nil, err
	}
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return r.Schema(), nil
}

// takeOriginal is the schema under ARROW:schema, nil if there is none (or ignore is set). In its place it puts one of
// the types that the library can read, or nothing. A schema with a type that Arrow's library does not know is no damage: it is left aside, as with ignore, and r.untyped says so.
func (r *reader) takeOriginal(ignore bool) (orig *arrow.Schema, err error) {
	kv := r.meta.FileMetaData.KeyValueMetadata
	for i, e := range kv {
		if e == nil || e.Key != storedSchema || e.Value == nil {
			continue
		}
		if ignore {
			e.Key = "ignored " + storedSchema
			continue
		}
		err := guard(r.footer, "", func() error {
			orig, err = decodeSchema(*e.Value)
			return err
		})
		path := fmt.Sprintf("key_value_metadata[%d].%s", i, storedSchema)
		if unknownType(err) {
			e.Key = "ignored " + storedSchema
			r.untyped = &fault.Error{Class: fault.Corrupt, At: r.footer, Path: path, Reason: "columns are read as Parquet's own types", Cause: err}
			continue
		}
		if err != nil {
			return nil, &fault.Error{Class: fault.Corrupt, At: r.footer, Path: path,
				Reason: "(arrow-schema=ignore reads the file without it)", Cause: err}
		}
		text, err := encodeSchema(arrow.NewSchema(storedFields(orig), nil))
		if err != nil {
			return nil, err
		}
		e.Value = &text
	}
	return orig, nil
}

// unknownType reports whether err is the library's of a type that it knows only by number, or of integers longer than its own, as Polars has them. It has no other
// sign than the text. Lengths that no integer of anybody's has are damage.
func unknownType(err error) bool {
	if err == nil {
		return false
	}
	s := err.Error()
	return strings.Contains(s, "integers with more than 64 bits not implemented (bits=128)") || strings.Contains(s, "integers with more than 64 bits not implemented (bits=256)")
}

// merge is the field as it is given away: its name, and whether it can be null, as Parquet says; its type and metadata as
// the original schema says, as far as what the library reads (lib) can be made into that.
func merge(lib, orig arrow.Field) arrow.Field {
	return arrow.Field{Name: lib.Name, Nullable: lib.Nullable, Type: mergeType(lib.Type, orig.Type), Metadata: withID(orig.Metadata, lib.Metadata)}
}

func mergeType(lib, orig arrow.DataType) arrow.DataType {
	if arrow.TypeEqual(lib, orig, arrow.CheckMetadata()) || canConvert(lib, orig) {
		return orig
	}
	if l, ok := lib.(*arrow.ListType); ok && orig.ID() == arrow.FIXED_SIZE_LIST {
		o := orig.(*arrow.FixedSizeListType)
		f := merge(l.ElemField(), o.ElemField())
		f.Name = o.ElemField().Name
		return arrow.FixedSizeListOfField(o.Len(), f)
	}
	from, ok1 := lib.(arrow.NestedType)
	to, ok2 := orig.(arrow.NestedType)
	if lib.ID() != orig.ID() || !ok1 || !ok2 || from.NumFields() != to.NumFields() {
		return cleanType(lib)
	}
	if m, ok := lib.(*arrow.MapType); ok {
		o := orig.(*arrow.MapType)
		out := arrow.MapOfFields(merge(m.KeyField(), o.KeyField()), merge(m.ItemField(), o.ItemField()))
		out.KeysSorted = o.KeysSorted
		return out
	}
	i := -1
	return rebuild(lib, func(f arrow.Field) arrow.Field {
		i++
		o := to.Fields()[i]
		if lib.ID() != arrow.STRUCT {
			f.Name = o.Name // "item" or "element": Parquet has its own word
		} else if f.Name != o.Name {
			return cleanField(f)
		}
		return merge(f, o)
	})
}

// withID adds the field id that Parquet has, if it has one.
func withID(orig, lib arrow.Metadata) arrow.Metadata {
	id, ok := lib.GetValue(fieldID)
	if !ok || id == "-1" || orig.FindKey(fieldID) >= 0 {
		return orig
	}
	keys, values := orig.Keys(), orig.Values()
	return arrow.NewMetadata(append(keys[:len(keys):len(keys)], fieldID), append(values[:len(values):len(values)], id))
}

// cleanField takes out the field ids that the library invents.
func cleanField(f arrow.Field) arrow.Field {
	f.Type = cleanType(f.Type)
	if v, ok := f.Metadata.GetValue(fieldID); !ok || v != "-1" {
		return f
	}
	var keys, values []string
	for i, k := range f.Metadata.Keys() {
		if k != fieldID {
			keys, values = append(keys, k), append(values, f.Metadata.Values()[i])
		}
	}
	f.Metadata = arrow.NewMetadata(keys, values)
	return f
}

func cleanType(t arrow.DataType) arrow.DataType { return rebuild(t, cleanField) }

// present is the schema that the reader gives away for what the library reads. kv are the metadata of the file.
func present(lib, orig *arrow.Schema, kvKeys, kvValues []string) *arrow.Schema {
	fields := make([]arrow.Field, lib.NumFields())
	for i, f := range lib.Fields() {
		fields[i] = cleanField(f)
		if orig != nil && orig.NumFields() == len(fields) && orig.Field(i).Name == f.Name {
			fields[i] = merge(f, orig.Field(i))
		}
	}
	var keys, values []string
	if orig != nil {
		keys, values = slices.Clone(orig.Metadata().Keys()), slices.Clone(orig.Metadata().Values())
	}
	for i, k := range kvKeys {
		if k != storedSchema && !slices.Contains(keys, k) {
			keys, values = append(keys, k), append(values, kvValues[i])
		}
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &meta)
}

// checkBatch makes sure that a batch is of the writer's types; metadata may differ.
func checkBatch(b arrow.RecordBatch, sc *arrow.Schema) error {
	if int(b.NumCols()) != sc.NumFields() {
		return fault.Bugf("a batch of %d columns for a writer of %d", b.NumCols(), sc.NumFields())
	}
	for i, f := range sc.Fields() {
		if !arrow.TypeEqual(f.Type, b.Column(i).DataType()) {
			return fault.Bugf("column %q is %s, the writer expects %s", f.Name, b.Column(i).DataType(), f.Type)
		}
	}
	return nil
}
