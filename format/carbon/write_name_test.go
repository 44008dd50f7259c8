package carbon_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	mem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
)

// TestWrittenNames: in every version a table is read back by the name that it was written under, or the name is refused
// before anything is written.
func TestWrittenNames(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for _, version := range []string{"1", "2", "3"} {
		for _, name := range []string{"t.carbondata", "t", "t.bin", "dir/"} {
			place := t.TempDir() + string(filepath.Separator) + name
			w, err := stoa.Create(t.Context(), place, sc,
				stoa.CreateOptions{To: "carbon", Opts: map[string]string{"version": version}})
			if refused := version == "1" && (name == "t" || name == "t.bin"); refused {
				left, _ := os.ReadDir(filepath.Dir(place))
				if !errors.Is(err, fault.Invalid) || len(left) > 0 {
					t.Errorf("version %s, %s: got %v, %d files", version, name, err, len(left))
				}
				continue
			}
			if err != nil {
				t.Errorf("version %s, %s: %v", version, name, err)
				continue
			}
			b := array.NewRecordBuilder(mem.DefaultAllocator, sc)
			b.Field(0).(*array.StringBuilder).Append("x")
			if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
				t.Fatal(err)
			}
			if s, err := w.Close(t.Context()); err != nil || !s.Checked {
				t.Errorf("version %s, %s: %v", version, name, err)
			}
		}
	}
}
