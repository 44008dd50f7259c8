package write

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni/internal/layout"
	judge "stoa/interop/trevni"
	"stoa/store"
)

// TestSpill: a file whose blocks went through the scratch file equals the one whose blocks stayed in memory, for every
// codec and dialect.
func TestSpill(t *testing.T) {
	p := arrow.PrimitiveTypes
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: p.Int32}, {Name: "l", Type: p.Int64, Nullable: true},
		{Name: "d", Type: p.Float64}, {Name: "s", Type: arrow.BinaryTypes.String},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean}, {Name: "a", Type: arrow.ListOf(p.Int32), Nullable: true}},
		nil)
	b := judge.RandomBatch(rand.New(rand.NewPCG(4, 4)), sc, 20000)
	for _, d := range []layout.Dialect{layout.Wiki, layout.Avro} {
		for _, opts := range []map[string]string{{"block-size": "1000"}, {"block-size": "1000", "checksum": "null"},
			{"block-size": "3000", "codec": "snappy"}, {"block-size": "700", "codec": "deflate"},
			{"block-size": "400000"}, {"file-size": "100000", "block-size": "5000"}} {
			want, _ := spilled(t, d, opts, sc, b, spillMemory, segmentSize)
			got, disk := spilled(t, d, opts, sc, b, 5000, 4000)
			if disk == 0 && opts["block-size"] != "400000" || len(want) == 0 { // such blocks end with the file only
				t.Errorf("%s %v: %d bytes went to the scratch file, the output has %d files", d, opts, disk, len(want))
			}
			for name := range want {
				if !bytes.Equal(got[name], want[name]) || len(got) != len(want) {
					t.Errorf("%s %v: %s: got a different file", d, opts, name)
				}
			}
		}
	}
}

// spilled writes a batch with limits, and returns the number of bytes that the last file had in the scratch file when
// it was assembled.
func spilled(t *testing.T, d layout.Dialect, opts map[string]string, sc *arrow.Schema, b arrow.RecordBatch, limit int64,
	segment int) (files map[string][]byte, disk int64) {
	ctx, m := context.Background(), store.NewMemory(nil)
	w, err := create(ctx, m.Sink("t"), sc, format.WriteOptions{Opts: opts, Dir: true}, d)
	if err != nil {
		t.Fatal(err)
	}
	o := w.(*outFile)
	o.spillStore.limit, o.spillStore.segment = limit, segment
	if err := w.Write(ctx, b); err != nil {
		t.Fatal(err)
	}
	disk = o.spillStore.onDisk
	sum, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for _, f := range sum.Files {
		files[f] = m.Bytes("t/" + f)
	}
	return files, disk
}
