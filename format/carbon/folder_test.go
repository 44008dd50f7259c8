package carbon_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestFolders: for any missing files of a directory of data files, the rows read and those reported as lost are the
// rows that an index or a data file has. If any are lost, nothing is read without a damage policy, and verify has an
// error in exactly these cases. Verify also reports every data file that no index names.
func TestFolders(t *testing.T) {
	whole := map[string][]byte{}
	for at, from := range map[string]string{"0_a": "v3/onerow/table", "0_b": "v3/lowcard_inv/table"} {
		tree := loaded(t, filepath.Join(golden2, from))
		for _, n := range tree.Names() {
			b := tree.Bytes(n)
			if strings.HasSuffix(n, ".carbonindex") || strings.HasSuffix(n, ".carbondata") {
				whole["t/"+at+filepath.Base(n)] = renamedIndex(n, at, b)
			}
		}
	}
	if len(whole) != 4 {
		t.Fatalf("got %d files", len(whole))
	}
	for mask := range 15 { // any of the four files are left out, but never all
		files, data, index := map[string][]byte{}, map[string]bool{}, map[string]bool{}
		for k, n := range store.NewMemory(whole).Names() {
			if mask>>k&1 == 1 {
				continue
			}
			files[n] = whole[n]
			which := strings.TrimPrefix(n, "t/")[:3]
			if strings.HasSuffix(n, ".carbondata") {
				data[which] = true
			} else {
				index[which] = true
			}
		}
		checkFolder(t, mask, store.NewMemory(files), data, index)
	}
}

// TestFolderOfOneLoad: a load that exceeds the maximum size of a data file is written to several with one index. All
// rows are read in the order in which they were written, verify has no findings, and if a file is missing exactly its
// rows are reported as lost, by the index.
func TestFolderOfOneLoad(t *testing.T) {
	const n = 11 * 32_000 // a data file ends with a page, which has 32,000 rows
	at := filepath.Join(t.TempDir(), "t") + "/"
	rec := wideRows(n)
	w, err := stoa.Create(t.Context(), at, rec.Schema(), stoa.CreateOptions{To: "carbon",
		Opts: map[string]string{"block-size": "1", "blocklet-size": "1", "sort-columns": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(at + "*.carbondata")
	if err != nil || len(files) <= 10 { // so that the names, sorted as strings, are not in row order
		t.Fatalf("got %d data files, %v", len(files), err)
	}
	tree := loaded(t, filepath.Dir(at))
	for i, id := range idsOf(t, tree, "t", stoa.ScanSpec{}) {
		if id != int32(i) {
			t.Fatalf("row %d: got key %d", i, id)
		}
	}
	for _, f := range verdict(t, tree) {
		if f.Severity >= region.Error {
			t.Error(f)
		}
	}
	for _, f := range []string{files[0], files[len(files)/2], files[len(files)-1]} {
		less := map[string][]byte{}
		for _, name := range tree.Names() {
			if filepath.Base(name) != filepath.Base(f) {
				less[name] = tree.Bytes(name)
			}
		}
		var lost int64
		own := len(idsOf(t, tree, "t/"+filepath.Base(f), stoa.ScanSpec{}))
		rest := len(idsOf(t, store.NewMemory(less), "t", stoa.ScanSpec{Damaged: stoa.SkipRows,
			Lost: func(l region.Loss) { lost += l.Rows[1] - l.Rows[0] }}))
		if own == 0 || rest+own != n || lost != int64(own) {
			t.Errorf("without %s: got %d rows, %d lost, want %d in all", filepath.Base(f), rest, lost, n)
		}
	}
}

// idsOf returns the values of the column id.
func idsOf(t *testing.T, tree store.Tree, place string, spec stoa.ScanSpec) (out []int32) {
	t.Helper()
	x, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	spec.Columns = []string{"id"}
	for rec, err := range x.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec.Column(0).(*array.Int32).Int32Values()...)
	}
	return out
}

// wideRows returns rows of a number and 48 hardly compressible characters.
func wideRows(n int) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "text", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
	defer b.Release()
	random := rand.New(rand.NewPCG(3, 0))
	for i := range n {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		var text []byte
		for range 3 {
			text = fmt.Appendf(text, "%016x", random.Uint64())
		}
		b.Field(1).(*array.StringBuilder).Append(string(text))
	}
	return b.NewRecordBatch()
}

// TestOptionsOfTables: options for tables are refused by name for a file, an index, or a directory of files.
func TestOptionsOfTables(t *testing.T) {
	dir := "t"
	tree := loaded(t, filepath.Join(golden2, "v3/onerow/table"))
	places := []string{dir}
	for _, n := range tree.Names() {
		if strings.HasSuffix(n, ".carbonindex") || strings.HasSuffix(n, ".carbondata") {
			places = append(places, n)
		}
	}
	if len(places) < 3 {
		t.Fatalf("only %v", places)
	}
	for _, p := range places {
		for k, v := range map[string]string{"": "", "segment": "0", "segments": "all", "deleted": "true",
			"positions": "true"} {
			o := stoa.OpenOptions{Tree: tree, Formats: []format.Format{carbon.Format}}
			if k != "" {
				o.Opts = map[string]string{k: v}
			}
			x, err := stoa.Open(t.Context(), p, o)
			if err == nil {
				x.Close()
			}
			if k == "" && err != nil || k != "" &&
				(!errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "option "+k+" ")) {
				t.Errorf("%s, %s=%s: %v", p, k, v, err)
			}
		}
	}
}

// renamedIndex prefixes the name of the data file in an index, and adjusts the length in front of it.
func renamedIndex(name, prefix string, b []byte) []byte {
	const first = "part-0-0"
	i := strings.Index(string(b), first)
	if !strings.HasSuffix(name, ".carbonindex") || i < 0 {
		return b
	}
	out := append([]byte(nil), b[:i]...)
	out[i-1] += byte(len(prefix))
	return append(append(out, prefix...), b[i:]...)
}

func checkFolder(t *testing.T, mask int, tree *store.Memory, data, index map[string]bool) {
	t.Helper()
	rows := map[string]int64{"0_a": 1, "0_b": 20000}
	var there, lost int64
	unnamed := 0
	for which := range rows {
		switch {
		case data[which]:
			there += rows[which]
			if len(index) > 0 && !index[which] {
				unnamed++
			}
		case index[which]:
			lost += rows[which]
		}
	}
	found := verdict(t, tree)
	if got := len(only(found, "carbon.index.missing")); got != unnamed {
		t.Errorf("%04b: verify: got %d files without an index, want %d", mask, got, unnamed)
	}
	if has(found, "carbon.segment.missing") != (lost > 0) {
		t.Errorf("%04b: verify: got %v for %d lost rows", mask, found, lost)
	}
	if len(data) == 2 { // of two tables; other tests check that each is read correctly
		return
	}
	_, got, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if lost > 0 && (!errors.Is(err, fault.Corrupt) || len(got) > 0) ||
		lost == 0 && (err != nil || int64(len(got)) != there) {
		t.Errorf("%04b: %d rows, %v, of %d, and %d lost", mask, len(got), err, there, lost)
	}
	for _, recover := range []bool{false, true} {
		reported, exact := int64(0), true
		_, got, err = read(t, "t", stoa.OpenOptions{Tree: tree, Recover: recover},
			stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) {
				reported, exact = reported+l.Rows[1]-l.Rows[0], exact && l.Exact
			}})
		if err != nil || int64(len(got)) != there || exact && reported != lost || !exact &&
			(lost == 0 || unnamed == 0) {
			t.Errorf("%04b, recover %v: got %d rows, %v, of %d, and %d (exact: %v) reported as lost of %d", mask,
				recover,
				len(got), err, there, reported, exact, lost)
		}
	}
}
