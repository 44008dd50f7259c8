package kudufs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"stoa"

	"stoa/format/kudu"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/wal"
	"stoa/format/kudu/kudufs"
	"stoa/store"
)

// manyTables writes a tablet server with n tables, table00000 and so on, of one tablet each: it writes a table with n
// tablets, and then replaces their superblocks and logs.
func manyTables(t *testing.T, dir string, n int) {
	t.Helper()
	var rows [][2]any
	for i := range 10 * n {
		rows = append(rows, [2]any{i, "x"})
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := write(t, out, kudufs.WriteOptions{Table: "t", Key: []string{"k", "s"}, Buckets: n}, rows); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(out, "tserver"), dir); err != nil {
		t.Fatal(err)
	}
	ls, err := kudu.FindServers(t.Context(), store.Local{}, dir, kudu.FSOptions{})
	if err != nil || len(ls) != 1 {
		t.Fatal(ls, err)
	}
	f, err := kudu.OpenFS(t.Context(), store.Local{}, ls[0], kudu.FSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tablets, err := f.Tablets(t.Context())
	if err != nil || len(tablets) != n {
		t.Fatal(len(tablets), err)
	}
	for i, tb := range tablets {
		one := *tb
		one.Table, one.TableID = fmt.Sprintf("table%05d", i), fmt.Sprintf("%032x", i+1)
		one.Partitioning, one.Partition = meta.PartitionSchema{Stored: true}, meta.Partition{}
		for _, c := range one.Schema.Columns[:one.Schema.NumKeys] {
			one.Partitioning.Range = append(one.Partitioning.Range, c.ID)
		}
		for name, b := range map[string][]byte{
			"tablet-meta/" + tb.ID:             pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", one.Append(nil)),
			"wals/" + tb.ID + "/wal-000000001": wal.AppendEmpty(nil, &one),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), bytes.Clone(b), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMakeManyTables writes the directories of STOA_MANY tables to STOA_MANY_DIR, for measurements.
func TestMakeManyTables(t *testing.T) {
	dir := os.Getenv("STOA_MANY_DIR")
	if dir == "" {
		t.Skip("STOA_MANY_DIR is not set")
	}
	n, err := strconv.Atoi(os.Getenv("STOA_MANY"))
	if err != nil {
		t.Fatal(err)
	}
	manyTables(t, dir, n)
}

// TestManyTables: in a session, listing directories and opening each table reads each superblock only a few times,
// however many tables there are; but a superblock that has changed is read again.
func TestManyTables(t *testing.T) {
	const n = 40
	dir := filepath.Join(t.TempDir(), "server")
	manyTables(t, dir, n)
	tree := store.NewCounter(store.Local{})
	ctx, o := stoa.Session(t.Context()), stoa.OpenOptions{Tree: tree}
	rows := 0
	count := func(name string) {
		tab, err := stoa.Open(ctx, dir+"#"+name, o)
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		for b, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
			if err != nil {
				t.Fatal(err)
			}
			rows += int(b.NumRows())
		}
	}
	tables := 0
	for e, err := range stoa.List(ctx, dir, o) {
		if err != nil {
			t.Fatal(err)
		}
		tables++
		count(e.Table)
	}
	if tables != n || rows != 10*n {
		t.Errorf("%d tables, %d rows", tables, rows)
	}
	superblocks, err := filepath.Glob(filepath.Join(dir, "tablet-meta", "*"))
	if err != nil || len(superblocks) != n {
		t.Fatal(superblocks, err)
	}
	for _, name := range superblocks {
		if k := tree.Opens(name); k < 1 || k > 4 {
			t.Errorf("%s was opened %d times", name, k)
		}
	}

	// a superblock is torn
	b, err := os.ReadFile(superblocks[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(superblocks[0], b[:len(b)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	broken := 0
	for i := range n {
		if tab, err := stoa.Open(ctx, fmt.Sprintf("%s#table%05d", dir, i), o); err != nil {
			broken++
		} else {
			tab.Close()
		}
	}
	if broken != 1 {
		t.Errorf("%d tables cannot be opened, want the one with the torn superblock", broken)
	}
}
