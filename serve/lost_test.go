package serve_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa/serve"
)

// modelRows is how many rows the tables of these tests have. That of number k has k; its square, null if k % 7 is 3; a
// text; and p, which is k / 200.
const modelRows = 1200

var modelColumns = []string{"k", "m", "s", "p"}

// modelCell is a cell of the row k; null, for null.
func modelCell(k int64, column string) string {
	switch column {
	case "k":
		return fmt.Sprint(k)
	case "p":
		return fmt.Sprint(k / 200)
	case "s":
		return fmt.Sprintf("text %d of some length %d", k, k*7919%1000)
	}
	if k%7 == 3 {
		return "null"
	}
	return fmt.Sprint(k * k)
}

// modelTables are tables with the rows of the model, of formats whose pages have checksums, as many small pages.
func modelTables(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	var b bytes.Buffer
	b.WriteString(strings.Join(modelColumns, ",") + "\n")
	for k := range int64(modelRows) {
		for i, c := range modelColumns {
			b.WriteString(strings.Repeat(",", min(i, 1)) + strings.TrimSuffix(modelCell(k, c), "null"))
		}
		b.WriteByte('\n')
	}
	source := filepath.Join(dir, "model.csv")
	if err := os.WriteFile(source, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]string{
		"groups.parquet": {"--opt", "row-group-rows=100", "--opt", "page-rows=40"},
		"pages.parquet":  {"--opt", "page-rows=100"},
		"t.red":          {"--opt", "row-group-rows=100", "--opt", "page-size=300"},
		"t.trv":          {"--opt", "block-size=1000"},
		"columns":        {"--to", "cfile", "--opt", "block-size=1000"},
		"lake":           {"--to", "iceberg", "--opt", "partition-by=p", "--opt", "page-rows=50"},
		"delta":          {"--to", "delta", "--opt", "partition-by=p", "--opt", "page-rows=50"},
	} {
		args := append([]string{"convert", "-q", source, "--source-opt", "header=true", "-o",
			filepath.Join(dir, name)}, opts...)
		if status := run(t, args...); status != 0 {
			t.Fatalf("%v ended with %d", args, status)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return dir, names
}

// lossOf is what an answer says of what it lacks.
type lossOf struct {
	Lost []struct {
		From, To             *int64
		Where, Column, Error string
	}
	LostMore bool `json:"lost_more"`
	Noticed  []string
}

// takes reports whether a cell is said to be lost; column "": its whole row.
func (l *lossOf) takes(at int64, column string) bool {
	for _, x := range l.Lost {
		if x.From != nil && *x.From <= at && at < *x.To && (x.Column == "" || x.Column == column) {
			return true
		}
	}
	return false
}

// unplaced reports whether rows are said to be lost whose positions are not known.
func (l *lossOf) unplaced() bool {
	for _, x := range l.Lost {
		if x.From == nil {
			return true
		}
	}
	return l.LostMore || len(l.Noticed) > 0
}

// alteredOf says how many cells of a column are not shown as they are.
type alteredOf struct {
	Column string
	Cells  int64
}

type windowOf struct {
	Columns    []struct{ Name string }
	Total      *int64
	From, Next int64
	End        bool
	Rows       [][]*string
	At         []int64
	Altered    []alteredOf
	Recovered  bool // its rows are those that recovery found: their positions are not those of the whole table
	lossOf
}

// rowOf returns the number of a row by one of its cells; -1: it has none that tells.
func (w *windowOf) rowOf(row []*string) int64 {
	for i, c := range w.Columns {
		var k int64
		switch {
		case row[i] == nil || c.Name == "p":
			continue
		case c.Name == "s":
			fmt.Sscanf(*row[i], "text %d ", &k)
		case c.Name == "k":
			fmt.Sscan(*row[i], &k)
		default:
			fmt.Sscan(*row[i], &k)
			k = int64(math.Sqrt(float64(k)))
		}
		return k
	}
	return -1
}

// damage changes a file of a table at random: bits, some bytes that become others, or an end that is missing.
func damage(t *testing.T, r *rand.Rand, table string) string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(table, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := files[r.IntN(len(files))]
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		return name
	}
	switch r.IntN(5) {
	case 0:
		b = b[:r.IntN(len(b))]
	case 1:
		from := r.IntN(len(b))
		for i := from; i < min(len(b), from+1+r.IntN(2000)); i++ {
			b[i] = byte(r.IntN(256))
		}
	default:
		for range 1 + r.IntN(6) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	}
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// eachDamaged calls f with damaged copies of the tables of the model, and the numbers of their rows in order.
func eachDamaged(t *testing.T, seed uint64, rounds int, f func(t *testing.T, s *serve.Server, r *rand.Rand, name string,
	order []int64)) {
	dir, names := modelTables(t)
	whole := newServer(t, nil, dir)
	work := t.TempDir()
	s := newServer(t, nil, work)
	for _, name := range names {
		all := answer[windowOf](t, whole, api("rows", "name", filepath.Join(dir, name), "n", "1000"))
		rest := answer[windowOf](t, whole, api("rows", "name", filepath.Join(dir, name), "n", "1000", "from", "1000"))
		order := make([]int64, modelRows)
		for i, row := range append(all.Rows, rest.Rows...) {
			k, err := strconv.ParseInt(*row[slices.IndexFunc(all.Columns, isNamed("k"))], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			order[i] = k
		}
		if seen := slices.Sorted(slices.Values(order)); seen[0] != 0 || seen[modelRows-1] != modelRows-1 {
			t.Fatalf("%s: rows %d to %d", name, seen[0], seen[modelRows-1])
		}
		for round := range rounds {
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			copied := filepath.Join(work, fmt.Sprintf("%d-%s", round, name))
			if err := copyAll(filepath.Join(dir, name), copied); err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%s/%d", name, round), func(t *testing.T) {
				t.Logf("damaged: %s", damage(t, r, copied))
				f(t, s, r, copied, order)
			})
			if err := os.RemoveAll(copied); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func isNamed(name string) func(struct{ Name string }) bool {
	return func(c struct{ Name string }) bool { return c.Name == name }
}

func copyAll(from, to string) error {
	if st, err := os.Stat(from); err != nil || st.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o666)
}

// asked decodes an answer; false: it is an error that says why.
func asked[T any](t *testing.T, s *serve.Server, path string) (doc T, ok bool) {
	t.Helper()
	w := get(s, path)
	var e struct{ Error, Class string }
	if w.Code != http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == "" || w.Code >= 500 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return doc, false
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return doc, true
}

// rounds is how often each table is damaged.
func rounds(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

// TestLostCellsAreMarked: of a damaged table, every position has its row, or is said to be lost; and every cell that is
// shown is that of the model, or it is empty and said to be lost, by its position or in words.
func TestLostCellsAreMarked(t *testing.T) {
	marked, rows := 0, 0
	eachDamaged(t, 27, rounds(4, 60), func(t *testing.T, s *serve.Server, r *rand.Rand, name string, order []int64) {
		for next, end := int64(0), false; !end; {
			w, ok := asked[windowOf](t, s, api("rows", "name", name, "from", fmt.Sprint(next), "n",
				fmt.Sprint(1+r.IntN(1000))))
			if !ok {
				return
			}
			if w.Next <= next && !w.End {
				t.Fatalf("row %d: the next window begins at %d", next, w.Next)
			}
			if (w.Recovered || w.End && w.Next < modelRows) && !w.unplaced() {
				t.Fatalf("it ends at row %d, and nothing is said", w.Next)
			}
			if w.At == nil && len(w.Rows) > 0 && !w.unplaced() {
				t.Errorf("rows %d to %d have no positions", w.From, w.Next)
			}
			for i, row := range w.Rows {
				if i >= len(w.At) {
					break
				}
				at := w.At[i]
				k := order[at]
				if w.Recovered || w.unplaced() { // others may be missing before it
					k = w.rowOf(row)
				}
				rows++
				for c, column := range w.Columns {
					want, took := modelCell(k, column.Name), w.takes(at, column.Name)
					switch {
					case row[c] == nil && (took || want == "null" || w.unplaced()):
					case row[c] == nil:
						t.Fatalf("row %d, %s: it is empty, want %s; said: %+v", at, column.Name, want, w.lossOf)
					case *row[c] != want:
						t.Fatalf("row %d, %s: %s, want %s; said: %+v", at, column.Name, *row[c], want, w.lossOf)
					case took:
						t.Fatalf("row %d, %s: %s, and said to be lost", at, column.Name, *row[c])
					}
					if took {
						marked++
					}
				}
			}
			for at := w.From; at < min(w.Next, modelRows) && w.At != nil; at++ {
				if !slices.Contains(w.At, at) && !w.takes(at, "") && !w.unplaced() {
					t.Fatalf("row %d is missing, and nothing is said", at)
				}
			}
			next, end = w.Next, w.End
		}
	})
	if rows < 1000 || marked < 100 {
		t.Errorf("%d rows, %d lost cells: the test shows little", rows, marked)
	}
	t.Logf("%d rows, %d lost cells", rows, marked)
}

// TestSearchTellsWhatIsLost: what a filter finds in a damaged table (in Rows, by a search, and counted by Explain) and
// the rows that are said to be lost are together at least all that it finds in the whole one, and all that is found
// passes there.
func TestSearchTellsWhatIsLost(t *testing.T) {
	found, lost := 0, 0
	eachDamaged(t, 28, rounds(4, 60), func(t *testing.T, s *serve.Server, r *rand.Rand, name string, order []int64) {
		from := r.Int64N(modelRows)
		to := min(modelRows-1, from+r.Int64N(90))
		where, column, is := fmt.Sprintf("k >= %d and k <= %d", from, to), "k", func(k int64) bool {
			return k >= from && k <= to
		}
		switch r.IntN(3) {
		case 0:
			where, column = fmt.Sprintf("m >= %d and m <= %d", from*from, to*to), "m"
			is = func(k int64) bool { return k >= from && k <= to && k%7 != 3 }
		case 1:
			where, column = fmt.Sprintf("s like 'text %d%%'", from), "s"
			is = func(k int64) bool { return strings.HasPrefix(modelCell(k, "s"), fmt.Sprintf("text %d", from)) }
		}
		hits := map[int64]bool{} // positions
		for at, k := range order {
			if is(k) {
				hits[int64(at)] = true
			}
		}
		covered := func(what string, got map[int64]bool, n int64, l *lossOf) {
			for at := range got {
				if !hits[at] {
					t.Fatalf("%s: row %d does not pass %s", what, at, where)
				}
			}
			for at := range hits {
				took := l.takes(at, column)
				if took {
					lost++
				}
				if got != nil && !got[at] && !took && !l.unplaced() {
					t.Fatalf("%s: row %d passes %s, and is neither found nor told as lost: %+v", what, at, where, *l)
				}
				if took && got[at] {
					t.Fatalf("%s: row %d was found, and its %s is told as lost", what, at, column)
				}
				if took {
					n++
				}
			}
			if n < int64(len(hits)) && !l.unplaced() {
				t.Fatalf("%s: %d rows, with those lost, of %d that pass %s: %+v", what, n, len(hits), where, *l)
			}
		}
		if got, all, ok := filtered(t, s, name, where, order); ok {
			found += len(got)
			covered("rows", got, int64(len(got)), all)
		}
		type readsOf struct {
			Rows int64
			lossOf
		}
		if d, ok := asked[readsOf](t, s, api("reads", "name", name, "where", where)); ok {
			covered("explain", nil, d.Rows, &d.lossOf)
		}
		type searchOf struct {
			Rows []int64
			Cut  bool
			lossOf
		}
		d, ok := asked[searchOf](t, s, api("search", "name", name, "q", where))
		if !ok || d.Cut {
			return
		}
		got := map[int64]bool{}
		for _, at := range d.Rows {
			got[at] = true
		}
		if d.unplaced() {
			return // positions count other rows
		}
		covered("search", got, int64(len(got)), &d.lossOf)
	})
	if found < 100 || lost < 20 {
		t.Errorf("%d rows were found, %d lost: the test shows little", found, lost)
	}
	t.Logf("%d rows were found, %d lost", found, lost)
}

// filtered returns the positions of the rows that pass a filter, by their k, and what is said to be lost.
func filtered(t *testing.T, s *serve.Server, name, where string, order []int64) (got map[int64]bool, all *lossOf,
	ok bool) {
	got, all = map[int64]bool{}, &lossOf{}
	for next := int64(0); ; {
		w, ok := asked[windowOf](t, s, api("rows", "name", name, "where", where, "from", fmt.Sprint(next)))
		if !ok {
			return nil, nil, false
		}
		all.Lost, all.Noticed = append(all.Lost, w.Lost...), append(all.Noticed, w.Noticed...)
		all.LostMore = all.LostMore || w.LostMore
		for _, row := range w.Rows {
			if k := w.rowOf(row); k >= 0 {
				got[int64(slices.Index(order, k))] = true
			}
		}
		if next = w.Next; w.End {
			return got, all, true
		}
	}
}

// TestExportOfDamagedTables: an export of a damaged table gives the rows that are whole, or all with null for lost
// cells, if it is asked to: every one is a row of the model, the name of the file says so, and the trailer that some
// are missing. Unasked, it fails.
func TestExportOfDamagedTables(t *testing.T) {
	saved, failed := 0, 0
	eachDamaged(t, 29, rounds(3, 20), func(t *testing.T, s *serve.Server, r *rand.Rand, name string, order []int64) {
		of := func(policy string) (rows [][]string, said string) {
			w := get(s, api("export", "name", name, "form", "csv", "damaged", policy))
			if w.Code != http.StatusOK {
				return nil, ""
			}
			rows, err := csv.NewReader(w.Body).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(w.Header().Get("Content-Disposition"), policy) {
				t.Errorf("%s: %v", policy, w.Header())
			}
			return rows, w.Result().Trailer.Get("Stoa-Lost")
		}
		whole := false
		for _, policy := range []string{"skip-rows", "null-cells"} {
			rows, said := of(policy)
			if rows == nil {
				failed++
				continue
			}
			seen := map[int64]bool{}
			for _, row := range rows[1:] {
				w := &windowOf{}
				cells := make([]*string, len(row))
				for i, c := range rows[0] {
					w.Columns = append(w.Columns, struct{ Name string }{c})
					if row[i] != "" {
						cells[i] = &row[i]
					}
				}
				k := w.rowOf(cells)
				if k >= 0 && seen[k] {
					t.Fatalf("%s: row %d comes twice", policy, k)
				}
				for seen[k] = true; k >= 0 && len(w.Columns) > 0; w.Columns, cells = w.Columns[1:], cells[1:] {
					want := modelCell(k, w.Columns[0].Name)
					if cells[0] == nil && (want == "null" || policy == "null-cells" && said != "") {
						continue
					}
					if cells[0] == nil || *cells[0] != want {
						t.Fatalf("%s: row %d, %s: not %s; said: %q", policy, k, w.Columns[0].Name, want, said)
					}
				}
				saved++
			}
			if len(rows)-1 < modelRows && said == "" {
				t.Fatalf("%s: %d rows, and nothing is said", policy, len(rows)-1)
			}
			w := get(s, api("export", "name", name, "form", "csv"))
			if policy == "skip-rows" { // an index of values can be damaged, on which no row depends
				whole = len(rows) == modelRows+1
			}
			n := bytes.Count(w.Body.Bytes(), []byte("\n"))
			if said != "" && w.Code == http.StatusOK && n > modelRows && !whole {
				t.Errorf("unasked, %d lines are exported of a table that is not whole: %s", n, said)
			}
		}
	})
	if saved < 1000 {
		t.Errorf("%d rows were saved, %d exports failed: the test shows little", saved, failed)
	}
	t.Logf("%d rows were saved, %d exports failed", saved, failed)
}

// TestStatsOfLargeAndManyColumns: the figures of many columns come in time, and the bounds of large values are cut.
func TestStatsOfLargeAndManyColumns(t *testing.T) {
	dir := t.TempDir()
	var head, row strings.Builder
	for c := range 3000 {
		fmt.Fprintf(&head, "c%d,", c)
		fmt.Fprintf(&row, "%d,", c*7)
	}
	large := strings.Repeat("é", 1<<20)
	text := head.String() + "large\n" + strings.Repeat(row.String()+large+"\n", 2)
	source := filepath.Join(dir, "wide.csv")
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "wide.parquet")
	if status := run(t, "convert", "-q", source, "--source-opt", "header=true", "-o", name,
		"--opt", "row-group-rows=1"); status != 0 {
		t.Fatal(status)
	}
	s := newServer(t, nil, dir)
	d := answer[struct {
		Status int
		Doc    []struct {
			Column   string
			Rows     int64
			Min, Max string
		}
	}](t, s, api("command", "verb", "stats", "name", name))
	if d.Status != 0 || len(d.Doc) != 3001 {
		t.Fatalf("status %d, %d columns", d.Status, len(d.Doc))
	}
	for c, x := range d.Doc[:3000] {
		if x.Column != fmt.Sprintf("c%d", c) || x.Rows != 2 || x.Min != fmt.Sprint(c*7) || x.Max != x.Min {
			t.Fatalf("%+v", x)
		}
	}
	if x := d.Doc[3000]; len(x.Min) > 400 || !strings.HasPrefix(large, strings.TrimSuffix(x.Min, "…")) ||
		!strings.HasSuffix(x.Min, "…") {
		t.Errorf("min has %d bytes: %.40q", len(x.Min), x.Min)
	}
}

// TestColumnWithoutName: a column whose name is empty has values like any other.
func TestColumnWithoutName(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "t.jsonl")
	if err := os.WriteFile(name, []byte("{\"\":7,\"a\":1}\n{\"\":9,\"a\":2}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, nil, dir)
	d := answer[struct {
		Rows, Distinct int64
		Lo, Hi         string
	}](t, s, api("values", "name", name, "column", `""`))
	if d.Rows != 2 || d.Distinct != 2 || d.Lo != "7" || d.Hi != "9" {
		t.Errorf("%+v", d)
	}
}
