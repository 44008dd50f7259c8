package stoa_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// eachRow is the rows that Each gave, by k of writeNumbered.
type eachRow struct {
	mu   sync.Mutex
	seen map[int64]string
}

// TestEachGivesEveryRowOnce reads tables of all formats of pages by Each, with any number of workers: every row comes
// once, with its cells, whatever the batches, and each worker is called once at a time.
func TestEachGivesEveryRowOnce(t *testing.T) {
	const rows = 30_000
	for _, f := range mappedFormats {
		name := filepath.Join(t.TempDir(), f.name)
		writeNumbered(t, name, f.format, rows, f.opts)
		table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		for _, workers := range []int{0, 1, 2, 5} {
			var got eachRow
			busy := make([]sync.Mutex, max(1, workers))
			got.seen = map[int64]string{}
			err := table.Each(t.Context(), stoa.ScanSpec{Parallel: workers, Batch: 700},
				func(worker int, b arrow.RecordBatch) error {
					if !busy[worker].TryLock() {
						t.Errorf("worker %d is called while it is called", worker)
					}
					defer busy[worker].Unlock()
					got.mu.Lock()
					defer got.mu.Unlock()
					for i := range int(b.NumRows()) {
						k := b.Column(0).(*array.Int64).Value(i)
						if s, twice := got.seen[k]; twice {
							t.Errorf("%s, %d workers: %d comes twice (%s)", f.format, workers, k, s)
						}
						got.seen[k] = b.Column(1).(*array.String).Value(i)
					}
					return nil
				})
			if err != nil || len(got.seen) != rows {
				t.Fatalf("%s, %d workers: %d rows, %v", f.format, workers, len(got.seen), err)
			}
			for i := range rows {
				if s := got.seen[int64(i)*2654435761]; s != fmt.Sprint("value ", i*7919) {
					t.Fatalf("%s, %d workers: row %d has %q", f.format, workers, i, s)
				}
			}
		}
	}
}

// TestEachEnds ends Each by an error of the function, by its context, by a limit, by damage and by a change.
func TestEachEnds(t *testing.T) {
	const rows = 30_000
	name := filepath.Join(t.TempDir(), "r.red")
	writeNumbered(t, name, "redfile", rows, map[string]string{"compression": "none"})
	open := func() *stoa.Table {
		table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { table.Close() })
		return table
	}
	table, spec := open(), stoa.ScanSpec{Parallel: 3, Batch: 500}
	own := errors.New("enough")
	if err := table.Each(t.Context(), spec, func(int, arrow.RecordBatch) error { return own }); err != own {
		t.Errorf("expected the function's error, found %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := table.Each(ctx, spec, func(int, arrow.RecordBatch) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("expected the end of the context, found %v", err)
	}
	err = table.Each(t.Context(), spec, func(int, arrow.RecordBatch) error { panic("a consumer's") })
	if !errors.Is(err, fault.Bug) {
		t.Errorf("expected a panic as an error, found %v", err)
	}
	var n int64
	add := func(_ int, b arrow.RecordBatch) error { n += b.NumRows(); return nil }
	spec.Limit = 1234
	if err := table.Each(t.Context(), spec, add); err != nil || n != 1234 {
		t.Errorf("of 1234 rows %d came, %v", n, err)
	}
	where, err := pred.Parse("k < 0")
	if err != nil {
		t.Fatal(err)
	}
	n, spec = 0, stoa.ScanSpec{Parallel: 3, Filter: where}
	if err := table.Each(t.Context(), spec, add); err != nil || n != 0 {
		t.Errorf("of no rows %d came, %v", n, err)
	}
	damageMiddle(t, name)
	damagedLikeScan(t, open())
	changed := open()
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, append(b, 0), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = changed.Each(t.Context(), stoa.ScanSpec{Parallel: 3, Damaged: stoa.SkipRows},
		func(int, arrow.RecordBatch) error { return nil })
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("expected a change, found %v", err)
	}
}

// damageMiddle flips a bit in the middle of a file.
func damageMiddle(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// damagedLikeScan checks that Each keeps and reports as many rows of a damaged table as Scan does.
func damagedLikeScan(t *testing.T, table *stoa.Table) {
	t.Helper()
	spec := stoa.ScanSpec{Damaged: stoa.SkipRows, Batch: 500}
	var want, wantLost, got, gotLost int64
	spec.Lost = func(l region.Loss) { wantLost += l.Rows[1] - l.Rows[0] }
	for b, err := range table.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		want += b.NumRows()
	}
	var mu sync.Mutex
	spec.Parallel, spec.Lost = 3, func(l region.Loss) { gotLost += l.Rows[1] - l.Rows[0] }
	err := table.Each(t.Context(), spec, func(_ int, b arrow.RecordBatch) error {
		mu.Lock()
		defer mu.Unlock()
		got += b.NumRows()
		return nil
	})
	if err != nil || got != want || gotLost != wantLost || wantLost == 0 {
		t.Errorf("%d rows, %d lost, by Scan %d, %d: %v", got, gotLost, want, wantLost, err)
	}
	spec.Damaged, spec.Lost = stoa.Fail, nil
	err = table.Each(t.Context(), spec, func(int, arrow.RecordBatch) error { return nil })
	if !errors.Is(err, fault.Corrupt) {
		t.Errorf("expected damage, found %v", err)
	}
}
