package redfile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// TestNextPartOfAnother: a part of another table is told like any other stray file, also if it has the number after the
// last part, so that its marker is looked at.
func TestNextPartOfAnother(t *testing.T) {
	for _, number := range []int{4, 6} {
		objects, other := splitTable(t, map[string]string{}), splitTableFrom(t, 7000, "row-group", map[string]string{})
		stray := fmt.Sprintf("out/part-%05d.red", number)
		objects[stray] = other["out/part-00000.red"]
		told := false
		for f, err := range stoa.Verify(ctx, "out", stoa.OpenOptions{Tree: store.NewMemory(objects),
			Formats: []format.Format{redfile.Format}}) {
			if err != nil {
				t.Fatal(err)
			}
			told = told || f.Code == "dir.foreign" && f.Part == stray
		}
		if !told {
			t.Errorf("%s is not reported", stray)
		}
	}
}

// closed is a tree in which a file exists and cannot be opened.
type closed struct {
	store.Tree
	name string
}

func (c closed) Open(ctx context.Context, name string) (store.Source, error) {
	if name == c.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.Tree.Open(ctx, name)
}

// TestClosedMetadata: parts whose list is there and cannot be read do not pass for tables of their own.
func TestClosedMetadata(t *testing.T) {
	tree := closed{store.NewMemory(splitTable(t, map[string]string{})), "out/_metadata.red"}
	o := stoa.OpenOptions{Tree: tree, Formats: []format.Format{redfile.Format}}
	if tab, err := stoa.Open(ctx, "out", o); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("open: got %v, %v, want that it is not permitted", tab, err)
	}
	for e, err := range stoa.List(ctx, "out", o) {
		if err == nil {
			t.Errorf("list: got %+v, want an error", e)
		}
	}
	errs := 0
	for f, err := range stoa.Verify(ctx, "out", o) {
		if err != nil || f.Severity == region.Error {
			errs++
		}
	}
	if errs == 0 {
		t.Error("verify: no error")
	}
}
