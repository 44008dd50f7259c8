package laws_test

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// sometimes is a tree in which the n-th call about an object with the given name ending fails.
type sometimes struct {
	store.Tree
	ending string

	mu     sync.Mutex
	n      int
	failed bool
}

func (s *sometimes) fails(op, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasSuffix(path.Clean(name), s.ending) {
		return nil
	}
	if s.n--; s.n != 0 {
		return nil
	}
	s.failed = true
	return &fs.PathError{Op: op, Path: name, Err: os.ErrPermission}
}

func (s *sometimes) Open(ctx context.Context, name string) (store.Source, error) {
	if err := s.fails("open", name); err != nil {
		return nil, err
	}
	return s.Tree.Open(ctx, name)
}

func (s *sometimes) Stat(ctx context.Context, name string) (store.Info, error) {
	if err := s.fails("stat", name); err != nil {
		return store.Info{}, err
	}
	return s.Tree.Stat(ctx, name)
}

// TestClaimsReportErrors: if the store fails while a format determines whether a file belongs to a table, verify
// reports the error, or has the same findings as without it: the file is assigned neither to the table nor to another
// one.
func TestClaimsReportErrors(t *testing.T) {
	for from, endings := range map[string][]string{
		"corpus/carbon/2.3.0/managed/managed_del": {"Metadata/tablestatus", "Metadata/tablestatus.history",
			"Metadata/schema", "Metadata/segments", "Fact/Part0"},
		"cfile": {"table.json"},
	} {
		dir := filepath.Join(t.TempDir(), "t")
		if from == "cfile" {
			rows := changeRows(t, `[{"a":1,"b":"x"},{"a":2,"b":null}]`)
			w, err := stoa.Create(t.Context(), dir+"/", rows.Schema(), stoa.CreateOptions{To: from})
			if err == nil {
				err = w.Write(t.Context(), rows)
			}
			if err == nil {
				_, err = w.Close(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		} else if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Fact/Part0/Segment_77/x", "stray", "more/stray"} {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte{1, 2, 3}, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		verify := func(tree store.Tree) (found []string, reported bool) {
			for f, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{Tree: tree, Depth: format.Quick}) {
				reported = reported || err != nil || f.Severity >= region.Error
				found = append(found, f.Code+" "+f.Part)
			}
			return found, reported
		}
		whole, wrong := verify(store.Local{})
		if wrong || len(whole) == 0 {
			t.Fatalf("%s: %v, %v", from, whole, wrong)
		}
		for _, ending := range endings {
			n := 1
			for ; n < 200; n++ {
				tree := &sometimes{Tree: store.Local{}, ending: ending, n: n}
				found, reported := verify(tree)
				if !tree.failed {
					break
				}
				if !reported && !slices.Equal(found, whole) {
					t.Errorf("%s: call %d about %s fails and is not reported: got findings %v, want %v", from, n,
						ending, found, whole)
				}
			}
			if n < 2 {
				t.Errorf("%s: no call about %s", from, ending)
			}
		}
	}
}
