package laws_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// shut is a tree in which one file may not be opened, as for a user without the permission.
type shut struct {
	store.Tree
	name string
}

func (s shut) Open(ctx context.Context, name string) (store.Source, error) {
	if name == s.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.Tree.Open(ctx, name)
}

// TestRefusedAccessIsNotDamage: if a file of a table may not be opened, no verb calls it damaged: verification and
// reading end with an error that says so, at every depth. A file that reading does not need may be refused to
// verification only.
func TestRefusedAccessIsNotDamage(t *testing.T) {
	denied := map[string]bool{}
	for _, p := range heldPlaces(t) {
		for _, name := range slices.Sorted(maps.Keys(p.files)) {
			o := p.held(t, p.files).opts
			o.Tree = shut{o.Tree, name}
			read := scanned(t, p.uri(), o)
			if errors.Is(read, fault.Corrupt) {
				t.Errorf("%s, %s: reading ends with %v", p.name, name, read)
			}
			for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
				o.Depth = depth
				var failed error
				for f, err := range stoa.Verify(t.Context(), p.uri(), o) {
					if failed = err; err == nil && f.Severity == region.Error {
						t.Errorf("%s, %s, %v: verification reports %+v", p.name, name, depth, f)
					}
				}
				refused := errors.Is(failed, fs.ErrPermission)
				if depth > format.Quick && errors.Is(read, fs.ErrPermission) && !refused {
					t.Errorf("%s, %s, %v: reading ends with %v, verification with %v", p.name, name, depth, read,
						failed)
				}
				denied[p.name] = denied[p.name] || refused
			}
		}
		if !denied[p.name] {
			t.Errorf("%s: no file was needed", p.name)
		}
	}
}

// unlisted is a tree in which no directory may be listed.
type unlisted struct{ store.Tree }

func (u unlisted) List(_ context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		yield(store.Info{}, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrPermission})
	}
}

// TestDirectoriesThatCannotBeListed: whether files of another table lie in the directory of a table is unknown if the
// directory cannot be listed; whoever reads the table is told, unless it cannot be opened at all.
func TestDirectoriesThatCannotBeListed(t *testing.T) {
	told := 0
	for to, name := range map[string]string{"cfile": "t", "redfile": "t/_metadata.red"} {
		o := stoa.OpenOptions{Tree: unlisted{store.NewMemory(severalFiles(t, to, 0))}}
		tab, err := stoa.Open(t.Context(), name, o)
		if err != nil {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", to, err)
			}
			continue
		}
		rows := int64(0)
		for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
			if err != nil {
				t.Fatalf("%s: %v", to, err)
			}
			rows += b.NumRows()
		}
		says := func(f region.Finding) bool { return f.Code == "dir.unlisted" && f.At.Object == "t" }
		if rows != 6 || !slices.ContainsFunc(tab.Findings(), says) {
			t.Errorf("%s: %d rows, findings %+v", to, rows, tab.Findings())
		}
		told++
		tab.Close()
	}
	if told == 0 {
		t.Error("no format opens such a table")
	}
}
