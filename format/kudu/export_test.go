package kudu

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/sum"
	"stoa/store"
	"stoa/vec"
)

// AsLarge makes ls treat all logs as large: it reads only their ends.
func AsLarge(t testing.TB) {
	wal.QuickBytes = 0
	t.Cleanup(func() { wal.QuickBytes = 1 << 20 })
}

// Unpack exports unpack to the tests of package kudu_test.
var Unpack = unpack

// WithoutUndo returns a superblock's file in which a rowset no longer names the UNDO block id, because the field was
// given an unknown number.
func WithoutUndo(t testing.TB, file []byte, id uint64) []byte {
	t.Helper()
	out := bytes.Clone(file)
	// undo_deltas (5) { block (2) { id (1) } }
	want := binary.LittleEndian.AppendUint64([]byte{5<<3 | 2, 13 - 2, 2<<3 | 2, 9, 1<<3 | 1}, id)
	at := bytes.LastIndex(out, want)
	if at < 0 {
		t.Fatal("the superblock does not have the expected reference to the block")
	}
	out[at] = 15<<3 | 2
	reseal(out)
	return out
}

// Renamed returns a superblock's file in which ids are replaced by others of the same length.
func Renamed(file []byte, ids map[string]string) []byte {
	out := bytes.Clone(file)
	for was, is := range ids {
		out = bytes.ReplaceAll(out, []byte(was), []byte(is))
	}
	reseal(out)
	return out
}

// reseal updates the checksum of a superblock's message.
func reseal(out []byte) {
	last := binary.LittleEndian.Uint32(out[pbc.HeadV2:])
	body := out[pbc.HeadV2+8+int(last)+4:] // after the supplementary header
	n := int(binary.LittleEndian.Uint32(body))
	binary.LittleEndian.PutUint32(body[8+n:], sum.CRC32C(body[8:8+n]))
}

// WithState returns a superblock's file with another tablet_data_state.
func WithState(t testing.TB, file []byte, state meta.TabletState) []byte {
	t.Helper()
	out := bytes.Clone(file)
	// tablet_data_state (10): READY; it follows the schema_version (9)
	at := bytes.LastIndex(out, []byte{9 << 3, 0, 10 << 3, byte(meta.TabletReady)})
	if at < 0 {
		t.Fatal("the superblock does not have the expected state")
	}
	out[at+3] = byte(state)
	reseal(out)
	return out
}

// Deltas opens a table. The returned function reads one delta file, in its current state in the tree, and returns its
// patch of all rows for a snapshot.
func Deltas(t testing.TB, tree store.Tree, name string, o format.OpenOptions) func(object string,
	at uint64) (*vec.Patch, error) {
	t.Helper()
	ctx := context.Background()
	tb, err := cluster.OpenTable(ctx, format.Target{Tree: tree, Table: name}, o,
		table.Options{At: table.Latest, NoWAL: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tb.Tablets {
		if err := tb.Load(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	var cols []int
	for i := range tb.Cols {
		cols = append(cols, i)
	}
	return func(object string, at uint64) (*vec.Patch, error) {
		s, err := onlyDelta(ctx, tb, object)
		if err != nil {
			return nil, err
		}
		if _, err := tb.Agree(ctx, s); err != nil {
			return nil, err
		}
		c, err := tb.ChangesOf(ctx, s, cols, at)
		if err != nil || c == nil {
			return nil, err
		}
		rows := vec.Range{To: s.Rows}
		var stored [][]byte
		for _, at := range c.Spans(rows) {
			b := make([]byte, at.Len)
			if err := format.ReadFull(ctx, table.NewSource(tree, at.Object, at.End()), at, "deltas", b); err != nil {
				return nil, err
			}
			stored = append(stored, b)
		}
		return c.Patch(ctx, rows, stored)
	}
}

// onlyDelta is the rowset of a delta file, without its other delta files.
func onlyDelta(ctx context.Context, t *table.Table, object string) (*table.RowSet, error) {
	for _, x := range t.Tablets {
		for _, s := range x.Sets {
			there := func(b meta.BlockRef) bool {
				p, err := x.FS.PlaceOf(ctx, x.Tablet, b)
				return err == nil && p.At.Object == object
			}
			redo, undo := slices.IndexFunc(s.Redo, there), slices.IndexFunc(s.Undo, there)
			if redo < 0 && undo < 0 {
				continue
			}
			set := *s.RowSet
			set.Redo, set.Undo = nil, nil
			if redo >= 0 {
				set.Redo = s.Redo[redo : redo+1]
			} else {
				set.Undo = s.Undo[undo : undo+1]
			}
			only := *s
			only.RowSet = &set
			return &only, nil
		}
	}
	return nil, fault.Bugf("no rowset has a delta file %s", object)
}

// Container and Record write protobuf containers and the records of blocks.
var ContainerFile, Record = container, record

// InstanceOf returns the UUIDs of a data directory and of all of its server, by a file block_manager_instance.
func InstanceOf(file []byte) (uuid string, all []string) {
	tree := store.NewMemory(map[string][]byte{"d/data/" + fs.DirInstanceFile: file})
	f := &fs.FS{Layout: fs.Layout{DataDirs: []string{"d"}}, Tree: tree}
	if f.ReadDataDirs(context.Background()) != nil {
		return "", nil
	}
	return f.DataDirs[0].UUID, f.DataDirs[0].All
}
