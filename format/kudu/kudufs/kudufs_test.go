package kudufs_test

import (
	"errors"
	"fmt"
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
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/kudufs"
)

// write writes batches of rows (k, s), whose key is both columns.
func write(t *testing.T, dir string, opts kudufs.WriteOptions, batches ...[][2]any) error {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "k", Type: arrow.PrimitiveTypes.Int32}}, nil)
	w, err := stoa.Create(t.Context(), dir, sc, stoa.CreateOptions{Formats: []format.Format{kudufs.Format},
		To: "kudu-fs", Typed: opts})
	if err != nil {
		return err
	}
	for _, rows := range batches {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for _, r := range rows {
			b.Field(0).(*array.Float64Builder).Append(float64(r[0].(int)) / 8)
			b.Field(1).(*array.StringBuilder).Append(r[1].(string))
			b.Field(2).(*array.Int32Builder).Append(int32(r[0].(int)))
		}
		rec := b.NewRecordBatch()
		if err := w.Write(t.Context(), rec); err != nil {
			return errors.Join(err, w.Abort(t.Context()))
		}
		rec.Release()
	}
	_, err = w.Close(t.Context())
	return err
}

// read returns the rows of a directory as "k s", in the order of the scan.
func read(t *testing.T, dir string) (out []string) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"k", "s", "v"}}) {
		if err != nil {
			t.Fatal(err)
		}
		k, s, v := b.Column(0).(*array.Int32), b.Column(1).(*array.String), b.Column(2).(*array.Float64)
		for i := range k.Len() {
			if v.Value(i) != float64(k.Value(i))/8 {
				t.Fatalf("key %d has value %v", k.Value(i), v.Value(i))
			}
			out = append(out, fmt.Sprintf("%d %s", k.Value(i), s.Value(i)))
		}
	}
	return out
}

// TestRowsInAnyOrder: unsorted rows are written once each, to the tablet of their hash bucket (verify checks that), in
// overlapping rowsets.
func TestRowsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, buckets := range []int{0, 0, 2, 2, 7, 7} {
		var want []string
		batches := make([][][2]any, 5)
		for i := range 2000 {
			s := strings.Repeat("x\x00y", i%3) + fmt.Sprint(i%7)
			batches[i%5] = append(batches[i%5], [2]any{i - 1000, s})
			want = append(want, fmt.Sprintf("%d %s", i-1000, s))
		}
		for _, b := range batches {
			r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
		dir := filepath.Join(t.TempDir(), "out")
		o := kudufs.WriteOptions{Table: "t", Key: []string{"k", "s"}, Buckets: buckets, RowSetSize: 1000,
			Manager: []string{"file", "log"}[i%2]}
		if err := write(t, dir, o, batches...); err != nil {
			t.Fatal(err)
		}
		got := read(t, dir)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d buckets: %d rows of %d", buckets, len(got), len(want))
		}
		for f, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{}) {
			if err != nil || f.Severity > 0 {
				t.Errorf("%d buckets: %v %v", buckets, f, err)
			}
		}
	}
}

// TestDuplicateKeys: two rows with the same key are refused, in one batch or in different rowsets, and no files are
// left.
func TestDuplicateKeys(t *testing.T) {
	rows := func(keys ...int) (out [][2]any) {
		for _, k := range keys {
			out = append(out, [2]any{k, "s"})
		}
		return out
	}
	for _, batches := range [][][][2]any{
		{rows(1, 2, 2, 3)},
		{rows(5, 1), rows(9, 7), rows(2, 7)},
		{rows(1, 9), rows(2, 8), rows(3, 9)},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		err := write(t, dir, kudufs.WriteOptions{Table: "t", Key: []string{"k", "s"}, RowSetSize: 1}, batches...)
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "primary key") {
			t.Errorf("%v: %v", batches, err)
		}
		if left, _ := filepath.Glob(filepath.Dir(dir) + "/*"); left != nil {
			t.Errorf("%v is left", left)
		}
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := write(t, dir, kudufs.WriteOptions{Table: "t", Key: []string{"k", "s"}, RowSetSize: 1},
		rows(1, 9), rows(2, 8), rows(3, 7)); err != nil {
		t.Errorf("overlapping rowsets: %v", err)
	}
}

// TestRefusedOptions: the error tells what is wrong with an option.
func TestRefusedOptions(t *testing.T) {
	for want, o := range map[string]kudufs.WriteOptions{
		"needs a name":       {Key: []string{"k"}},
		"primary key":        {Table: "t"},
		`columns named "q"`:  {Table: "t", Key: []string{"q"}},
		"named twice":        {Table: "t", Key: []string{"k", "k"}},
		`"v" cannot be in`:   {Table: "t", Key: []string{"v"}},
		"UUID@HOST:PORT":     {Table: "t", Key: []string{"k"}, Peers: []string{"a@b:1"}},
		"is not among them":  {Table: "t", Key: []string{"k"}, Peers: []string{id("a") + "@b:1"}, Server: id("c")},
		"hexadecimal digits": {Table: "t", Key: []string{"k"}, TableID: "abc"},
	} {
		if err := write(t, filepath.Join(t.TempDir(), "out"), o); !errors.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func id(digit string) string { return strings.Repeat(digit, 32) }

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
