package stoa

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/kudu/kudufs"
	"stoa/format/kudubackup"
	"stoa/region"
	"stoa/store"
)

var provable = append(slices.Clone(Formats), kudubackup.Format, kudufs.Format)

// provenTypes are types that every format supports, and some that not all do.
var provenTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
	arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Date32,
	arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Timestamp_ms,
	&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.Decimal128Type{Precision: 18, Scale: 3},
	arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.ListOf(arrow.BinaryTypes.String),
}

func provenBatch(seed uint64, n int, types ...arrow.DataType) arrow.RecordBatch {
	r := rand.New(rand.NewPCG(seed, 5))
	var fields []arrow.Field
	var cols []arrow.Array
	for i, t := range types {
		fields = append(fields, arrow.Field{Name: string(rune('a' + i)), Type: t, Nullable: true})
		cols = append(cols, formattest.Random(r, t, n, 20))
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(n))
}

func optionsOf(f *format.Format) map[string]string {
	if f.Family == kudubackup.Format.Family {
		return map[string]string{"table": "t", "key": "k"}
	}
	return nil
}

// TestOutputsAreChecked: every format writes each type or refuses it; all columns of the output are checked, and
// verification passes it.
func TestOutputsAreChecked(t *testing.T) {
	ctx := context.Background()
	for _, f := range provable {
		if f.Create == nil {
			continue
		}
		proven := 0
		for i, typ := range provenTypes {
			b := provenBatch(uint64(i), 300, typ)
			if f.Family == kudubackup.Format.Family {
				b = withKey(b)
			}
			dir := t.TempDir()
			name := filepath.Join(dir, "out") + ext(&f)
			s, err := written(ctx, name, b,
				CreateOptions{Formats: provable, To: f.Name, Opts: optionsOf(&f)})
			switch {
			case errors.Is(err, fault.Unsupported), errors.Is(err, fault.Invalid), errors.Is(err, fault.Limit):
				continue // refused
			case err != nil:
				t.Errorf("%s, %s: %v", f.Name, typ, err)
			case !s.Checked || len(s.Unchecked) > 0:
				t.Errorf("%s, %s: got checked %v, unchecked columns %v, want all checked", f.Name, typ, s.Checked,
					s.Unchecked)
			default:
				proven++
				sound(t, name, f.Name)
			}
		}
		if proven < len(provenTypes)/2 {
			t.Errorf("%s: got %d types, want %d or more", f.Name, proven, len(provenTypes)/2)
		}
	}
}

// sound checks that verification passes the output.
func sound(t *testing.T, name, what string) {
	t.Helper()
	for f, err := range Verify(t.Context(), name, OpenOptions{Formats: provable}) {
		if err != nil || f.Severity >= region.Warning {
			t.Errorf("%s: finding in what was written: %v, %s %s: %s", what, err, f.Code, f.At, f.Message)
		}
	}
}

func withKey(b arrow.RecordBatch) arrow.RecordBatch {
	k := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range b.NumRows() {
		k.Append(i)
	}
	fields := append([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, b.Schema().Fields()...)
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), append([]arrow.Array{k.NewArray()}, b.Columns()...),
		b.NumRows())
}

func ext(f *format.Format) string {
	if len(f.Extensions) > 0 {
		return f.Extensions[0]
	}
	return ""
}

func written(ctx context.Context, name string, b arrow.RecordBatch, o CreateOptions) (format.Summary, error) {
	w, err := Create(ctx, name, b.Schema(), o)
	if err != nil {
		return format.Summary{}, err
	}
	defer w.Abort(ctx)
	for from := int64(0); from < b.NumRows(); from += 100 {
		if err := w.Write(ctx, b.NewSlice(from, min(from+100, b.NumRows()))); err != nil {
			return format.Summary{}, err
		}
	}
	return w.Close(ctx)
}

// alteringRows returns a format whose writer alters a batch.
func alteringRows(f format.Format, change func(b arrow.RecordBatch) arrow.RecordBatch) format.Format {
	create := f.Create
	f.Create = func(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
		w, err := create(ctx, s, sc, o)
		return &rowAlterer{w, change}, err
	}
	return f
}

type rowAlterer struct {
	format.Writer
	change func(arrow.RecordBatch) arrow.RecordBatch
}

func (l *rowAlterer) Write(ctx context.Context, b arrow.RecordBatch) error {
	if l.change != nil && b.NumRows() > 1 {
		b = l.change(b)
		l.change = nil
	}
	return l.Writer.Write(ctx, b)
}

// TestWrongOutputsStayInvisible: in every format an output with a missing row, a wrong value, extra nulls, or values in
// wrong rows never becomes visible; the error names the column, and the previous output is unchanged.
func TestWrongOutputsStayInvisible(t *testing.T) {
	ctx := context.Background()
	b := withKey(provenBatch(7, 300, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String))
	column := func(b arrow.RecordBatch, c int, a arrow.Array) arrow.RecordBatch {
		cols := slices.Clone(b.Columns())
		cols[c] = a
		return array.NewRecordBatch(b.Schema(), cols, b.NumRows())
	}
	moved := func(b arrow.RecordBatch, c int) arrow.Array {
		n := b.NumRows()
		a, err := array.Concatenate([]arrow.Array{array.NewSlice(b.Column(c), n-1, n),
			array.NewSlice(b.Column(c), 0, n-1)}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	alterations := map[string]struct {
		change func(b arrow.RecordBatch) arrow.RecordBatch
		want   string
	}{
		"a missing row": {func(b arrow.RecordBatch) arrow.RecordBatch { return b.NewSlice(1, b.NumRows()) },
			"300 rows went in, 299 came back"},
		"a wrong value": {func(b arrow.RecordBatch) arrow.RecordBatch {
			x := array.NewInt64Builder(memory.DefaultAllocator)
			x.AppendValues(b.Column(0).(*array.Int64).Int64Values(), nil)
			a := x.NewInt64Array()
			a.Int64Values()[17] += 1 << 40
			return column(b, 0, a)
		}, "other values in the column k"},
		"moved": {func(b arrow.RecordBatch) arrow.RecordBatch { return column(b, 1, moved(b, 1)) },
			"not in the same rows"},
		"nulls": {func(b arrow.RecordBatch) arrow.RecordBatch {
			return column(b, 2, array.MakeArrayOfNull(memory.DefaultAllocator, arrow.BinaryTypes.String,
				int(b.NumRows())))
		}, "other values in the column b"},
	}
	for _, f := range provable {
		if f.Create == nil {
			continue
		}
		for what, x := range alterations {
			dir := t.TempDir()
			name := filepath.Join(dir, "out") + ext(&f)
			if f.Name != "cfile" && f.Family != kudubackup.Format.Family {
				if err := os.WriteFile(name, []byte("before"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, err := written(ctx, name, b,
				CreateOptions{Formats: []format.Format{alteringRows(f, x.change)}, To: f.Name, Opts: optionsOf(&f)})
			var unproven *UnprovenError
			if !errors.As(err, &unproven) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s, %s: got %v, want an UnprovenError with %q", f.Name, what, err, x.want)
			}
			left, _ := os.ReadDir(dir)
			for _, e := range left {
				if was, _ := os.ReadFile(filepath.Join(dir, e.Name())); string(was) != "before" {
					t.Errorf("%s, %s: got %s left, want the previous output alone", f.Name, what, e.Name())
				}
			}
			if _, err := written(ctx, name, b,
				CreateOptions{Formats: []format.Format{alteringRows(f, x.change)}, To: f.Name, Opts: optionsOf(&f),
					NoCheck: true}); err != nil {
				t.Errorf("%s, %s, unchecked: %v", f.Name, what, err)
			}
		}
	}
}

// TestDamagedOutputsStayInvisible: an output with a byte that changed on its way to the sink never becomes visible.
func TestDamagedOutputsStayInvisible(t *testing.T) {
	ctx := context.Background()
	b := provenBatch(9, 300, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32)
	for _, f := range Formats {
		if f.Create == nil || f.Name == "cfile" {
			continue
		}
		m := store.NewMemory(nil)
		f.Create = flipping(f.Create)
		_, err := written(ctx, "out"+ext(&f), b,
			CreateOptions{Formats: []format.Format{f}, To: f.Name, Sink: m.Sink("out" + ext(&f))})
		if !IsUnproven(err) {
			t.Errorf("%s: got %v, want an UnprovenError", f.Name, err)
		}
		if len(m.Names()) > 0 {
			t.Errorf("%s: got %v, want no files", f.Name, m.Names())
		}
	}
}

// flipping creates with a sink that flips bits in a byte of every object.
func flipping(create func(context.Context, store.Sink, *arrow.Schema, format.WriteOptions) (format.Writer,
	error)) func(context.Context, store.Sink, *arrow.Schema, format.WriteOptions) (format.Writer, error) {
	return func(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
		if o.Rows == 0 { // the trial run
			return create(ctx, s, sc, o)
		}
		return create(ctx, flippingSink{s}, sc, o)
	}
}

type flippingSink struct{ store.Sink }

func (b flippingSink) Create(ctx context.Context, name string) (store.Object, error) {
	o, err := b.Sink.Create(ctx, name)
	return &flippingObject{Object: o}, err
}

type flippingObject struct {
	store.Object
	n int
}

func (b *flippingObject) Write(p []byte) (int, error) {
	const at = 700
	if b.n <= at && b.n+len(p) > at {
		p = slices.Clone(p)
		p[at-b.n] ^= 3
	}
	b.n += len(p)
	return b.Object.Write(p)
}

// TestUncheckableSinks: output to a sink that cannot be read before its commit is written, but not checked, as the
// summary says.
func TestUncheckableSinks(t *testing.T) {
	m := store.NewMemory(nil)
	s, err := written(context.Background(), "out.csv", provenBatch(1, 10, arrow.PrimitiveTypes.Int64),
		CreateOptions{Sink: struct{ store.Sink }{m.Sink("out.csv")}})
	if err != nil || s.Checked || len(m.Names()) != 1 {
		t.Errorf("got checked %v, files %v, %v, want an unchecked file", s.Checked, m.Names(), err)
	}
}

// TestRowsLargerThanTheWritersMemory: an output is not refused because a row of it takes more to be read than its
// writer was given to write it.
func TestRowsLargerThanTheWritersMemory(t *testing.T) {
	lists := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	for range 3 {
		lists.Append(true)
		for i := range 1000 {
			lists.ValueBuilder().(*array.StringBuilder).Append(strings.Repeat("x", i%50))
		}
	}
	b := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: lists.Type(), Nullable: true}}, nil),
		[]arrow.Array{lists.NewArray()}, 3)
	tried := 0
	for _, f := range provable {
		opts := map[string]string{"memory": "33kB"}
		if !slices.Contains([]string{"parquet", "redfile", "carbon"}, f.Name) { // whose writers have that option
			continue
		}
		tried++
		name := filepath.Join(t.TempDir(), "out") + ext(&f)
		s, err := written(t.Context(), name, b, CreateOptions{Formats: provable, To: f.Name, Opts: opts})
		if err != nil || s.Rows != 3 || !s.Checked || len(s.Unchecked) > 0 {
			t.Errorf("%s: got %+v, %v; want 3 rows, checked", f.Name, s, err)
			continue
		}
		sound(t, name, f.Name)
	}
	if tried < 3 {
		t.Errorf("%d formats have the option, want 3 or more", tried)
	}
}
