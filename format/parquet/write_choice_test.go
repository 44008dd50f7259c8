package parquet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/parquet/internal/meta"
)

// choices are columns with the encodings that suit their values best.
var choices = []struct {
	name string
	typ  arrow.DataType
	cell func(b array.Builder, i int, r *rand.Rand)
	want int32
}{
	{"sorted", arrow.PrimitiveTypes.Int64, func(b array.Builder, i int, r *rand.Rand) {
		b.(*array.Int64Builder).Append(int64(i)*1000 + r.Int64N(1000))
	}, meta.DeltaBinaryPacked},
	{"few", arrow.BinaryTypes.String, func(b array.Builder, i int, r *rand.Rand) {
		b.(*array.StringBuilder).Append([]string{"red", "green", "blue"}[r.IntN(3)])
	}, meta.RleDictionary},
	{"codes", arrow.PrimitiveTypes.Int64, func(b array.Builder, i int, r *rand.Rand) {
		b.(*array.Int64Builder).Append([]int64{1 << 60, 7, -1 << 50, 1 << 40}[r.IntN(4)])
	}, meta.RleDictionary},
	{"paths", arrow.BinaryTypes.String, func(b array.Builder, i int, r *rand.Rand) {
		b.(*array.StringBuilder).Append(fmt.Sprintf("/a/long/way/that/all/have/in/common/%08d", i))
	}, meta.DeltaByteArray},
	{"walk", arrow.PrimitiveTypes.Float64, func(b array.Builder, i int, r *rand.Rand) {
		b.(*array.Float64Builder).Append(1000 + float64(i) + r.Float64())
	}, meta.ByteStreamSplit},
	{"random", arrow.PrimitiveTypes.Int64, func(b array.Builder, i int, r *rand.Rand) {
		b.(*array.Int64Builder).Append(int64(r.Uint64()))
	}, meta.PlainValues},
}

func chosen() arrow.RecordBatch {
	var fields []arrow.Field
	for _, c := range choices {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.typ})
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	r := rand.New(rand.NewPCG(1, 19))
	for i := range 20_000 {
		for k, c := range choices {
			c.cell(b.Field(k), i, r)
		}
	}
	return b.NewRecordBatch()
}

// TestEncodingsAreChosen: a column gets the encoding that suits its values, and the file is not larger than with PLAIN
// only, without dictionaries, or both.
func TestEncodingsAreChosen(t *testing.T) {
	batch := chosen()
	for _, codec := range []string{"snappy", "zstd"} {
		best := written(t, map[string]string{"compression": codec}, batch).Bytes("t")
		r := readerOf(t, best)
		for k, c := range choices {
			var got []string
			for p, err := range r.Pages(t.Context(), 0, k) {
				if err != nil {
					t.Fatal(err)
				}
				if p.IsData() && !slices.Contains(got, meta.EnumName(meta.Encodings, p.Encoding)) {
					got = append(got, meta.EnumName(meta.Encodings, p.Encoding))
				}
			}
			if want := meta.EnumName(meta.Encodings, c.want); strings.Join(got, " ") != want {
				t.Errorf("%s: %s: got %v, want %s", codec, c.name, got, want)
			}
		}
		r.Close()
		for _, opts := range []map[string]string{{"encoding": "plain"}, {"dictionary": "false"},
			{"encoding": "plain", "dictionary": "false"}} {
			opts["compression"] = codec
			if other := written(t, opts, batch).Bytes("t"); len(other) < len(best) {
				t.Errorf("chosen encodings: got %d bytes, want at most %d, as with %v", len(best), len(other), opts)
			}
		}
	}
}

// TestSizeStatisticsAreWritten: size statistics of chunks and both indexes have the right histograms of levels and
// sizes of strings.
func TestSizeStatisticsAreWritten(t *testing.T) {
	batch := pagesOfAllKinds()
	var text, nulls, items, empty int64 // of the strings, and of the lists
	s, l := batch.Column(1).(*array.String), batch.Column(2).(*array.List)
	for i := range s.Len() {
		if s.IsNull(i) {
			nulls++
		} else {
			text += int64(len(s.Value(i)))
		}
		from, to := l.ValueOffsets(i)
		if items += to - from; l.IsNull(i) {
			empty++
		}
	}
	rows := batch.NumRows()
	r := readerOf(t, written(t, map[string]string{"page-size": "1000"}, batch).Bytes("t"))
	defer r.Close()
	want := []struct {
		rep, def []int64
		text     int64
	}{{nil, []int64{nulls, rows - nulls}, text},
		{[]int64{rows, items - (rows - empty)}, []int64{empty, 0, 0, items}, -1}}
	for i, w := range want { // columns without nulls need none
		leaf := i + 1
		said := r.Footer.RowGroups[0].Columns[leaf].MetaData.SizeStatistics
		if said == nil {
			t.Fatalf("column %d: got no size statistics", leaf)
		}
		got := int64(-1)
		if said.UnencodedByteArrayDataBytes != nil {
			got = *said.UnencodedByteArrayDataBytes
		}
		if got != w.text || w.def != nil && !slices.Equal(said.DefinitionLevelHistogram, w.def) ||
			w.rep != nil && !slices.Equal(said.RepetitionLevelHistogram, w.rep) {
			t.Errorf("column %d: %+v, %d bytes of strings; want %+v", leaf, said, got, w)
		}
		x, err := r.OffsetIndex(t.Context(), 0, leaf)
		if err != nil || len(x.Offsets) < 3 {
			t.Fatal(x, err)
		}
		if sum := sumBy(x.Bytes, 1); w.text >= 0 && sum[0] != w.text {
			t.Errorf("column %d: pages: got %d bytes of strings, want %d", leaf, sum[0], w.text)
		}
		c, err := r.ColumnIndex(t.Context(), 0, leaf, len(x.Offsets))
		if err != nil {
			t.Fatal(err)
		}
		if w.def != nil && !slices.Equal(sumBy(c.DefLevels, len(w.def)), w.def) || w.rep != nil &&
			!slices.Equal(sumBy(c.RepLevels, len(w.rep)), w.rep) {
			t.Errorf("column %d: pages: got %v and %v, want %+v", leaf, c.DefLevels, c.RepLevels, w)
		}
	}
}

// sumBy adds up lists of n numbers for each page.
func sumBy(of []int64, width int) []int64 {
	out := make([]int64, width)
	for i, n := range of {
		out[i%width] += n
	}
	return out
}

// TestExactBounds: bounds in the footer are marked exact if they are values of the chunk, but not if they are
// truncated.
func TestExactBounds(t *testing.T) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{
		{Name: "short", Type: arrow.BinaryTypes.String}, {Name: "long", Type: arrow.BinaryTypes.String},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32}}, nil))
	for i := range 100 {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint("k", i))
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", 100) + fmt.Sprint(i))
		b.Field(2).(*array.Int32Builder).Append(int32(i))
	}
	r := readerOf(t, written(t, nil, b.NewRecordBatch()).Bytes("t"))
	defer r.Close()
	for leaf, exact := range []bool{true, false, true} {
		s := r.Footer.RowGroups[0].Columns[leaf].MetaData.Statistics
		if s == nil || s.Min == nil || s.Max == nil || s.MinExact != exact || s.MaxExact != exact {
			t.Errorf("column %d: got %+v, want exact: %t", leaf, s, exact)
		}
	}
}

// TestRowGroupsByBytes: a row group ends at about row-group-size bytes, however many rows are written at a time.
func TestRowGroupsByBytes(t *testing.T) {
	const limit = 60_000
	b := written(t, map[string]string{"row-group-size": fmt.Sprint(limit), "page-size": "1000", "page-rows": "100"},
		chosen()).Bytes("t")
	r := readerOf(t, b)
	defer r.Close()
	groups := r.Footer.RowGroups
	for g, rg := range groups {
		stored := int64(0)
		for _, c := range rg.Columns {
			stored += c.MetaData.TotalCompressedSize
		}
		if stored > limit*5/4 || g < len(groups)-1 && stored < limit/2 {
			t.Errorf("row group %d of %d: got %d bytes", g, len(groups), stored)
		}
	}
}
