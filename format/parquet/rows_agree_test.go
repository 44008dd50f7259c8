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

// TestRowsAgree: a file whose number of rows is not that of its row groups contradicts itself: nobody reads it
// but recover, which believes the row groups and says so, and verify and the list tell the same. Every file of
// the testdata whose footer has the number in a byte or two is made such a one.
func TestRowsAgree(t *testing.T) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	tried := 0
	for _, name := range names {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tree := store.NewMemory(map[string][]byte{"f": whole})
		r, err := openReader(t.Context(), format.Target{Tree: tree, Name: "f"}, format.OpenOptions{})
		if err != nil {
			continue
		}
		rows := r.Footer.NumRows
		at, n := r.FooterAt.Off, r.FooterAt.Len
		r.Close()
		for i, before := at, tried; i < at+n && tried < before+2; i++ {
			b := append([]byte(nil), whole...)
			b[i] ^= 2
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
			o, err := openReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				continue
			}
			said, have := o.Footer.NumRows, int64(0)
			for _, g := range o.Footer.RowGroups {
				have += g.NumRows
			}
			o.Close()
			if said == have {
				continue
			}
			if tried++; said == rows && have == rows {
				t.Fatal("it agrees")
			}
			if _, err := open(t.Context(), tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s, byte %d: %d rows and %d in the row groups: opened with %v", name, i, said, have, err)
			}
			for _, err := range list(t.Context(), tg) {
				if !errors.Is(err, fault.Corrupt) {
					t.Errorf("%s, byte %d: listed with %v", name, i, err)
				}
			}
			back, found, err := recoverReader(t.Context(), tg, format.OpenOptions{})
			if err != nil || len(found) == 0 || found[0].Severity != region.Error {
				t.Errorf("%s, byte %d: recovered with %v, %v", name, i, found, err)
				continue
			}
			back.Close()
			worst := region.Note
			for f := range verify.File(t.Context(), tg, format.OpenOptions{Depth: format.Quick}) {
				worst = max(worst, f.Severity)
			}
			if worst < region.Error {
				t.Errorf("%s, byte %d: verify finds nothing", name, i)
			}
		}
	}
	if tried < len(names) {
		t.Errorf("only %d files contradict themselves", tried)
	}
}
