package stoa_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"stoa"
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
