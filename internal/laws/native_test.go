package laws_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/format/parquet"
	"stoa/format/redfile"
	"stoa/format/trevni"
	"stoa/pred"
	"stoa/store"
)

// nativeOf opens a file in memory with open.
func nativeOf[R formattest.NativeReader](
	open func(io.ReaderAt, int64, format.OpenOptions) (R, error)) func([]byte) (formattest.NativeReader, error) {
	return func(b []byte) (formattest.NativeReader, error) {
		return open(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
	}
}

// TestNoKeyOfNoOrder: in a file without an order, a native reader refuses a key with an error of class Invalid that
// names the format.
func TestNoKeyOfNoOrder(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(`[{"k":3},{"k":1},{"k":2}]`))
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func([]byte) (formattest.NativeReader, error){
		"carbon": nativeOf(carbon.NewReader), "cfile": nativeOf(cfile.NewReader),
		"parquet": nativeOf(parquet.NewReader), "redfile": nativeOf(redfile.NewReader),
		"trevni": nativeOf(trevni.NewReader)} {
		r, err := open(fileOf(t, name, rows))
		if err != nil {
			t.Fatal(name, err)
		}
		n := 0
		for b, err := range r.RowsFromKey(t.Context(), pred.Int(1), nil) {
			if n++; b != nil || !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name+": ") {
				t.Errorf("%s: %v, %v, expected an error of class Invalid that names the format", name, b, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d steps, expected one error", name, n)
		}
		if err := r.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

// fileOf writes rows as a file of a format.
func fileOf(t *testing.T, name string, rows arrow.RecordBatch) []byte {
	t.Helper()
	ctx, mem := t.Context(), store.NewMemory(nil)
	w, err := stoa.Create(ctx, "t", rows.Schema(), stoa.CreateOptions{To: name, Sink: mem.Sink("t")})
	if err != nil {
		t.Fatal(name, err)
	}
	defer w.Abort(context.WithoutCancel(ctx))
	if err := w.Write(ctx, rows); err != nil {
		t.Fatal(name, err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(name, err)
	}
	return mem.Bytes("t")
}
