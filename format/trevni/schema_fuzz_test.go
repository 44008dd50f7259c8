package trevni

import "testing"

// FuzzAvroSchema: any text gives a schema or an error.
func FuzzAvroSchema(f *testing.F) {
	f.Add([]byte(`{"type":"record","name":"R","fields":[{"name":"a","type":["null",{"type":"array","items":"int"}]},{"name":"b","type":{"type":"map","values":"R2"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := Header{Version: 2, Meta: []Pair{{Key: "avro.schema", Value: text}},
			Columns: []Column{{Name: "a", Type: Int, Parent: -1}}}
		if p := planOf(&h, nil); p == nil || len(p.fields) == 0 && len(h.Columns) > 0 && p.odd != "" {
			t.Errorf("%s: nothing is shown", text)
		}
	})
}
