package laws_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// TestVerifyAssembles: verify finds columns of a nested field that can each be decoded but contradict each other, and
// reports the rows that reading loses.
func TestVerifyAssembles(t *testing.T) {
	whole, err := os.ReadFile("corpus/redfile/red1/nested.red")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at  int
		bit byte
	}{{6821, 0x10}, {2276, 0x40}} { // levels of a.item.b.c.item.y, and of x
		b := slices.Clone(whole)
		b[c.at] ^= c.bit
		o := stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f.red": b})}
		var reported, lost [][2]int64
		for f, err := range stoa.Verify(t.Context(), "f.red", o) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Severity == region.Error {
				if reported = append(reported, f.Rows); f.Code != "file.nested" || f.Column != "a" ||
					f.At.Object != "f.red" || f.Lost != f.Rows[1]-f.Rows[0] {
					t.Errorf("byte %d: %+v", c.at, f)
				}
			}
		}
		tab, err := stoa.Open(t.Context(), "f.red", o)
		if err != nil {
			t.Fatal(err)
		}
		first := []int64{0, 120, 240} // rows of the row groups, by the file's manifest
		for _, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) {
			lost = append(lost, [2]int64{first[l.Group] + l.Rows[0], first[l.Group] + l.Rows[1]})
		}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		tab.Close()
		if len(reported) == 0 || !slices.Equal(reported, lost) {
			t.Errorf("byte %d: verify reports rows %v, reading loses %v", c.at, reported, lost)
		}
	}
}

// TestVerifyFindsWhatReadingRefuses: whichever byte of a file of nested columns without checksums is damaged, verify
// reports an error if reading does.
func TestVerifyFindsWhatReadingRefuses(t *testing.T) {
	for name, step := range map[string]int{"corpus/redfile/red1/dremel.red": 3,
		"corpus/redfile/red1/nested.red": 37, "corpus/trevni/dialects/wiki_dremel.trv": 1} {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		nested, refused := 0, 0
		if testing.Short() {
			step *= 5
		}
		for at := 4; at < len(whole); at += step {
			for _, bit := range []byte{1, 0x10} {
				b := slices.Clone(whole)
				b[at] ^= bit
				o := stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{name: b})}
				found := false
				for f, err := range stoa.Verify(t.Context(), name, o) {
					found = found || err != nil || f.Severity == region.Error
					if f.Code == "file.nested" {
						nested++
					}
				}
				if err := scanned(t, name, o); errors.Is(err, fault.Corrupt) {
					if refused++; !found {
						t.Errorf("%s byte %d bit %#x: verify finds nothing, reading says %v", name, at, bit, err)
					}
				}
			}
		}
		t.Logf("%s: %d damaged files are refused, %d findings are about assembling", name, refused, nested)
		if refused == 0 {
			t.Errorf("%s: no damaged file was refused", name)
		}
	}
}

// scanned reads all of a file and returns the error that ends the scan, or the first error finding.
func scanned(t *testing.T, name string, o stoa.OpenOptions) error {
	tab, err := stoa.Open(t.Context(), name, o)
	if err != nil {
		return err
	}
	defer tab.Close()
	rows := int64(0)
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return err
		}
		if rows += b.NumRows(); rows > 1<<20 { // a table without columns can declare any number of rows
			break
		}
	}
	for _, f := range tab.Findings() {
		if f.Severity == region.Error {
			return fault.Corruptf(f.At, f.Path, "%s", f.Message)
		}
	}
	return nil
}
