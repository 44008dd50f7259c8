package parquet

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/verify"
	"stoa/region"
	"stoa/store"
)

// TestRowsAgree: if a file's number of rows differs from that of its row groups, opening and listing fail, recovery
// uses the row groups and reports it, and verify reports it. The numbers in all files of testdata are changed.
func TestRowsAgree(t *testing.T) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	tried := 0
	for _, name := range names {
		intact, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tree := store.NewMemory(map[string][]byte{"f": intact})
		r, err := openReader(t.Context(), format.Target{Tree: tree, Name: "f"}, format.OpenOptions{})
		if err != nil {
			continue
		}
		rows := r.Footer.NumRows
		at, n := r.FooterAt.Off, r.FooterAt.Len
		r.Close()
		for i, before := at, tried; i < at+n && tried < before+2; i++ {
			if testing.Short() && tried > before {
				break
			}
			b := append([]byte(nil), intact...)
			b[i] ^= 2
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
			o, err := openReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				continue
			}
			declared, have := o.Footer.NumRows, int64(0)
			for _, g := range o.Footer.RowGroups {
				have += g.NumRows
			}
			o.Close()
			if declared == have {
				continue
			}
			if tried++; declared == rows && have == rows {
				t.Fatal("got unchanged numbers")
			}
			if _, err := open(t.Context(), tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s, byte %d: %d rows, %d in the row groups: open: got %v, want class Corrupt", name, i,
					declared, have, err)
			}
			for _, err := range list(t.Context(), tg) {
				if !errors.Is(err, fault.Corrupt) {
					t.Errorf("%s, byte %d: list: got %v, want class Corrupt", name, i, err)
				}
			}
			back, found, err := recoverReader(t.Context(), tg, format.OpenOptions{})
			if err != nil || len(found) == 0 || found[0].Severity != region.Error {
				t.Errorf("%s, byte %d: recover: got findings %v, %v, want an error finding", name, i, found, err)
				continue
			}
			back.Close()
			worst := region.Note
			for f := range verify.File(t.Context(), tg, format.OpenOptions{Depth: format.Quick}) {
				worst = max(worst, f.Severity)
			}
			if worst < region.Error {
				t.Errorf("%s, byte %d: verify: got no error, want one", name, i)
			}
		}
	}
	if tried < len(names) {
		t.Errorf("got %d changed files, want %d or more", tried, len(names))
	}
}
