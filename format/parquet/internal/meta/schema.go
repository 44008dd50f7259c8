package meta

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
)

const (
	// FieldID is the metadata key for field ids, as in Arrow's library; -1 means that the file stores none.
	FieldID = "PARQUET:field_id"
	// StoredSchema is the key under which Arrow's libraries store a file's Arrow schema.
	StoredSchema = "ARROW:schema"
)

// EncodeSchema returns the text of ARROW:schema: an IPC schema message in base64.
func EncodeSchema(sc *arrow.Schema) (string, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	if err := w.Close(); err != nil {
		return "", err
	}
	b.Truncate(b.Len() - 8) // the end-of-stream marker
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// CheckBatch returns an error of class Bug unless a batch has the writer's types; metadata may differ.
func CheckBatch(b arrow.RecordBatch, sc *arrow.Schema) error {
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
