package carbon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// dataRead returns the data files that a scan with a filter reads, and the number of rows that it returns.
func dataRead(t *testing.T, place, where string) (files map[string]bool, rows int) {
	t.Helper()
	e, err := pred.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	counter := store.NewCounter(store.Local{})
	_, got, err := read(t, place, stoa.OpenOptions{Tree: counter}, stoa.ScanSpec{Filter: e})
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]bool{}
	for _, r := range counter.Reads() {
		if strings.HasSuffix(r.Name, ".carbondata") {
			files[filepath.Base(r.Name)] = true
		}
	}
	return files, len(got)
}

// TestIndexPrunes: a scan with a filter opens neither files whose index file rules out matching rows, nor directories
// of partitions with a different value.
func TestIndexPrunes(t *testing.T) {
	for _, x := range []struct {
		table, where string
		files, rows  int
	}{
		{"managed_part", "country = 'x y/z'", 1, 5},
		{"managed_part", "y = 1999", 0, 0},
		{"managed_bucket", "id = -5", 0, 0},
		{"managed_gsort", "id < -1", 0, 0},
		{"managed1", "id = -1", 0, 0},
	} {
		files, rows := dataRead(t, filepath.Join(golden2, "managed", x.table), x.where)
		if len(files) != x.files || rows != x.rows {
			t.Errorf("%s where %s: %d data files were read, want %d; %d rows, want %d", x.table, x.where,
				len(files), x.files, rows, x.rows)
		}
	}
}

// TestNarrow: a blocklet of many pages is narrowed to the rows of pages that may pass the filter.
func TestNarrow(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(arrowmem.DefaultAllocator, sc)
	for i := range 1000 {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		b.Field(1).(*array.Int64Builder).Append(int64(999 - i))
	}
	name := filepath.Join(t.TempDir(), "t.carbondata")
	w, err := stoa.Create(t.Context(), name, sc,
		stoa.CreateOptions{Formats: formats, Opts: map[string]string{"page-rows": "100"}})
	if err == nil {
		err = w.Write(t.Context(), b.NewRecordBatch())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := carbon.Format.Open(t.Context(), format.Target{Tree: store.Local{}, Name: name}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for where, want := range map[string]vec.Ranges{
		"id = 234":              {{From: 200, To: 300}},
		"id < 150 or id >= 990": {{From: 0, To: 200}, {From: 900, To: 1000}},
		"id > 340 and v > 450":  {{From: 300, To: 600}},
		"id = 5 and v = 5":      nil,
		"id is not null":        {{From: 0, To: 1000}},
	} {
		e, err := pred.Parse(where)
		if err == nil {
			e, err = pred.Bind(e, r.Schema())
		}
		if err != nil {
			t.Fatal(err)
		}
		for p, err := range r.Parts(t.Context(), format.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			groups, err := r.RowGroups(t.Context(), p, format.Query{})
			if err != nil || len(groups) != 1 {
				t.Fatal(len(groups), err)
			}
			got, err := r.(format.Narrower).Narrow(t.Context(), groups[0], e)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: rows %v, %v, want %v", where, got, err, want)
			}
		}
	}
}
