package stoa_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/pred"
)

// writeCoded writes a key, strings of which there are few, few strings with nulls, and unique strings.
func writeCoded(t *testing.T, name, format string, n int, opts map[string]string) {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "few", Type: arrow.BinaryTypes.String},
		{Name: "null", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "many", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("one of few, ", i*i%97))
		if i%5 == 0 || i/2500%3 == 1 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(strings.Repeat("x", i%11))
		}
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("%x-%d", i*7919, i))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	w, err := stoa.Create(t.Context(), name, sc, stoa.CreateOptions{To: format, Opts: opts, NoCheck: true})
	if err == nil {
		err = w.Write(t.Context(), rec)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

var codedFormats = []struct {
	format, name string
	opts         map[string]string
	columns      int // of strings that are codes
}{
	{"cfile", "set/", nil, 3},
	{"parquet", "p.parquet", nil, 2},
	{"carbon", "c/", nil, 3},
	{"trevni", "t.trv", nil, 0},
	{"redfile", "r.red", nil, 0},
	{"arrow", "a.arrow", nil, 0},
	{"csv", "c.csv", nil, 0},
}

// TestCodesAreTheValues: a scan that returns codes has the rows of one that returns values, in tables of all formats,
// whatever its filter, batches, workers, order of columns and limit, and each batch has the type that ScanSchema says.
func TestCodesAreTheValues(t *testing.T) {
	const rows = 8_000
	for _, f := range codedFormats {
		t.Run(f.format, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), f.name)
			writeCoded(t, name, f.format, rows, f.opts)
			table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			codesAreTheValues(t, table, f.columns)
		})
	}
}

func codesAreTheValues(t *testing.T, table *stoa.Table, columns int) {
	t.Helper()
	for _, where := range []string{"", "k % 3 = 1", "few like '%1'", "k >= 7990 and null is not null", "k < 0"} {
		for i, spec := range []stoa.ScanSpec{{}, {Batch: 777}, {Parallel: 3, Batch: 500}, {Limit: 5001},
			{Columns: []string{"many", "few", "few", "k", "null"}}, {Damaged: stoa.NullCells}, {Memory: 1 << 20}} {
			if columns == 0 && i > 0 {
				break
			}
			var err error
			if where != "" {
				if spec.Filter, err = pred.Parse(where); err != nil {
					t.Fatal(err)
				}
			}
			want, _ := cellsOf(t, table, spec)
			spec.Dictionaries = stoa.DictionaryCodes
			got, coded := cellsOf(t, table, spec)
			if coded != columns && spec.Columns == nil {
				t.Errorf("%q, scan %d: expected %d columns of codes, got %d", where, i, columns, coded)
			}
			if len(got) != len(want) {
				t.Fatalf("%q, scan %d: expected %d rows, got %d", where, i, len(want), len(got))
			}
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("%q, scan %d, row %d: expected %s, got %s", where, i, k, want[k], got[k])
				}
			}
		}
	}
}

// cellsOf returns the rows of a scan as text, and how many columns of its schema are dictionaries.
func cellsOf(t *testing.T, table *stoa.Table, spec stoa.ScanSpec) (rows []string, coded int) {
	t.Helper()
	sc, err := table.ScanSchema(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sc.Fields() {
		if f.Type.ID() == arrow.DICTIONARY {
			coded++
		}
	}
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	if spec.Parallel > 1 {
		mem = nil // it is for one goroutine
	} else {
		spec.Alloc = mem
		defer mem.AssertSize(t, 0)
	}
	for b, err := range table.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		if !b.Schema().Equal(sc) {
			t.Fatalf("expected %s, got %s", sc, b.Schema())
		}
		for i := range int(b.NumRows()) {
			var text strings.Builder
			for _, c := range b.Columns() {
				fmt.Fprintf(&text, "%s|", cellText(c, i))
			}
			rows = append(rows, text.String())
		}
	}
	return rows, coded
}

func cellText(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	if d, ok := a.(*array.Dictionary); ok {
		return d.Dictionary().ValueStr(d.GetValueIndex(i))
	}
	return a.ValueStr(i)
}

// TestCodesOfAFileShareOneDictionary: all batches of a file whose strings are codes have the same dictionary, whichever
// worker reads them.
func TestCodesOfAFileShareOneDictionary(t *testing.T) {
	name := filepath.Join(t.TempDir(), "set")
	writeCoded(t, name, "cfile", 30_000, nil)
	table, err := stoa.Open(context.Background(), name, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var mu sync.Mutex
	dicts, batches := map[arrow.ArrayData]bool{}, 0
	spec := stoa.ScanSpec{Columns: []string{"few"}, Dictionaries: stoa.DictionaryCodes, Parallel: 3, Batch: 2500}
	err = table.Each(t.Context(), spec, func(_ int, b arrow.RecordBatch) error {
		mu.Lock()
		defer mu.Unlock()
		d := b.Column(0).Data().Dictionary()
		dicts[d], batches = true, batches+1
		if d.Len() > 97 {
			t.Errorf("a dictionary of %d strings", d.Len())
		}
		return nil
	})
	if err != nil || batches < 12 || len(dicts) != 1 {
		t.Errorf("%d batches have %d dictionaries, %v", batches, len(dicts), err)
	}
}

// TestCodesOfKudu: the same for the tables of a real server, with changed and deleted rows, in the order of the key and
// in any order.
func TestCodesOfKudu(t *testing.T) {
	tables, coded := 0, 0
	place, least := filepath.Join("corpus", "releases", "v0.1.1", "kudu", "log"), 1
	if whole := os.Getenv("STOA_CORPUS"); whole != "" && !testing.Short() {
		place, least = filepath.Join(whole, "kudu", "fs_log"), 10
	}
	for e, err := range stoa.List(t.Context(), place, stoa.OpenOptions{}) {
		if err != nil || e.Format != "kudu" {
			continue
		}
		uri, o := stoa.Named(e, stoa.OpenOptions{})
		table, err := stoa.Open(t.Context(), uri, o)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		for _, unordered := range []bool{false, true} {
			spec := stoa.ScanSpec{Unordered: unordered, Batch: 300}
			want, _ := cellsOf(t, table, spec)
			spec.Dictionaries = stoa.DictionaryCodes
			got, n := cellsOf(t, table, spec)
			if !slices.Equal(got, want) {
				t.Errorf("%s, unordered %t: the %d rows are not the same", uri, unordered, len(want))
			}
			coded += n
		}
		tables++
	}
	if tables < least || coded < least {
		t.Errorf("%d tables were read, with %d columns of codes", tables, coded)
	}
}

// TestCodesOfDamagedFiles: what is lost of columns of codes is what is lost of strings.
func TestCodesOfDamagedFiles(t *testing.T) {
	whole := t.TempDir()
	writeCoded(t, filepath.Join(whole, "set"), "cfile", 8_000, map[string]string{"block-size": "2048"})
	b, err := os.ReadFile(filepath.Join(whole, "set", "null.cfile"))
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i := range 24 {
		file := filepath.Join(whole, "set", "null.cfile")
		bad := bytes.Clone(b)
		bad[len(b)*(i+1)/26] ^= 0x11
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := stoa.Open(t.Context(), filepath.Join(whole, "set"), stoa.OpenOptions{})
		if err != nil {
			continue
		}
		defer table.Close()
		for _, damaged := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
			spec := stoa.ScanSpec{Damaged: damaged, Batch: 900}
			want, _ := cellsOf(t, table, spec)
			spec.Dictionaries = stoa.DictionaryCodes
			got, _ := cellsOf(t, table, spec)
			if !slices.Equal(got, want) {
				t.Errorf("byte %d, policy %d: the %d rows are not the same", len(b)*(i+1)/26, damaged, len(want))
			}
			if len(want) < 8_000 {
				lost++
			}
		}
	}
	if lost == 0 {
		t.Error("no rows were lost")
	}
}
