package schemafmt

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// TestNamesInProperties: properties name only columns of the table. The first value is what CarbonData 2.3.0 makes of a
// table with an array arr by ADD COLUMNS, CHANGE arr r1 and DROP COLUMNS; it refuses a CREATE TABLE with it.
func TestNamesInProperties(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "r1", Type: arrow.ListOf(arrow.BinaryTypes.String)}, {Name: "N2", Type: arrow.BinaryTypes.String}}, nil)
	for value, want := range map[string]string{
		"r1,arr.val,n1,": `'local_dictionary_include' = 'r1'`,
		"n2, R1":         `'local_dictionary_include' = 'n2,R1'`,
		"arr,arr.val,":   "",
		",":              "",
	} {
		l := format.Layout{Properties: map[string]string{"LOCAL_DICTIONARY_INCLUDE": value}}
		got := Ddl(sc, "t", l, &carbonData)
		if want == "" && strings.Contains(got, "TBLPROPERTIES") || !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}
