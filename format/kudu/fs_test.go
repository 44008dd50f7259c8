package kudu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/store"
)

// corpusDir is the corpus of real directories; the test is skipped where it is not at hand.
func corpusDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the small directories of testdata are tried")
	}
	return filepath.Join(dir, "kudu")
}

// manifestBlock is a line of the corpus' manifest.
type manifestBlock struct {
	File, Sha256, Container, Kind, Table, Tablet, Partition, Column, Run string
	Size                                                                 int64
	RowSet                                                               uint64
	BlockID                                                              uint64            `json:"block_id"`
	ColumnID                                                             string            `json:"column_id"`
	CFile                                                                map[string]string `json:"cfile"`
}

func readManifest(t testing.TB, dir, run string) (out []manifestBlock) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []manifestBlock
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Run == run {
			out = append(out, m)
		}
	}
	return out
}

// openOne opens the one server in dir.
func openOne(t testing.TB, tree store.Tree, dir string) *FS {
	t.Helper()
	ctx := context.Background()
	ls, err := FindServers(ctx, tree, dir, Options{})
	if err != nil || len(ls) != 1 {
		t.Fatalf("%s: %d servers, %v", dir, len(ls), err)
	}
	f, err := OpenFS(ctx, tree, ls[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// healthy fails if there are findings.
func healthy(t testing.TB, f *FS) {
	t.Helper()
	for _, x := range f.Findings {
		t.Errorf("finding %s at %s: %s", x.Code, x.At, x.Message)
	}
}

func mustTablets(t testing.TB, f *FS) []*Tablet {
	t.Helper()
	ts, err := f.Tablets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// sumOf is the sha256 of a block.
func sumOf(t testing.TB, f *FS, p Place) string {
	t.Helper()
	src, err := f.OpenBlock(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(store.ReaderAt(context.Background(), src), 0, src.Size())); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// slot names a block by its part in its table, which is the same in all runs of the generator.
type slot struct {
	Table, Partition, Kind, Column string
	RowSet                         uint64
	N                              int
}

// slots are all blocks that the tablets name, by part.
func slots(t testing.TB, f *FS, tablets []*Tablet) map[slot]Place {
	t.Helper()
	out := map[slot]Place{}
	for _, tb := range tablets {
		for i := range tb.RowSets {
			rs := &tb.RowSets[i]
			n := map[string]int{}
			for _, b := range rs.Blocks() {
				p, err := f.PlaceOf(context.Background(), tb, b.BlockRef)
				if err != nil {
					t.Fatal(err)
				}
				s := slot{Table: tb.Table, Partition: tb.Partitioning.Text(&tb.Schema, &tb.Partition), Kind: b.Kind, RowSet: rs.ID}
				if b.Column >= 0 {
					s.Column = tb.Schema.NameOf(b.Column)
				}
				s.N = n[s.Kind+s.Column]
				n[s.Kind+s.Column]++
				if _, twice := out[s]; twice {
					t.Fatalf("%v stands twice", s)
				}
				out[s] = p
			}
		}
	}
	return out
}

// Every block of the file block manager lies where the manifest says, with the contents that it had there.
func TestCorpusFileBlocks(t *testing.T) {
	dir := corpusDir(t)
	root := filepath.Join(dir, "fs_file")
	f := openOne(t, store.Local{}, root)
	if f.BlockManager != "file" || len(f.DataDirs) != 1 {
		t.Fatalf("%q, %d data directories", f.BlockManager, len(f.DataDirs))
	}
	tablets := mustTablets(t, f)
	byID := map[uint64]slot{}
	for s, p := range slots(t, f, tablets) {
		byID[p.ID] = s
	}
	blocks := readManifest(t, dir, "file_ck")
	if len(blocks) != 613 || len(byID) != 613 {
		t.Fatalf("%d blocks in the manifest, %d named by superblocks", len(blocks), len(byID))
	}
	for _, m := range blocks {
		p, err := f.Block(context.Background(), m.BlockID)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := filepath.Join(root, m.Container); p.At != (fault.Span{Object: want, Len: m.Size}) {
			t.Errorf("block %d: %s, want %s", m.BlockID, p.At, want)
		}
		if sum := sumOf(t, f, p); sum != m.Sha256 {
			t.Errorf("block %d: other bytes", m.BlockID)
		}
		s := byID[m.BlockID]
		if s.Table != m.Table || s.Kind != m.Kind || s.Column != m.Column || s.RowSet != m.RowSet || s.Partition != m.Partition {
			t.Errorf("block %d is %v, want %s %s %s %q of rowset %d", m.BlockID, s, m.Table, m.Partition, m.Kind, m.Column, m.RowSet)
		}
	}
	unnamed, err := f.Unnamed(context.Background(), tablets)
	if err != nil || len(unnamed) != 0 {
		t.Errorf("%d blocks that nothing names, %v", len(unnamed), err)
	}
	healthy(t, f)
}

// The log block manager's run has the same tables: its column, bloom and ad-hoc index blocks are the same bytes, at another place.
func TestCorpusLogBlocks(t *testing.T) {
	dir := corpusDir(t)
	f := openOne(t, store.Local{}, filepath.Join(dir, "fs_log"))
	if f.BlockManager != "log" || len(f.Containers) != 332 {
		t.Fatalf("%q, %d containers", f.BlockManager, len(f.Containers))
	}
	tablets := mustTablets(t, f)
	got := slots(t, f, tablets)
	want := map[slot]string{}
	file := openOne(t, store.Local{}, filepath.Join(dir, "fs_file"))
	for s, p := range slots(t, file, mustTablets(t, file)) {
		want[s] = sumOf(t, file, p)
	}
	if len(got) != 613 || len(want) != 613 {
		t.Fatalf("%d blocks, the other run has %d", len(got), len(want))
	}
	same, other := 0, map[string]int{}
	for s, p := range got {
		if p.At.Off%4096 != 0 {
			t.Errorf("%v: %s is not aligned", s, p.At)
		}
		w, ok := want[s]
		if !ok {
			t.Errorf("%v is not in the other run", s)
			continue
		}
		if sumOf(t, f, p) == w {
			same++
		} else {
			other[s.Kind]++
		}
	}
	t.Logf("%d blocks are the same bytes as in the other run; not the same: %v", same, other)
	if other["column"] > 0 || other["bloom"] > 0 || other["adhoc-index"] > 0 {
		t.Errorf("blocks without timestamps differ: %v", other)
	}
	unnamed, err := f.Unnamed(context.Background(), tablets)
	if err != nil || len(unnamed) != 0 {
		t.Errorf("%d blocks that nothing names, %v", len(unnamed), err)
	}
	healthy(t, f)
}

func dump(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

var _ = fmt.Sprint
var _ = sort.Strings
var _ = strings.Join
