package kudu

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/pb"
)

// int32Array makes an array cell as Kudu's array1d.fbs has it; a nil is a NULL.
func int32Array(values ...any) []byte {
	b := flatbuffers.NewBuilder(64)
	bits := make([]byte, (len(values)+7)/8)
	b.StartVector(4, len(values), 4)
	for i := len(values) - 1; i >= 0; i-- {
		v, ok := values[i].(int)
		if ok {
			bits[i/8] |= 1 << (i % 8)
		}
		b.PrependInt32(int32(v))
	}
	vector := b.EndVector(len(values))
	b.StartObject(1)
	b.PrependUOffsetTSlot(0, vector, 0)
	data := b.EndObject()
	var validity flatbuffers.UOffsetT
	if slices.Contains(values, nil) {
		validity = b.CreateByteVector(bits)
	}
	b.StartObject(3)
	b.PrependByteSlot(0, 5, 0)
	b.PrependUOffsetTSlot(1, data, 0)
	b.PrependUOffsetTSlot(2, validity, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

// ArrayServer is a tablet server with a table of arrays: base columns, one of them with a default alone, a REDO file,
// an UNDO file, and a log with rows and changes.
func ArrayServer(t *testing.T) map[string][]byte {
	t.Helper()
	const id = "0123456789abcdef0123456789abcdef"
	s := meta.Schema{Columns: []meta.Column{{ID: 10, Name: "k", Type: cfile.Int32, Key: true},
		{ID: 11, Name: "a", Type: cfile.Int32, Array: true, Nullable: true},
		{ID: 12, Name: "d", Type: cfile.Int32, Array: true, ReadDefault: int32Array(7, nil),
			WriteDefault: int32Array(7, nil)}}}
	s.Index()
	dir := pb.AppendMessage(nil, 1, pb.AppendString(pb.AppendString(nil, 1, id), 2, id))
	dir = pb.AppendUint(pb.AppendString(dir, 2, fs.FileManager), 3, 4096)
	files := map[string][]byte{
		"w/instance":                    pbc.Append(nil, "kudu.InstanceMetadataPB", pb.AppendString(nil, 1, id)),
		"w/data/block_manager_instance": pbc.Append(nil, "kudu.DirInstanceMetadataPB", dir),
	}
	next := uint64(0)
	block := func(b []byte) meta.BlockRef {
		next++
		files["w/data/"+fs.BlockPath(next)] = bytes.Clone(b)
		return meta.BlockRef{ID: next}
	}
	column := func(i int, json string) meta.ColumnBlock {
		c, sc := &s.Columns[i], (*arrow.Schema)(nil)
		sc, err := s.Arrow()
		if err != nil {
			t.Fatal(err)
		}
		values, _, err := array.FromJSON(memory.DefaultAllocator, sc.Field(i).Type, strings.NewReader(json))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w, err := cfile.NewWriter(&b, cfile.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable, Array: c.Array},
			cfile.WriterOptions{ValueIndex: c.Key})
		if err == nil {
			err = w.Append(values)
		}
		if err == nil {
			_, err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return meta.ColumnBlock{Column: c.ID, BlockRef: block(b.Bytes())}
	}
	delta := func(undo bool, row uint32, time uint64, l *cfile.ChangeList) meta.BlockRef {
		var b bytes.Buffer
		w, err := cfile.NewDeltaWriter(&b, undo, cfile.WriterOptions{})
		if err == nil {
			err = w.Add(row, time, l)
		}
		if err == nil {
			_, err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return block(b.Bytes())
	}
	rs := meta.RowSet{ID: 3, LastDurableDMS: 1, LiveRows: 4, MinKey: []byte{0x80, 0, 0, 0},
		MaxKey: []byte{0x80, 0, 0, 3}}
	rs.Columns = []meta.ColumnBlock{column(0, "[0,1,2,3]"), column(1, "[[1,2],null,[],[null,5]]")}
	var up, down cfile.ChangeList
	rs.Redo = []meta.BlockRef{delta(false, 0, 5, up.Update().Set(11, int32Array(8, nil, 9)))}
	rs.Undo = []meta.BlockRef{delta(true, 3, 3, down.Update().Set(11, int32Array(4)))}
	tb := &meta.Tablet{ID: id, TableID: id, Table: "arrays", Schema: s, State: meta.TabletReady, LastDurableMRS: 4,
		RowSets: []meta.RowSet{rs}, DataDirs: []string{id}, Partitioning: meta.PartitionSchema{Stored: true,
			Range: []int32{10}}}
	files["w/tablet-meta/"+id] = pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", tb.Append(nil))
	op := func() *rowsPB { return new(rowsPB) }
	files["w/wals/"+id+"/wal-000000001"] = segmentIn(id, s, 0, 1, cfile.LZ4, false,
		received(1, wal.OpWrite, 5, op().add(&s, wal.RowInsert, le32(9), int32Array(6, 6)).request(&s)),
		committed(1, wal.OpWrite, inMRS(5)),
		received(2, wal.OpWrite, 5, op().add(&s, wal.RowUpdate, le32(1), int32Array(nil)).request(&s)),
		committed(2, wal.OpWrite, inDMS(3, 2)),
		received(3, wal.OpWrite, 5, op().add(&s, wal.RowUpdate, le32(2), nil, int32Array()).request(&s)),
		committed(3, wal.OpWrite, inDMS(3, 2)))
	return files
}
