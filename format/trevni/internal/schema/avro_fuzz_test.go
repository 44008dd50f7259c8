package schema

import (
	"testing"

	"stoa/format/trevni/internal/layout"
)

// FuzzAvroSchema: any text gives a schema or an error.
func FuzzAvroSchema(f *testing.F) {
	f.Add([]byte(`{"type":"record","name":"R","fields":[{"name":"a","type":["null",{"type":"array","items":"int"}]},` +
		`{"name":"b","type":{"type":"map","values":"R2"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := layout.Header{Version: 2, Meta: []layout.Pair{{Key: "avro.schema", Value: text}},
			Columns: []layout.Column{{Name: "a", Type: layout.Int, Parent: -1}}}
		if p := PlanOf(&h, nil); p == nil || len(p.Fields) == 0 && len(h.Columns) > 0 && p.Mismatch != "" {
			t.Errorf("%s: nothing is shown", text)
		}
	})
}
