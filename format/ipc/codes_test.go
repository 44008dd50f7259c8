package ipc_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc"
	"stoa/region"
	"stoa/store"
	"stoa/store/faulty"
)

func verified(t *testing.T, tree store.Tree) []region.Finding {
	t.Helper()
	return slices.Collect(ipc.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}))
}

// TestVerifyCodes makes each kind of damage by hand and checks its code and location, in three batches of 100 rows
// (threeBatches).
func TestVerifyCodes(t *testing.T) {
	whole, ends := threeBatches(t)
	size := int64(len(whole))
	footer := size - 10 - int64(binary.LittleEndian.Uint32(whole[size-10:]))
	more := make([]byte, 16)
	for i := range more {
		more[i] = 0x11
	}
	for name, x := range map[string]struct {
		damage func(b []byte) []byte
		want   region.Finding
	}{
		"the schema message": {func(b []byte) []byte { clear(b[16:32]); return b },
			region.Finding{Code: "arrow.layout", Severity: region.Warning, At: fault.Span{Off: 8},
				Rows: [2]int64{-1, -1}}},
		"the footer's length": {func(b []byte) []byte { b[size-7] = 0x7F; return b },
			region.Finding{Code: "arrow.open", Severity: region.Error, At: fault.Span{Off: size - 10},
				Rows: [2]int64{-1, -1}, Lost: -1}},
		"the metadata of the second batch": {func(b []byte) []byte { clear(b[ends[0]+8 : ends[0]+24]); return b },
			region.Finding{Code: "arrow.batch", Severity: region.Error, At: fault.Span{Off: int64(ends[0]) + 8},
				Rows: [2]int64{-1, -1}, Lost: -1}},
		"bytes before the footer": {func(b []byte) []byte { return slices.Concat(b[:footer], more, b[footer:]) },
			region.Finding{Code: "arrow.layout", Severity: region.Warning, At: fault.Span{Off: footer, Len: 16},
				Rows: [2]int64{-1, -1}}},
	} {
		got := verified(t, store.NewMemory(map[string][]byte{"t": x.damage(bytes.Clone(whole))}))
		if len(got) == 0 {
			t.Errorf("%s: nothing is reported", name)
			continue
		}
		f := got[0]
		if f.Code != x.want.Code || f.Severity != x.want.Severity || f.At.Off != x.want.At.Off ||
			x.want.At.Len > 0 && f.At.Len != x.want.At.Len || f.Rows != x.want.Rows || f.Lost != x.want.Lost {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}

// TestStoreErrors: whichever operation of the store fails, verify reports a store error, and neither recovery nor
// reading around damage takes it for damage, which would silently lose rows.
func TestStoreErrors(t *testing.T) {
	three, _ := threeBatches(t)
	files := map[string]*store.Memory{"three batches": store.NewMemory(map[string][]byte{"t": three})}
	for _, f := range []string{"plain.lz4.arrows", "plain.zstd.arrow", "delta.arrow", "replaced.arrows"} {
		b, err := os.ReadFile("testdata/" + f)
		if err != nil {
			t.Fatal(err)
		}
		files[f] = store.NewMemory(map[string][]byte{"t": b})
	}
	for name, memory := range files {
		count := &faulty.Tree{Tree: memory, At: -1}
		if got := verified(t, count); len(got) != 0 || count.Count() < 5 {
			t.Fatalf("%s: %+v, %d operations", name, got, count.Count())
		}
		rows := rowsIn(t, memory)
		for k := range count.Count() {
			tree := &faulty.Tree{Tree: memory, Mode: faulty.Fail, At: k}
			got := verified(t, tree)
			if tree.Hit.Load() && !slices.ContainsFunc(got,
				func(f region.Finding) bool { return f.Code == "arrow.unreadable" && f.Severity == region.Error }) {
				t.Errorf("%s: operation %d: %+v", name, k, got)
			}
			tree = &faulty.Tree{Tree: memory, Mode: faulty.Fail, At: k}
			tab, err := stoa.Open(t.Context(), "t",
				stoa.OpenOptions{Tree: tree, Formats: []format.Format{ipc.Format}, Recover: true})
			if err != nil {
				continue
			}
			lost := func(l region.Loss) { t.Errorf("%s: operation %d: lost %+v", name, k, l) }
			n := int64(0)
			for b, failed := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: lost}) {
				if err = failed; err == nil {
					n += b.NumRows()
				}
			}
			tab.Close()
			if err == nil && n != rows {
				t.Errorf("%s: operation %d failed: %d rows of %d, and that is not reported", name, k, n, rows)
			}
		}
	}
}

// rowsIn returns the number of rows that arrow-go's own reader finds.
func rowsIn(t *testing.T, tree *store.Memory) (n int64) {
	t.Helper()
	b := tree.Bytes("t")
	if !bytes.HasPrefix(b, []byte("ARROW1")) {
		r, err := arrowipc.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		for r.Next() {
			n += r.RecordBatch().NumRows()
		}
		return n
	}
	r, err := arrowipc.NewFileReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range r.NumRecords() {
		rec, err := r.RecordBatch(i)
		if err != nil {
			t.Fatal(err)
		}
		n += rec.NumRows()
	}
	return n
}
