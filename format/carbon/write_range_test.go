package carbon_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format/carbon"
)

// loadBatches loads batches, and returns the summary.
func loadBatches(t testing.TB, dir string, in []arrow.RecordBatch, o carbon.LoadOptions) (carbon.LoadSummary, error) {
	t.Helper()
	l, err := carbon.BeginLoad(t.Context(), dir, in[0].Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range in {
		if err := l.Write(t.Context(), b); err != nil {
			return carbon.LoadSummary{}, errors.Join(err, l.Abort(t.Context()))
		}
	}
	sum, err := l.Close(t.Context())
	if err != nil {
		err = errors.Join(err, l.Abort(t.Context()))
	}
	return sum, err
}

// TestRangeColumn: the data files of a load into a table with a range column have the rows of one range each, with
// equal numbers of rows, sorted by the table's sort columns; nulls are in the first files.
func TestRangeColumn(t *testing.T) {
	for _, memory := range []string{"100000000", "70000"} {
		for _, by := range []string{"n", "d", "s"} {
			t.Run(by+"_"+memory, func(t *testing.T) { rangeColumn(t, by, memory) })
		}
	}
}

// rangeRow is a row: a key, and the value of the range column.
type rangeRow struct {
	k    string
	v    int
	null bool
}

var rangeSchema = arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "d", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)

// rangeBatches draws rows, in batches of several sizes. Numbers can be null.
func rangeBatches(r *rand.Rand, rows int) (all []rangeRow, in []arrow.RecordBatch) {
	for len(all) < rows {
		b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, rangeSchema)
		for range min(1+r.IntN(500), rows-len(all)) {
			x := rangeRow{fmt.Sprintf("k%05d", r.IntN(99999)), r.IntN(20000) - 10000, r.IntN(9) == 0}
			all = append(all, x)
			b.Field(0).(*array.StringBuilder).Append(x.k)
			b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("%05d", x.v+10000))
			if x.null {
				b.Field(1).AppendNull()
				b.Field(2).AppendNull()
				continue
			}
			b.Field(1).(*array.Int64Builder).Append(int64(x.v))
			b.Field(2).(*array.Float64Builder).Append(float64(x.v) / 8)
		}
		in = append(in, b.NewRecordBatch())
	}
	return all, in
}

func rangeColumn(t *testing.T, by, memory string) {
	const rows, files = 3001, 4
	dir := filepath.Join(t.TempDir(), "t")
	err := carbon.CreateTable(dir, "", carbon.TableSpec{Schema: rangeSchema, SortColumns: []string{"k"},
		Properties: map[string]string{"range_column": by}})
	if err != nil {
		t.Fatal(err)
	}
	want, in := rangeBatches(rand.New(rand.NewPCG(uint64(len(memory)), 9)), rows)
	sum, err := loadBatches(t, dir, in, carbon.LoadOptions{Tasks: files, Opts: map[string]string{"memory": memory}})
	if err != nil || sum.Rows != rows || len(sum.Files) != files {
		t.Fatal(sum, err)
	}
	slices.SortStableFunc(want, func(a, b rangeRow) int {
		switch an, bn := by != "s" && a.null, by != "s" && b.null; {
		case an && bn:
			return 0
		case an:
			return -1
		case bn:
			return 1
		}
		return cmp.Compare(a.v, b.v)
	})
	for i, name := range sum.Files {
		part := want[i*(rows+files-1)/files : min(rows, (i+1)*((rows+files-1)/files))]
		slices.SortStableFunc(part, func(a, b rangeRow) int { return cmp.Compare(a.k, b.k) })
		if got := rangeFile(t, filepath.Join(dir, name)); !slices.Equal(got, texts(part)) {
			t.Errorf("%s: %d rows, expected %d; or others, or in another order", name, len(got), len(part))
		}
	}
	healthy(t, dir)
}

// texts returns the keys and texts of rows.
func texts(rows []rangeRow) (out []string) {
	for _, x := range rows {
		out = append(out, fmt.Sprintf("%s %05d", x.k, x.v+10000))
	}
	return out
}

// rangeFile returns the keys and texts of the rows of a data file, in order.
func rangeFile(t testing.TB, name string) (out []string) {
	tab, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"k", "s"}}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, b.Column(0).ValueStr(i)+" "+b.Column(1).ValueStr(i))
		}
	}
	return out
}

// TestRangeColumnRefused: columns by which loads do not divide, and one that the table lacks.
func TestRangeColumnRefused(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String},
		{Name: "money", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}}, nil)
	for _, by := range []string{"money", "flag", "list", "other"} {
		err := carbon.CreateTable(filepath.Join(t.TempDir(), "t"), "", carbon.TableSpec{Schema: sc,
			Properties: map[string]string{"range_column": by}})
		if err == nil || !strings.Contains(err.Error(), "range_column") {
			t.Errorf("%s: %v", by, err)
		}
	}
}

// TestRowOfBadValue: the error for a value that its column cannot hold names the row as it came, in tables that sort
// or divide their rows, too.
func TestRowOfBadValue(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	kept := arrow.NewSchema(slices.Clone(rangeSchema.Fields()), nil)
	fields := kept.Fields()
	fields[1].Type = arrow.PrimitiveTypes.Int16 // −10,000 to 10,000 fit
	kept = arrow.NewSchema(fields, nil)
	for what, spec := range map[string]carbon.TableSpec{
		"plain": {}, "sorted": {SortColumns: []string{"k"}},
		"all sorted":     {SortColumns: []string{"k"}, Properties: map[string]string{"sort_scope": "global_sort"}},
		"with buckets":   {SortColumns: []string{"k"}, Buckets: 3, BucketBy: []string{"k"}},
		"with ranges":    {SortColumns: []string{"k"}, Properties: map[string]string{"range_column": "d"}},
		"by that column": {SortColumns: []string{"k"}, Properties: map[string]string{"range_column": "n"}},
		"in partitions":  {SortColumns: []string{"k"}, Partition: []string{"s"}},
	} {
		for _, memory := range []string{"100000000", "70000"} {
			spec.Schema = kept
			dir := filepath.Join(t.TempDir(), "t")
			if err := carbon.CreateTable(dir, "", spec); err != nil {
				t.Fatal(what, err)
			}
			rows := 900
			if spec.Partition != nil {
				rows = 30
			}
			_, in := rangeBatches(r, rows)
			bad := r.IntN(rows)
			spoil(in, bad)
			_, err := loadBatches(t, dir, in, carbon.LoadOptions{Tasks: 2, Opts: map[string]string{"memory": memory}})
			if want := fmt.Sprintf("column n, row %d: 123456 is not", bad); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s, memory %s: expected %q, found %v", what, memory, want, err)
			}
		}
	}
}

// spoil sets the number in one of the rows to one that two bytes cannot hold.
func spoil(in []arrow.RecordBatch, at int) {
	for k, b := range in {
		if n := int(b.NumRows()); at >= n {
			at -= n
			continue
		}
		x := array.NewInt64Builder(arrowMemory.DefaultAllocator)
		for i := range int(b.NumRows()) {
			switch {
			case i == at:
				x.Append(123456)
			case b.Column(1).IsNull(i):
				x.AppendNull()
			default:
				x.Append(b.Column(1).(*array.Int64).Value(i))
			}
		}
		cols := slices.Clone(b.Columns())
		cols[1] = x.NewArray()
		in[k] = array.NewRecordBatch(rangeSchema, cols, b.NumRows())
		return
	}
}
