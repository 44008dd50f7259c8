package ipc

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/sample"
	"stoa/store"
	"stoa/vec"
)

// pipe is a sink that cannot be undone.
type pipe struct{ bytes.Buffer }

func (p *pipe) Create(context.Context, string) (store.Object, error) { return p, nil }
func (p *pipe) Scratch(context.Context) (store.Scratch, error)       { return nil, errors.ErrUnsupported }
func (p *pipe) Commit(context.Context) error                         { return nil }
func (p *pipe) Abort(context.Context) error                          { return nil }
func (p *pipe) Close() error                                         { return nil }

// libraryRows returns the number of rows that arrow-go's own reader finds in a stream, and its error at the end.
func libraryRows(b []byte) (rows int64, err error) {
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	return rows, r.Err()
}

// TestTornStream: a stream whose writer aborts, or is killed, ends within a message: to most readers, the end of the
// bytes alone is the end of the stream. All rows written before the abort can be read.
func TestTornStream(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(5, 6))
	words := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for name, sc := range map[string]*arrow.Schema{
		"numbers": sample.Schema(arrow.PrimitiveTypes.Int64), "no columns": arrow.NewSchema(nil, nil),
		"everything": everything, "words": sample.Schema(words),
	} {
		for _, n := range []int{1, 100, 70_000} {
			if n > 100 && name == "everything" {
				continue
			}
			out := &pipe{}
			w, err := Format.Create(ctx, out, sc,
				format.WriteOptions{Rows: -1, Opts: map[string]string{"stream": "true"}})
			if err != nil {
				t.Fatal(err)
			}
			want := int64(0)
			for i := range 3 {
				b := sample.Batch(r, sc, n, 0.1)
				if sc.NumFields() == 0 {
					b = array.NewRecordBatch(sc, nil, int64(n))
				}
				want += b.NumRows()
				if err := w.Write(ctx, b); err != nil {
					t.Fatal(err)
				}
				if rows, err := libraryRows(out.Bytes()); err == nil {
					t.Errorf("%s: killed after batch %d, the stream ends with %d rows as if it were whole", name,
						i, rows)
				}
			}
			if err := w.Abort(ctx); err != nil {
				t.Fatal(err)
			}
			if rows, err := libraryRows(out.Bytes()); err == nil || rows != want {
				t.Errorf("%s: given up, the stream has %d of %d rows, and %v", name, rows, want, err)
			}
			tree := store.NewMemory(map[string][]byte{"t": out.Bytes()})
			rows := int64(0)
			got, err := readAll(tree, nil, vec.Range{})
			for _, b := range got {
				rows += b.NumRows()
			}
			if !errors.Is(err, fault.Corrupt) || rows != want {
				t.Errorf("%s: given up, stoa reads %d of %d rows, and %v", name, rows, want, err)
			}
		}
	}
}

// An aborted stream without batches, and a stream that was closed, are as expected.
func TestTornStreamEnds(t *testing.T) {
	ctx := context.Background()
	sc := sample.Schema(arrow.PrimitiveTypes.Int64)
	for _, whole := range []bool{false, true} {
		out := &pipe{}
		w, err := Format.Create(ctx, out, sc, format.WriteOptions{Rows: -1, Opts: map[string]string{"stream": "true"}})
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			sum, cerr := w.Close(ctx)
			if err = cerr; sum.Bytes != int64(out.Len()) {
				t.Errorf("%d bytes are reported, %d are there", sum.Bytes, out.Len())
			}
		}
		if aerr := w.Abort(ctx); err != nil || aerr != nil {
			t.Fatal(err, aerr)
		}
		if _, err := libraryRows(out.Bytes()); (err == nil) != whole {
			t.Errorf("whole %v: %v", whole, err)
		}
		if whole && !bytes.HasSuffix(out.Bytes(), []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}) {
			t.Errorf("the end is %x", out.Bytes()[max(0, out.Len()-16):])
		}
	}
}

// In whatever pieces a stream is written, all its bytes are written in the end, and never the last byte before that.
func TestHoldback(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		var out bytes.Buffer
		var want []byte
		l := newHoldback(&out)
		for range r.IntN(40) {
			b := make([]byte, r.IntN(20))
			if r.IntN(10) == 0 {
				b = make([]byte, r.IntN(200_000))
			}
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			want = append(want, b...)
			if n, err := l.Write(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
			if len(want) > 0 && out.Len() >= len(want) {
				t.Fatalf("%d of %d bytes are out", out.Len(), len(want))
			}
		}
		if err := l.end(nil); err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("%v: %d bytes came out of %d", err, out.Len(), len(want))
		}
	}
}
