package laws_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta"
	"stoa/format/formattest"
	"stoa/format/iceberg"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// dirty is an allocator whose memory is not zeroed, like a pool's.
type dirty struct{ memory.Allocator }

func (d dirty) Allocate(n int) []byte {
	b := d.Allocator.Allocate(n)
	for i := range b {
		b[i] = 0xff
	}
	return b
}

// TestDirtyMemory: output does not depend on the previous contents of the allocator's memory. arrow-go does not set the
// bitmaps of arrays that are all null.
func TestDirtyMemory(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	none := arrow.NewSchema(append(sc.Fields(), arrow.Field{Name: "n", Type: arrow.Null, Nullable: true}), nil)
	build := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer build.Release()
	build.Field(0).AppendNulls(300)
	build.Field(1).AppendNulls(300)
	rec := build.NewRecordBatch()
	defer rec.Release()
	formats := slices.Concat(stoa.Formats, []format.Format{iceberg.Format, delta.Format})
	for _, f := range formats {
		if f.Create == nil {
			continue
		}
		rec, sc := rec, sc
		if f.Name == iceberg.Format.Name || f.Name == delta.Format.Name { // these store nulls as strings
			cols := append(slices.Clone(rec.Columns()), array.NewNull(300))
			rec, sc = array.NewRecordBatch(none, cols, 300), none
		}
		t.Run(f.Name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "x")
			w, err := stoa.Create(t.Context(), place, sc,
				stoa.CreateOptions{Formats: formats, To: f.Name, Alloc: dirty{memory.DefaultAllocator}})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			table, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Formats: formats, From: f.Name})
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			nulls := 0
			for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					t.Fatal(err)
				}
				nulls += b.Column(0).NullN() + b.Column(1).NullN()
			}
			if nulls != 600 {
				t.Errorf("got %d nulls, want 600", nulls)
			}
		})
	}
}

// TestDirtyReading: rows read do not depend on the previous contents of the allocator's memory, and output does not
// depend on the values under nulls. Batches have the same cells from zeroed memory and from memory full of ones,
// outputs pass their check, and the padding of views is 0, as Arrow requires.
func TestDirtyReading(t *testing.T) {
	views := 0
	for _, to := range []string{"parquet", "redfile", "arrow", "trevni"} {
		written := 0
		for seed := range uint64(12) {
			table := formattest.RandomTable(rand.New(rand.NewPCG(seed, 11)), formattest.TableOptions{Rows: 60,
				Columns: 6, Depth: 1 + int(seed%3), Leaves: formattest.LeafTypes()})
			place := filepath.Join(t.TempDir(), "x")
			w, err := stoa.Create(t.Context(), place, table.Schema, stoa.CreateOptions{To: to,
				Alloc: dirty{memory.DefaultAllocator}})
			if err == nil {
				if err = w.Write(t.Context(), table.Batch); err == nil {
					_, err = w.Close(t.Context())
				} else {
					_ = w.Abort(t.Context())
				}
			}
			if errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Invalid) {
				continue // types that the format does not have
			}
			if err != nil {
				t.Fatalf("%s, seed %d: %v", to, seed, err)
			}
			written++
			clean := allOf(t, place, to, memory.DefaultAllocator)
			got := allOf(t, place, to, dirty{memory.DefaultAllocator})
			for i, c := range got.Columns() {
				if !reflect.DeepEqual(formattest.CellsOf(c), formattest.CellsOf(clean.Column(i))) {
					t.Errorf("%s, seed %d: column %d, %s: other cells from memory that is not zeroed", to, seed, i,
						c.DataType())
				}
				views += checkViews(t, c)
			}
		}
		if written < 4 {
			t.Errorf("%s: only %d tables of 12 were written", to, written)
		}
	}
	if views < 50 {
		t.Errorf("only %d views were checked, expected 50 or more", views)
	}
}

func allOf(t *testing.T, place, from string, mem memory.Allocator) arrow.RecordBatch {
	t.Helper()
	table, err := stoa.Open(t.Context(), place, stoa.OpenOptions{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var out arrow.RecordBatch
	for b, err := range table.Scan(t.Context(), stoa.ScanSpec{Alloc: mem}) {
		if err != nil || out != nil {
			t.Fatalf("%s: %v, or more than one batch", from, err)
		}
		b.Retain()
		out = b
	}
	return out
}

// checkViews counts the views of at most 12 bytes in an array, and checks that their padding is 0.
func checkViews(t *testing.T, a arrow.Array) (n int) {
	t.Helper()
	if id := a.DataType().ID(); id == arrow.STRING_VIEW || id == arrow.BINARY_VIEW {
		d := a.Data()
		for i := range a.Len() {
			view := d.Buffers()[1].Bytes()[16*(d.Offset()+i):][:16]
			size := binary.LittleEndian.Uint32(view)
			if a.IsNull(i) || size > 12 {
				continue
			}
			if n++; slices.ContainsFunc(view[4+size:], func(b byte) bool { return b != 0 }) {
				t.Errorf("the padding of a view of %d bytes is not 0: %x", size, view)
			}
		}
	}
	for _, c := range a.Data().Children() {
		child := array.MakeFromData(c)
		n += checkViews(t, child)
		child.Release()
	}
	return n
}
