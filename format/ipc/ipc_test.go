package ipc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

var everything = sample.Schema(slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare())...)

// write writes the batches to an object "t".
func write(t testing.TB, opts map[string]string, batches ...arrow.RecordBatch) *store.Memory {
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
		t.Errorf("summary says %d bytes, there are %d", sum.Bytes, len(tree.Bytes("t")))
	}
	formattest.Sound(t, &Format, tree, "t")
	return tree
}

// readAll returns the wanted columns and rows of "t" as batches, group by group, and the first error.
func readAll(tree store.Tree, cols []int, rows vec.Range) (out []arrow.RecordBatch, err error) {
	ctx := context.Background()
	r, err := Format.Open(ctx, format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if cols == nil {
		for i := range r.Columns() {
			cols = append(cols, i)
		}
	}
	q := format.Query{Cols: cols}
	for p, err := range r.Parts(ctx, q) {
		if err != nil {
			return nil, err
		}
		groups, err := r.RowGroups(ctx, p, q)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			for b, err := range r.(format.Batcher).Batches(ctx, g, q, rows, memory.NewGoAllocator()) {
				if err != nil {
					return out, err
				}
				b.Retain()
				out = append(out, b)
			}
		}
	}
	return out, nil
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, opts := range []map[string]string{{}, {"stream": "true"}, {"compression": "lz4"},
		{"compression": "zstd"}, {"compression": "zstd", "stream": "true"}} {
		want := []arrow.RecordBatch{sample.Batch(r, everything, 100, 0.2), sample.Batch(r, everything, 1, 0),
			sample.Batch(r, everything, 300, 1)}
		tree := write(t, opts, want...)
		if file := string(tree.Bytes("t")[:6]) == fileMagic; file != (opts["stream"] == "") {
			t.Errorf("%v: is a file: %t", opts, file)
		}
		described(t, "written", tree)
		got, err := readAll(tree, nil, vec.Range{})
		if err != nil {
			t.Fatal(opts, err)
		}
		if len(got) != len(want) {
			t.Fatalf("%v: %d batches, want %d", opts, len(got), len(want))
		}
		for i := range want {
			for k := range everything.Fields() {
				a, b := want[i].Column(k), got[i].Column(k)
				if a.DataType().ID() == arrow.DICTIONARY { // compare values, not their indices
					if fmt.Sprint(a.(*array.Dictionary).Len(), texts(a)) != fmt.Sprint(b.Len(), texts(b)) {
						t.Errorf("%v: batch %d: %s differs", opts, i, everything.Field(k).Name)
					}
				} else if !array.ApproxEqual(a, b, array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
					t.Errorf("%v: batch %d: %s differs", opts, i, everything.Field(k).Name)
				}
			}
		}
	}
}

func texts(a arrow.Array) (out []string) {
	for i := range a.Len() {
		out = append(out, a.ValueStr(i))
	}
	return out
}

// rowsOf concatenates batches for comparison.
func rowsOf(t testing.TB, sc *arrow.Schema, batches []arrow.RecordBatch) arrow.Table {
	t.Helper()
	return array.NewTableFromRecords(sc, batches)
}

func TestProjectionAndRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sc := sample.Schema(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64)
	batches := []arrow.RecordBatch{sample.Batch(r, sc, 100, 0.1), sample.Batch(r, sc, 1000, 0.1),
		sample.Batch(r, sc, 70_000, 0.1)}
	tree := write(t, map[string]string{"stream": "true"}, batches...)
	all := rowsOf(t, sc, batches)
	for _, rows := range []vec.Range{{From: 0, To: 1}, {From: 99, To: 101}, {From: 1100, To: 1101},
		{From: 50, To: 70_000}, {From: 71_099, To: 80_000}} {
		got, err := readAll(tree, []int{1, 0}, rows)
		if err != nil {
			t.Fatal(err)
		}
		sub := rowsOf(t, projected(sc, []int{1, 0}), got)
		to := min(rows.To, all.NumRows())
		if sub.NumRows() != to-rows.From {
			t.Fatalf("%v: %d rows", rows, sub.NumRows())
		}
		for k, c := range []int{1, 0} {
			if !array.ChunkedEqual(sub.Column(k).Data(), array.NewChunkedSlice(all.Column(c).Data(), rows.From, to)) {
				t.Errorf("%v: column %d differs", rows, c)
			}
		}
	}
	none, err := readAll(tree, []int{}, vec.Range{})
	if err != nil || len(none) == 0 || none[0].NumRows() != 100 || none[0].NumCols() != 0 {
		t.Errorf("no columns: %v, %v", none, err)
	}
}

func TestGrowingDictionary(t *testing.T) {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	sc := sample.Schema(dt)
	mk := func(words ...string) arrow.RecordBatch {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
		for _, w := range words {
			b.Field(0).(*array.BinaryDictionaryBuilder).AppendString(w)
		}
		return b.NewRecordBatch()
	}
	want := []arrow.RecordBatch{mk("a", "b"), mk("c", "a"), mk("b"), mk("d", "d", "a")}
	for _, opts := range []map[string]string{{}, {"stream": "true"}} {
		tree := write(t, opts, want...)
		described(t, "written", tree)
		got, err := readAll(tree, nil, vec.Range{})
		if err != nil {
			t.Fatal(opts, err)
		}
		for i := range want {
			a, b := want[i].Column(0), got[i].Column(0)
			for k := range a.Len() {
				if a.ValueStr(k) != b.ValueStr(k) {
					t.Errorf("%v: batch %d row %d: %s, want %s", opts, i, k, b.ValueStr(k), a.ValueStr(k))
				}
			}
		}
	}
}

// small returns a little of everything that hostile bytes could break.
func small() []arrow.RecordBatch {
	r := rand.New(rand.NewPCG(5, 6))
	sc := sample.Schema(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.BinaryTypes.StringView,
		arrow.ListOf(arrow.PrimitiveTypes.Int64),
		arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.Binary, Nullable: true}),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String})
	return []arrow.RecordBatch{sample.Batch(r, sc, 7, 0.3)}
}

// damaged reads arbitrary bytes: an error must have a class, and the result must be usable.
func damaged(t *testing.T, what string, i int, b []byte) {
	t.Helper()
	got, err := readAll(store.NewMemory(map[string][]byte{"t": b}), nil, vec.Range{})
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

func TestDamage(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"stream": "true"}, {"compression": "lz4"},
		{"compression": "zstd", "stream": "true"}} {
		whole := write(t, opts, small()...).Bytes("t")
		for i := range whole {
			if testing.Short() && i%5 > 0 {
				continue
			}
			damaged(t, "cut", i, whole[:i])
			for _, x := range []byte{0x01, 0x80, 0xFF} {
				b := slices.Clone(whole)
				b[i] ^= x
				damaged(t, "flip", i, b)
			}
		}
	}
}

// TestEmpty writes no batch at all.
func TestEmpty(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"stream": "true"}} {
		tree := store.NewMemory(nil)
		w, err := Format.Create(context.Background(), tree.Sink("t"), everything, format.WriteOptions{Opts: opts})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		described(t, "empty", tree)
		if got, err := readAll(tree, nil, vec.Range{}); err != nil || len(got) != 0 {
			t.Errorf("%v: %d batches, %v", opts, len(got), err)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"stream": "true"}} {
		m, err := Format.Probe(context.Background(), format.Target{Tree: write(t, opts, small()...), Name: "t"})
		if m != format.Certain || err != nil {
			t.Errorf("%v: %v, %v", opts, m, err)
		}
	}
	for _, s := range []string{"", "PAR1", "a,b,c\n1,2,3\n", "{\"a\":1}\n", "ARROW"} {
		m, err := Format.Probe(context.Background(),
			format.Target{Tree: store.NewMemory(map[string][]byte{"t": []byte(s)}), Name: "t"})
		if m != format.No || err != nil {
			t.Errorf("%q: %v, %v", s, m, err)
		}
	}
}

// TestLeaks leaves the loop early, and reads to the end: all memory is released.
func TestLeaks(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	ctx := context.Background()
	r := rand.New(rand.NewPCG(7, 7))
	batch := sample.Batch(r, everything, 300, 0.2)
	for _, c := range []map[string]string{{}, {"stream": "true"}, {"compression": "zstd"},
		{"compression": "lz4", "stream": "true"}} {
		rd, err := Format.Open(ctx, format.Target{Tree: write(t, c, batch), Name: "t"}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		q := format.Query{}
		for i := range rd.Columns() {
			q.Cols = append(q.Cols, i)
		}
		for _, leave := range []bool{true, false} {
			for _, rows := range []vec.Range{{}, {From: 10, To: 20}} {
				for _, err := range rd.(format.Batcher).Batches(ctx, format.RowGroup{Rows: -1}, q, rows, mem) {
					if err != nil {
						t.Fatal(err)
					}
					if leave {
						break
					}
				}
			}
		}
		rd.Close()
	}
}
