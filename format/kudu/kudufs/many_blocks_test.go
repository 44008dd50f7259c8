package kudufs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"stoa"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
)

// manyBlocks makes the directory of a tablet server with log containers of ten blocks each, which belong to the row
// sets of one table. The blocks themselves are holes.
func manyBlocks(t *testing.T, dir string, containers int) {
	t.Helper()
	put := func(name string, b []byte) {
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil {
			err = os.WriteFile(name, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	server := id("a")
	put(fs.InstanceFile, pbc.Append(nil, "kudu.InstanceMetadataPB", pb.AppendString(nil, 1, server)))
	d := pb.AppendMessage(nil, 1, pb.AppendString(pb.AppendString(nil, 1, server), 2, server))
	d = pb.AppendUint(pb.AppendString(d, 2, fs.LogManager), 3, 4096)
	put("data/"+fs.DirInstanceFile, pbc.Append(nil, "kudu.DirInstanceMetadataPB", d))
	s := meta.Schema{}
	for i := range int32(8) {
		c := meta.Column{ID: 10 + i, Name: fmt.Sprint("c", i), Type: cfile.Int32, Key: i < 2}
		s.Columns = append(s.Columns, c)
	}
	s.Index()
	tb := &meta.Tablet{ID: server, TableID: server, Table: "t", Schema: s, State: meta.TabletReady,
		DataDirs: []string{server}, Partitioning: meta.PartitionSchema{Stored: true, Range: []int32{10, 11}}}
	const size = 4096
	for c := range containers {
		journal, rs := pbc.Head("kudu.BlockRecordPB"), meta.RowSet{ID: uint64(c), LastDurableDMS: -1}
		for i := range 10 {
			b := meta.BlockRef{ID: uint64(10*c + i + 1)}
			r := pb.AppendUint(pb.AppendMessage(nil, 1, pb.AppendFixed64(nil, 1, b.ID)), 2, fs.RecordCreate)
			r = pb.AppendInt(pb.AppendInt(pb.AppendUint(r, 3, 1), 4, int64(size*i)), 5, size)
			journal = pbc.AppendRecord(journal, r)
			switch {
			case i < 8:
				rs.Columns = append(rs.Columns, meta.ColumnBlock{Column: int32(10 + i), BlockRef: b})
			case i == 8:
				rs.Bloom = b
			default:
				rs.Adhoc = b
			}
		}
		tb.RowSets = append(tb.RowSets, rs)
		name := fmt.Sprintf("data/%032x", c)
		put(name+fs.MetadataSuffix, journal)
		put(name+fs.DataSuffix, nil)
		if err := os.Truncate(filepath.Join(dir, name+fs.DataSuffix), 10*size); err != nil {
			t.Fatal(err)
		}
	}
	put(fs.TabletMetaDir+"/"+server, pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", tb.Append(nil)))
}

// TestMakeManyBlocks writes the directory with STOA_CONTAINERS containers to STOA_MANY_DIR, for measurements.
func TestMakeManyBlocks(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("STOA_CONTAINERS"))
	if err != nil {
		t.Skip("STOA_CONTAINERS is not set")
	}
	manyBlocks(t, os.Getenv("STOA_MANY_DIR"), n)
}

// TestOpenIsSmall: an open table of 100,000 blocks in 10,000 containers holds at most 200 MB: 100 MB are left of the
// 300 MB that the command may take.
func TestOpenIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 containers take seconds")
	}
	dir := t.TempDir()
	manyBlocks(t, dir, 10_000)
	live := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if held := live() - before; held > 200_000_000 || held < 1_000_000 {
		t.Errorf("an open table holds %d bytes, want at most 200 MB", held)
	} else {
		t.Logf("%d bytes are held", held)
	}
}
