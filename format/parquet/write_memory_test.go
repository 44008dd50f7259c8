package parquet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/store"
)

// meteredSink measures the memory in use at some operations of a writer.
type meteredSink struct {
	store.Sink
	every   int
	ops     int
	peak    uint64
	spilled atomic.Int64
}

func (s *meteredSink) look() {
	if s.ops++; s.ops%s.every > 0 {
		return
	}
	s.peak = max(s.peak, inUse())
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

type meteredObject struct {
	store.Object
	s *meteredSink
}

func (o meteredObject) Write(b []byte) (int, error) {
	o.s.look()
	return o.Object.Write(b)
}

type meteredScratch struct {
	store.Scratch
	s *meteredSink
}

func (o meteredScratch) Write(b []byte) (int, error) {
	o.s.look()
	o.s.spilled.Add(int64(len(b)))
	return o.Scratch.Write(b)
}

func (s *meteredSink) Create(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Sink.Create(ctx, name)
	return meteredObject{o, s}, err
}

func (s *meteredSink) Scratch(ctx context.Context) (store.Scratch, error) {
	o, err := s.Sink.Scratch(ctx)
	return meteredScratch{o, s}, err
}

// TestWritingIsBounded: the memory of a writer stays within one and a half times its budget for all tables, no row
// group is ended early for it, and the rows are right. The tables exceed the budget several times by columns, stored
// pages, dictionaries, large values, or Bloom filters.
func TestWritingIsBounded(t *testing.T) {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(rand.Uint32()%26)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		columns, batches, rows int
		typ                    arrow.DataType
		value                  func(col, row int) any
		opts                   map[string]string
		groups                 int // at most
	}{
		"wide": {1000, 40, 250, i64, func(col, row int) any { return int64(col*7919 ^ row*row) }, nil, 1},
		"wide, random": {1000, 40, 250, i64, func(int, int) any { return rand.Int64() },
			map[string]string{"compression": "none"}, 1},
		"dictionaries": {300, 40, 500, str, func(col, row int) any {
			return fmt.Sprintf("a value of column %d: %d", col, row*7919%2000)
		}, nil, 1},
		"large values": {2, 40, 8, str, func(col, row int) any { return noise(1 << 18) }, nil, 1},
		"a long column": {1, 60, 20_000, i64, func(int, int) any { return rand.Int64() },
			map[string]string{"compression": "none"}, 2},
		"Bloom filters": {20, 40, 3000, i64, func(int, int) any { return rand.Int64() }, map[string]string{
			"compression": "none", "row-group-rows": "20000",
			"bloom": "c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19"}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			const budget = 8 << 20
			if testing.Short() {
				c.batches /= 8
			}
			fields := make([]arrow.Field, c.columns)
			for i := range fields {
				fields[i] = arrow.Field{Name: fmt.Sprint("c", i), Type: c.typ}
			}
			sc := arrow.NewSchema(fields, nil)
			place := filepath.Join(t.TempDir(), "x.parquet")
			sink := &meteredSink{Sink: store.Local{}.Sink(place, nil), every: 200}
			opts := map[string]string{"memory": fmt.Sprint(budget)}
			for k, v := range c.opts {
				opts[k] = v
			}
			w, err := parquet.Format.Create(t.Context(), sink, sc, format.WriteOptions{Rows: -1, Opts: opts})
			if err != nil {
				t.Fatal(err)
			}
			base, largest := inUse(), uint64(0)
			sums := make([]int64, c.columns)
			for k := range c.batches {
				before := inUse()
				b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
				for col := range fields {
					for row := range c.rows {
						switch v := c.value(col, k*c.rows+row).(type) {
						case int64:
							b.Field(col).(*array.Int64Builder).Append(v)
							sums[col] += v
						case string:
							b.Field(col).(*array.StringBuilder).Append(v)
							sums[col] += int64(len(v)) + int64(v[len(v)-1])
						}
					}
				}
				batch := b.NewRecordBatch()
				b = nil
				largest = max(largest, inUse()-before)
				if err := w.Write(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				sink.peak = max(sink.peak, inUse())
			}
			if _, err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := int64(sink.peak-base) - int64(largest)
			t.Logf("a peak of %.1f MiB beside a batch of %.1f MiB; %.1f MiB were spilled", float64(got)/(1<<20),
				float64(largest)/(1<<20), float64(sink.spilled.Load())/(1<<20))
			if sink.spilled.Load() == 0 && !testing.Short() {
				t.Error("got nothing spilled, want a temporary file")
			}
			if got > 3*budget/2+int64(largest) { // a slice of a batch is held twice
				t.Errorf("got a peak of %d besides a batch of %d, with a budget of %d", got, largest, budget)
			}
			checkSums(t, place, sums, int64(c.batches*c.rows), c.groups)
		})
	}
}

// checkSums compares the sums of a file's columns with the expected ones.
func checkSums(t *testing.T, place string, want []int64, rows int64, groups int) {
	t.Helper()
	table, err := stoa.Open(t.Context(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	got, n := make([]int64, len(want)), int64(0)
	for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.NumRows()
		for col, a := range b.Columns() {
			for i := range a.Len() {
				switch a := a.(type) {
				case *array.Int64:
					got[col] += a.Value(i)
				case *array.String:
					v := a.Value(i)
					got[col] += int64(len(v)) + int64(v[len(v)-1])
				}
			}
		}
	}
	if n != rows {
		t.Errorf("got %d rows, want %d", n, rows)
	}
	for col := range want {
		if got[col] != want[col] {
			t.Fatalf("column %d: got sum %d, want %d", col, got[col], want[col])
		}
	}
	plan, err := table.Explain(t.Context(), stoa.ScanSpec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	have := int(plan.Levels[1].Considered)
	if have > groups {
		t.Errorf("got %d row groups, want at most %d", have, groups)
	}
}
