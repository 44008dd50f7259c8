package carbon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// benchRows returns rows of ten columns of various types, computed by a formula.
func benchRows(from, to int) arrow.RecordBatch {
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	sc := arrow.NewSchema([]arrow.Field{field("id", arrow.PrimitiveTypes.Int32),
		field("low", arrow.PrimitiveTypes.Int32), field("big", arrow.PrimitiveTypes.Int64), field("at", millis),
		field("day", arrow.FixedWidthTypes.Date32), field("ratio", arrow.PrimitiveTypes.Float64),
		field("word", arrow.BinaryTypes.String), field("name", arrow.BinaryTypes.String),
		field("price", &arrow.Decimal128Type{Precision: 12, Scale: 2}),
		field("flag", arrow.FixedWidthTypes.Boolean)}, nil)
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
	defer b.Release()
	for i := from; i < to; i++ {
		x := uint64(i) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		h := int64(x ^ x>>31)
		at := time.Date(2024, time.Month(1+i%12), 1+i%28, i%24, i%60, (i>>6)%60, 0, time.UTC)
		day := time.Date(2010+i%15, time.Month(1+i%12), 1+(i>>4)%28, 0, 0, 0, 0, time.UTC)
		for k, v := range []any{int32(i), int32(h & 1023), h >> 20, arrow.Timestamp(at.UnixMilli()),
			arrow.Date32(day.Unix() / 86400), float64(h>>40) / 8,
			fmt.Sprint("word", h&1023), fmt.Sprintf("name %x", uint64(h)),
			decimal128.FromI64(int64(uint64(h) >> 34)), h&4 == 0} {
			appendValue(b.Field(k), v)
		}
	}
	return b.NewRecordBatch()
}

// BenchmarkWrite writes 2^20 rows of ten columns, sorted by id, as a directory.
func BenchmarkWrite(b *testing.B) {
	var rows []arrow.RecordBatch
	for i := 0; i < 1<<20; i += 1 << 16 {
		rows = append(rows, benchRows(i, i+1<<16))
	}
	dir := filepath.Join(b.TempDir(), "t")
	for b.Loop() {
		os.RemoveAll(dir)
		w, err := stoa.Create(b.Context(), dir+"/", rows[0].Schema(),
			stoa.CreateOptions{Formats: formats, To: "carbon", Rows: -1,
				Opts: map[string]string{"sort-columns": "id", "blocklet-size": "16", "block-size": "64"}})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			if err := w.Write(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		s, err := w.Close(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Bytes)/1e6, "MB")
	}
	b.ReportMetric(float64(b.N)*(1<<20)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}
