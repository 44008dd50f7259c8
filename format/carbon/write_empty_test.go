package carbon_test

import (
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/region"
)

// TestDirectoryWithoutRows: a table without rows is written as a directory, passes verification, and is read back with
// its columns. (CarbonData has no index files without data files.)
func TestDirectoryWithoutRows(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "b", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}}, nil)
	dir := filepath.Join(t.TempDir(), "t")
	w, err := stoa.Create(t.Context(), dir+"/", sc, stoa.CreateOptions{To: "carbon"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := w.Close(t.Context()); err != nil || !s.Checked {
		t.Fatal(err, s.Checked)
	}
	for f, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{}) {
		if err != nil || f.Severity >= region.Warning {
			t.Errorf("%v, %s: %s", err, f.Code, f.Message)
		}
	}
	table, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for i, f := range sc.Fields() {
		if got := table.Schema().Field(i); got.Name != f.Name || !arrow.TypeEqual(got.Type, f.Type) {
			t.Errorf("column %d: got %v, want %v", i, got, f)
		}
	}
}
