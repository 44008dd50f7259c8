package laws_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// numbers writes a table n (int64), s (utf8) of the rows [from, to).
func numbers(t *testing.T, m *store.Memory, name string, from, to int64) {
	t.Helper()
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	w, err := stoa.Create(ctx, name, sc,
		stoa.CreateOptions{To: "cfile", Sink: m.Sink(name), Opts: map[string]string{"block-size": "512"}})
	if err != nil {
		t.Fatal(err)
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	for i := from; i < to; i++ {
		rb.Field(0).(*array.Int64Builder).Append(i)
		rb.Field(1).(*array.StringBuilder).Append(fmt.Sprint("s", i%10))
	}
	b := rb.NewRecordBatch()
	defer b.Release()
	if err := w.Write(ctx, b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func collect(t *testing.T, tab *stoa.Table, spec stoa.ScanSpec) []int64 {
	t.Helper()
	var out []int64
	for b, err := range tab.Scan(context.Background(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Column(0).(*array.Int64).Values()...)
	}
	return out
}

func span(from, to int64) []int64 {
	var out []int64
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func TestSeveralSourcesAreOneTable(t *testing.T) {
	m := store.NewMemory(nil)
	numbers(t, m, "d/a", 0, 1000)
	numbers(t, m, "d/b", 1000, 1500)
	for _, uris := range [][]string{{"d/a", "d/b"}, {"d/*"}} {
		tab, err := stoa.OpenAll(context.Background(), uris, stoa.OpenOptions{Tree: m})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			spec stoa.ScanSpec
			want []int64
		}{
			{stoa.ScanSpec{}, span(0, 1500)},
			{stoa.ScanSpec{Rows: vec.Range{From: 990, To: 1010}}, span(990, 1010)},
			{stoa.ScanSpec{Rows: vec.Range{From: 1200, To: 9999}}, span(1200, 1500)},
			{stoa.ScanSpec{Limit: 1001}, span(0, 1001)},
			{stoa.ScanSpec{Limit: 1000}, span(0, 1000)},
			{stoa.ScanSpec{Rows: vec.Range{From: 998, To: 2000}, Limit: 4}, span(998, 1002)},
		} {
			if got := collect(t, tab, c.spec); !slices.Equal(got, c.want) {
				t.Errorf("%v %+v: %d rows, want %d", uris, c.spec, len(got), len(c.want))
			}
		}
		if n, err := tab.Count(context.Background(), stoa.ScanSpec{}); n != 1500 || err != nil {
			t.Errorf("%d rows are counted, %v", n, err)
		}
		tab.Close()
	}
}

func TestSourcesThatDoNotFitAreRefused(t *testing.T) {
	m := store.NewMemory(map[string][]byte{"x.csv": []byte("a,b\n1,2\n")})
	numbers(t, m, "d", 0, 10)
	_, err := stoa.OpenAll(context.Background(), []string{"d", "x.csv"}, stoa.OpenOptions{Tree: m})
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "x.csv") {
		t.Errorf("%v", err)
	}
}

func TestConcurrentScans(t *testing.T) {
	m := store.NewMemory(nil)
	numbers(t, m, "d", 0, 5000)
	tab, err := stoa.Open(context.Background(), "d", stoa.OpenOptions{Tree: m})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	pool := stoa.NewPool()
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			var alloc memory.Allocator
			if k%2 == 0 {
				alloc = pool
			}
			if got := collect(t, tab, stoa.ScanSpec{Batch: 100 + k, Alloc: alloc}); !slices.Equal(got, span(0, 5000)) {
				t.Errorf("scan %d: %d rows", k, len(got))
			}
		})
	}
	wg.Wait()
}

// TestMetadataIsReadOnce: footers and indexes are read once per table; a second scan reads only data.
func TestMetadataIsReadOnce(t *testing.T) {
	m := store.NewMemory(nil)
	numbers(t, m, "d", 0, 50000)
	counter := store.NewCounter(m)
	tab, err := stoa.Open(context.Background(), "d", stoa.OpenOptions{Tree: counter})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	collect(t, tab, stoa.ScanSpec{Ahead: -1})
	first := len(counter.Reads())
	if n := counter.Opens("d/n.cfile"); n > 2 {
		t.Errorf("the file was opened %d times, once for metadata and once for data are enough", n)
	}
	data := map[store.Read]bool{}
	pages := 0
	counter.Reset()
	collect(t, tab, stoa.ScanSpec{Ahead: -1})
	for _, r := range counter.Reads() {
		if data[r] {
			t.Errorf("%+v was read twice in one scan", r)
		}
		data[r] = true
		pages++
		if size := int64(len(m.Bytes(r.Name))); r.Off+int64(r.Len) >= size-12 {
			t.Errorf("%+v reaches into the footer of a file of %d bytes", r, size)
		}
	}
	if pages == 0 || pages >= first {
		t.Errorf("the second scan made %d reads, the first, with the metadata, %d", pages, first)
	}
}

func TestForeignFilesAreNamed(t *testing.T) {
	m := store.NewMemory(map[string][]byte{
		"x.jsonl": []byte("null\n{\"a\":1}\n"),
		"x.orc":   []byte("ORC\x00\x01\x02 and more"),
		"x.avro":  []byte("Obj\x01 and more"),
		"noise":   {0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 1, 2, 3},
		"empty":   {},
	})
	for name, want := range map[string]string{"x.jsonl": "these are JSON lines, but a row is no object",
		"x.orc": "this is an ORC file", "x.avro": "this is an Avro data file", "noise": "bytes de ad be ef",
		"empty": "empty"} {
		_, err := stoa.Open(context.Background(), name, stoa.OpenOptions{Tree: m})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := stoa.Open(context.Background(), "missing", stoa.OpenOptions{Tree: m}); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestUnknownColumnNamesTheOthers(t *testing.T) {
	m := store.NewMemory(nil)
	numbers(t, m, "d", 0, 10)
	tab, err := stoa.Open(context.Background(), "d", stoa.OpenOptions{Tree: m})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	_, err = tab.ScanSchema(stoa.ScanSpec{Columns: []string{"N"}})
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `did you mean n`) {
		t.Errorf("%v", err)
	}
}

func TestWriterRefusesOtherBatches(t *testing.T) {
	ctx := context.Background()
	m := store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	w, err := stoa.Create(ctx, "x.cfile", sc, stoa.CreateOptions{Sink: m.Sink("x.cfile")})
	if err != nil {
		t.Fatal(err)
	}
	other := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int32}}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, other)
	defer rb.Release()
	rb.Field(0).(*array.Int32Builder).Append(1)
	b := rb.NewRecordBatch()
	defer b.Release()
	if err := w.Write(ctx, b); !errors.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
	if err := w.Abort(ctx); err != nil || len(m.Names()) != 0 {
		t.Errorf("%v, %v is left", err, m.Names())
	}
}

func TestConvertBetweenFormats(t *testing.T) {
	ctx := context.Background()
	m := store.NewMemory(nil)
	numbers(t, m, "start", 0, 3000)
	last := "start"
	for _, to := range []string{"arrow", "jsonl", "csv", "cfile"} {
		tab, err := stoa.Open(ctx, last, stoa.OpenOptions{Tree: m})
		if err != nil {
			t.Fatal(err)
		}
		next := "as-" + to + "." + to
		var sum format.Summary
		if sum, err = stoa.Convert(ctx, tab, stoa.ScanSpec{}, next,
			stoa.CreateOptions{To: to, Sink: m.Sink(next)}); err != nil {
			t.Fatalf("%s to %s: %v", last, to, err)
		}
		if sum.Rows != 3000 || sum.Bytes <= 0 {
			t.Errorf("%s: %+v", to, sum)
		}
		tab.Close()
		last = next
	}
	tab, err := stoa.Open(ctx, last, stoa.OpenOptions{Tree: m})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if got := collect(t, tab, stoa.ScanSpec{}); !slices.Equal(got, span(0, 3000)) {
		t.Errorf("%d rows after the round trip", len(got))
	}
}

// TestNullabilityIsThatOfAllSources: a column is nullable if it is nullable in any of several sources.
func TestNullabilityIsThatOfAllSources(t *testing.T) {
	ctx := context.Background()
	const dir = "corpus/kudu/1.18.1/matrix/"
	for _, uris := range [][]string{{dir + "binary_plain_no.ck.cfile", dir + "binary_plain_no_null.ck.cfile"},
		{dir + "binary_plain_no_null.ck.cfile", dir + "binary_plain_no.ck.cfile"}} {
		tab, err := stoa.OpenAll(ctx, uris, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sc, err := tab.ScanSchema(stoa.ScanSpec{})
		if err != nil || !sc.Field(0).Nullable {
			t.Errorf("%v: %v %v", uris, sc, err)
		}
		nulls := 0
		for b, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !b.Schema().Equal(sc) {
				t.Errorf("a batch of schema %v", b.Schema())
			}
			nulls += b.Column(0).NullN()
		}
		if nulls == 0 {
			t.Error("no nulls came")
		}
		m := store.NewMemory(nil)
		if _, err := stoa.Convert(ctx, tab, stoa.ScanSpec{}, "x.cfile",
			stoa.CreateOptions{Sink: m.Sink("x.cfile")}); err != nil {
			t.Fatal(err)
		}
		back, err := stoa.Open(ctx, "x.cfile", stoa.OpenOptions{Tree: m})
		if err != nil {
			t.Fatal(err)
		}
		n, err := back.Count(ctx, stoa.ScanSpec{Filter: pred.Test(back.Schema().Field(0).Name, pred.OpIsNull)})
		if err != nil || n != int64(nulls) {
			t.Errorf("%d nulls were written, %d come back, %v", nulls, n, err)
		}
		back.Close()
		tab.Close()
	}
}

func TestNullsWhereNoneMayBeAreRefused(t *testing.T) {
	ctx := context.Background()
	m := store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	w, err := stoa.Create(ctx, "x.jsonl", sc, stoa.CreateOptions{Sink: m.Sink("x.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(ctx)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	rb.Field(0).AppendNull()
	b := rb.NewRecordBatch()
	defer b.Release()
	if err := w.Write(ctx, b); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "column n") {
		t.Errorf("%v", err)
	}
}

// TestStatsAgreeWithKudusKeys: min and max in stats are the values that Kudu wrote to the footer of a key column.
func TestStatsAgreeWithKudusKeys(t *testing.T) {
	ctx := context.Background()
	for file, want := range map[string][2]string{
		"key_string/k.ck.cfile": {"", "kfeb41b21c1e19227\x00z"},
		"key_int32/k.ck.cfile":  {"-2133721183", "2140971833"},
	} {
		tab, err := stoa.Open(ctx, "corpus/kudu/1.18.1/"+file, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		st, err := tab.Stats(ctx, stoa.Fail, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{st[0].Min, st[0].Max}; got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
		tab.Close()
	}
}

// TestStatsOfSeveralSources: min and max cover all sources; decimals and booleans have an order, too.
func TestStatsOfSeveralSources(t *testing.T) {
	ctx := context.Background()
	m := store.NewMemory(nil)
	numbers(t, m, "d/a", 5, 1000)
	numbers(t, m, "d/b", -40, 3)
	tab, err := stoa.OpenAll(ctx, []string{"d/a", "d/b"}, stoa.OpenOptions{Tree: m})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	st, err := tab.Stats(ctx, stoa.Fail, nil)
	if err != nil || st[0].Min != "-40" || st[0].Max != "999" || st[0].Rows != 1038 || st[1].Min != "s-1" ||
		st[1].Max != "s9" {
		t.Errorf("%+v, %v", st, err)
	}
	dec, err := stoa.Open(ctx, "corpus/kudu/1.18.1/key_dec9/k.ck.cfile", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	if st, err = dec.Stats(ctx, stoa.Fail, nil); err != nil || st[0].Min == "" || st[0].Max == "" {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestKeyValuesAreLiterals(t *testing.T) {
	ctx := context.Background()
	tab, err := stoa.Open(ctx, kuduFile, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for _, v := range []string{"1 or value > 0", "value", "1 and true", "", "'x"} {
		if key, err := tab.ParseKey([]string{v}); !errors.Is(err, fault.Invalid) {
			t.Errorf("%q: %v %v", v, key, err)
		}
	}
	for _, v := range []any{"1", nil, pred.Null(), []int{1}, struct{}{}} {
		for b, err := range tab.Seek(ctx, []any{v}, stoa.ScanSpec{}) {
			if !errors.Is(err, fault.Invalid) {
				t.Errorf("%q: %v %v", v, b, err)
			}
		}
	}
}

// TestKeysAreTakenAsTheyAre: a key is matched literally, whatever it looks like.
func TestKeysAreTakenAsTheyAre(t *testing.T) {
	ctx := context.Background()
	texts := []string{"x", "'x'", "''", "", "x'6162'", "ab", "date '2024-01-01'", "2024-01-01", "a,b", ` "q" `,
		"null", "true", "--", "\n", "\x00", "\xff\xfe"}
	for _, typ := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.Binary} {
		name := filepath.Join(t.TempDir(), "t") + "/"
		w, err := stoa.Create(ctx, name, arrow.NewSchema([]arrow.Field{{Name: "k", Type: typ}}, nil),
			stoa.CreateOptions{To: "cfile"})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		b := array.NewRecordBuilder(memory.DefaultAllocator,
			arrow.NewSchema([]arrow.Field{{Name: "k", Type: typ}}, nil))
		for _, s := range texts {
			if typ.ID() == arrow.STRING && !utf8.ValidString(s) {
				continue
			}
			want = append(want, s)
			if typ.ID() == arrow.STRING {
				b.Field(0).(*array.StringBuilder).Append(s)
			} else {
				b.Field(0).(*array.BinaryBuilder).Append([]byte(s))
			}
		}
		if err := w.Write(ctx, b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
		tab, err := stoa.Open(ctx, name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		for _, s := range want {
			typed, err := tab.ParseKey([]string{s})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range [][]any{{s}, {[]byte(s)}, typed} {
				n := 0
				for b, err := range tab.Seek(ctx, key, stoa.ScanSpec{}) {
					if err != nil {
						t.Fatalf("%s %q (%T): %v", typ, s, key[0], err)
					}
					for i := range int(b.NumRows()) {
						n++
						if got := string(bytesAt(b.Column(0), i)); got != s {
							t.Errorf("%s: %q (%T) finds %q", typ, s, key[0], got)
						}
					}
				}
				if n != 1 {
					t.Errorf("%s: %q (%T) finds %d rows", typ, s, key[0], n)
				}
			}
		}
	}
}

func bytesAt(a arrow.Array, i int) []byte {
	if s, ok := a.(*array.String); ok {
		return []byte(s.Value(i))
	}
	return a.(*array.Binary).Value(i)
}

// TestDirectoriesOfOthersAreNotReplaced: a directory is replaced only if it contains nothing but a table that stoa
// wrote.
func TestDirectoriesOfOthersAreNotReplaced(t *testing.T) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	try := func(dir string) error {
		w, err := stoa.Create(ctx, dir+"/", sc, stoa.CreateOptions{To: "cfile"})
		if err != nil {
			return err
		}
		_, err = w.Close(ctx)
		return err
	}
	dir := filepath.Join(t.TempDir(), "mine")
	for range 2 { // created, then replaced
		if err := try(dir); err != nil {
			t.Fatal(err)
		}
	}
	thesis := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(thesis, []byte("all my work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(dir); err == nil {
		t.Error("a directory with a stranger's file was replaced")
	}
	if b, err := os.ReadFile(thesis); string(b) != "all my work" {
		t.Errorf("%q, %v", b, err)
	}
	os.Remove(thesis)
	os.WriteFile(filepath.Join(dir, "table.json"), []byte("{}"), 0o600)
	if err := try(dir); err == nil {
		t.Error("a table.json of somebody else was replaced")
	}
}

func TestContradictingOptionsAreRefused(t *testing.T) {
	m := store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	_, err := stoa.Create(context.Background(), "x.cfile", sc,
		stoa.CreateOptions{Sink: m.Sink("x.cfile"), Opts: map[string]string{"version": "1", "checksums": "true"}})
	if !errors.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}
