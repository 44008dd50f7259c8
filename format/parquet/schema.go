package parquet

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
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
