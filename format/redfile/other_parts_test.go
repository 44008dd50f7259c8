package redfile_test

import (
	"fmt"
	"slices"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestAllPartsOfAnother: with metadata beside the parts of another table, each of them damaged, recovery returns no
// rows, and reports why as an error, because the rows of the other table are lost and not counted.
func TestAllPartsOfAnother(t *testing.T) {
	whole, other := splitTable(t, map[string]string{}), splitTableFrom(t, 7000, "row-group", map[string]string{})
	for k := range 4 {
		name := fmt.Sprintf("out/part-%05d.red", k)
		part := slices.Clone(other[name])
		whole[name] = part[:len(part)*3/4]
	}
	r, found, err := redfile.Format.Recover(ctx, format.Target{Tree: store.NewMemory(whole), Name: "out"},
		format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found = append(found, r.(format.Finder).Findings()...)
	if !slices.ContainsFunc(found, func(f region.Finding) bool {
		return f.Severity == region.Error && f.Code == "redfile.part.other"
	}) {
		t.Errorf("got findings %+v, want redfile.part.other", found)
	}
}

// TestPartOfNothing: a row group without rows may have a part that is only a magic. The table was written by the
// independent encoder (interop/documents, red1-read, seed 30120).
func TestPartOfNothing(t *testing.T) {
	tg := format.Target{Tree: store.Local{}, Name: "testdata/emptypart/t.red"}
	for f := range redfile.Format.Verify(ctx, tg, format.OpenOptions{}) {
		if f.Severity == region.Error {
			t.Errorf("%+v", f)
		}
	}
	tab, err := stoa.Open(ctx, tg.Name, stoa.OpenOptions{Formats: []format.Format{redfile.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for _, f := range tab.Findings() {
		if f.Severity == region.Error {
			t.Errorf("%+v", f)
		}
	}
	if n, err := tab.Count(ctx, stoa.ScanSpec{}); n != 194 || err != nil {
		t.Errorf("got %d rows, %v, want 194", n, err)
	}
}
