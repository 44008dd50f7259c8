package carbon_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
)

// The corpus of real tables is the judge of the reader. Expected rows never come from this package: they are the output
// of the real reader (CarbonData's row reader, or Spark) or of the generator's formula, see the manifest of the corpus.

var formats = []format.Format{carbon.Format}

// entry is a table in the manifest.
type entry struct {
	Table, Format, Path string
	Rows                int
	Columns             []struct{ Name, Type string }
	Options             map[string]any
	StoreRoot           string `json:"store_root"`
	Blocklet            int    `json:"carbon_blocklet_size"`
	Reader              string `json:"expected_by_carbon_row_reader_in_file_order"`
	Input               string `json:"expected_by_formula_in_input_order"`
	Actual              string `json:"expected_by_carbon_reader_in_file_order"`
	Spark               string `json:"expected"`
	Comparison          struct {
		Verdict string                     `json:"verdict"`
		Differ  map[string]json.RawMessage `json:"columns_that_differ"`
	}
}

// corpusDir returns the directory of the whole corpus.
func corpusDir(t testing.TB) string {
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the golden subset is tried")
	}
	return filepath.Join(dir, "carbon")
}

func manifest(t testing.TB, dir string) []entry {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Tables []entry }
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m.Tables
}

// line is a row: the text of each cell, exact, by column.
type line map[string]string

// jsonRows reads JSON lines, compressed or not.
func jsonRows(t testing.TB, name string) []map[string]any {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	d := json.NewDecoder(bufio.NewReader(r))
	d.UseNumber()
	var out []map[string]any
	for {
		var m map[string]any
		if err := d.Decode(&m); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(name, err)
		}
		out = append(out, m)
	}
}

// cellText converts a JSON value to the text of a cell of type dt. Structs are arrays of their children, or objects;
// maps are arrays of keys and values, or objects.
func cellText(dt arrow.DataType, v any) string {
	if v == nil {
		return "null"
	}
	s := fmt.Sprint(v)
	switch dt := dt.(type) {
	case *arrow.Float64Type:
		f, err := strconv.ParseFloat(s, 64)
		return number(f, 64, err)
	case *arrow.Float32Type:
		f, err := strconv.ParseFloat(s, 32)
		return number(f, 32, err)
	case *arrow.StringType:
		return strconv.Quote(s)
	case *arrow.TimestampType:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil { // microseconds
			return time.UnixMicro(n).UTC().Format(stamp)
		}
		for _, layout := range []string{"2006-01-02 15:04:05.000", "2006-01-02 15:04:05", time.RFC3339Nano} {
			if when, err := time.Parse(layout, s); err == nil {
				return when.UTC().Format(stamp)
			}
		}
		return s
	case *arrow.Date32Type:
		if n, err := strconv.Atoi(s); err == nil { // days
			return time.Unix(int64(n)*86400, 0).UTC().Format(time.DateOnly)
		}
		when, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return err.Error()
		}
		return when.Format(time.DateOnly)
	case *arrow.ListType:
		var parts []string
		for _, x := range v.([]any) {
			parts = append(parts, cellText(dt.Elem(), x))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *arrow.StructType:
		return structText(dt, v)
	case *arrow.MapType:
		return mapText(dt, v)
	}
	return s
}

const stamp = "2006-01-02 15:04:05.000"

func number(f float64, bits int, err error) string {
	if err != nil {
		return err.Error()
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

func structText(dt *arrow.StructType, v any) string {
	var parts []string
	for i, f := range dt.Fields() {
		var x any
		switch v := v.(type) {
		case []any:
			x = v[i]
		case map[string]any:
			x = v[f.Name]
		}
		parts = append(parts, cellText(f.Type, x))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// mapText joins the pairs in the order of their texts, because the real reader does not preserve their order.
func mapText(dt *arrow.MapType, v any) string {
	var parts []string
	switch v := v.(type) {
	case []any:
		keys, items := v[0].([]any), v[1].([]any)
		for i := range keys {
			parts = append(parts, cellText(dt.KeyType(), keys[i])+":"+cellText(dt.ItemType(), items[i]))
		}
	case map[string]any:
		for k, x := range v {
			parts = append(parts, cellText(dt.KeyType(), k)+":"+cellText(dt.ItemType(), x))
		}
	}
	slices.Sort(parts)
	return "(" + strings.Join(parts, ",") + ")"
}

// cell formats entry i of an array as text.
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Float64:
		return strconv.FormatFloat(a.Value(i), 'g', -1, 64)
	case *array.Float32:
		return strconv.FormatFloat(float64(a.Value(i)), 'g', -1, 32)
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Timestamp:
		return time.UnixMilli(int64(a.Value(i))).UTC().Format(stamp)
	case *array.Date32:
		return time.Unix(int64(a.Value(i))*86400, 0).UTC().Format(time.DateOnly)
	case *array.List:
		from, to := a.ValueOffsets(i)
		var parts []string
		for k := from; k < to; k++ {
			parts = append(parts, cell(a.ListValues(), int(k)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *array.Map:
		from, to := a.ValueOffsets(i)
		var parts []string
		for k := from; k < to; k++ {
			parts = append(parts, cell(a.Keys(), int(k))+":"+cell(a.Items(), int(k)))
		}
		slices.Sort(parts)
		return "(" + strings.Join(parts, ",") + ")"
	case *array.Struct:
		var parts []string
		for k := range a.NumField() {
			parts = append(parts, cell(a.Field(k), i))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return a.ValueStr(i)
}

// read reads all columns of a table, or the given ones.
func read(t testing.TB, uri string, o stoa.OpenOptions, spec stoa.ScanSpec) (*arrow.Schema, []line, error) {
	t.Helper()
	if o.Formats == nil {
		o.Formats = formats
	}
	tab, err := stoa.Open(t.Context(), uri, o)
	if err != nil {
		return nil, nil, err
	}
	defer tab.Close()
	var out []line
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			return tab.Schema(), out, err
		}
		for i := range int(b.NumRows()) {
			l := line{}
			for k := range int(b.NumCols()) {
				l[b.ColumnName(k)] = cell(b.Column(k), i)
			}
			out = append(out, l)
		}
	}
	return tab.Schema(), out, nil
}

// wanted returns the expected rows, as text, with the columns that the schema has.
func wanted(sc *arrow.Schema, rows []map[string]any) []line {
	out := make([]line, len(rows))
	for i, r := range rows {
		out[i] = line{}
		for _, f := range sc.Fields() {
			out[i][f.Name] = cellText(f.Type, r[f.Name])
		}
	}
	return out
}

// differ describes how got and want differ; with anyOrder, regardless of their order.
func differ(got, want []line, anyOrder bool) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	if anyOrder {
		got, want = slices.Clone(got), slices.Clone(want)
		for _, x := range [][]line{got, want} {
			slices.SortFunc(x, func(a, b line) int { return strings.Compare(a.String(), b.String()) })
		}
	}
	bad := map[string]int{}
	first := map[string]string{}
	for i := range got {
		for k, w := range want[i] {
			if g := got[i][k]; g != w {
				if bad[k]++; bad[k] == 1 {
					first[k] = fmt.Sprintf("row %d: %.200s, want %.200s", i, g, w)
				}
			}
		}
	}
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(bad)) {
		fmt.Fprintf(&b, "%s: %d cells differ; %s\n", k, bad[k], first[k])
	}
	return b.String()
}

func (l line) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(l)) {
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(l[k])
		b.WriteByte(' ')
	}
	return b.String()
}

// TestCorpusV3 reads every data file of the SDK's tables and compares the rows, in order, with those of the real row
// reader.
func TestCorpusV3(t *testing.T) { runV3(t, corpusDir(t), 26) }

func runV3(t *testing.T, dir string, tables int) {
	ran := 0
	for _, e := range manifest(t, dir) {
		if e.Format != "V3" {
			continue
		}
		if ran++; testing.Short() && dir != golden2 && ran%4 > 0 { // the golden tables are a subset
			continue
		}
		t.Run(e.Table, func(t *testing.T) { corpusV3(t, dir, e) })
	}
	t.Logf("%d tables", ran)
	if ran != tables {
		t.Errorf("got %d tables, want %d", ran, tables)
	}
}

func corpusV3(t *testing.T, dir string, e entry) {
	files, err := filepath.Glob(filepath.Join(dir, e.Path, "*.carbondata"))
	if err != nil || len(files) == 0 {
		t.Fatal("no data files", err)
	}
	want := jsonRows(t, filepath.Join(dir, e.Reader))
	// the row reader returns null for empty binary values, and no nulls were written
	if _, ok := e.Comparison.Differ["c_bin"]; ok {
		for _, r := range want {
			if r["c_bin"] == nil {
				r["c_bin"] = ""
			}
		}
	}
	var all []line
	var sc *arrow.Schema
	for _, f := range files {
		s, rows, err := read(t, f, stoa.OpenOptions{}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		sc, all = s, append(all, rows...)
	}
	if d := differ(all, wanted(sc, want), false); d != "" {
		t.Error(d)
	}
}

// TestCorpusManaged reads the tables that Spark wrote and compares the rows, in any order, with those that Spark read.
func TestCorpusManaged(t *testing.T) { runManaged(t, corpusDir(t), 8) }

func runManaged(t *testing.T, dir string, tables int) {
	ran := 0
	for _, e := range manifest(t, dir) {
		if e.Format != "V3 managed" {
			continue
		}
		ran++
		t.Run(e.Table, func(t *testing.T) {
			sc, got, err := read(t, filepath.Join(dir, e.Path), stoa.OpenOptions{}, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			want := jsonRows(t, filepath.Join(dir, e.Spark))
			if len(want) != e.Rows {
				t.Fatalf("got %d expected rows, want the manifest's %d", len(want), e.Rows)
			}
			if d := differ(got, wanted(sc, want), true); d != "" {
				t.Error(d)
			}
		})
	}
	t.Logf("%d tables", ran)
	if ran != tables {
		t.Errorf("got %d tables, want %d", ran, tables)
	}
}
