package parquet

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/ipc/sample"
	"stoa/format/parquet/internal/meta"
)

// TestEmptyInputCompressed: a column of nulls has an empty dictionary, which codecs compress to some bytes. Verify has
// no findings, and recovery reads all rows.
func TestEmptyInputCompressed(t *testing.T) {
	sc := sample.Schema(arrow.PrimitiveTypes.Float64)
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	for range 10 {
		b.AppendNull()
	}
	rows := array.NewRecordBatch(sc, []arrow.Array{b.NewArray()}, 10)
	for _, codec := range []string{"none", "snappy", "gzip", "zstd", "lz4", "brotli"} {
		file := written(t, map[string]string{"compression": codec, "page-version": "1"}, rows).Bytes("t")
		if found := findings(file); len(found) > 0 {
			t.Errorf("%s: %v", codec, found)
		}
	}
	if _, err := meta.CodecBrotli.Decompress([]byte("\xff\xff\xff"), 0, 1, meta.Alloc); err == nil {
		t.Error("an invalid stream: got no error, want one")
	}
}
