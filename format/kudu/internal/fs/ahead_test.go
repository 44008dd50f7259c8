package fs

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/store"
)

// slow is the local file system with a latency, which notes how many operations are in progress.
type slow struct {
	store.Local
	mu        sync.Mutex
	now, most int
}

func (s *slow) Unwrap() store.Tree { return s.Local }

func (s *slow) wait() {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
}

func (s *slow) Open(ctx context.Context, name string) (store.Source, error) {
	s.wait()
	return s.Local.Open(ctx, name)
}

// TestContainersAreReadAhead: the metadata of containers is read several files at a time, and what is found is the same
// as one at a time, whatever is damaged.
func TestContainersAreReadAhead(t *testing.T) {
	from := filepath.Join("..", "..", "testdata", "log")
	dir := t.TempDir()
	copied := 0
	err := filepath.WalkDir(from, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, MetadataSuffix) && !strings.HasSuffix(name, DataSuffix) {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i := range 6 {
			if i == 1 && len(b) > 40 && strings.HasSuffix(name, MetadataSuffix) {
				b[40] ^= 0xff
			}
			to := filepath.Join(dir, string(rune('a'+i))+filepath.Base(name))
			if err := os.WriteFile(to, b, 0o666); err != nil {
				return err
			}
			copied++
		}
		return nil
	})
	if err != nil || copied < 2*fewFiles {
		t.Fatalf("%d files, %v", copied, err)
	}
	open := func(tree store.Tree) *FS {
		f := &FS{Tree: tree, Blocks: map[uint64]Placed{}, DataDirs: []DataDir{{Dir: filepath.ToSlash(dir)}}}
		if err := f.openContainers(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		return f
	}
	tree := &slow{}
	got := open(tree)
	want := open(struct{ store.Tree }{store.Local{}}) // which is not known to be local
	if tree.most < 4 {
		t.Errorf("at most %d operations are in progress at a time", tree.most)
	}
	if len(want.Findings) == 0 || !reflect.DeepEqual(got.Findings, want.Findings) {
		t.Errorf("got findings %v, want %v", got.Findings, want.Findings)
	}
	if len(want.Blocks) == 0 || !reflect.DeepEqual(got.Blocks, want.Blocks) {
		t.Errorf("got %d blocks, want %d", len(got.Blocks), len(want.Blocks))
	}
}
