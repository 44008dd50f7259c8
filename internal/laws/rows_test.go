package laws_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
)

// places are real tables of several formats, files and directories.
var places = []string{"corpus/kudu/1.18.1/key_int32/k.ck.cfile", "corpus/trevni/v1.12.2/avro_nested_records.trv",
	"corpus/redfile/red1/dremel.red", "corpus/carbon/2.3.0/managed/managed_del"}

// seekOnly is a file system whose files can seek but are not io.ReaderAt.
type seekOnly struct{ fs.FS }

type seekFile struct {
	fs.File
	seek interface {
		Seek(int64, int) (int64, error)
	}
}

func (f seekFile) Seek(off int64, whence int) (int64, error) { return f.seek.Seek(off, whence) }

func (s seekOnly) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if k, ok := f.(interface {
		Seek(int64, int) (int64, error)
	}); ok && err == nil {
		if st, err := f.Stat(); err == nil && !st.IsDir() {
			return seekFile{f, k}, nil
		}
	}
	return f, err
}

// packed returns a zip archive of everything below a directory.
func packed(t *testing.T, dir string) fs.FS {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTablesOfAnFS: a table is the same from every kind of fs.FS, and a file from an io.ReaderAt.
func TestTablesOfAnFS(t *testing.T) {
	for _, place := range places {
		dir, name := filepath.Split(place)
		memory := fstest.MapFS{}
		if err := fs.WalkDir(os.DirFS(dir), name, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b, err := os.ReadFile(filepath.Join(dir, p))
				memory[p] = &fstest.MapFile{Data: b}
				return err
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		whole, err := stoa.Open(t.Context(), place, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		same := func(kind string, tab *stoa.Table, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s, %s: %v", place, kind, err)
				return
			}
			defer tab.Close()
			d, err := stoa.Diff(t.Context(), whole, tab, stoa.DiffOptions{})
			if err != nil || len(d.Schema) > 0 || d.Changed+d.Only[0]+d.Only[1] > 0 || d.Same == 0 {
				t.Errorf("%s, %s: it differs from the table of the local file: %v, %v", place, kind, d, err)
			}
		}
		for kind, fsys := range map[string]fs.FS{"local": os.DirFS(dir), "memory": memory, "zip": packed(t, dir),
			"seek": seekOnly{os.DirFS(dir)}} {
			tab, err := stoa.OpenFS(t.Context(), fsys, name, stoa.OpenOptions{})
			same(kind, tab, err)
		}
		if b, err := os.ReadFile(place); err == nil {
			tab, err := stoa.OpenReaderAt(t.Context(), bytes.NewReader(b), int64(len(b)), name, stoa.OpenOptions{})
			same("io.ReaderAt", tab, err)
		}
	}
}

func withoutTo(opts map[string]string) map[string]string {
	out := maps.Clone(opts)
	delete(out, "to")
	return out
}

// written writes a table and opens it; opts["to"] is the format, by default that of the extension.
func written(t *testing.T, place string, sc *arrow.Schema, json string, opts map[string]string) *stoa.Table {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	w, err := stoa.Create(t.Context(), place, sc, stoa.CreateOptions{To: opts["to"], Opts: withoutTo(opts)})
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tab.Close() })
	return tab
}

type reading struct {
	Host  string   `arrow:"host"`
	Value *float64 `arrow:"value"`
	Tags  []string `arrow:"tags"`
	Where struct {
		Floor *int32 `arrow:"floor"`
	} `arrow:"where"`
	Skipped func() `arrow:"-"`
}

func TestRowsOfStructs(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "other", Type: arrow.PrimitiveTypes.Int64},
		{Name: "host", Type: arrow.BinaryTypes.String},
		{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "where", Type: arrow.StructOf(arrow.Field{Name: "floor", Type: arrow.PrimitiveTypes.Int32,
			Nullable: true})}}, nil)
	for _, ext := range []string{"parquet", "trv", "red", "arrow"} {
		tab := written(t, filepath.Join(t.TempDir(), "t."+ext), sc,
			`[{"other":1,"host":"a","value":1.5,"tags":["x","y"],"where":{"floor":3}},
			  {"other":2,"host":"b","value":null,"tags":null,"where":{"floor":null}}]`, nil)
		var got []string
		for r, err := range stoa.RowsOf[reading](t.Context(), tab, stoa.ScanSpec{}) {
			if err != nil {
				t.Fatalf("%s: %v", ext, err)
			}
			value, floor := "null", "null"
			if r.Value != nil {
				value = fmt.Sprint(*r.Value)
			}
			if r.Where.Floor != nil {
				floor = fmt.Sprint(*r.Where.Floor)
			}
			got = append(got, fmt.Sprint(r.Host, " ", value, " ", r.Tags, " ", r.Tags == nil, " ", floor))
		}
		if want := []string{"a 1.5 [x y] false 3", "b null [] true null"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", ext, got, want)
		}
		wrong[struct {
			Value float64 `arrow:"value"`
		}](t, tab, stoa.ScanSpec{}, "null")
		wrong[struct {
			Where struct {
				Floor int32 `arrow:"floor"`
			} `arrow:"where"`
		}](t, tab, stoa.ScanSpec{}, "where.floor")
		wrong[struct {
			Absent string `arrow:"absent"`
		}](t, tab, stoa.ScanSpec{}, "absent")
		wrong[struct {
			Host int64 `arrow:"host"`
		}](t, tab, stoa.ScanSpec{}, "host")
		wrong[struct {
			Other int8 `arrow:"value"`
		}](t, tab, stoa.ScanSpec{}, "value")
		wrong[reading](t, tab, stoa.ScanSpec{Columns: []string{"host"}}, "Columns")
		wrong[int](t, tab, stoa.ScanSpec{}, "struct")
	}
}

// wrong checks that rows do not fit T: the error must be of class Invalid and name part.
func wrong[T any](t *testing.T, tab *stoa.Table, spec stoa.ScanSpec, part string) {
	t.Helper()
	var last error
	for _, err := range stoa.RowsOf[T](t.Context(), tab, spec) {
		last = err
	}
	if !errors.Is(last, fault.Invalid) || !strings.Contains(last.Error(), part) {
		t.Errorf("%T: %v, expected one of class Invalid that names %s", *new(T), last, part)
	}
}

func TestGetAndSeekFrom(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf(`{"k":%d,"s":"row %d"}`, 2*i, i))
	}
	tab := written(t, filepath.Join(t.TempDir(), "t")+"/", sc, "["+strings.Join(rows, ",")+"]",
		map[string]string{"to": "cfile", "value-index.k": "true"})
	type row struct {
		K int64  `arrow:"k"`
		S string `arrow:"s"`
	}
	for i := range 1000 {
		if r, err := stoa.Get[row](t.Context(), tab, 2*i); err != nil || r.S != fmt.Sprint("row ", i) ||
			r.K != int64(2*i) {
			t.Fatalf("key %d: %v, %v", 2*i, r, err)
		}
		if r, err := stoa.Get[row](t.Context(), tab, 2*i+1); !errors.Is(err, stoa.ErrNotFound) || r != (row{}) {
			t.Fatalf("key %d: %v, %v, expected ErrNotFound", 2*i+1, r, err)
		}
	}
	for _, from := range []int{-5, 0, 1, 777, 1998, 1999, 5000} {
		n, low := 0, int64(1<<62)
		for b, err := range tab.SeekFrom(t.Context(), []any{from}, stoa.ScanSpec{}) {
			if err != nil {
				t.Fatal(err)
			}
			n += int(b.NumRows())
			for i := range int(b.NumRows()) {
				low = min(low, b.Column(0).(*array.Int64).Value(i))
			}
		}
		want := 0
		for i := range 1000 {
			if 2*i >= from {
				want++
			}
		}
		if n != want || n > 0 && low < int64(from) {
			t.Errorf("from %d: %d rows, the lowest key is %d; expected %d rows", from, n, low, want)
		}
	}
}
