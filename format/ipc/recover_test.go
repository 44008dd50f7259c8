package ipc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// threeBatches returns a file by arrow-go's writer with three batches of 100 numbers. ends: the offset at which each
// batch ends.
func threeBatches(t *testing.T) (file []byte, ends []int) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var b seekable
	w, err := arrowipc.NewFileWriter(&b, arrowipc.WithSchema(sc))
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 100 {
			rb.Field(0).(*array.Int64Builder).Append(int64(k*100 + i))
		}
		rec := rb.NewRecordBatch()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, b.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), ends
}

type seekable struct{ bytes.Buffer }

func (s *seekable) Seek(int64, int) (int64, error) { return int64(s.Len()), nil }

// TestRecover: recovery of a file truncated anywhere returns the batches that are complete, and reports that the footer
// is lost.
func TestRecover(t *testing.T) {
	file, ends := threeBatches(t)
	for cut := ends[0] - 1; cut < len(file); cut++ {
		want := int64(0)
		for _, e := range ends {
			if cut >= e {
				want += 100
			}
		}
		ctx := context.Background()
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": file[:cut]}), Name: "f"}
		if _, err := ipc.Format.Open(ctx, tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		r, found, err := ipc.Format.Recover(ctx, tg, format.OpenOptions{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(found) != 1 || found[0].Code != "arrow.footer" {
			t.Errorf("cut at %d: %v", cut, found)
		}
		g, err := r.RowGroups(ctx, format.Part{Ref: "f"}, format.Query{})
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for b, err := range r.(format.Batcher).Batches(ctx, g[0], format.Query{Cols: []int{0}}, vec.Range{}, nil) {
			if err != nil {
				break // the truncated batch
			}
			for i, v := range b.Column(0).(*array.Int64).Int64Values() {
				if v != rows+int64(i) {
					t.Fatalf("cut at %d: row %d is %d", cut, rows+int64(i), v)
				}
			}
			rows += b.NumRows()
		}
		if rows != want {
			t.Errorf("cut at %d: %d rows, expected %d", cut, rows, want)
		}
		r.Close()
	}
}

// TestRecoverMisleadingBytes: bytes that replace a file's first bytes, or follow the last whole message of a stream,
// cost no rows.
func TestRecoverMisleadingBytes(t *testing.T) {
	file, _ := threeBatches(t)
	headless := append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, file[8:]...)
	stream := slices.Clone(file[8:]) // the messages, their end mark, and an invalid footer
	end := bytes.LastIndex(stream, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0})
	lie := append(stream[:end:end], 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x20)
	for what, b := range map[string][]byte{"the first bytes": headless, "a length of 512 MiB": lie} {
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
		r, _, err := ipc.Format.Recover(t.Context(), tg, format.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		g, err := r.RowGroups(t.Context(), format.Part{Ref: "f"}, format.Query{})
		if err != nil {
			t.Fatal(err)
		}
		rows, last := int64(0), error(nil)
		for b, err := range r.(format.Batcher).Batches(t.Context(), g[0], format.Query{Cols: []int{0}}, vec.Range{},
			nil) {
			if last = err; err != nil {
				break
			}
			rows += b.NumRows()
		}
		if rows != 300 || last != nil && !errors.Is(last, fault.Corrupt) {
			t.Errorf("%s: %d rows, then %v", what, rows, last)
		}
		r.Close()
	}
}

// TestStreamAroundDamage: whichever byte of a batch in the middle of a stream is flipped, or however many of its
// message are overwritten, the batches before and after it are read, and something is reported, unless the byte
// belonged to a value.
func TestStreamAroundDamage(t *testing.T) {
	for _, codec := range []arrowipc.Option{arrowipc.WithLZ4(), arrowipc.WithZstd(), nil} {
		stream, ends := streamOf(t, 3, codec)
		for at := ends[0]; at < ends[1]; at++ {
			for _, n := range []int{1, 20} {
				b := bytes.Clone(stream)
				for i := at; i < min(at+n, ends[1]); i++ {
					b[i] ^= 0x55
				}
				got, reported := numbers(t, b)
				if len(got) < 200 || !slices.Equal(got[:100], hundred(0)) ||
					!slices.Equal(got[len(got)-100:], hundred(2)) {
					t.Fatalf("bytes %d+%d (the batch is %d to %d): %d rows", at, n, ends[0], ends[1], len(got))
				}
				if len(got) != 300 && !reported {
					t.Fatalf("bytes %d+%d: %d rows, and nothing is reported", at, n, len(got))
				}
			}
		}
	}
}

// TestSchemaWithBody: a schema has no body. A schema that claims one, by whichever bit, is damaged; that is reported on
// opening, and recovery finds the batches, which follow the schema's metadata.
func TestSchemaWithBody(t *testing.T) {
	stream, _ := streamOf(t, 3, nil)
	claims := 0
	for bit := range 8 * (8 + int(binary.LittleEndian.Uint32(stream[4:]))) {
		b := bytes.Clone(stream)
		b[bit/8] ^= 1 << (bit % 8)
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
		r, err := ipc.Format.Open(t.Context(), tg, format.OpenOptions{})
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "and a schema has none") {
			continue
		}
		claims++
		r, found, err := ipc.Format.Recover(t.Context(), tg, format.OpenOptions{})
		if err != nil || len(found) != 1 || found[0].Severity != region.Error {
			t.Errorf("bit %d: %v, reported %v", bit, err, found)
			continue
		}
		if rows, last := rowsOf(t, r); rows != 300 || last != nil {
			t.Errorf("bit %d: %d rows, then %v", bit, rows, last)
		}
		r.Close()
	}
	if claims == 0 {
		t.Error("no bit makes a body: nothing was tested")
	}
}

// TestZeroedStream: a message overwritten with zeros is not taken for the end of the stream.
func TestZeroedStream(t *testing.T) {
	stream, ends := streamOf(t, 3, nil)
	for at := ends[0]; at < ends[1]; at += 4 {
		b := bytes.Clone(stream)
		clear(b[at:ends[1]])
		if got, reported := numbers(t, b); !slices.Equal(got[:100], hundred(0)) ||
			!slices.Equal(got[len(got)-100:], hundred(2)) || !reported && len(got) != 300 {
			t.Fatalf("zeros from %d (the batch is %d to %d): %d rows, reported %t", at, ends[0], ends[1], len(got),
				reported)
		}
	}
}

// TestStreamAfterStream: batches of another stream after a damaged one are not taken for its own.
func TestStreamAfterStream(t *testing.T) {
	stream, ends := streamOf(t, 3, nil)
	other, _ := streamOf(t, 2, nil)
	for _, n := range []int{4, 8, 200} {
		b := bytes.Clone(stream)
		clear(b[ends[1] : ends[1]+n])
		if got, _ := numbers(t, append(b, other...)); !slices.Equal(got, append(hundred(0), hundred(1)...)) {
			t.Errorf("%d zeros in the last batch, and another stream after it: %d rows", n, len(got))
		}
	}
}

// TestFileBits: whichever bit of the footer or of the messages of a file is flipped, recovery returns all intact
// batches.
func TestFileBits(t *testing.T) {
	file, ends := threeBatches(t)
	for i := 8 * ends[0]; i < 8*len(file); i++ {
		if testing.Short() && i%5 > 0 {
			continue
		}
		b := bytes.Clone(file)
		b[i/8] ^= 1 << (i % 8)
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
		r, _, err := ipc.Format.Recover(context.Background(), tg, format.OpenOptions{})
		if err != nil {
			t.Fatalf("bit %d of byte %d of %d: %v", i%8, i/8, len(file), err)
		}
		groups, err := r.RowGroups(context.Background(), format.Part{Ref: "f"}, format.Query{})
		if err != nil {
			t.Fatalf("bit %d of byte %d of %d: %v", i%8, i/8, len(file), err)
		}
		var got []int64
		for _, g := range groups {
			for b, err := range r.(format.Batcher).Batches(context.Background(), g, format.Query{Cols: []int{0}},
				vec.Range{}, nil) {
				if err == nil {
					got = append(got, b.Column(0).(*array.Int64).Int64Values()...)
				}
			}
		}
		for k := range int64(3) {
			if at := int64(i / 8); at >= int64(ends[k]) || k > 0 && at < int64(ends[k-1]) {
				if !slices.ContainsFunc(got, func(n int64) bool { return n == k*100 }) ||
					!slices.Contains(got, k*100+99) {
					t.Fatalf("bit %d of byte %d of %d: batch %d is whole and not recovered: %d rows", i%8, i/8,
						len(file), k, len(got))
				}
			}
		}
	}
}

// TestStreamWithinCell: if a damaged batch has cells that contain whole streams of the same schema, their rows are not
// taken for the table's.
func TestStreamWithinCell(t *testing.T) {
	inner, _ := streamOf(t, 2, nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.BinaryTypes.Binary}}, nil)
	var out bytes.Buffer
	w := arrowipc.NewWriter(&out, arrowipc.WithSchema(sc))
	var ends []int
	for range 3 {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		rb.Field(0).(*array.BinaryBuilder).Append(inner)
		if err := w.Write(rb.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, out.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	for i := ends[0]; i < ends[0]+24; i++ {
		b[i] ^= 0x55
	}
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
	r, err := ipc.Format.Open(context.Background(), tg, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for b, err := range r.(format.Batcher).Batches(context.Background(), format.RowGroup{Part: "f"},
		format.Query{Cols: []int{0}}, vec.Range{}, nil) {
		if err == nil {
			rows += b.NumRows()
		}
	}
	if rows != 2 {
		t.Errorf("%d rows of 2 that are whole", rows)
	}
}

// streamOf returns a stream by arrow-go's writer: batches of 100 numbers, one after the other.
func streamOf(t *testing.T, batches int, opt arrowipc.Option) (stream []byte, ends []int) {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var b bytes.Buffer
	opts := []arrowipc.Option{arrowipc.WithSchema(sc)}
	if opt != nil {
		opts = append(opts, opt)
	}
	w := arrowipc.NewWriter(&b, opts...)
	for k := range batches {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		rb.Field(0).(*array.Int64Builder).AppendValues(hundred(int64(k)), nil)
		if err := w.Write(rb.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, b.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), ends
}

func hundred(k int64) (out []int64) {
	for i := range int64(100) {
		out = append(out, k*100+i)
	}
	return out
}

// numbers returns the values read from a stream, skipping damage, and whether there was any.
func numbers(t *testing.T, stream []byte) (out []int64, reported bool) {
	t.Helper()
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": stream}), Name: "f"}
	r, err := ipc.Format.Open(context.Background(), tg, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range r.(format.Batcher).Batches(context.Background(), format.RowGroup{Part: "f"},
		format.Query{Cols: []int{0}}, vec.Range{}, nil) {
		if err != nil {
			reported = true
			continue
		}
		out = append(out, b.Column(0).(*array.Int64).Int64Values()...)
	}
	return out, reported || len(r.(format.Finder).Findings()) > 0
}
