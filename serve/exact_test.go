package serve_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// exactColumns are the values of a column as they are written: those that floating point, or a few first bytes, cannot
// tell apart.
type exactColumns struct {
	whole  []int64
	huge   []uint64
	names  []string
	long   []string
	floats []float64
	bytes  [][]byte
	yes    []bool
}

const exactRows = 4000

func newExactColumns() (c exactColumns) {
	r := rand.New(rand.NewPCG(27, 1))
	special := []float64{math.Inf(1), math.Inf(-1), math.NaN()}
	for i := range exactRows {
		c.whole = append(c.whole, 1<<53+r.Int64N(3000))
		c.huge = append(c.huge, math.MaxUint64-r.Uint64N(100_000))
		c.names = append(c.names, fmt.Sprintf("customer-%05d", i/3)) // ascending
		c.long = append(c.long, strings.Repeat("é", 150)+fmt.Sprint(r.IntN(40)))
		x := r.NormFloat64()
		if r.IntN(9) == 0 {
			x = special[r.IntN(3)]
		}
		c.floats = append(c.floats, x)
		c.bytes = append(c.bytes, bytes.Repeat([]byte{0xff}, 1+r.IntN(5)))
		c.yes = append(c.yes, r.IntN(2) == 0)
	}
	return c
}

// write writes the columns as an Arrow file.
func (c *exactColumns) write(t *testing.T, name string) {
	t.Helper()
	lists := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64, arrow.BinaryTypes.String,
		arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.Binary,
		arrow.FixedWidthTypes.Boolean, lists}
	var fields []arrow.Field
	for i, n := range []string{"whole", "huge", "names", "long", "floats", "bytes", "yes", "lists"} {
		fields = append(fields, arrow.Field{Name: n, Type: types[i]})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(c.whole, nil)
	b.Field(1).(*array.Uint64Builder).AppendValues(c.huge, nil)
	b.Field(2).(*array.StringBuilder).AppendValues(c.names, nil)
	b.Field(3).(*array.StringBuilder).AppendValues(c.long, nil)
	b.Field(4).(*array.Float64Builder).AppendValues(c.floats, nil)
	b.Field(5).(*array.BinaryBuilder).AppendValues(c.bytes, nil)
	b.Field(6).(*array.BooleanBuilder).AppendValues(c.yes, nil)
	for i := range exactRows {
		l := b.Field(7).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).Append(int32(i))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(batch.Schema()))
	if err == nil {
		err = w.Write(batch)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

type exactDoc struct {
	Distinct, Up, Down int
	Lo, Hi             string
	Top                []struct {
		Value string
		N     int
	}
	Histogram *struct {
		What, Lo, Hi string
		From, To     float64
		Counts       []int64
		Of           int64
	}
	Bands []struct {
		From, To int
		Min, Max *float64
		Lo, Hi   string
	}
}

// checkExact compares a column's document with what was written: the bounds of every band and of all, how many values
// are different, the most frequent, and the bands that are in order.
func checkExact[T any](t *testing.T, d exactDoc, values []T, compare func(a, b T) int, text func(T) string) {
	t.Helper()
	var los, his []T
	for _, b := range d.Bands {
		some := values[b.From:b.To]
		lo, hi := slices.MinFunc(some, compare), slices.MaxFunc(some, compare)
		if b.Lo != text(lo) || b.Hi != text(hi) {
			t.Fatalf("rows %d to %d: got %q to %q, want %q to %q", b.From, b.To, b.Lo, b.Hi, text(lo), text(hi))
		}
		los, his = append(los, lo), append(his, hi)
	}
	up, down := 0, 0
	for i := 1; i < len(los); i++ {
		if compare(los[i], his[i-1]) >= 0 {
			up++
		}
		if compare(his[i], los[i-1]) <= 0 {
			down++
		}
	}
	if d.Up != up || d.Down != down {
		t.Errorf("%d bands begin where the one before ends, and %d end where it begins: want %d and %d", d.Up, d.Down,
			up, down)
	}
	if lo, hi := text(slices.MinFunc(los, compare)), text(slices.MaxFunc(his, compare)); d.Lo != lo || d.Hi != hi {
		t.Errorf("got %q to %q, want %q to %q", d.Lo, d.Hi, lo, hi)
	}
}

// TestExactValues: what Values says of a column is true of its values, not of their first bytes or of the nearest
// floating-point number; lengths are those of texts and bytes, and nothing else has any.
func TestExactValues(t *testing.T) {
	dir := t.TempDir()
	c := newExactColumns()
	c.write(t, filepath.Join(dir, "t.arrow"))
	s := newServer(t, nil, dir)
	of := func(column string) exactDoc {
		return answer[exactDoc](t, s, api("values", "name", dir+"/t.arrow", "column", column))
	}
	checkExact(t, of("whole"), c.whole, cmp.Compare[int64], func(x int64) string { return fmt.Sprint(x) })
	checkExact(t, of("huge"), c.huge, cmp.Compare[uint64], func(x uint64) string { return fmt.Sprint(x) })
	names := of("names")
	checkExact(t, names, c.names, strings.Compare, func(x string) string { return x })
	if n := len(names.Bands); n < 2 || names.Up != n-1 || *names.Bands[0].Min >= *names.Bands[n-1].Max {
		t.Errorf("names ascend: %d of %d bands do, drawn from %g to %g", names.Up, n, *names.Bands[0].Min,
			*names.Bands[n-1].Max)
	}
	long := of("long")
	counts := map[string]int{}
	for _, x := range c.long {
		counts[x]++
	}
	cut := strings.Repeat("é", 100) + "…" // 200 bytes
	checkExact(t, long, c.long, strings.Compare, func(string) string { return cut })
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	if long.Distinct != len(counts) || long.Top[0].N != most || long.Top[0].Value != cut {
		t.Errorf("long texts: %d different, the most frequent %d times: want %d and %d", long.Distinct, long.Top[0].N,
			len(counts), most)
	}
	if h := long.Histogram; h.What != "length" || h.From != 301 || h.To != 302 {
		t.Errorf("lengths: %+v", h)
	}
	if h := of("bytes").Histogram; h.What != "length" || h.From != 1 || h.To != 5 {
		t.Errorf("lengths of bytes: %+v", h)
	}
	for _, column := range []string{"yes", "lists"} {
		if d := of(column); d.Histogram != nil {
			t.Errorf("%s has a histogram: %+v", column, d.Histogram)
		}
	}
	checkFloats(t, of("floats"), c.floats)
}

// checkFloats: infinite values bound their bands, and are drawn at the edge of the finite ones; NaN has no order.
func checkFloats(t *testing.T, d exactDoc, values []float64) {
	t.Helper()
	var finite []float64
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			finite = append(finite, x)
		}
	}
	if d.Histogram.Of != int64(len(finite)) || d.Histogram.From != slices.Min(finite) ||
		d.Histogram.To != slices.Max(finite) {
		t.Errorf("a histogram of %d values from %g to %g", d.Histogram.Of, d.Histogram.From, d.Histogram.To)
	}
	if !strings.Contains(strings.ToLower(d.Lo), "inf") || !strings.Contains(strings.ToLower(d.Hi), "inf") {
		t.Errorf("bounds %q and %q, want infinite ones", d.Lo, d.Hi)
	}
	for _, b := range d.Bands {
		if *b.Min < d.Histogram.From || *b.Max > d.Histogram.To || *b.Min > *b.Max {
			t.Errorf("a band is drawn from %g to %g", *b.Min, *b.Max)
		}
	}
}

// TestDictionaryEntries: the entries of the dictionaries of a file are listed, each once: exactly the values of a
// column whose pages are all coded.
func TestDictionaryEntries(t *testing.T) {
	dir := lines(t, 1000)
	s := newServer(t, nil, dir)
	type doc struct {
		Dictionary *struct {
			Dictionaries int
			Entries      []string
			Cut          bool
		}
	}
	if d := answer[doc](t, s, api("values", "name", dir+"/t.csv", "column", "m")); d.Dictionary != nil {
		t.Errorf("a text has a dictionary: %+v", d.Dictionary)
	}
	text := "m\n"
	for k := range 1000 { // of five values each in the first five row groups and the last five, two are the same
		text += fmt.Sprintf("a long value that is worth a code %d\n", k%5+3*(k/500))
	}
	if err := os.WriteFile(dir+"/m.csv", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var want []string
	for l := range strings.Lines(text[2:]) {
		if l = strings.TrimSpace(l); !slices.Contains(want, l) {
			want = append(want, l)
		}
	}
	if status := run(t, "convert", "-q", dir+"/m.csv", "--source-opt", "header=true", "-o", dir+"/coded.parquet",
		"--opt", "row-group-rows=100"); status != 0 {
		t.Fatalf("convert ended with %d", status)
	}
	d := answer[doc](t, s, api("values", "name", dir+"/coded.parquet", "column", "m")).Dictionary
	if d == nil || d.Dictionaries != 10 || d.Cut {
		t.Fatalf("dictionaries: %+v", d)
	}
	slices.Sort(d.Entries)
	slices.Sort(want)
	if !slices.Equal(d.Entries, want) {
		t.Errorf("entries %v, want %v", d.Entries, want)
	}
}

// timed is an answer that notes when it is given time, and written to.
type timed struct {
	*httptest.ResponseRecorder
	events []string
}

func (r *timed) Write(b []byte) (int, error) {
	r.events = append(r.events, "write")
	return r.ResponseRecorder.Write(b)
}

func (r *timed) SetWriteDeadline(at time.Time) error {
	if at.After(time.Now()) {
		r.events = append(r.events, "time")
	}
	return nil
}

// TestTimeToSend: every part of a long answer is given time before it is written, and so is what is left at the end:
// the last part may have been found long after the one before.
func TestTimeToSend(t *testing.T) {
	dir := lines(t, 1000)
	s := newServer(t, nil, dir)
	for _, path := range []string{api("export", "name", dir+"/t.parquet", "form", "csv"),
		api("verify", "name", dir+"/t.parquet")} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		q := httptest.NewRequest(http.MethodGet, path, nil)
		q.Host = "127.0.0.1:1"
		s.ServeHTTP(w, q)
		for i, e := range w.events {
			if e == "write" && (i == 0 || w.events[i-1] != "time") {
				t.Errorf("%s: written without time: %v", path, w.events)
			}
		}
		if n := len(w.events); w.Code != 200 || n < 3 || w.events[n-1] != "time" {
			t.Errorf("%s: %d %v", path, w.Code, w.events)
		}
	}
}

// TestNullsOfAnyType: the nulls of each column, also of one that has nothing else, are those that Avro reads: in
// Values, and in rows.
func TestNullsOfAnyType(t *testing.T) {
	dir := copyOf(t, map[string]string{"all.trv": "trevni/v1.12.2/all_null_null.trv"})
	text, err := os.ReadFile("../corpus/trevni/v1.12.2/all_null_null.expect.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want, n := map[int]int64{}, 0
	for line := range strings.Lines(string(text)) {
		var d struct{ V []json.RawMessage }
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		n++
		for k, cell := range d.V {
			if string(cell) == "null" {
				want[k]++
			}
		}
	}
	s := newServer(t, nil, dir)
	type rows struct {
		Columns []struct{ Name string }
		Rows    [][]*string
	}
	got := answer[rows](t, s, api("rows", "name", dir+"/all.trv", "n", "1000"))
	if len(got.Rows) != n || want[0] != int64(n) {
		t.Fatalf("%d rows, want %d; %d nulls are expected of the first column", len(got.Rows), n, want[0])
	}
	for k, c := range got.Columns {
		var nulls int64
		for _, row := range got.Rows {
			if row[k] == nil {
				nulls++
			}
		}
		v := answer[struct{ Nulls, Distinct int64 }](t, s, api("values", "name", dir+"/all.trv", "column", c.Name))
		if nulls != want[k] || v.Nulls != want[k] || want[k] == int64(n) && v.Distinct != 0 {
			t.Errorf("%s: %d nulls in rows, %d in values, want %d; %d different", c.Name, nulls, v.Nulls, want[k],
				v.Distinct)
		}
	}
}
