package laws_test

import (
	"bytes"
	"errors"
	"io"
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

// The native readers of all formats have one shape.
var (
	_ formattest.NativeReader = (*carbon.Reader)(nil)
	_ formattest.NativeReader = (*cfile.Reader)(nil)
	_ formattest.NativeReader = (*parquet.Reader)(nil)
	_ formattest.NativeReader = (*redfile.Reader)(nil)
	_ formattest.NativeReader = (*trevni.Reader)(nil)
)

func opener[R formattest.NativeReader](open func(io.ReaderAt, int64, format.OpenOptions) (R, error)) func([]byte) (
	formattest.NativeReader, error) {
	return func(b []byte) (formattest.NativeReader, error) {
		return open(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
	}
}

// native are files of sorted rows; those of the options keyed say by what.
var native = []struct {
	format, file string
	open         func([]byte) (formattest.NativeReader, error)
	keyed        format.Options // nil: no file of the format says it
}{
	{"carbon", "t.carbondata", opener(carbon.NewReader),
		carbon.WriteOptions{SortColumns: []string{"k"}, PageRows: 100}},
	{"cfile", "t.cfile", opener(cfile.NewReader), cfile.WriteOptions{All: cfile.ColumnOptions{ValueIndex: new(true)}}},
	{"parquet", "t.parquet", opener(parquet.NewReader),
		parquet.WriteOptions{SortingColumns: []parquet.SortColumn{{Column: "k"}}, RowGroupRows: 300}},
	{"redfile", "t.red", opener(redfile.NewReader), nil},
	{"trevni", "t.trv", opener(trevni.NewReader),
		trevni.WriteOptions{FirstValues: []string{"all"}, BlockSize: 512}},
}

// TestNativeReaders: rows from a position on, one of them, and those from a key on, are the same by the readers of all
// formats; files that do not say by what they are sorted have none from a key on.
func TestNativeReaders(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range 1000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i * 3))
	}
	rows := b.NewRecordBatch()
	for _, x := range native {
		for _, keyed := range []format.Options{nil, x.keyed} {
			mem := store.NewMemory(nil)
			w, err := stoa.Create(t.Context(), x.file, sc,
				stoa.CreateOptions{To: x.format, Typed: keyed, Sink: mem.Sink(x.file)})
			if err == nil {
				err = w.Write(t.Context(), rows)
			}
			if err == nil {
				_, err = w.Close(t.Context())
			}
			if err != nil {
				t.Fatal(x.format, err)
			}
			r, err := x.open(mem.Bytes(x.file))
			if err != nil {
				t.Fatal(x.format, err)
			}
			formattest.Native(t, r, rows)
			n, failed := int64(0), error(nil)
			for got, err := range r.RowsFromKey(t.Context(), pred.Int(1000), nil) {
				if failed = err; err != nil {
					break
				}
				for _, v := range got.Column(0).(*array.Int64).Int64Values() {
					if want := 1002 + n*3; v != want {
						t.Fatalf("%s: row %d from the key on is %d, expected %d", x.format, n, v, want)
					}
					n++
				}
			}
			if keyed != nil && (failed != nil || n != 666) {
				t.Errorf("%s: %d rows from the key on, %v, expected 666", x.format, n, failed)
			}
			if keyed == nil && !errors.Is(failed, fault.Invalid) {
				t.Errorf("%s: %d rows from a key on, %v, expected an error of class Invalid", x.format, n, failed)
			}
			if err := r.Close(); err != nil {
				t.Error(x.format, err)
			}
		}
	}
}
