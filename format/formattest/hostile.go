package formattest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// Hostile is the body of a fuzz target for arbitrary bytes: probe, list, open, scan with every damage policy, recover,
// describe, verify. It checks:
//
//   - nothing panics, and no error has class Bug; errors of class Corrupt name an object
//   - everything terminates
//   - at most Budget bytes are allocated in all
//   - batches of a scan are valid Arrow
//   - if Verify reports nothing, everything can be read
//   - if everything can be read and the format can write it, it is read back unchanged
type Hostile struct {
	Format     format.Format
	Opts       []map[string]string // tried in turn, after no options
	Budget     int64               // 0: 256 MiB
	Rows       int                 // a scan stops after that many rows; 0: 100,000
	Undetected bool                // reading may fail although Verify reports nothing (give the reason where it is set)
}

// HostileLimits are the limits of Hostile: small, so that oversized lengths are refused early.
var HostileLimits = format.Limits{Page: 4 << 20, Metadata: 4 << 20}

// Try checks an object of the given bytes.
func (h Hostile) Try(t *testing.T, data []byte) {
	h.TryTree(t, store.NewMemory(map[string][]byte{"t": data}), "t")
}

// TryTree checks the object or directory name of tree.
func (h Hostile) TryTree(t *testing.T, tree *store.Memory, name string) {
	defer Watch(30 * time.Second)()
	before := Allocated()
	ctx, tg := context.Background(), format.Target{Tree: tree, Name: name}
	if h.Format.Probe != nil {
		_, err := h.Format.Probe(ctx, tg)
		Classed(t, err)
	}
	if h.Format.List != nil {
		for _, err := range h.Format.List(ctx, tg) {
			Classed(t, err)
		}
	}
	for _, opts := range append([]map[string]string{nil}, h.Opts...) {
		h.with(t, tg, format.OpenOptions{Limits: HostileLimits, Opts: opts})
	}
	for _, err := range h.Format.Describe(ctx, tg,
		format.DescribeOptions{OpenOptions: format.OpenOptions{Limits: HostileLimits}, Pages: true}) {
		Classed(t, err)
	}
	budget := h.Budget
	if budget == 0 {
		budget = 256 << 20
	}
	if n := Allocated() - before; n > budget {
		t.Errorf("%d bytes allocated, want at most %d", n, budget)
	}
}

func (h Hostile) with(t *testing.T, tg format.Target, o format.OpenOptions) {
	ctx := context.Background()
	healthy := true
	if h.Format.Verify != nil {
		for f := range h.Format.Verify(ctx, tg, o) {
			healthy = healthy && f.Severity <= region.Note
			if f.Code == "" || f.Message == "" || f.Severity == region.Error && f.At.Object == "" && f.Part == "" {
				t.Errorf("finding without code, message or location: %+v", f)
			}
		}
	}
	r, err := h.Format.Open(ctx, tg, o)
	Classed(t, err)
	if err == nil {
		batches, rows, err := h.scan(t, tg, r, scan.Spec{})
		Classed(t, err)
		if err != nil && healthy && !h.Undetected && !fault.OverBudget(err) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("verify reports nothing, scan: %v", err)
		}
		if err == nil && rows >= 0 {
			h.again(t, r.Schema(), batches)
		}
		for _, p := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
			_, _, err := h.scan(t, tg, r, scan.Spec{Damaged: p, Batch: 1000})
			Classed(t, err)
		}
		r.Close()
	} else if healthy && h.Format.Verify != nil && !h.Undetected && errors.Is(err, fault.Corrupt) {
		t.Errorf("verify reports nothing, open: %v", err)
	}
	if h.Format.Recover != nil {
		r, _, err := h.Format.Recover(ctx, tg, o)
		Classed(t, err)
		if err == nil {
			_, _, err := h.scan(t, tg, r, scan.Spec{Damaged: scan.SkipRows})
			Classed(t, err)
			r.Close()
		}
	}
}

// scan reads everything, or returns rows = -1 after h.Rows rows.
func (h Hostile) scan(t *testing.T, tg format.Target, r format.Reader, spec scan.Spec) (out []arrow.RecordBatch,
	rows int, err error) {
	src := scan.Source{Reader: r, Objects: scan.NewObjects(tg.Tree), Dicts: scan.NewDicts(), Limits: HostileLimits}
	defer src.Objects.Close()
	defer src.Dicts.Close()
	limit := cmp.Or(h.Rows, 100_000)
	for b, err := range scan.Run(context.Background(), src, spec, nil) {
		if err != nil {
			return out, rows, err
		}
		Valid(t, b)
		if rows += int(b.NumRows()); rows > limit {
			return nil, -1, nil
		}
		b.Retain()
		out = append(out, b)
	}
	return out, rows, nil
}

func hasNull(t arrow.DataType) bool {
	if n, ok := t.(arrow.NestedType); ok &&
		slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return hasNull(f.Type) }) {
		return true
	}
	return t.ID() == arrow.NULL
}

// again writes what was read, and compares it with what is read back.
func (h Hostile) again(t *testing.T, sc *arrow.Schema, batches []arrow.RecordBatch) {
	if h.Format.Create == nil {
		return
	}
	ctx, tree := context.Background(), store.NewMemory(nil)
	w, err := h.Format.Create(ctx, tree.Sink("again"), sc, format.WriteOptions{Rows: -1})
	for i := 0; err == nil && i < len(batches); i++ {
		err = w.Write(ctx, batches[i])
	}
	if w != nil {
		defer w.Abort(ctx)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil {
		if !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Invalid) {
			t.Errorf("write what was read: %v", err)
		}
		return
	}
	tg := format.Target{Tree: tree, Name: "again"}
	r, err := h.Format.Open(ctx, tg, format.OpenOptions{Limits: HostileLimits})
	if err != nil {
		t.Errorf("open what was written: %v", err)
		return
	}
	defer r.Close()
	got, _, err := h.scan(t, tg, r, scan.Spec{})
	if err != nil {
		t.Errorf("scan what was written: %v", err)
		return
	}
	if want, got := linesOf(batches), linesOf(got); !slices.Equal(want, got) {
		t.Errorf("rows after another round trip differ: got %d rows, want %d", len(got), len(want))
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Errorf("row %d:\n got %.300s\nwant %.300s", i, got[i], want[i])
				break
			}
		}
	}
}

func linesOf(batches []arrow.RecordBatch) (out []string) {
	for _, b := range batches {
		out = append(out, Lines(b)...)
	}
	return out
}

// Valid fails the test unless the columns of b are valid Arrow.
func Valid(t testing.TB, b arrow.RecordBatch) {
	t.Helper()
	for i, c := range b.Columns() {
		if err := ValidArray(c); err != nil {
			t.Errorf("column %q: %v", b.ColumnName(i), err)
		}
	}
}

// ValidArray is the library's ValidateFull with two exceptions: strings may hold any bytes, because some systems store
// them so and Verify reports them; and null arrays pass, although the library refuses its own.
func ValidArray(a arrow.Array) error {
	err := array.ValidateFull(a)
	if err == nil || hasNull(a.DataType()) || strings.Contains(err.Error(), "not valid utf8") {
		return nil
	}
	return err
}

// Classed fails the test unless err is nil or has a class other than Bug; Corrupt must name an object.
func Classed(t testing.TB, err error) {
	t.Helper()
	var e *fault.Error
	switch {
	case err == nil:
	case !errors.As(err, &e):
		t.Errorf("error without a class: %v", err)
	case e.Class == fault.Bug || e.Class == fault.Corrupt && e.At.Object == "":
		t.Errorf("error of class Bug, or Corrupt without an object: %v", err)
	}
}

// Watch ends the process after d, with the stacks of all goroutines, unless stop is called before: a fuzz target that
// does not terminate would otherwise go unnoticed.
func Watch(d time.Duration) (stop func() bool) {
	return time.AfterFunc(d, func() {
		b := make([]byte, 1<<20)
		panic(fmt.Sprintf("not finished after %s\n%s", d, b[:runtime.Stack(b, true)]))
	}).Stop
}

// Bound bounds a fuzz target's body: the function that it returns must be called at the end, and fails the test if more
// than the given bytes were allocated since. The process ends if it is not called within a minute.
func Bound(t testing.TB, bytes int64) func() {
	before, stop := Allocated(), Watch(time.Minute)
	return func() {
		stop()
		if n := Allocated() - before; n > bytes {
			t.Errorf("%d bytes allocated, want at most %d", n, bytes)
		}
	}
}

// Allocated returns the number of bytes that this process has allocated since its start.
func Allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
