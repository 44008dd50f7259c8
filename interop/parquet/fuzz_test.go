//go:build interop

package parquet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/ipc"
	"stoa/format/parquet"
	"stoa/interop/fuzz"
	"stoa/store"
)

// kinds are the formats of tables, with random options and the types to draw from.
var kinds = []struct {
	name    string
	format  format.Format
	options func(r *rand.Rand) map[string]string
	leaves  func(r *rand.Rand) []arrow.DataType
}{
	{"parquet", parquet.Format, drawOptions, parquetTypes},
	{"file", ipc.Format, drawArrow("false"), arrowTypes},
	{"stream", ipc.Format, drawArrow("true"), arrowTypes},
}

// parquetTypes are the types for Parquet. Without date64, which polars reads as timestamps: TestNested has it.
func parquetTypes(r *rand.Rand) []arrow.DataType {
	return common(r, slices.DeleteFunc(formattest.LeafTypes(),
		func(t arrow.DataType) bool { return t.ID() == arrow.DATE64 }))
}

// arrowTypes are the types for Arrow, without the two kinds of intervals that pyarrow has no class for.
func arrowTypes(r *rand.Rand) []arrow.DataType {
	return common(r, slices.DeleteFunc(formattest.LeafTypes(), func(t arrow.DataType) bool {
		return t.ID() == arrow.INTERVAL_MONTHS || t.ID() == arrow.INTERVAL_DAY_TIME
	}))
}

// common is all types for a third of the tables, and those that polars and DuckDB share for the others.
func common(r *rand.Rand, all []arrow.DataType) []arrow.DataType {
	if r.IntN(3) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(t arrow.DataType) bool {
		switch t := t.(type) {
		case *arrow.NullType, *arrow.Float16Type, *arrow.DurationType, *arrow.Decimal256Type, *arrow.DictionaryType,
			*arrow.Date64Type,
			*arrow.MonthIntervalType, *arrow.DayTimeIntervalType, *arrow.MonthDayNanoIntervalType:
			return true
		case *arrow.TimestampType:
			return t.Unit == arrow.Second
		}
		return false
	})
}

func drawArrow(stream string) func(r *rand.Rand) map[string]string {
	return func(r *rand.Rand) map[string]string {
		return map[string]string{"stream": stream, "compression": []string{"none", "lz4", "zstd"}[r.IntN(3)]}
	}
}

// TestFuzz: pyarrow, polars and, for Parquet, DuckDB read random nested tables that stoa writes as Parquet, Arrow files
// and streams. In each round a cell of each reader is changed on purpose, which must be noticed.
func TestFuzz(t *testing.T) {
	total := map[string]counts{}
	fuzz.Run(t, "parquet and arrow", 60, func(t *testing.T, first uint64) (cells int) {
		dir := t.TempDir()
		var list strings.Builder
		add := func(r *rand.Rand, seed uint64, k int, o formattest.TableOptions, altered string) {
			table := formattest.RandomTable(r, o)
			for altered != "-" && table.Batch.NumRows() == 0 {
				table = formattest.RandomTable(r, o)
			}
			defer table.Batch.Release()
			name := filepath.Join(dir, fmt.Sprintf("seed-%d-%s-%s", seed, kinds[k].name, altered))
			written(t, r, kinds[k].format, table, kinds[k].options(r), name)
			expected(t, table, name+".json")
			fmt.Fprintln(&list, kinds[k].name, name, name+".json", altered)
		}
		for seed := first; seed < first+60; seed++ {
			r := rand.New(rand.NewPCG(seed, 23))
			for k := range kinds {
				add(r, seed, k, formattest.TableOptions{Rows: []int{3, 60, 400}[r.IntN(3)], Columns: 4, Depth: 6,
					Leaves: kinds[k].leaves(r), NullableFixed: true, EmptyStructs: kinds[k].name == "parquet",
					Gaps: []int{0, 3, 25, 90, 100}}, "-")
			}
		}
		plain := formattest.TableOptions{Rows: 9, Columns: 1, Depth: 1,
			Leaves: []arrow.DataType{arrow.PrimitiveTypes.Int64}}
		for _, reader := range readers {
			add(rand.New(rand.NewPCG(first, 24)), first, 0, plain, reader)
		}
		return judged(t, dir, list.String(), total)
	})
	for k, c := range total {
		t.Logf("COUNT fuzz %s: %d tables, %d cells; %d columns that it reads differently, and likewise "+
			"where pyarrow wrote them", k, c[0], c[1], c[2])
	}
}

// readers is the names of the readers.
var readers = []string{"pyarrow", "polars", "duckdb"}

// counts are the numbers of tables, cells, and columns that a reader reads differently.
type counts [3]int

func (c counts) add(words []string) counts {
	for i := range c {
		n, _ := strconv.Atoi(words[i])
		c[i] += n
	}
	return c
}

// written writes a table to a file, in a few batches.
func written(t *testing.T, r *rand.Rand, f format.Format, table formattest.Table, opts map[string]string, name string) {
	t.Helper()
	w, err := f.Create(t.Context(), store.Local{}.Sink(name, nil), table.Schema,
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

// expected writes the cells of a table to a JSON file, in the form of formattest.Plain.
func expected(t *testing.T, table formattest.Table, name string) {
	t.Helper()
	var want [][]any
	for i, cells := range table.Cells {
		if cells == nil { // the file does not have the column
			want = append(want, nil)
			continue
		}
		col := []any{}
		for _, c := range cells {
			col = append(col, formattest.Plain(table.Schema.Field(i).Type, c))
		}
		want = append(want, col)
	}
	text, err := json.Marshal(want)
	if err == nil {
		err = os.WriteFile(name, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// judged runs the readers on the files in the list, and returns the number of cells compared.
func judged(t *testing.T, dir, list string, total map[string]counts) (cells int) {
	t.Helper()
	at := filepath.Join(dir, "list")
	if err := os.WriteFile(at, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), "fuzz.py", at)
	var noise bytes.Buffer // polars prints its panics
	cmd.Stderr = &noise
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("fuzz.py: %v\n%s", err, noise.Bytes()[max(0, noise.Len()-3000):])
	}
	noticed := 0
	for line := range strings.Lines(string(out)) {
		word := strings.Fields(line)
		switch {
		case len(word) > 1 && word[0] == "WRONG" && !strings.HasSuffix(word[1], "--"):
			noticed++
		case len(word) == 6 && word[0] == "READ":
			k := word[1] + " by " + word[2]
			total[k] = total[k].add(word[3:])
			n, _ := strconv.Atoi(word[4])
			cells += n
		default:
			t.Error(strings.TrimSpace(line))
		}
	}
	if noticed != len(readers) {
		t.Errorf("got %d changed cells noticed, want %d", noticed, len(readers))
	} else {
		t.Logf("%d changed cells: noticed: all", noticed)
	}
	return cells
}
