package format_test

import (
	"context"
	"testing"

	"stoa/format"
	"stoa/store"
)

// TestReadSchemaFile: metadata that is not text, which the JSON stores as base64, does not prevent reading the rest.
func TestReadSchemaFile(t *testing.T) {
	tree := store.NewMemory(map[string][]byte{
		"s": []byte(`{"fields": [{"name": "id", "type": "int64", "nullable": true, "metadata": {"stoa.type": ` +
			`"int64", "raw": {"base64": "/w=="}}}]}`),
		"e": []byte(`{"fields": []}`), "x": []byte(`id: int64`)})
	fields, err := format.ReadSchemaFile(context.Background(), tree, "s")
	if err != nil || len(fields) != 1 || fields[0].Name != "id" || !fields[0].Nullable ||
		len(fields[0].Metadata) != 1 || fields[0].Metadata["stoa.type"] != "int64" {
		t.Errorf("%+v, %v", fields, err)
	}
	for _, name := range []string{"e", "x"} {
		if fields, err := format.ReadSchemaFile(context.Background(), tree, name); err == nil {
			t.Errorf("%s: %+v", name, fields)
		}
	}
}
