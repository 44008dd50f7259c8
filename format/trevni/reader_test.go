package trevni_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/pred"
	"stoa/store"
)

const readerRows = 5000

// readerFile has ascending keys, each of which occurs three times, as numbers and as strings, a nullable column, and
// arrays.
func readerFile(t testing.TB, f format.Format) *store.Memory {
	items := arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "l", Type: items}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range readerRows {
		b.Field(0).(*array.Int64Builder).Append(int64(i / 3 * 10))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("%06d", i/3*10))
		if i%7 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.Int32Builder).Append(int32(i))
		}
		l := b.Field(3).(*array.ListBuilder)
		l.Append(true)
		for k := range i % 4 {
			l.ValueBuilder().(*array.Int32Builder).Append(int32(i + k))
		}
	}
	out := write(t, f, sc, map[string]string{"block-size": "1000", "first-values": "k,s", "arrow-schema": "false"},
		b.NewRecordBatch())
	return store.NewMemory(map[string][]byte{"f.trv": out.Bytes("t")})
}

// reads returns the number of blocks read.
func reads(c *store.Counter, r *trevni.ColumnReader) (n int) {
	for _, b := range r.Blocks() {
		for _, got := range c.Reads() {
			if got.Off == b.At.Off && int64(got.Len) == b.At.Len {
				n++
			}
		}
	}
	return n
}

// TestColumnReader: seeking by row and by value returns what the formula states, and reads no unneeded block.
func TestColumnReader(t *testing.T) {
	ctx := t.Context()
	for _, f := range []format.Format{trevni.Format, trevni.AvroFormat} {
		counter := store.NewCounter(readerFile(t, f))
		file, err := trevni.OpenFile(ctx, counter, "f.trv", format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r := openColumn(t, file, "k")
		all := len(r.Blocks())
		if all < 10 || r.Rows() != readerRows {
			t.Fatalf("%d blocks, %d rows", all, r.Rows())
		}
		for _, row := range []int64{0, 1, 2500, 777, readerRows - 1} {
			counter.Reset()
			if err := r.SeekRow(row); err != nil {
				t.Fatal(err)
			}
			if got := next[*array.Int64](t, r, 1).Value(0); got != row/3*10 || reads(counter, r) > 1 {
				t.Errorf("row %d: %d, after %d blocks", row, got, reads(counter, r))
			}
		}
		for v := int64(-5); v < readerRows/3*10+30; v += 45 {
			counter.Reset()
			found, err := r.SeekValue(ctx, pred.Int(v))
			if err != nil {
				t.Fatal(v, err)
			}
			want := min(max((v+9)/10*3, 0), readerRows) // the first of three
			if r.Row() != want || found != (want < readerRows) || reads(counter, r) > 2 {
				t.Errorf("%d: row %d (%v), want %d; %d blocks of %d read", v, r.Row(), found, want,
					reads(counter, r), all)
			}
		}
		s := openColumn(t, file, "s")
		if found, err := s.SeekValue(ctx, pred.String("010005")); err != nil || !found ||
			next[*array.String](t, s, 1).Value(0) != "010010" {
			t.Error(found, err)
		}
		if _, err := s.SeekValue(ctx, pred.Int(3)); err == nil {
			t.Error("a number is looked for among strings")
		}
		testUnsearched(t, file, f)
	}
}

// testUnsearched reads columns without searching, in small steps.
func testUnsearched(t *testing.T, file *trevni.File, f format.Format) {
	name := file.Header().Columns[2].Name
	n := openColumn(t, file, name)
	if _, err := n.SeekValue(t.Context(), pred.Int(3)); err == nil {
		t.Error("a column without first values is searched")
	}
	seen := 0
	for {
		a, err := n.Next(t.Context(), 100)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range a.Len() {
			if a.IsNull(i) != (seen%7 == 0) || a.IsValid(i) && a.(*array.Int32).Value(i) != int32(seen) {
				t.Fatalf("row %d: %s", seen, a.ValueStr(i))
			}
			seen++
		}
		a.Release()
	}
	if seen != readerRows {
		t.Errorf("%d rows", seen)
	}
	l, err := file.Column(t.Context(), file.Header().Columns[3].Name)
	if f.Name == "trevni" { // levels do not tell where a row is
		if err == nil {
			t.Error("a column with repetition levels is opened")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SeekRow(4003); err != nil {
		t.Fatal(err)
	}
	if got := next[*array.List](t, l, 1).ValueStr(0); got != "[4003,4004,4005]" {
		t.Error(got)
	}
}

func openColumn(t *testing.T, f *trevni.File, name string) *trevni.ColumnReader {
	t.Helper()
	r, err := f.Column(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func next[T arrow.Array](t *testing.T, r *trevni.ColumnReader, n int64) T {
	t.Helper()
	a, err := r.Next(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Release)
	return a.(T)
}

// TestSeekWrongFirstValue: a first value that is wrong never leads to a wrong row.
func TestSeekWrongFirstValue(t *testing.T) {
	data := readerFile(t, trevni.Format).Bytes("f.trv")
	guarded := inBlock(t, data)
	for _, v := range []int64{0, 40, 9990, 16600} {
		for i := 100; i < len(data) && i < 4000; i++ {
			if guarded[i] {
				continue
			}
			data[i] ^= 4
			row, err := seekIn(t.Context(), data, v)
			if want := v / 10 * 3; err == nil && row != want {
				t.Errorf("%d, byte %d changed: row %d, want %d", v, i, row, want)
			}
			data[i] ^= 4
		}
	}
}

func seekIn(ctx context.Context, data []byte, v int64) (int64, error) {
	f, err := trevni.OpenFile(ctx, store.NewMemory(map[string][]byte{"f.trv": data}), "f.trv", format.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := f.Column(ctx, "k")
	if err != nil {
		return 0, err
	}
	defer r.Close()
	_, err = r.SeekValue(ctx, pred.Int(v))
	return r.Row(), err
}

// TestArrayWidth: lists of a fixed size are written without levels, and come back as lists.
func TestArrayWidth(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean} {
		sc := arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.FixedSizeListOfNonNullable(3, typ)}}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 500 {
			l := b.Field(0).(*array.FixedSizeListBuilder)
			l.Append(true)
			for k := range 3 {
				switch v := l.ValueBuilder().(type) {
				case *array.Int32Builder:
					v.Append(int32(i*3 + k))
				case *array.Float64Builder:
					v.Append(float64(i*3 + k))
				case *array.StringBuilder:
					v.Append(fmt.Sprint(i*3 + k))
				case *array.BooleanBuilder:
					v.Append((i*3+k)%5 == 0)
				}
			}
		}
		data := write(t, trevni.Format, sc, map[string]string{"block-size": "200"}, b.NewRecordBatch()).Bytes("t")
		r, cols, err := readAll(t.Context(), data, format.OpenOptions{})
		if err != nil {
			t.Fatal(typ, err)
		}
		c := trevniColumn(t, data, "m")
		if c.Width != 3 || c.MaxDef != 0 || c.MaxRep != 0 || len(cols) != 1 || cols[0].Len() != 500 ||
			r.Schema().Field(0).Type.ID() != arrow.LIST {
			t.Fatalf("%s: %+v, %d rows, %s", typ, c, cols[0].Len(), r.Schema())
		}
		for i := range 500 {
			want := fmt.Sprintf("[%d,%d,%d]", 3*i, 3*i+1, 3*i+2)
			switch typ.ID() {
			case arrow.STRING:
				want = fmt.Sprintf(`["%d","%d","%d"]`, 3*i, 3*i+1, 3*i+2)
			case arrow.BOOL:
				want = fmt.Sprintf("[%v,%v,%v]", 3*i%5 == 0, (3*i+1)%5 == 0, (3*i+2)%5 == 0)
			}
			if got := cols[0].ValueStr(i); got != want {
				t.Fatalf("%s row %d: %s, want %s", typ, i, got, want)
			}
		}
		if codes, all := findings(t, data); len(codes) > 0 {
			t.Errorf("%s: %v", typ, all)
		}
	}
}

func trevniColumn(t *testing.T, data []byte, name string) trevni.Column {
	t.Helper()
	f, err := trevni.OpenFile(t.Context(), store.NewMemory(map[string][]byte{"f.trv": data}), "f.trv",
		format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range f.Header().Columns {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no column %q", name)
	return trevni.Column{}
}
