package format_test

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// FuzzSchemaFile reads arbitrary bytes as a schema file.
func FuzzSchemaFile(f *testing.F) {
	f.Add([]byte(`{"fields":[{"name":"a","type":"int64","nullable":true,"metadata":{"k":"v","b":{"base64":"AA=="}}},` +
		`{"name":"l","type":"list","children":[{"name":"item","type":"utf8"}]}]}`))
	f.Add([]byte(`{"fields":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		fields, err := format.ReadSchemaFile(t.Context(), store.NewMemory(map[string][]byte{"s": b}), "s")
		var e *fault.Error
		if err != nil && (!errors.As(err, &e) || e.Class == fault.Bug) {
			t.Errorf("%v", err)
		}
		if err == nil && len(fields) == 0 {
			t.Error("no fields, and no error")
		}
	})
}
