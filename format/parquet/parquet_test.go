package parquet

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/ipc/sample"
	"stoa/store"
	"stoa/vec"
)

// written writes the batches to an object "t".
func written(t testing.TB, opts map[string]string, batches ...arrow.RecordBatch) *store.Memory {
	t.Helper()
	tree := store.NewMemory(nil)
	ctx := context.Background()
	w, err := Format.Create(ctx, tree.Sink("t"), batches[0].Schema(), format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Bytes != int64(len(tree.Bytes("t"))) {
		t.Errorf("got a summary of %d bytes, want %d", sum.Bytes, len(tree.Bytes("t")))
	}
	formattest.Sound(t, &Format, tree, "t")
	return tree
}

// readAll returns the wanted columns of "t"; rows is a range in each row group.
func readAll(tree store.Tree, cols []int, rows vec.Range) (sc *arrow.Schema, out []arrow.RecordBatch, err error) {
	ctx := context.Background()
	r, err := Format.Open(ctx, format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	if cols == nil {
		for i := range r.Schema().NumFields() {
			cols = append(cols, i)
		}
	}
	q := format.Query{Cols: cols}
	for p, err := range r.Parts(ctx, q) {
		if err != nil {
			return nil, nil, err
		}
		groups, err := r.RowGroups(ctx, p, q)
		if err != nil {
			return nil, nil, err
		}
		for _, g := range groups {
			for b, err := range batchesOf(ctx, r.(*reader), g, q, rows, memory.NewGoAllocator()) {
				if err != nil {
					return r.Schema(), out, err
				}
				b.Retain()
				out = append(out, b)
			}
		}
	}
	return r.Schema(), out, nil
}

// join concatenates column k of all batches.
func join(t testing.TB, batches []arrow.RecordBatch, k int) arrow.Array {
	t.Helper()
	var arrs []arrow.Array
	for _, b := range batches {
		arrs = append(arrs, b.Column(k))
	}
	a, err := array.Concatenate(arrs, memory.NewGoAllocator())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// rangeAll is all rows.
var rangeAll vec.Range

func equal(a, b arrow.Array) bool {
	return array.ApproxEqual(a, b, array.WithNaNsEqual(true), array.WithAbsTolerance(0))
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dt := range slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare()) {
		sc := sample.Schema(dt)
		want := sample.Batch(r, sc, 500, 0.2)
		for _, opts := range []map[string]string{{},
			{"row-group-rows": "100", "compression": "zstd", "page-size": "100", "page-version": "2"}} {
			tree, err := tryWrite(want, opts)
			if err != nil {
				if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), sc.Field(0).Name) {
					t.Errorf("%s: %v", dt, err)
				}
				t.Logf("%s cannot be written: %v", dt, err)
				break
			}
			got, batches, err := readAll(tree, nil, vec.Range{})
			if err != nil {
				t.Errorf("%s %v: %v", dt, opts, err)
				continue
			}
			if !got.Equal(sc) {
				t.Errorf("%s: got schema %s, want %s", dt, got, sc)
			} else if !equal(join(t, batches, 0), want.Column(0)) {
				t.Errorf("%s %v: values differ", dt, opts)
			}
		}
	}
}

func tryWrite(b arrow.RecordBatch, opts map[string]string) (*store.Memory, error) {
	tree := store.NewMemory(nil)
	ctx := context.Background()
	w, err := Format.Create(ctx, tree.Sink("t"), b.Schema(), format.WriteOptions{Rows: -1, Opts: opts})
	if err == nil {
		err = w.Write(ctx, b)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	return tree, err
}

func TestCompressions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	sc := sample.Schema(sample.Nested()...)
	want := sample.Batch(r, sc, 2000, 0.1)
	for _, c := range []string{"", "none", "snappy", "zstd", "gzip", "lz4", "brotli"} {
		for _, version := range []string{"1.0", "2.4", "2.6"} {
			opts := map[string]string{"compression": c, "version": version, "dictionary": "false"}
			if c == "" { // the default
				delete(opts, "compression")
			}
			_, got, err := readAll(written(t, opts, want), nil, vec.Range{})
			if err != nil {
				t.Errorf("%s %s: %v", c, version, err)
				continue
			}
			for k := range want.Columns() {
				if !equal(join(t, got, k), want.Column(k)) {
					t.Errorf("%s %s: column %d differs", c, version, k)
				}
			}
		}
	}
}

// TestOldVersionsHaveNoNanoseconds: nanoseconds are refused in old versions, where the library would silently truncate
// them to microseconds.
func TestOldVersionsHaveNoNanoseconds(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.FixedWidthTypes.Timestamp_ns)}}, nil)
	b := sample.Batch(rand.New(rand.NewPCG(1, 1)), sc, 3, 0)
	for version, refused := range map[string]bool{"1.0": true, "2.4": true, "2.6": false} {
		_, err := tryWrite(b, map[string]string{"version": version})
		if errors.Is(err, fault.Unsupported) != refused || (err == nil) == refused {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestMetadataStays(t *testing.T) {
	meta := arrow.NewMetadata([]string{"stoa.encoding"}, []string{"rle"})
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Metadata: meta})
	schemaMeta := arrow.NewMetadata([]string{"k"}, []string{"v"})
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Metadata: meta},
		{Name: "s", Type: inner, Nullable: true, Metadata: meta}}, &schemaMeta)
	got, _, err := readAll(written(t, nil, sample.Batch(rand.New(rand.NewPCG(1, 1)), sc, 10, 0)), nil, vec.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(sc) || !got.HasMetadata() || got.Metadata().FindKey("k") < 0 {
		t.Errorf("got %s, want %s", got, sc)
	}
	for i, f := range sc.Fields() {
		if !got.Field(i).Metadata.Equal(f.Metadata) {
			t.Errorf("field %s: got metadata %v, want %v", f.Name, got.Field(i).Metadata, f.Metadata)
		}
	}
	if m := got.Field(1).Type.(*arrow.StructType).Field(0).Metadata; !m.Equal(meta) {
		t.Errorf("inner field: got metadata %v", m)
	}
}

func TestProjectionAndRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	sc := sample.Schema(slices.Concat(sample.Nested(),
		[]arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String})...)
	want := sample.Batch(r, sc, 70_000, 0.1)
	for _, index := range []string{"true", "false"} {
		tree := written(t, map[string]string{"page-size": "5000", "page-index": index}, want)
		for _, rows := range []vec.Range{{From: 0, To: 5}, {From: 1, To: 2}, {From: 65_530, To: 65_545},
			{From: 69_999, To: 80_000}, {From: 80_000, To: 80_001}} {
			cols := []int{7, 3, 1}
			_, got, err := readAll(tree, cols, rows)
			if err != nil {
				t.Fatal(rows, err)
			}
			rows = rows.Intersect(vec.Range{To: 70_000})
			if rows.Len() == 0 {
				if len(got) != 0 {
					t.Errorf("%v: got %d batches", rows, len(got))
				}
				continue
			}
			for k, c := range cols {
				if !equal(join(t, got, k), array.NewSlice(want.Column(c), rows.From, rows.To)) {
					t.Errorf("%v: column %d differs (index %s)", rows, c, index)
				}
			}
		}
	}
	_, none, err := readAll(written(t, nil, want), []int{}, vec.Range{})
	if err != nil || len(none) != 2 || none[0].NumRows()+none[1].NumRows() != 70_000 {
		t.Errorf("no columns: %v, %v", none, err)
	}
}

// TestRangesInsidePages: ranges of rows that begin and end anywhere in a page, of fields with one or several repeated
// columns, are read.
func TestRangesInsidePages(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	list := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	sc := sample.Schema(list, arrow.ListOf(list), arrow.MapOf(arrow.BinaryTypes.String, list),
		arrow.StructOf(arrow.Field{Name: "x", Type: list, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "z", Type: list, Nullable: true}),
		arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "z", Type: arrow.StructOf(arrow.Field{Name: "l", Type: list},
				arrow.Field{Name: "n", Type: arrow.BinaryTypes.String}), Nullable: true})),
		arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
			arrow.Field{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, list), Nullable: true})),
		arrow.PrimitiveTypes.Int64)
	const rows = 120
	want := sample.Batch(r, sc, rows, 0.1)
	var few []arrow.RecordBatch // the library ends pages with batches
	for i := int64(0); i < rows; i += 20 {
		few = append(few, want.NewSlice(i, i+20))
	}
	for _, version := range []string{"1", "2"} {
		tree := written(t, map[string]string{"page-size": "400", "page-version": version}, few...)
		for from := range rows {
			if testing.Short() && from%6 > 0 {
				continue
			}
			for _, n := range []int{1, 2, 7, 50, rows} {
				at := vec.Range{From: int64(from), To: min(rows, int64(from+n))}
				_, got, err := readAll(tree, nil, at)
				if err != nil {
					t.Fatal(version, at, err)
				}
				for k := range want.Columns() {
					if !equal(join(t, got, k), array.NewSlice(want.Column(k), at.From, at.To)) {
						t.Errorf("version %s, rows %v: column %s differs", version, at, sc.Field(k).Type)
					}
				}
			}
		}
	}
}

// damaged reads arbitrary bytes: errors must have a class and a location, and batches must be valid.
func damaged(t *testing.T, what string, i int, b []byte) {
	t.Helper()
	for _, rows := range []vec.Range{{}, {From: 3, To: 5}} {
		_, got, err := readAll(store.NewMemory(map[string][]byte{"t": b}), nil, rows)
		var e *fault.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%s %d: an error without a class: %v", what, i, err)
		}
		if err != nil && e.At.Object != "t" {
			t.Fatalf("%s %d: an error without a place: %v", what, i, err)
		}
		for _, g := range got {
			for _, c := range g.Columns() {
				for k := range c.Len() {
					_ = c.ValueStr(k)
				}
			}
		}
	}
}

func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	sc := sample.Schema(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int64),
		arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.Binary, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}),
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 20, Scale: 2})
	b := sample.Batch(r, sc, 7, 0.3)
	for _, opts := range []map[string]string{{"compression": "none"},
		{"compression": "snappy", "page-version": "2", "dictionary": "false"}} {
		whole := written(t, opts, b).Bytes("t")
		flips := []byte{0x01, 0xFF}
		if testing.Short() {
			flips = flips[1:]
		}
		for i := range whole {
			if testing.Short() && i%3 > 0 {
				continue
			}
			damaged(t, "cut", i, whole[:i])
			for _, x := range flips {
				c := slices.Clone(whole)
				c[i] ^= x
				damaged(t, "flip", i, c)
			}
		}
	}
}

func TestProbe(t *testing.T) {
	tree := written(t, nil, sample.Batch(rand.New(rand.NewPCG(1, 1)), sample.Schema(arrow.PrimitiveTypes.Int32), 1, 0))
	if m, err := Format.Probe(context.Background(), format.Target{Tree: tree, Name: "t"}); m != format.Certain ||
		err != nil {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := Format.Probe(context.Background(),
		targetOf([]byte("PA"))); m != format.No ||
		err != nil {
		t.Errorf("%v, %v", m, err)
	}
}
