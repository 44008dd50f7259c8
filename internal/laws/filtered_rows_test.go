package laws_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/pred"
	"stoa/vec"
)

// TestFilteredWindows: Rows are positions of the unfiltered scan also where a filter leaves out whole files, tablets
// and row groups: in a window there are the rows that stand at its positions and pass.
func TestFilteredWindows(t *testing.T) {
	tried := map[string]int{}
	lake := t.TempDir()
	for _, to := range []string{"iceberg", "delta"} {
		writeLake(t, filepath.Join(lake, to)+"/", to)
		windowsOf(t, filepath.Join(lake, to), tried)
	}
	dir := "corpus"
	if whole := os.Getenv("STOA_CORPUS"); whole != "" && !testing.Short() {
		dir = whole
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !strings.HasSuffix(path, ".gz") {
			windowsOf(t, path, tried)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("windows that are right: %v", tried)
	for _, name := range []string{"cfile", "redfile", "trevni", "carbon", "iceberg", "delta"} {
		if tried[name] == 0 {
			t.Errorf("no %s was tried", name)
		}
	}
}

// writeLake writes a lake of ten files, each with numbers of its own.
func writeLake(t *testing.T, place, to string) {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "p", Type: arrow.PrimitiveTypes.Int32},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var rows []string
	for n := range 400 {
		rows = append(rows, fmt.Sprintf(`{"p":%d,"n":%d}`, n%10, n%10*1000+n))
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := stoa.Create(t.Context(), place, sc, stoa.CreateOptions{To: to, Formats: verbs.Formats(),
		Opts: map[string]string{"partition-by": "p"}})
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// windowsOf compares windows of filtered scans of a table with the rows of an unfiltered one.
func windowsOf(t *testing.T, path string, tried map[string]int) {
	tab, err := stoa.Open(t.Context(), path, stoa.OpenOptions{Formats: verbs.Formats()})
	if err != nil || len(tab.Sources()) == 0 { // not a table, or one that is damaged deliberately
		for e, err := range stoa.List(t.Context(), path, stoa.OpenOptions{Formats: verbs.Formats()}) {
			if err == nil && e.Format == "kudu" && e.Table != "" && e.Place == path { // a server with several tables
				windowsOf(t, path+"#"+e.Table, tried)
			}
		}
		return
	}
	defer tab.Close()
	for i, f := range tab.Schema().Fields() {
		if i == 4 || strings.ContainsAny(f.Name, "`\"") {
			return
		}
		cells, ok := integers(t, tab, f.Name)
		if !ok || len(cells) < 3 {
			continue
		}
		r := rand.New(rand.NewPCG(1, uint64(len(cells))))
		for range 12 {
			a, b := cells[r.IntN(len(cells))], cells[r.IntN(len(cells))]
			if a == nil || b == nil {
				continue
			}
			low, high := min(*a, *b), max(*a, *b)
			from := r.Int64N(int64(len(cells)))
			to := from + 1 + r.Int64N(int64(len(cells))-from)
			var want []string
			for _, c := range cells[from:to] {
				if c != nil && *c >= low && *c <= high {
					want = append(want, fmt.Sprint(*c))
				}
			}
			e, err := pred.Parse(fmt.Sprintf("%q >= %d and %q <= %d", f.Name, low, f.Name, high))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			spec := stoa.ScanSpec{Columns: []string{f.Name}, Filter: e, Rows: vec.Range{From: from, To: to}}
			for b, err := range tab.Scan(t.Context(), spec) {
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				for i := range int(b.NumRows()) {
					got = append(got, b.Column(0).ValueStr(i))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: rows %d to %d with %v: %d rows, want %d", path, from, to, e, len(got), len(want))
				return
			}
			tried[tab.Sources()[0].Format]++
		}
	}
}

// integers reads a column of integers, nil for null; false: it is no such column, or damaged.
func integers(t *testing.T, tab *stoa.Table, name string) (cells []*int64, ok bool) {
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{name}}) {
		if err != nil {
			return nil, false
		}
		for i := range int(b.NumRows()) {
			var c *int64
			switch a := b.Column(0).(type) {
			case *array.Int8:
				c = cellOf(a, i)
			case *array.Int16:
				c = cellOf(a, i)
			case *array.Int32:
				c = cellOf(a, i)
			case *array.Int64:
				c = cellOf(a, i)
			default:
				return nil, false
			}
			cells = append(cells, c)
		}
	}
	return cells, true
}

func cellOf[T int8 | int16 | int32 | int64](a interface {
	IsNull(int) bool
	Value(int) T
}, i int) *int64 {
	if a.IsNull(i) {
		return nil
	}
	v := int64(a.Value(i))
	return &v
}
