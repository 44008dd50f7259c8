package typewords

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// FuzzSchema parses arbitrary schemas. The Arrow text of a type that was parsed must parse to the same type.
func FuzzSchema(f *testing.F) {
	f.Add(`id: int64 not null, name: utf8, price: decimal(10, 2), at: timestamp[us, tz=UTC], tags: list<utf8>`)
	f.Add(`w: struct<x: float64, "y z": map<utf8, large_list<bytes>>>, f: fixed_size_list<int8>[3], b: ` +
		`fixed_size_binary[16], t: time64[ns], n: decimal256(50, -2) nullable`)
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := Parse(text)
		var e *fault.Error
		if err != nil {
			if !errors.As(err, &e) || e.Class != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		for _, field := range sc.Fields() {
			if _, nested := field.Type.(arrow.NestedType); nested {
				continue // Arrow's text of these types does not quote names
			}
			again, err := Parse("x: " + field.Type.String())
			if err != nil || !arrow.TypeEqual(again.Field(0).Type, field.Type) {
				t.Errorf("%s is not understood again: %v, %v", field.Type, again, err)
			}
		}
	})
}
