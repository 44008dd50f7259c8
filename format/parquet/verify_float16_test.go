package parquet

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/format/parquet/internal/meta"
	"stoa/internal/enc/half"
	"stoa/region"
)

// TestVerifyBoundsOfFloat16: verify compares bounds of float16 with the values, as for other floats.
func TestVerifyBoundsOfFloat16(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "h", Type: arrow.FixedWidthTypes.Float16}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range 101 { // -25 to 25, and NaN
		b.Field(0).(*array.Float16Builder).Append(float16.FromBits(half.Of(float64(i-50) / 2)))
	}
	b.Field(0).(*array.Float16Builder).Append(float16.FromBits(half.Of(math.NaN())))
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(sc, &out,
		lib.NewWriterProperties(lib.WithDictionaryDefault(false), lib.WithDataPageSize(40), lib.WithBatchSize(20),
			lib.WithPageIndexEnabled(true)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bound := func(v float64) []byte { return binary.LittleEndian.AppendUint16(nil, half.Of(v)) }
	bounded := func(low, high []byte) []byte {
		return refooter(t, out.Bytes(), nil, func(m *metadata.FileMetaData, _ int64) {
			s := m.RowGroups[0].Columns[0].MetaData.Statistics
			s.MinValue, s.MaxValue, s.Min, s.Max = low, high, nil, nil
		})
	}
	for what, c := range map[string]struct {
		b    []byte
		want string
	}{
		"as written": {out.Bytes(), ""},
		"right":      {bounded(bound(-25), bound(25)), ""},
		"wide":       {bounded(bound(-26), bound(26)), ""},
		"min":        {bounded(bound(-24.5), bound(25)), "parquet.statistics"},
		"max":        {bounded(bound(-25), bound(24.5)), "parquet.statistics"},
		"bytes":      {bounded(bound(-25), []byte{1}), "parquet.statistics"},
		"page": {reindex(t, out.Bytes(), 0, func(x *meta.ColumnIndex) { x.Max[1] = x.Min[1] }),
			"parquet.index.bounds"},
		"order": {reindex(t, out.Bytes(), 0, func(x *meta.ColumnIndex) { x.Order = 2 }), "parquet.index.bounds"},
	} {
		got := slices.DeleteFunc(findings(c.b), func(f region.Finding) bool { return f.Code == "parquet.layout" })
		if codesIn(got) != c.want {
			t.Errorf("%s: got %+v, want %q", what, got, c.want)
		}
	}
}
