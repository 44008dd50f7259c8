package arrowschema

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestNoRuntimeError: whichever bit of a schema flips, messages do not contain the library's runtime errors.
func TestNoRuntimeError(t *testing.T) {
	b, err := Encode(arrow.NewSchema([]arrow.Field{
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "cost", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	}, nil))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for bit := range len(b) * 8 {
		flipped := bytes.Clone(b)
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := Decode(flipped); err != nil {
			refused++
			if strings.Contains(err.Error(), "runtime error") {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	}
	if refused == 0 {
		t.Error("no bit makes the schema unreadable")
	}
}
