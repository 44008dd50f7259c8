package carbon_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/format/formattest"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// small returns the data files that the damage tests flip and cut.
func small(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range []string{"v3/onerow", "v3/float_specials", "v3/dates_ts",
		"managed/managed_complex/Fact/Part0/Segment_0", "managed/managed_gsort/Fact/Part0/Segment_0"} {
		for _, f := range filesBelow(t, filepath.Join(golden2, name)) {
			if strings.HasSuffix(f, ".carbondata") {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				out[name] = b
			}
		}
	}
	if len(out) != 5 {
		t.Fatalf("%d files", len(out))
	}
	return out
}

// inMemory reads a data file into memory.
func inMemory(t testing.TB, data []byte, spec stoa.ScanSpec) ([]line, error) {
	tree := store.NewMemory(map[string][]byte{"x.carbondata": data})
	_, rows, err := read(t, "x.carbondata", stoa.OpenOptions{Tree: tree, From: "carbon"}, spec)
	return rows, err
}

// placed checks that an error has a class and a position.
func placed(t *testing.T, what string, err error) {
	t.Helper()
	var e *fault.Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("%s: %v has no class", what, err)
	case e.Class != fault.Corrupt && e.Class != fault.Unsupported && e.Class != fault.Limit:
		t.Errorf("%s: %v", what, err)
	case e.At.Object == "":
		t.Errorf("%s: %v has no position", what, err)
	}
}

// TestFlips flips one bit of each byte of small files. Nothing panics, and errors have positions. Changed results
// without an error are counted, since CarbonData has no checksums; the test fails if they are more than three in five.
func TestFlips(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	files := small(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		right, err := inMemory(t, data, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(name, err)
		}
		var noticed, same, unnoticed int
		step := max(1, len(data)/150)
		for at := 0; at < len(data); at += step {
			bad := slices.Clone(data)
			bad[at] ^= 1 << r.IntN(8)
			rows, err := inMemory(t, bad, stoa.ScanSpec{})
			switch {
			case err != nil:
				placed(t, fmt.Sprintf("%s, byte %d", name, at), err)
				noticed++
			case differ(rows, right, false) == "":
				same++
			default:
				tree := store.NewMemory(map[string][]byte{"x.carbondata": bad})
				if len(findings(t, tree, "x.carbondata")) > 0 {
					noticed++
				} else {
					unnoticed++
				}
			}
		}
		t.Logf("%s: %d are errors, %d change nothing, %d change the result without an error", name, noticed,
			same, unnoticed)
		if unnoticed*5 > 3*(noticed+same+unnoticed) {
			t.Errorf("%s: got more than three of five flips with another result and no error", name)
		}
	}
}

// TestCuts: a file that is truncated at any offset is an error.
func TestCuts(t *testing.T) {
	for name, data := range small(t) {
		step := max(1, len(data)/250)
		for n := 0; n < len(data); n += step {
			if _, err := inMemory(t, data[:n], stoa.ScanSpec{}); err == nil {
				t.Errorf("%s truncated to %d of %d bytes: got no error, want one", name, n, len(data))
			} else {
				placed(t, fmt.Sprintf("%s cut at %d", name, n), err)
			}
		}
	}
}

// TestPolicies: if a page is damaged the rest is read, and the manifest lists what is lost.
func TestPolicies(t *testing.T) {
	data := small(t)["v3/dates_ts"]
	right, err := inMemory(t, data, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	page := firstPage(t, data)
	bad := slices.Clone(data)
	for i := page.Off; i < page.End(); i++ {
		bad[i] = 0xff
	}
	if _, err := inMemory(t, bad, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
	var lost []region.Loss
	rows, err := inMemory(t, bad, stoa.ScanSpec{Damaged: stoa.NullCells,
		Lost: func(l region.Loss) { lost = append(lost, l) }})
	if err != nil || len(rows) != len(right) || len(lost) != 1 || lost[0].Rows != [2]int64{0, int64(len(right))} {
		t.Fatalf("%d rows, %v, lost %v", len(rows), err, lost)
	}
	for i := range rows {
		rows[i][lost[0].Column] = right[i][lost[0].Column]
	}
	if d := differ(rows, right, false); d != "" {
		t.Error(d)
	}
}

// firstPage returns the span of the first page's data.
func firstPage(t testing.TB, data []byte) fault.Span {
	tree := store.NewMemory(map[string][]byte{"x.carbondata": data})
	for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: "x.carbondata"},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Name == "data" && n.Depth == 4 {
			return n.At
		}
	}
	t.Fatal("no page")
	return fault.Span{}
}

// TestLostDeletes: a missing or damaged delete delta or update status is an error; deleted rows never reappear.
func TestLostDeletes(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed_del"))
	open := func() error {
		_, _, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, name := range tree.Names() {
		if !strings.HasSuffix(name, "1795249942958") && !strings.HasSuffix(name, "1795249942958.deletedelta") {
			continue
		}
		ran++
		was := tree.Bytes(name)
		tree.Put(name, was[:len(was)/2])
		if err := open(); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s truncated: got %v, want corrupt", name, err)
		}
		tree.Put(name, was)
	}
	if ran != 2 {
		t.Errorf("got %d files truncated", ran)
	}
}

// loaded reads a directory into memory, as t/….
func loaded(t testing.TB, dir string) *store.Memory {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		files["t/"+filepath.ToSlash(rel)] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return store.NewMemory(files)
}

// TestLaws: projecting, filtering and reading a range of rows return the same as scanning everything and selecting from
// it. The batch size does not change the rows.
func TestLaws(t *testing.T) {
	for _, name := range []string{"v3/lowcard_inv/table", "v3/complex_nested/table", "v3/complex_map/table",
		"managed/managed_del", "managed/managed_part", "managed/managed_alter", "v3/allprim_zstd/table"} {
		place := filepath.Join(golden2, name)
		sc, all, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{1, 7, 1000} {
			if batch == 1 && len(all) > 3000 {
				continue
			}
			_, rows, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{Batch: batch})
			if err != nil || differ(rows, all, false) != "" {
				t.Errorf("%s in batches of %d: %v %s", name, batch, err, differ(rows, all, false))
			}
		}
		for _, r := range []vec.Range{{From: 0, To: 1}, {From: int64(len(all)) / 3, To: int64(len(all)) / 2},
			{From: int64(len(all)) - 1, To: int64(len(all))}} {
			_, rows, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{Rows: r})
			if err != nil || differ(rows, all[r.From:r.To], false) != "" {
				t.Errorf("%s, rows %v: %v %s", name, r, err, differ(rows, all[r.From:r.To], false))
			}
		}
		for _, f := range sc.Fields() {
			_, rows, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{Columns: []string{f.Name}})
			want := make([]line, len(all))
			for i := range all {
				want[i] = line{f.Name: all[i][f.Name]}
			}
			if d := differ(rows, want, false); err != nil || d != "" {
				t.Errorf("%s, column %s: %v %s", name, f.Name, err, d)
			}
			if !arrow.IsNested(f.Type.ID()) {
				filtered(t, place, f, all)
			}
		}
	}
}

// filtered compares filters on a column, with values that occur in it, with selecting from all rows.
func filtered(t *testing.T, place string, f arrow.Field, all []line) {
	seen := map[string]bool{}
	for i := 0; i < len(all) && len(seen) < 6; i += 1 + len(all)/40 {
		v := all[i][f.Name]
		if seen[v] {
			continue
		}
		seen[v] = true
		where := literal(f, v)
		e, err := pred.Parse(where)
		if err != nil {
			t.Fatal(where, err)
		}
		_, rows, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{Filter: e})
		var want []line
		for _, l := range all {
			if l[f.Name] == v {
				want = append(want, l)
			}
		}
		if d := differ(rows, want, false); err != nil || d != "" {
			t.Errorf("%s where %s: %v %s", place, where, err, d)
		}
	}
}

// literal returns the predicate f = v, where v is the text of a cell.
func literal(f arrow.Field, v string) string {
	name := `"` + f.Name + `"`
	if v == "null" {
		return name + " is null"
	}
	switch f.Type.ID() {
	case arrow.STRING:
		var s string
		fmt.Sscanf(v, "%q", &s)
		return name + " = '" + strings.ReplaceAll(s, "'", "''") + "'"
	case arrow.BINARY:
		return name + " = x'" + v + "'"
	case arrow.DATE32:
		return name + " = date '" + v + "'"
	case arrow.TIMESTAMP:
		return name + " = timestamp '" + v + "Z'"
	}
	return name + " = " + v
}

// TestWant: a page of a real file that is decoded for some entries only still has all its entries, and the wanted ones
// are equal to those of the completely decoded page.
func TestWant(t *testing.T) {
	pages := 0
	for _, table := range []string{"v3/allprim_zstd/table", "v3/decimals/table", "v3/lowcard_inv/table"} {
		r, err := carbon.Format.Open(t.Context(),
			format.Target{Tree: store.Local{}, Name: filepath.Join(golden2, table)}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eachPage(t, r, func(col int, c format.Chunk, p format.Page, dict *vec.Vector) {
			pages++
			if p.Entries != p.Rows || p.First < 0 {
				t.Fatal(p)
			}
			bits := make([]byte, (p.Entries+7)/8)
			for i := range bits {
				bits[i] = byte(0x9d * (i + 1))
			}
			want := vec.NewSel(bits, int(p.Entries))
			whole, some := decoded(t, r, col, c, p, dict, nil), decoded(t, r, col, c, p, dict, want)
			if whole.Len() != int(p.Entries) || some.Len() != whole.Len() {
				t.Fatalf("%s column %d: %d and %d entries of %d", table, col, whole.Len(), some.Len(), p.Entries)
			}
			for i := range whole.Len() {
				if want.Has(i) && cell(whole, i) != cell(some, i) {
					t.Fatalf("%s column %d entry %d: got %s, want %s", table, col, i, cell(whole, i), cell(some, i))
				}
			}
		})
		r.Close()
	}
	if pages < 30 {
		t.Errorf("%d pages", pages)
	}
}

// eachPage calls f for every page of every column.
func eachPage(t *testing.T, r format.Reader, f func(col int, c format.Chunk, p format.Page, dict *vec.Vector)) {
	t.Helper()
	fatal := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for p, err := range r.Parts(t.Context(), format.Query{}) {
		fatal(err)
		groups, err := r.RowGroups(t.Context(), p, format.Query{})
		fatal(err)
		for _, g := range groups {
			for col := range r.Columns() {
				c, err := r.Chunk(t.Context(), g, col, vec.Range{To: g.Rows})
				fatal(err)
				var dict *vec.Vector
				if d, ok := c.Dict(); ok {
					dict = vector(t, r, col, c, d, nil, nil)
				}
				for {
					page, err := c.Next(t.Context())
					if err == io.EOF {
						break
					}
					fatal(err)
					f(col, c, page, dict)
				}
			}
		}
	}
}

// vector decodes a page.
func vector(t *testing.T, r format.Reader, col int, c format.Chunk, p format.Page, dict *vec.Vector,
	want *vec.Sel) *vec.Vector {
	t.Helper()
	v, err := vec.New(r.Columns()[col].Type, arrowmem.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	task := format.Task{Page: p, N: p.Entries, Dict: dict, Want: want, Scratch: &vec.Arena{},
		Limits: format.Limits{}.WithDefaults()}
	for _, at := range p.Spans {
		b, err := os.ReadFile(at.Object)
		if err != nil {
			t.Fatal(err)
		}
		task.Bytes = append(task.Bytes, b[at.Off:at.End()])
	}
	if err := c.Decode(&task, v); err != nil {
		t.Fatalf("column %d page %d: %v", col, p.Ordinal, err)
	}
	return v
}

// decoded decodes a page to an array.
func decoded(t *testing.T, r format.Reader, col int, c format.Chunk, p format.Page, dict *vec.Vector,
	want *vec.Sel) arrow.Array {
	t.Helper()
	v := vector(t, r, col, c, p, dict, want)
	a, err := v.Emit(v.Len())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func FuzzFile(f *testing.F) {
	for _, b := range small(f) {
		f.Add(b)
	}
	tree, file, _ := streamed(f)
	f.Add(tree.Bytes(file))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer formattest.Bound(t, 640<<20)()
		if len(b) > 1<<16 {
			return
		}
		_, err := inMemory(t, b, stoa.ScanSpec{Damaged: stoa.NullCells})
		if err != nil {
			placed(t, "file", err)
		}
		tree := store.NewMemory(map[string][]byte{"x.carbondata": b})
		findings(t, tree, "x.carbondata")
		for range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: "x.carbondata"},
			format.DescribeOptions{Pages: true}) {
		}
	})
}
