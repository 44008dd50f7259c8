package layout

import (
	"slices"
	"testing"
)

// TestDependents: what is derived from a table's rows, or from which it is derived, is named. The properties and the
// column are those of tables of CarbonData 2.3.0 under Spark 3.1.1.
func TestDependents(t *testing.T) {
	for _, x := range []struct {
		key, value, column, want string
	}{
		{"indextableexists", "false", "id", ""},
		{"indextableexists", "true", "id", "secondary index tables"},
		{"indexexists", "true", "id", "bloom or Lucene indexes"},
		{"relatedmvtablesmap", `{"default":["v"]}`, "id", `materialised views {"default":["v"]}`},
		{"spatial_index", "mygeohash", "id", "the spatial index mygeohash"},
		{"local_dictionary_enable", "true", "positionReference", "a main table, of which it is a secondary index"},
		{"local_dictionary_enable", "true", "positionreference", ""},
	} {
		s := TableSchema{Properties: map[string]string{x.key: x.value}, Columns: []ColumnSchema{{Name: x.column}}}
		var want []string
		if x.want != "" {
			want = []string{x.want}
		}
		if got := s.Dependents(); !slices.Equal(got, want) {
			t.Errorf("%s=%s, column %s: got %q, want %q", x.key, x.value, x.column, got, want)
		}
	}
}
