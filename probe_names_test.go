package stoa_test

import (
	"errors"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// TestWeakMarksAgainstNames: bytes that may be the beginning of an Arrow stream, and are no more than that, do not make
// one of what is named as a text; under a name that says nothing they may, and a file that is one is one by any name.
func TestWeakMarksAgainstNames(t *testing.T) {
	weak := append([]byte{0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0}, make([]byte, 64)...)
	probe := func(name string) (*format.Format, error) {
		return stoa.Probe(t.Context(), format.Target{Tree: store.NewMemory(map[string][]byte{name: weak}), Name: name},
			stoa.OpenOptions{})
	}
	if f, err := probe("t"); err != nil || f.Name != "arrow" {
		t.Fatalf("the bytes are no weak mark: %v, %v", f, err)
	}
	for _, name := range []string{"t.csv", "t.tsv", "t.jsonl", "t.CSV", "t.csv.gz", "dir/t.jsonl.gz"} {
		if f, err := probe(name); err == nil && f.Name == "arrow" || err != nil && errors.Is(err, fault.Bug) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
