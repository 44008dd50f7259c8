package stoa_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"stoa"
	"stoa/pred"
)

// TestCountIsTheScans: if metadata give the number of rows, Count still returns what scanning returns, and an error
// where scanning does: for small files with every bit of their first and last bytes flipped.
func TestCountIsTheScans(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	same, refused, least, step := 0, 0, 3000, 1
	if testing.Short() {
		least, step = 300, 9
	}
	for _, name := range []string{"trevni/dialects/wiki_dremel.trv", "trevni/v1.12.2/all_absent_absent.trv",
		"redfile/red1a/a_plain.red", "kudu/1.18.1/key_all/v.ck.cfile"} {
		whole, err := os.ReadFile(filepath.Join("corpus", name))
		if err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			if at >= 160 && at < len(whole)-160 || at%step != 0 {
				continue
			}
			for bit := range 8 {
				b := bytes.Clone(whole)
				b[at] ^= 1 << bit
				file := filepath.Join(dir, filepath.Base(name))
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
				ok := countAndScan(ctx, t, file, name, at, bit)
				if same++; !ok {
					refused++
				}
			}
		}
	}
	if same < least || refused < least/10 || same-refused < least/10 {
		t.Errorf("expected many files of both kinds, found %d, of which %d were refused", same, refused)
	}
}

// TestCountOfWorkers: several workers count the rows that one finds, in tables of all formats of pages. Of several
// damaged places all workers together return the first one.
func TestCountOfWorkers(t *testing.T) {
	const rows = 30_000
	where, err := pred.Parse("k > 20000000000000")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range mappedFormats {
		name := filepath.Join(t.TempDir(), f.name)
		writeNumbered(t, name, f.format, rows, f.opts)
		counts := map[int]int64{}
		for _, workers := range []int{1, 2, 5} {
			table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			counts[workers], err = table.Count(t.Context(),
				stoa.ScanSpec{Parallel: workers, Batch: 700, Filter: where})
			if err != nil {
				t.Fatal(err)
			}
			some, err := table.Count(t.Context(),
				stoa.ScanSpec{Parallel: workers, Batch: 700, Filter: where, Limit: 99})
			if err != nil || some != 99 {
				t.Errorf("%s, %d workers: of 99 rows %d were counted, %v", f.format, workers, some, err)
			}
		}
		const want = rows - 20000000000000/2654435761 - 1
		if counts[1] != want || counts[2] != want || counts[5] != want {
			t.Errorf("%s: expected %d, got %v", f.format, want, counts)
		}
	}
	name := filepath.Join(t.TempDir(), "r.red")
	writeNumbered(t, name, "redfile", rows, map[string]string{"compression": "none", "page-size": "4096"})
	damageFrom(t, name, 0.05, 0.1, 0.15, 0.2)
	first := ""
	for i := range 40 {
		table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = table.Count(t.Context(), stoa.ScanSpec{Parallel: 1 + i%6, Batch: 500, Filter: where})
		table.Close()
		if err == nil || i > 0 && err.Error() != first {
			t.Fatalf("%d workers: expected the error %q, found %v", 1+i%6, first, err)
		}
		first = err.Error()
	}
}

// damageFrom changes bytes at these parts of a file's length.
func damageFrom(t *testing.T, name string, parts ...float64) {
	t.Helper()
	b, err := os.ReadFile(name)
	for _, p := range parts {
		b[int(p*float64(len(b)))] ^= 0x55
	}
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// countAndScan compares the two, and reports whether either returned a number of rows.
func countAndScan(ctx context.Context, t *testing.T, file, name string, at, bit int) bool {
	tb, err := stoa.Open(ctx, file, stoa.OpenOptions{})
	if err != nil {
		return false
	}
	defer tb.Close()
	counted, failed := tb.Count(ctx, stoa.ScanSpec{})
	var rows int64
	for b, err := range tb.Scan(ctx, stoa.ScanSpec{Columns: []string{}}) {
		if err != nil {
			if failed == nil {
				t.Errorf("%s, bit %d of byte %d: counted %d, but the scan ends with %v", name, bit, at, counted, err)
			}
			return false
		}
		rows += b.NumRows()
	}
	if failed != nil || counted != rows {
		t.Errorf("%s, bit %d of byte %d: counted %d, %v; the scan gives %d", name, bit, at, counted, failed, rows)
	}
	return true
}
