package stoa_test

import (
	"errors"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// TestWeakMarksAgainstNames: bytes that only might be the beginning of an Arrow stream do not make a file one if its
// name is that of a text; under an unknown name they may, and a real stream is recognized under any name.
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
