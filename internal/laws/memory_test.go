package laws_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/region"
)

// peakAllocator counts the bytes currently allocated, and their peak.
type peakAllocator struct {
	mu        sync.Mutex
	now, peak int
	sizes     map[*byte]int
}

func (p *peakAllocator) Allocate(n int) []byte {
	b := memory.DefaultAllocator.Allocate(max(n, 1))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes[&b[0]] = n
	p.now += n
	p.peak = max(p.peak, p.now)
	return b[:n]
}

func (p *peakAllocator) Reallocate(n int, b []byte) []byte {
	out := p.Allocate(n)
	copy(out, b)
	p.Free(b)
	return out
}

func (p *peakAllocator) Free(b []byte) {
	if cap(b) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &b[:1][0]
	p.now -= p.sizes[k]
	delete(p.sizes, k)
}

// wide writes a directory of CFiles: 40,000 rows with a number and two long texts, 40 MB of text.
func wide(t *testing.T) string {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "a", Type: arrow.BinaryTypes.String}, {Name: "b", Type: arrow.BinaryTypes.String}}, nil)
	place := filepath.Join(t.TempDir(), "wide") + "/"
	w, err := stoa.Create(context.Background(), place, sc,
		stoa.CreateOptions{To: "cfile", Opts: map[string]string{"block-size": "65536", "encoding.a": "plain",
			"encoding.b": "plain"}})
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < 40_000; at += 4000 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 4000 {
			b.Field(0).(*array.Int64Builder).Append(int64(at + i))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("%0500d", at+i))
			b.Field(2).(*array.StringBuilder).Append(strings.Repeat("x", 500))
		}
		if err := w.Write(context.Background(), b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return place
}

// TestMemoryBudget: a scan keeps to its memory budget, with one worker and with several, and returns the same rows.
func TestMemoryBudget(t *testing.T) {
	table, err := stoa.Open(context.Background(), wide(t), stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for _, workers := range []int{1, 4} {
		for _, budget := range []int64{0, 8 << 20} {
			p := &peakAllocator{sizes: map[*byte]int{}}
			next := int64(0)
			for b, err := range table.Scan(context.Background(),
				stoa.ScanSpec{Alloc: p, Parallel: workers, Memory: budget}) {
				if err != nil {
					t.Fatal(err)
				}
				n, a := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
				for i := range n.Len() {
					if n.Value(i) != next || a.Value(i) != fmt.Sprintf("%0500d", next) {
						t.Fatalf("row %d is %d, %s", next, n.Value(i), a.Value(i))
					}
					next++
				}
			}
			if next != 40_000 || p.now != 0 {
				t.Errorf("%d workers: %d rows, %d bytes were not released", workers, next, p.now)
			}
			t.Logf("%d workers, budget %d: at most %d bytes", workers, budget, p.peak)
			if budget > 0 && int64(p.peak) > budget || budget == 0 && p.peak < 16<<20 {
				t.Errorf("%d workers, budget %d: at most %d bytes", workers, budget, p.peak)
			}
		}
	}
}

// TestBatchesOfLongStringsAreCut: a few bytes that expand to very many do not make a batch too large. Here they are
// codes of one long string in a dictionary.
func TestBatchesOfLongStringsAreCut(t *testing.T) {
	const rows, width, most = 4000, 60_000, 128 << 20 // a batch may span two windows
	place := filepath.Join(t.TempDir(), "long.cfile")
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}}, nil)
	w, err := stoa.Create(context.Background(), place, sc,
		stoa.CreateOptions{To: "cfile", Opts: map[string]string{"encoding": "dict", "compression": "lz4"}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", width)
	for at := 0; at < rows; at += 100 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for range 100 {
			b.Field(0).(*array.StringBuilder).Append(text)
		}
		if err := w.Write(context.Background(), b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(context.Background(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for _, budget := range []int64{0, 4 << 20} {
		n := 0
		for b, err := range table.Scan(context.Background(), stoa.ScanSpec{Memory: budget}) {
			if err != nil {
				t.Fatal(err)
			}
			a := b.Column(0).(*array.String)
			if size := int64(a.Len()) * width; size > most || budget > 0 && size > budget {
				t.Errorf("a batch of %d bytes, with a budget of %d", size, budget)
			}
			for i := range a.Len() {
				if a.Value(i) != text {
					t.Fatalf("row %d differs", n+i)
				}
			}
			n += a.Len()
		}
		if n != rows {
			t.Errorf("%d of %d rows", n, rows)
		}
	}
	for f, err := range stoa.Verify(context.Background(), place, stoa.OpenOptions{}) { // it decodes the strings as well
		if err != nil || f.Severity > region.Note {
			t.Errorf("verify: %+v, %v", f, err)
		}
	}
}

// TestReadBackWithinMemory: the check of an output keeps to the writer's memory option, however large the values are.
func TestReadBackWithinMemory(t *testing.T) {
	const rows, width = 40, 1 << 20
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.Binary}}, nil)
	value, r := make([]byte, width), rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		memory    string
		low, high int
	}{{"8MiB", 1, 16 << 20}, {"1GiB", 24 << 20, 1 << 30}} {
		p := &peakAllocator{sizes: map[*byte]int{}}
		w, err := stoa.Create(t.Context(), filepath.Join(t.TempDir(), "a.parquet"), sc,
			stoa.CreateOptions{Opts: map[string]string{"memory": c.memory, "dictionary": "false"}, Alloc: p})
		if err != nil {
			t.Fatal(err)
		}
		for range rows {
			for i := range value {
				value[i] = byte(r.Uint32())
			}
			b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
			b.Field(0).(*array.BinaryBuilder).Append(value)
			if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
				t.Fatal(err)
			}
		}
		p.peak = p.now
		s, err := w.Close(t.Context())
		if err != nil || !s.Checked {
			t.Fatal(s, err)
		}
		if p.peak < c.low || p.peak > c.high {
			t.Errorf("memory=%s: expected %d to %d bytes for the check, got %d", c.memory, c.low, c.high, p.peak)
		}
	}
}

// TestCancelSoon: a cancelled scan ends soon and returns at most the batches that its workers had ready.
func TestCancelSoon(t *testing.T) {
	table, err := stoa.Open(context.Background(), wide(t), stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for _, workers := range []int{1, 3} {
		ctx, cancel := context.WithCancel(context.Background())
		begin, took := time.Time{}, time.Duration(0)
		spec := stoa.ScanSpec{Parallel: workers, Batch: 500}
		rows := 0
		for b, err := range table.Scan(ctx, spec) {
			if err != nil {
				took = time.Since(begin)
				break
			}
			if rows += int(b.NumRows()); rows == 5000 {
				begin = time.Now()
				cancel()
			}
		}
		cancel()
		if rows >= 40_000 || begin.IsZero() {
			t.Errorf("%d workers: %d rows came", workers, rows)
		}
		if rows > 5000+500*(2+4*workers) {
			t.Errorf("%d workers: %d rows after it was cancelled", workers, rows-5000)
		}
		if t.Logf("%d workers: %d rows and %v after", workers, rows-5000, took); took > 5*time.Second {
			t.Errorf("it took %v to end, expected 5 s or less", took)
		}
	}
}
