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

// provenTypes are types that every format of the ring keeps, and others that some refuse.
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

// TestOutputsProveThemselves: whatever a format can write comes back as what it was, type by type, and is
// compared in all columns.
func TestOutputsProveThemselves(t *testing.T) {
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
				continue // it says so itself
			case err != nil:
				t.Errorf("%s, %s: %v", f.Name, typ, err)
			case !s.Checked || len(s.Unchecked) > 0:
				t.Errorf("%s, %s: checked %v, but for %v", f.Name, typ, s.Checked, s.Unchecked)
			default:
				proven++
				sound(t, name, f.Name)
			}
		}
		if proven < len(provenTypes)/2 {
			t.Errorf("%s: only %d types", f.Name, proven)
		}
	}
}

// sound holds what was written against verification, in full.
func sound(t *testing.T, name, what string) {
	t.Helper()
	for f, err := range Verify(t.Context(), name, OpenOptions{Formats: provable}) {
		if err != nil || f.Severity >= region.Warning {
			t.Errorf("%s: what was written does not pass verification: %v, %s %s: %s", what, err, f.Code, f.At,
				f.Message)
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

// lying is a format whose writer does something to the rows.
func lying(f format.Format, change func(b arrow.RecordBatch) arrow.RecordBatch) format.Format {
	create := f.Create
	f.Create = func(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
		w, err := create(ctx, s, sc, o)
		return &liar{w, change}, err
	}
	return f
}

type liar struct {
	format.Writer
	change func(arrow.RecordBatch) arrow.RecordBatch
}

func (l *liar) Write(ctx context.Context, b arrow.RecordBatch) error {
	if l.change != nil && b.NumRows() > 1 {
		b = l.change(b)
		l.change = nil
	}
	return l.Writer.Write(ctx, b)
}

// TestWrongOutputsAreNotSeen: an output with a row more or less, another value, a null more, or values that
// moved between rows gets no name, whatever its format; the error names the column, and what was there before
// is still there.
func TestWrongOutputsAreNotSeen(t *testing.T) {
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
	lies := map[string]struct {
		change func(b arrow.RecordBatch) arrow.RecordBatch
		want   string
	}{
		"a row less": {func(b arrow.RecordBatch) arrow.RecordBatch { return b.NewSlice(1, b.NumRows()) },
			"300 rows went in, 299 came back"},
		"another value": {func(b arrow.RecordBatch) arrow.RecordBatch {
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
		for what, lie := range lies {
			if f.Name == kudubackup.Format.Name && what == "a row less" {
				continue // keys make no difference to it
			}
			dir := t.TempDir()
			name := filepath.Join(dir, "out") + ext(&f)
			if f.Name != "cfile" && f.Family != kudubackup.Format.Family {
				if err := os.WriteFile(name, []byte("before"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, err := written(ctx, name, b,
				CreateOptions{Formats: []format.Format{lying(f, lie.change)}, To: f.Name, Opts: optionsOf(&f)})
			var unproven *UnprovenError
			if !errors.As(err, &unproven) || !strings.Contains(err.Error(), lie.want) {
				t.Errorf("%s, %s: %v", f.Name, what, err)
			}
			left, _ := os.ReadDir(dir)
			for _, e := range left {
				if was, _ := os.ReadFile(filepath.Join(dir, e.Name())); string(was) != "before" {
					t.Errorf("%s, %s: %s is left", f.Name, what, e.Name())
				}
			}
			if _, err := written(ctx, name, b,
				CreateOptions{Formats: []format.Format{lying(f, lie.change)}, To: f.Name, Opts: optionsOf(&f),
					NoCheck: true}); err != nil {
				t.Errorf("%s, %s, not checked: %v", f.Name, what, err)
			}
		}
	}
}

// TestWhatCannotBeReadIsNotSeen: bytes that change on their way to the disk.
func TestWhatCannotBeReadIsNotSeen(t *testing.T) {
	ctx := context.Background()
	b := provenBatch(9, 300, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32)
	for _, f := range Formats {
		if f.Create == nil || f.Name == "cfile" {
			continue
		}
		m := store.NewMemory(nil)
		f.Create = biting(f.Create)
		_, err := written(ctx, "out"+ext(&f), b,
			CreateOptions{Formats: []format.Format{f}, To: f.Name, Sink: m.Sink("out" + ext(&f))})
		if !IsUnproven(err) {
			t.Errorf("%s: %v", f.Name, err)
		}
		if len(m.Names()) > 0 {
			t.Errorf("%s: %v are there", f.Name, m.Names())
		}
	}
}

// biting creates with a sink that changes a byte of every object.
func biting(create func(context.Context, store.Sink, *arrow.Schema, format.WriteOptions) (format.Writer,
	error)) func(context.Context, store.Sink, *arrow.Schema, format.WriteOptions) (format.Writer, error) {
	return func(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
		if o.Rows == 0 { // the trial
			return create(ctx, s, sc, o)
		}
		return create(ctx, biter{s}, sc, o)
	}
}

type biter struct{ store.Sink }

func (b biter) Create(ctx context.Context, name string) (store.Object, error) {
	o, err := b.Sink.Create(ctx, name)
	return &bitten{Object: o}, err
}

type bitten struct {
	store.Object
	n int
}

func (b *bitten) Write(p []byte) (int, error) {
	const at = 700
	if b.n <= at && b.n+len(p) > at {
		p = slices.Clone(p)
		p[at-b.n] ^= 3
	}
	b.n += len(p)
	return b.Object.Write(p)
}

// TestUncheckableSinks: a sink that cannot be read before its commit is written to, and the summary says that
// nothing was checked.
func TestUncheckableSinks(t *testing.T) {
	m := store.NewMemory(nil)
	s, err := written(context.Background(), "out.csv", provenBatch(1, 10, arrow.PrimitiveTypes.Int64),
		CreateOptions{Sink: struct{ store.Sink }{m.Sink("out.csv")}})
	if err != nil || s.Checked || len(m.Names()) != 1 {
		t.Errorf("checked %v, %v, %v", s.Checked, m.Names(), err)
	}
}
