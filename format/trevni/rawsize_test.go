package trevni_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// TestImpossibleRawSize: a raw size beyond the page limit is damage if the stored bytes cannot expand to it, so that
// recovery continues with the other blocks. Without a codec the raw size is not needed.
func TestImpossibleRawSize(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, codec := range []string{"null", "deflate", "snappy", "bzip2"} {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 100 {
			rb.Field(0).(*array.Int64Builder).Append(int64(i))
		}
		mem := store.NewMemory(nil)
		w, err := stoa.Create(t.Context(), "t", sc,
			stoa.CreateOptions{To: "trevni-avro", Opts: map[string]string{"codec": codec, "block-size": "20"},
				Sink: mem.Sink("t")})
		if err == nil {
			err = w.Write(t.Context(), rb.NewRecordBatch())
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.ReplaceAll(mem.Bytes("t"), []byte("stoa.descriptors"), []byte("user.descriptors"))
		b = bytes.ReplaceAll(b, []byte("stoa.header"), []byte("user.header"))
		found := false
		for n, err := range stoa.Describe(t.Context(), "t",
			stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{Tree: mem}}) {
			if err == nil && n.Kind != region.Gap &&
				strings.HasSuffix(n.Name, "descriptor[1].block-uncompressed-size") {
				b[n.At.Off+3] |= 0x60
				found = true
			}
		}
		if !found {
			t.Fatal("there is no second block")
		}
		mem.Put("t", b)
		tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: mem, Recover: true})
		if err != nil {
			t.Fatal(err)
		}
		rows, lost := 0, 0
		for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) {
			if !errors.Is(l.Err, fault.Corrupt) {
				t.Errorf("%s: %v", codec, l.Err)
			}
			lost += int(l.Rows[1] - l.Rows[0])
		}}) {
			if err != nil {
				t.Errorf("%s: %v", codec, err)
				break
			}
			rows += int(b.NumRows())
		}
		if rows+lost != 100 || (lost == 0) != (codec == "null") {
			t.Errorf("%s: %d rows, %d lost, of 100", codec, rows, lost)
		}
		tab.Close()
	}
}
