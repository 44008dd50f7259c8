package parquet

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
)

// fieldID is what the library notes in the metadata of a field; -1 says that the file has none.
const fieldID = "PARQUET:field_id"

// cleanSchema takes out the field ids that the library invents.
func cleanSchema(sc *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, sc.NumFields())
	for i, f := range sc.Fields() {
		fields[i] = cleanField(f)
	}
	meta := sc.Metadata()
	return arrow.NewSchema(fields, &meta)
}

func cleanField(f arrow.Field) arrow.Field {
	if v, ok := f.Metadata.GetValue(fieldID); !ok || v != "-1" {
		return f
	}
	m := map[string]string{}
	for i, k := range f.Metadata.Keys() {
		if k != fieldID {
			m[k] = f.Metadata.Values()[i]
		}
	}
	f.Metadata = arrow.MetadataFrom(m)
	if len(m) == 0 {
		f.Metadata = arrow.Metadata{}
	}
	return f
}

// recast gives a batch the writer's schema, which may differ from its own in metadata.
func recast(b arrow.RecordBatch, sc *arrow.Schema) (arrow.RecordBatch, error) {
	if int(b.NumCols()) != sc.NumFields() {
		return nil, fault.Bugf("a batch of %d columns for a writer of %d", b.NumCols(), sc.NumFields())
	}
	for i, f := range sc.Fields() {
		if !arrow.TypeEqual(f.Type, b.Column(i).DataType()) {
			return nil, fault.Bugf("column %q is %s, the writer expects %s", f.Name, b.Column(i).DataType(), f.Type)
		}
	}
	return array.NewRecordBatch(sc, b.Columns(), b.NumRows()), nil
}
