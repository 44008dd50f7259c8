package laws_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
)

// TestNullInStruct: every writer either refuses a struct with a field of type Null, even one declared as not nullable,
// or writes it so that it is read back.
func TestNullInStruct(t *testing.T) {
	ctx := context.Background()
	for _, nullable := range []bool{false, true} {
		inner := arrow.StructOf(arrow.Field{Name: "n", Type: arrow.Null, Nullable: nullable},
			arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Int64})
		sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
			{Name: "s", Type: inner}}, nil)
		ids, s := array.NewInt64Builder(memory.DefaultAllocator), array.NewStructBuilder(memory.DefaultAllocator, inner)
		for i := range int64(50) {
			ids.Append(i)
			s.Append(true)
			s.FieldBuilder(0).AppendNull()
			s.FieldBuilder(1).(*array.Int64Builder).Append(7 * i)
		}
		batch := array.NewRecordBatch(sc, []arrow.Array{ids.NewArray(), s.NewArray()}, 50)
		written := 0
		for _, f := range stoa.Formats {
			if f.Create == nil {
				continue
			}
			file := filepath.Join(t.TempDir(), "t"+strings.Join(f.Extensions[:min(1, len(f.Extensions))], ""))
			w, err := stoa.Create(ctx, file, sc, stoa.CreateOptions{To: f.Name})
			if err == nil {
				if err = w.Write(ctx, batch); err == nil {
					_, err = w.Close(ctx)
				} else {
					w.Abort(ctx)
				}
			}
			if err != nil {
				if errors.Is(err, fault.Bug) || !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Invalid) {
					t.Errorf("%s, nullable %t: %v", f.Name, nullable, err)
				}
				continue
			}
			written++
			tab, err := stoa.Open(ctx, file, stoa.OpenOptions{From: f.Name})
			if err != nil {
				t.Errorf("%s, nullable %t: %v", f.Name, nullable, err)
				continue
			}
			rows, sum, text := 0, int64(0), false
			for b, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
				if err != nil {
					t.Errorf("%s, nullable %t: %v", f.Name, nullable, err)
					break
				}
				rows += int(b.NumRows())
				st, ok := b.Column(1).(*array.Struct)
				if text = !ok; ok {
					n, v := st.Field(0), st.Field(1).(*array.Int64)
					for i := range v.Len() {
						if sum += v.Value(i); n.IsValid(i) && n.DataType().ID() != arrow.NULL {
							t.Errorf("%s, nullable %t: row %d has a value of type Null", f.Name, nullable, i)
						}
					}
				}
			}
			if tab.Close(); rows != 50 || !text && sum != 7*50*49/2 {
				t.Errorf("%s, nullable %t: %d rows, sum %d", f.Name, nullable, rows, sum)
			}
		}
		if written < 3 {
			t.Errorf("nullable %t: only %d formats wrote it", nullable, written)
		}
	}
}
