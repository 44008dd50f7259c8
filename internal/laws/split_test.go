package laws_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"stoa"
	"stoa/fault"
	"stoa/pred"
	"stoa/vec"
)

// splitRows returns a table of n rows: n, a text and a float that is often null.
func splitRows(n int) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "t", Type: arrow.BinaryTypes.String},
		{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("text ", i%50))
		if x := b.Field(2).(*array.Float64Builder); i%3 == 0 {
			x.AppendNull()
		} else {
			x.Append(float64(i) / 8)
		}
	}
	return b.NewRecordBatch()
}

// splitPlaces writes the same rows in several formats, and as several files.
func splitPlaces(t *testing.T) []string {
	dir := t.TempDir()
	formats := stoa.Formats
	var out []string
	for _, p := range []struct {
		name string
		opts map[string]string
	}{{"a.parquet", map[string]string{"row-group-rows": "700"}}, {"a.arrow", nil}, {"a.csv", nil}, {"a.jsonl", nil},
		{"many/1.cfile/", nil}, {"set/", nil}} {
		place := filepath.Join(dir, p.name)
		if strings.HasSuffix(p.name, "/") {
			place += "/"
		}
		if err := os.MkdirAll(filepath.Dir(strings.TrimSuffix(place, "/")), 0o777); err != nil {
			t.Fatal(err)
		}
		o := stoa.CreateOptions{Formats: formats, Opts: p.opts}
		if strings.HasSuffix(p.name, "/") {
			o.To = "cfile"
			o.Opts = map[string]string{"block-size": "1024"}
		}
		w, err := stoa.Create(context.Background(), place, splitRows(0).Schema(), o)
		if err != nil && p.opts != nil {
			o.Opts = nil
			w, err = stoa.Create(context.Background(), place, splitRows(0).Schema(), o)
		}
		if err != nil {
			t.Fatal(err)
		}
		rows := splitRows(5000)
		for from := int64(0); from < rows.NumRows(); from += 1000 {
			if err := w.Write(context.Background(), rows.NewSlice(from, from+1000)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSuffix(place, "/"))
	}
	return out
}

func rowsOf(t interface{ Fatal(...any) }, seq func(func(arrow.RecordBatch, error) bool)) []string {
	var out []string
	for b, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, textOf(b)...)
	}
	return out
}

// textOf returns one line per row of a batch.
func textOf(b arrow.RecordBatch) (out []string) {
	for i := range int(b.NumRows()) {
		var cells []string
		for _, c := range b.Columns() {
			cells = append(cells, c.ValueStr(i))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

// TestSplitsAreTheScan: the splits of a scan, sent as JSON and opened again, together return the rows of the scan.
func TestSplitsAreTheScan(t *testing.T) {
	places := splitPlaces(t)
	formats := stoa.Formats
	most := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.SampledFrom(places).Draw(t, "place")
		uris := []string{place}
		if rapid.Bool().Draw(t, "twice") {
			uris = append(uris, place)
		}
		table, err := stoa.OpenAll(context.Background(), uris, stoa.OpenOptions{Formats: formats})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		spec := stoa.ScanSpec{Columns: rapid.SampledFrom([][]string{nil, {"x", "n"}, {}}).Draw(t, "columns")}
		if where := rapid.SampledFrom([]string{"", "n > 700 and n < 4321", "t = 'text 7' or x is null",
			"n < 0"}).Draw(t, "where"); where != "" {
			spec.Filter, _ = pred.Parse(where)
		}
		target := rapid.Int64Range(1, 100_000).Draw(t, "target")
		if target < 500 {
			target *= 50
		}
		want := rowsOf(t, table.Scan(context.Background(), spec))
		var got []string
		n := 0
		for s, err := range table.Plan(context.Background(), spec, target) {
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back stoa.Split
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if back.N != n {
				t.Fatalf("expected split %d, got %d", n, back.N)
			}
			n++
			part, err := stoa.OpenSplit(context.Background(), back, stoa.OpenOptions{Formats: formats})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rowsOf(t, part.Scan(context.Background(),
				stoa.ScanSpec{Batch: rapid.SampledFrom([]int{0, 100}).Draw(t, "batch"),
					Parallel: rapid.SampledFrom([]int{0, 3}).Draw(t, "parallel"),
					Memory:   rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "memory")}))...)
			part.Close()
		}
		most[filepath.Base(place)] = max(most[filepath.Base(place)], n)
		if !slices.Equal(got, want) {
			t.Fatalf("%d rows in %d splits, want %d", len(got), n, len(want))
		}
	})
	for _, name := range []string{"a.parquet", "set"} {
		if most[name] < 3 && !testing.Short() { // with few draws it may not occur
			t.Errorf("%s was never cut into more than %d splits", name, most[name])
		}
	}
}

// TestSplitOfAChangedFile: a file that was changed since the plan is refused.
func TestSplitOfAChangedFile(t *testing.T) {
	place := filepath.Join(t.TempDir(), "a.csv")
	write := func(text string) {
		if err := os.WriteFile(place, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("a,b\n1,2\n3,4\n")
	table, err := stoa.Open(context.Background(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for s, err := range table.Plan(context.Background(), stoa.ScanSpec{}, 100) {
		if err != nil {
			t.Fatal(err)
		}
		write("a,b\n1,2\n3,4\n5,6\n")
		_, err = stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "changed since the split was planned") {
			t.Fatalf("the changed file: %v", err)
		}
		s.Version = 99
		if _, err = stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{}); !errors.Is(err, fault.Invalid) {
			t.Fatalf("a split of the future: %v", err)
		}
	}
}

// TestSplitOfNothing: a split with a value that no plan produces is refused with the name of the field, because it
// would read the wrong rows.
func TestSplitOfNothing(t *testing.T) {
	const place = "corpus/redfile/red1/flat_pages.red"
	table, err := stoa.Open(context.Background(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for want, change := range map[string]func(*stoa.Split){
		"sources[0].pieces[0].groups": func(s *stoa.Split) { s.Sources[0].Pieces[0].Groups = []int{} },
		"row group 0 is named twice":  func(s *stoa.Split) { s.Sources[0].Pieces[0].Groups = []int{0, 0} },
		"sources[0].pieces[0].rows":   func(s *stoa.Split) { s.Sources[0].Pieces[0].Rows = vec.Range{From: 9, To: 3} },
		"from -1 to 3 are no rows":    func(s *stoa.Split) { s.Sources[0].Pieces[0].Rows = vec.Range{From: -1, To: 3} },
		"from 4 to 4 are no rows":     func(s *stoa.Split) { s.Sources[0].Pieces[0].Rows = vec.Range{From: 4, To: 4} },
		"sources[0].pieces":           func(s *stoa.Split) { s.Sources[0].Pieces = nil },
		"no sources":                  func(s *stoa.Split) { s.Sources = nil },
	} {
		for s, err := range table.Plan(context.Background(), stoa.ScanSpec{}, 1<<30) {
			if err != nil {
				t.Fatal(err)
			}
			if whole, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{}); err != nil {
				t.Fatal(err)
			} else {
				whole.Close()
			}
			change(&s)
			if x, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{}); !errors.Is(err,
				fault.Invalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("want %s: %v, %v", want, x, err)
			}
		}
	}
}

// TestSplitOfAnExchangedFile: a file that was replaced by one of equal size is refused when its split is opened or
// scanned: in each format, for single files and directories.
func TestSplitOfAnExchangedFile(t *testing.T) {
	for _, c := range []struct{ dir, table, data string }{
		{"corpus/carbon/2.3.0/managed", "#managed1", "*.carbondata"},
		{"corpus/carbon/2.3.0/managed/managed1/Fact/Part0/Segment_0", "", "*.carbondata"},
		{"corpus/redfile/red1", "/flat_pages.red", "flat_pages.red"},
		{"corpus/trevni/v1.12.2", "/" + trevniFile(t, "v1.12.2"), trevniFile(t, "v1.12.2")},
		{"internal/enc/testdata", "/key_int64.t583be9.rs0.column.k.72791677272114",
			"key_int64.t583be9.rs0.column.k.72791677272114"},
		{"cfile", "/set", "t.cfile"},
		{"redfile", "/set", "part-00001.red"},
	} {
		dir := filepath.Join(t.TempDir(), "here")
		if filepath.Dir(c.dir) == "." {
			writeSet(t, dir+"/set/", c.dir)
		} else if err := os.CopyFS(dir, os.DirFS(c.dir)); err != nil {
			t.Fatal(err)
		}
		table, err := stoa.Open(context.Background(), dir+c.table, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(c.dir, err)
		}
		var splits []stoa.Split
		for s, err := range table.Plan(context.Background(), stoa.ScanSpec{}, 1<<30) {
			if err != nil {
				t.Fatal(c.dir, err)
			}
			splits = append(splits, s)
		}
		table.Close()
		touched := 0
		err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if ok, _ := filepath.Match(c.data, d.Name()); err == nil && ok {
				touched++
				err = os.Chtimes(name, time.Time{}, time.Now().Add(time.Minute))
			}
			return err
		})
		if err != nil || touched == 0 || len(splits) == 0 {
			t.Fatalf("%s: %d files exchanged, %d splits: %v", c.dir, touched, len(splits), err)
		}
		for _, s := range splits {
			part, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{})
			if err == nil {
				for _, err = range part.Scan(context.Background(), stoa.ScanSpec{}) {
					if err != nil {
						break
					}
				}
				part.Close()
			}
			if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "changed since the split was planned") {
				t.Errorf("%s%s: %v", c.dir, c.table, err)
			}
		}
	}
}

// writeSet writes a table of several files.
func writeSet(t *testing.T, place, to string) {
	if err := os.MkdirAll(filepath.Dir(strings.TrimSuffix(place, "/")), 0o777); err != nil {
		t.Fatal(err)
	}
	o := stoa.CreateOptions{To: to}
	if to == "redfile" {
		o.Opts = map[string]string{"split": "row-group", "row-group-rows": "300", "crc": "false"}
	}
	rows := splitRows(1000)
	w, err := stoa.Create(context.Background(), place, rows.Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestSplitsOfRealFiles is TestSplitsAreTheScan for files and directories that real systems wrote: nested and flat,
// with deltas, deletes, several segments.
func TestSplitsOfRealFiles(t *testing.T) {
	formats := stoa.Formats
	most := 0
	for place, where := range map[string][]string{
		"format/kudu/testdata/file#autoinc":                 {"k >= 40 and k < 60", "k = 7", "v is not null"},
		"corpus/carbon/2.3.0/managed#managed1":              {"id >= 100 and id < 200", "name like 'n%1'"},
		"corpus/carbon/2.3.0/managed#managed_del":           {"id > 20"},
		"corpus/carbon/2.3.0/managed#managed_part":          {"id > 20"},
		"corpus/carbon/2.3.0/managed#managed_complex":       nil,
		"corpus/redfile/red1/flat_pages.red":                {"i > 0", "oi is null"},
		"corpus/redfile/red1/nested.red":                    nil,
		"corpus/trevni/dialects/wiki_dremel.trv":            nil,
		"corpus/trevni/v1.12.2/" + trevniFile(t, "v1.12.2"): nil,
	} {
		table, err := stoa.Open(context.Background(), place, stoa.OpenOptions{Formats: formats})
		if err != nil {
			t.Fatal(place, err)
		}
		defer table.Close()
		for _, w := range append([]string{""}, where...) {
			var spec stoa.ScanSpec
			if w != "" {
				if spec.Filter, err = pred.Parse(w); err != nil {
					t.Fatal(err)
				}
			}
			want := rowsOf(t, table.Scan(context.Background(), spec))
			if len(want) == 0 {
				t.Errorf("%s where %s: no rows", place, w)
			}
			for _, target := range []int64{1, 700, 1 << 30} {
				if testing.Short() && target == 1 && len(want) > 100 {
					continue // one split per row
				}
				var got []string
				n := 0
				for s, err := range table.Plan(context.Background(), spec, target) {
					if err != nil {
						t.Fatal(place, err)
					}
					part, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{Formats: formats})
					if err != nil {
						t.Fatal(place, err)
					}
					got = append(got, rowsOf(t,
						part.Scan(context.Background(), stoa.ScanSpec{Parallel: n % 3, Batch: 50}))...)
					part.Close()
					if n++; n >= 300 && target == 1 { // every row may be a split of its own
						break
					}
				}
				if most = max(most, n); n < 300 && !slices.Equal(got, want) || n >= 300 &&
					!slices.Equal(got, want[:len(got)]) {
					t.Errorf("%s where %s, %d bytes a split: %d rows in %d splits, want %d", place, w, target,
						len(got), n, len(want))
				}
			}
		}
	}
	if most < 5 {
		t.Errorf("nothing was cut into more than %d splits", most)
	}
}

// trevniFile returns the first of the golden files of a version.
func trevniFile(t *testing.T, version string) string {
	files, err := filepath.Glob("corpus/trevni/" + version + "/*.trv")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden file of Trevni", version, err)
	}
	return filepath.Base(files[0])
}
