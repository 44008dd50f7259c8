package kudu

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"stoa/format/cfile"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/wal"
	"stoa/store"
)

// TestTornBatches: whatever is left of the last batch of a log, with or without zeros after it, what it is called is
// what the whole batch is: a COMMIT, or operations up to the last one, or at least that many. If most of it is there,
// it is known.
func TestTornBatches(t *testing.T) {
	f := logFS(store.NewMemory(golden(t)))
	known, all, commits := 0, 0, 0
	for _, id := range []string{goldenInt8, goldenAlter} {
		tb, segment := goldenTablet(t, f, id), segmentOf(t, id)
		tree := store.NewMemory(map[string][]byte{"s": segment})
		src, err := tree.Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		r, _, err := wal.Open(context.Background(), src, "s", pbc.Options{}, cfile.LZ4)
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := r.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			before := replayed(t, tb, segment[:b.At.Off]).Received.Index
			last := replayed(t, tb, segment[:b.At.End()]).Received.Index
			if last == before {
				commits++
			}
			const head = 16
			for _, n := range []int64{1, 7, head - 1, head, head + 1, head + 9, head + 20, head + 40, b.At.Len / 2,
				b.At.Len - 1} {
				if n >= b.At.Len {
					continue
				}
				cut := slices.Clone(segment[:b.At.Off+n])
				for _, tail := range []int{0, 5, 4096} {
					log := append(slices.Clone(cut), make([]byte, tail)...)
					if bytes.HasPrefix(log, segment[:b.At.End()]) { // what was cut off was zero
						continue
					}
					x := replayed(t, tb, log).Torn
					if x == nil {
						t.Fatalf("%s: %d bytes of %s: not torn", id, n, b.At)
					}
					switch {
					case x.Commit && last != before, x.To > 0 && (last == before || x.To < last),
						x.To == 0 && !x.Commit && x.More < last-before:
						t.Errorf("%s: %d bytes of %s, which ends with operation %d after %d: %+v", id, n, b.At, last,
							before, *x)
					}
					if n > head+40 {
						if all++; x.Commit || x.To == last {
							known++
						}
					}
				}
				log := append(cut, make([]byte, b.At.End()-int64(len(cut)))...)
				log = append(log, "what is here was another batch"...)
				if x := replayed(t, tb, log).Torn; x != nil && (x.Commit || x.To > 0 && x.To <= last ||
					x.To == 0 && x.More == 0) {
					t.Errorf("%s: %d bytes of %s and others: %+v", id, n, b.At, *x)
				}
			}
		}
	}
	if known < all*9/10 || all < 30 || commits < 5 {
		t.Errorf("%d of %d are known, %d commits", known, all, commits)
	}
}
