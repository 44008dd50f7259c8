//go:build interop

package parquetmr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/parquet"
	"stoa/interop/fuzz"
	"stoa/store"
)

// java runs the judge and returns the lines that it prints.
func java(t *testing.T, args ...string) []string {
	t.Helper()
	home, err := exec.Command("./get.sh").Output()
	if err != nil {
		t.Fatalf("get.sh: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(home)), "target")
	cmd := exec.Command("java", append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
		dir + "/*:" + dir + "/lib/*", "peer.Judge"}, args...)...)
	var noise bytes.Buffer
	cmd.Stderr = &noise
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, noise.Bytes()[max(0, noise.Len()-3000):])
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// drawOptions draws options of the writer, with the codecs that parquet-mr has.
func drawOptions(r *rand.Rand, sc *arrow.Schema) map[string]string {
	opts := map[string]string{}
	for _, o := range [][]string{{"compression", "", "none", "snappy", "zstd", "gzip", "lz4"},
		{"page-version", "", "1", "2"}, {"dictionary", "", "false"}, {"page-size", "", "1", "100", "1000"},
		{"row-group-rows", "", "1", "7", "20"},
		{"encoding", "", "", "plain"}, {"page-index", "", "false"}, {"crc", "", "false"}} {
		if v := o[1+r.IntN(len(o)-1)]; v != "" {
			opts[o[0]] = v
		}
	}
	var flat []string
	for _, f := range sc.Fields() {
		switch f.Type.(type) {
		case arrow.NestedType, *arrow.BooleanType, *arrow.NullType:
		default:
			flat = append(flat, f.Name)
		}
	}
	if len(flat) > 0 && r.IntN(2) == 0 {
		opts["bloom"] = flat[r.IntN(len(flat))]
	}
	return opts
}

// stored is t without Arrow's schema: durations are integers.
func stored(t arrow.DataType) arrow.DataType {
	in := func(f arrow.Field) arrow.Field {
		f.Type = stored(f.Type)
		return f
	}
	switch t := t.(type) {
	case *arrow.DurationType:
		return arrow.PrimitiveTypes.Int64
	case *arrow.ListType:
		return arrow.ListOfField(in(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.ListOfField(in(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.ListOfField(in(t.ElemField()))
	case *arrow.MapType:
		return arrow.MapOfFields(in(t.KeyField()), in(t.ItemField()))
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			fields[i] = in(fields[i])
		}
		return arrow.StructOf(fields...)
	}
	return t
}

// cells returns columns in the form that the judge prints.
func cells(t *testing.T, types []arrow.DataType, columns [][]any) (out []any) {
	t.Helper()
	for i, column := range columns {
		plain := []any{}
		for _, c := range column {
			plain = append(plain, formattest.Plain(types[i], c))
		}
		out = append(out, plain)
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, text)
}

func parsed(t *testing.T, text []byte) (out []any) {
	t.Helper()
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return out
}

// compare returns the first difference between columns, and counts the cells compared.
func compare(got, want []any) (n int, err error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%d columns, want %d", len(got), len(want))
	}
	for c := range want {
		g, w := got[c].([]any), want[c].([]any)
		if len(g) != len(w) {
			return n, fmt.Errorf("column %d: %d rows, want %d", c, len(g), len(w))
		}
		for i := range w {
			if !reflect.DeepEqual(g[i], w[i]) {
				return n, fmt.Errorf("column %d, row %d: %.300v, want %.300v", c, i, g[i], w[i])
			}
		}
		n += len(w)
	}
	return n, nil
}

func write(t *testing.T, r *rand.Rand, table formattest.Table, opts map[string]string, name string) {
	t.Helper()
	w, err := parquet.Format.Create(t.Context(), store.Local{}.Sink(name, nil), table.Schema,
		format.WriteOptions{Rows: -1, Opts: opts})
	for from := int64(0); err == nil && from < table.Batch.NumRows(); {
		to := min(table.Batch.NumRows(), from+1+r.Int64N(90))
		err = w.Write(t.Context(), table.Batch.NewSlice(from, to))
		from = to
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatalf("%s %v: %v: %v", filepath.Base(name), opts, table, err)
	}
}

// TestFuzz: parquet-mr reads random nested tables of ours, verifying checksums, whole and through filters. In each
// round one expected cell is wrong, which must be noticed.
func TestFuzz(t *testing.T) {
	filters := 0
	fuzz.Run(t, "parquet-mr", 60, func(t *testing.T, first uint64) (n int) {
		dir := t.TempDir()
		var list strings.Builder
		want, about := map[string][]any{}, map[string]string{}
		for seed := first; seed < first+60; seed++ {
			r := rand.New(rand.NewPCG(seed, 29))
			table := formattest.RandomTable(r, formattest.TableOptions{Rows: []int{3, 60, 400}[r.IntN(3)], Columns: 4,
				Depth: 6, Leaves: formattest.LeafTypes(), NullableFixed: true, EmptyStructs: true,
				Gaps: []int{0, 3, 25, 90, 100}})
			if table.Batch.NumRows() == 0 { // groups without rows have no schema, and so no names of columns
				continue
			}
			opts := drawOptions(r, table.Schema)
			name := filepath.Join(dir, fmt.Sprint("seed-", seed))
			write(t, r, table, opts, name)
			var types []arrow.DataType
			for _, f := range table.Schema.Fields() {
				types = append(types, stored(f.Type))
			}
			want[name], about[name] = cells(t, types, table.Cells), fmt.Sprintf("%v of %v", opts, table)
			fmt.Fprintf(&list, "%s %s.json\n", name, name)
			table.Batch.Release()
		}
		at := filepath.Join(dir, "list")
		if err := os.WriteFile(at, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		noticed := false
		for _, line := range java(t, "read", at) {
			word := strings.Fields(line)
			if word[0] != "READ" {
				t.Errorf("%s: %s", line, about[word[1]])
				continue
			}
			text, err := os.ReadFile(word[1] + ".json")
			if err != nil {
				t.Fatal(err)
			}
			cells, err := compare(parsed(t, text), want[word[1]])
			if err != nil {
				t.Errorf("%s: %v: %s", filepath.Base(word[1]), err, about[word[1]])
			}
			k, _ := strconv.Atoi(word[3])
			n, filters = n+cells, filters+k
			if !noticed {
				want[word[1]][0].([]any)[0] = "wrong on purpose"
				if _, err := compare(parsed(t, text), want[word[1]]); err == nil {
					t.Error("a wrong cell was not noticed")
				}
				noticed = true
				t.Log("wrong cell: noticed: yes")
			}
		}
		return n
	})
	t.Logf("COUNT parquet-mr: %d filters found the right rows", filters)
	if filters == 0 {
		t.Error("no filter was tried")
	}
}

// TestReading: stoa reads what parquet-mr writes: all types, lists of two levels, both versions of pages, its codecs.
func TestReading(t *testing.T) {
	fuzz.Run(t, "stoa", 60, func(t *testing.T, first uint64) (n int) {
		dir := t.TempDir()
		for _, line := range java(t, "write", dir, strconv.FormatUint(first, 10), "60") {
			name := strings.Fields(line)[1]
			text, err := os.ReadFile(strings.TrimSuffix(name, ".parquet") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(t, name)
			if err == nil {
				var cells int
				cells, err = compare(got, parsed(t, text))
				n += cells
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		return n
	})
}

// read returns the columns of a file in the form that the judge prints.
func read(t *testing.T, name string) ([]any, error) {
	t.Helper()
	table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer table.Close()
	columns := make([][]any, table.Schema().NumFields())
	var types []arrow.DataType
	for _, f := range table.Schema().Fields() {
		types = append(types, f.Type)
	}
	for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return nil, err
		}
		for i := range columns {
			columns[i] = append(columns[i], formattest.CellsOf(b.Column(i))...)
		}
	}
	return cells(t, types, columns), nil
}
