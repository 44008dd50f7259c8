package laws_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestLostBeginning: the format of a file whose first bytes are overwritten is determined by its name; verify reports
// the damage, and all rows are recovered.
func TestLostBeginning(t *testing.T) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range int64(500) {
		ids.Append(i)
	}
	batch := array.NewRecordBatch(sc, []arrow.Array{ids.NewArray()}, 500)
	for name, to := range map[string]string{"a.arrow": "arrow", "a.red": "redfile", "a.trv": "trevni"} {
		file := filepath.Join(t.TempDir(), name)
		w, err := stoa.Create(ctx, file, sc, stoa.CreateOptions{To: to})
		if err == nil {
			err = w.Write(ctx, batch)
		}
		if err == nil {
			_, err = w.Close(ctx)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copy(whole, "\xff\xff\xff\xff")
		tree := store.NewMemory(map[string][]byte{name: whole})
		var found []string
		for f, err := range stoa.Verify(ctx, name, stoa.OpenOptions{Tree: tree}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if f.Severity == region.Error {
				found = append(found, f.Code)
			}
		}
		if len(found) == 0 || strings.HasPrefix(found[0], "file.") {
			t.Errorf("%s: verify reports %q", name, found)
		}
		rec, err := stoa.Open(ctx, name, stoa.OpenOptions{Tree: tree, Recover: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rows := int64(0)
		for b, err := range rec.Scan(ctx, stoa.ScanSpec{}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			rows += b.NumRows()
		}
		if rows != 500 {
			t.Errorf("%s: got %d rows, want 500", name, rows)
		}
		rec.Close()
	}
}
