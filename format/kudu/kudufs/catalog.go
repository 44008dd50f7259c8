package kudufs

import (
	"cmp"
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/pb"
	"stoa/internal/sorted"
)

// Values of entry_type in the master's catalogue, and the state of entries that are in use. Other entries (the
// cluster's id, certificates, token signing keys) are created by a master that does not find them.
const (
	entryTable   = 1 // SysTablesEntryPB
	entryTablet  = 2 // SysTabletsEntryPB
	entryRunning = 2
)

// catalogSchema is the schema of the catalogue; Kudu refuses any other.
func catalogSchema() meta.Schema {
	s := meta.Schema{Columns: []meta.Column{
		{ID: 0, Name: "entry_type", Type: cfile.Int8, Key: true},
		{ID: 1, Name: "entry_id", Type: cfile.String, Key: true},
		{ID: 2, Name: "metadata", Type: cfile.String},
	}}
	s.Index()
	return s
}

// catalogEntry is a row of the catalogue.
type catalogEntry struct {
	kind     int8
	id       string
	metadata []byte
}

// catalogOf are the entries of a table and its tablets. made is the time of creation, in seconds since 1970.
func catalogOf(tablets []*meta.Tablet, made int64) (out []catalogEntry) {
	t := tablets[0]
	e := pb.AppendString(nil, 1, t.Table)
	e = pb.AppendUint(e, 2, uint64(t.SchemaVersion))
	e = pb.AppendMessage(e, 3, t.Schema.Append(nil))
	e = pb.AppendInt(e, 5, int64(len(t.Consensus.Peers)))
	e = pb.AppendInt(e, 6, entryRunning)
	e = pb.AppendInt(e, 8, int64(nextID(t.Schema.Columns)))
	e = pb.AppendMessage(e, 9, t.Partitioning.Append(nil, &t.Schema))
	e = pb.AppendInt(e, 10, made)
	out = append(out, catalogEntry{entryTable, t.TableID, e})
	for _, t := range tablets {
		state := pb.AppendMessage(pb.AppendInt(nil, 1, t.Consensus.Term), 3, t.Consensus.AppendConfig(nil))
		e := pb.AppendMessage(nil, 3, state)
		e = pb.AppendInt(e, 4, entryRunning)
		e = pb.AppendString(e, 6, t.TableID)
		e = pb.AppendMessage(e, 7, t.Partition.Append(nil))
		out = append(out, catalogEntry{entryTablet, t.ID, e})
	}
	return out
}

// writeCatalog writes the catalogue's tablet, with its entries in one rowset.
func writeCatalog(ctx context.Context, v *server, entries []catalogEntry, mem memory.Allocator) error {
	s := catalogSchema()
	t := &meta.Tablet{ID: meta.SystemCatalogID, TableID: meta.SystemCatalog, Table: meta.SystemCatalog, Schema: s,
		State: meta.TabletReady, LastDurableMRS: 0, CountsLive: true, DataDirs: []string{v.dir},
		Consensus: &meta.Consensus{Index: -1, Peers: []meta.Peer{{UUID: v.uuid, Voter: true}}}}
	t.Partitioning = meta.PartitionSchema{Stored: true, Range: []int32{0, 1}}
	sorted.By(entries, func(a, b catalogEntry) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	kinds, ids := array.NewInt8Builder(mem), array.NewStringBuilder(mem)
	bodies := array.NewBinaryBuilder(mem, arrow.BinaryTypes.String)
	var keys [][]byte
	for _, e := range entries {
		kinds.Append(e.kind)
		ids.Append(e.id)
		bodies.Append(e.metadata)
		key, err := s.Key(nil, [][]byte{{byte(e.kind)}, []byte(e.id)})
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	columns := []arrow.Array{kinds.NewArray(), ids.NewArray(), bodies.NewArray()}
	defer release(columns)
	rs, err := writeRowSet(ctx, v, &s, 0, columns, keys)
	if err != nil {
		return err
	}
	t.RowSets = []meta.RowSet{rs}
	return v.tablet(ctx, t)
}
