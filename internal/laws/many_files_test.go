package laws_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/pred"
	"stoa/store"
)

// manyFiles is a directory t of n files, all with the same content.
type manyFiles struct {
	one    *store.Memory
	n      int
	size   int64
	opened map[string]bool
	stamp  string
}

func (m *manyFiles) info(i int) store.Info {
	return store.Info{Name: fmt.Sprintf("t/f%07d.parquet", i), Size: m.size, Stamp: "1" + m.stamp}
}

func (m *manyFiles) Stat(_ context.Context, name string) (store.Info, error) {
	if name == "t" {
		return store.Info{Name: name, Dir: true}, nil
	}
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "t/f"), ".parquet"))
	if err != nil || i < 0 || i >= m.n {
		return store.Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return m.info(i), nil
}

func (m *manyFiles) Open(ctx context.Context, name string) (store.Source, error) {
	if info, err := m.Stat(ctx, name); err != nil || info.Dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	m.opened[name] = true
	return m.one.Open(ctx, "one.parquet")
}

func (m *manyFiles) List(_ context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for i := 0; dir == "t" && i < m.n && yield(m.info(i), nil); i++ {
		}
	}
}

// oneFile returns a tree with the file that manyFiles repeats, and its size.
func oneFile(t *testing.T) (*store.Memory, int64) {
	ctx, one := context.Background(), store.NewMemory(nil)
	w, err := stoa.Create(ctx, "one.parquet", splitRows(0).Schema(), stoa.CreateOptions{Sink: one.Sink("one.parquet")})
	if err == nil {
		if err = w.Write(ctx, splitRows(1000)); err == nil {
			_, err = w.Close(ctx)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return one, int64(len(one.Bytes("one.parquet")))
}

// planned returns the lines of a plan, and how many bytes of the heap the table had before and after it.
func planned(t *testing.T, table *stoa.Table, before uint64) (lines []string, most uint64) {
	filter, err := pred.Parse("n >= 0")
	if err != nil {
		t.Fatal(err)
	}
	heap := func() {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc-min(before, now.HeapAlloc))
	}
	heap()
	spec := stoa.ScanSpec{Columns: []string{"n"}, Filter: filter}
	for s, err := range table.Plan(context.Background(), spec, 256<<10) {
		if err != nil {
			t.Fatal(err)
		}
		line, _ := json.Marshal(s)
		lines = append(lines, string(line))
	}
	heap()
	return lines, most
}

// TestPlanHoldsNoFiles: a table of thousands of files that is only planned keeps none of them open, and has the plan of
// one that does.
func TestPlanHoldsNoFiles(t *testing.T) {
	ctx, n := context.Background(), 2500
	one, size := oneFile(t)
	tree := &manyFiles{one: one, n: n, size: size, opened: map[string]bool{}}
	o := stoa.OpenOptions{Tree: tree}
	var plans [2][]string
	for i, parked := range []bool{false, true} {
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		o.Planned = parked
		table, err := stoa.Open(ctx, "t", o)
		if err != nil {
			t.Fatal(err)
		}
		var most uint64
		plans[i], most = planned(t, table, before.HeapAlloc)
		each := most / uint64(n)
		t.Logf("%d files, closed %t: %d bytes each", n, parked, each)
		if parked == (each > 3000) {
			t.Errorf("closed %t: %d bytes of the heap for each file", parked, each)
		}
		if parked {
			if _, err := table.Rows(ctx); !errors.Is(err, fault.Invalid) {
				t.Errorf("rows of a table that is only planned: %v", err)
			}
			tree.stamp = "2"
			for _, err = range table.Plan(ctx, stoa.ScanSpec{}, 0) {
			}
			if !errors.Is(err, store.ErrChanged) {
				t.Errorf("a file changed after it was opened: %v", err)
			}
		}
		table.Close()
	}
	if len(plans[0]) == 0 || !slices.Equal(plans[0], plans[1]) {
		t.Errorf("%d splits, expected the %d of files that are open", len(plans[1]), len(plans[0]))
	}
}

// TestPlanOfManyFiles: shares of a plan open their own files only, each in memory that grows with the share and not
// with the table, and small files share splits. STOA_FILES=1000000 STOA_SHARES=100 is the long form.
func TestPlanOfManyFiles(t *testing.T) {
	n, shares := 2000, 4
	if v, err := strconv.Atoi(os.Getenv("STOA_FILES")); err == nil {
		n = v
	}
	if v, err := strconv.Atoi(os.Getenv("STOA_SHARES")); err == nil {
		shares = v
	}
	ctx := context.Background()
	one, size := oneFile(t)
	filter, err := pred.Parse("n >= 0")
	if err != nil {
		t.Fatal(err)
	}
	var rows, splits, text int64
	var longest time.Duration
	var most uint64
	for k := range shares {
		tree := &manyFiles{one: one, n: n, size: size, opened: map[string]bool{}}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		table, err := stoa.Open(ctx, "t", stoa.OpenOptions{Tree: tree, Share: stoa.Share{N: k, Of: shares}})
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range table.Plan(ctx, stoa.ScanSpec{Columns: []string{"n"}, Filter: filter}, 256<<10) {
			if err != nil {
				t.Fatal(err)
			}
			line, _ := json.Marshal(s)
			rows, splits, text = rows+s.Rows, splits+1, text+int64(len(line))
			if !s.Exact || s.Bounds["n"].Max == nil || s.Bounds["n"].Max.Int != 999 {
				t.Fatalf("split %d: %s", s.N, line)
			}
		}
		longest = max(longest, time.Since(began))
		runtime.GC()
		runtime.ReadMemStats(&after)
		most = max(most, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
		table.Close()
		if got, want := len(tree.opened), int(math.Ceil(float64(n)/float64(shares))); got > want {
			t.Fatalf("share %d of %d opened %d files of %d", k, shares, got, n)
		}
		if k == 1 && n > 100_000 {
			rows, splits, text = rows/2*int64(shares), splits/2*int64(shares), text/2*int64(shares)
			break // the other shares are as these two
		}
	}
	if rows != int64(n)*1000 {
		t.Errorf("%d rows, expected %d", rows, n*1000)
	}
	if splits > int64(n)/10 {
		t.Errorf("%d splits of %d files", splits, n)
	}
	t.Logf("%d files in %d shares: a share takes up to %v and %d MB; %d splits, %d MB of text", n, shares, longest,
		most>>20, splits, text>>20)
}
