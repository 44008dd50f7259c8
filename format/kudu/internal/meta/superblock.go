package meta

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/internal/sorted"
	"stoa/store"
	"stoa/wire"
)

// TabletState is a TabletDataState.
type TabletState int32

const (
	TabletCopying    TabletState = 0 // a copy from another server was not finished
	TabletReady      TabletState = 1
	TabletDeleted    TabletState = 2 // being deleted
	TabletTombstoned TabletState = 3 // deleted; only its votes are left
	TabletUnknown    TabletState = 999
)

func (s TabletState) String() string {
	switch s {
	case TabletCopying:
		return "COPYING"
	case TabletReady:
		return "READY"
	case TabletDeleted:
		return "DELETED"
	case TabletTombstoned:
		return "TOMBSTONED"
	case TabletUnknown:
		return "UNKNOWN"
	}
	return fmt.Sprintf("state %d", int32(s))
}

// Tablet is a TabletSuperBlockPB: one tablet's schema, place in the table, and blocks.
type Tablet struct {
	ID      string
	Object  string     // the file that it was read from
	At      fault.Span // the message in it
	TableID string
	Table   string // its name

	TxnTable      bool // Kudu's own table of transactions
	Schema        Schema
	SchemaVersion uint32
	Partitioning  PartitionSchema
	Partition     Partition
	State         TabletState
	RowSets       []RowSet

	// There is no superblock: the tablet is what all operations of its log make, whether they were flushed or not, or
	// what is in blocks that no superblock names.
	Rebuilt bool

	LastDurableMRS int64 // id; MemRowSets up to it are in the rowsets; later ones are only in the WAL
	Orphaned       []BlockRef
	TombstonedAt   *OpID    // last operation in the WAL before the tablet was tombstoned
	DataDirs       []string // UUIDs of the data directories with its blocks; nil: any
	CountsLive     bool     // supports_live_row_count: RowSet.LiveRows can be trusted
	Extra          ExtraConfig
	Dimension      string
	Txns           map[int64]Txn

	Consensus *Consensus // nil: there was none, or it could not be read (see Notes)
	Notes     []error    // damage in spite of which the superblock could be read
}

// OpID is an OpId: the position of an operation in the log.
type OpID struct{ Term, Index int64 }

func (o OpID) String() string { return fmt.Sprintf("%d.%d", o.Term, o.Index) }

// ExtraConfig is a TableExtraConfigPB.
type ExtraConfig struct {
	HistoryMaxAge     int32 // seconds; -1: not set
	Priority          int32
	PrioritySet       bool
	DisableCompaction bool
}

// Txn is a TxnMetadataPB. Timestamps are -1 if they are not set.
type Txn struct {
	Aborted                     bool
	CommitTimestamp, CommitMVCC int64
	Flushed                     bool // its MemRowSet is in the rowsets
}

// RowSet is a RowSetDataPB: the blocks of one DiskRowSet.
type RowSet struct {
	ID             uint64
	LastDurableDMS int64 // id; DeltaMemStores up to it are in REDO blocks; later ones are only in the WAL
	Columns        []ColumnBlock
	Redo, Undo     []BlockRef // REDO from the oldest to the newest, UNDO from the newest to the oldest
	Bloom, Adhoc   BlockRef
	MinKey, MaxKey []byte // encoded; nil: stored not here, but in the key column or the ad-hoc index
	LiveRows       int64  // -1: not stored
}

// BlockRef is a reference to a block, a BlockIdPB. The zero value refers to none.
type BlockRef struct {
	ID  uint64
	Off int64 // of the reference itself, in the superblock's file
	Len int32 // of the reference itself, in bytes
}

// IsNull reports whether b refers to no block: Kudu's null id is 0.
func (b BlockRef) IsNull() bool { return b.ID == 0 }

// ColumnBlock is a column's block in a rowset.
type ColumnBlock struct {
	Column int32 // id
	BlockRef
}

// Block is the block of the column with an id; false if the rowset has none: the column was added later.
func (r *RowSet) Block(column int32) (BlockRef, bool) {
	for _, c := range r.Columns {
		if c.Column == column {
			return c.BlockRef, true
		}
	}
	return BlockRef{}, false
}

// KindedBlock is a block of a rowset, with its role.
type KindedBlock struct {
	Kind   string // column, redo, undo, bloom, adhoc-index: Kudu's words
	Column int32  // id; -1 unless Kind is column
	BlockRef
}

// Idle reports whether no row depends on the block: only a server looks keys up in it.
func (b KindedBlock) Idle() bool { return b.Kind == "bloom" || b.Kind == "adhoc-index" }

// Blocks are all blocks of the rowset, in the order in which Kudu lists them.
func (r *RowSet) Blocks() []KindedBlock {
	out := make([]KindedBlock, 0, len(r.Columns)+len(r.Redo)+len(r.Undo)+2)
	for _, c := range r.Columns {
		out = append(out, KindedBlock{"column", c.Column, c.BlockRef})
	}
	sorted.StablyBy(out, func(a, b KindedBlock) int { return cmp.Compare(a.Column, b.Column) })
	for _, b := range r.Redo {
		out = append(out, KindedBlock{"redo", -1, b})
	}
	for _, b := range r.Undo {
		out = append(out, KindedBlock{"undo", -1, b})
	}
	for _, b := range []KindedBlock{{"bloom", -1, r.Bloom}, {"adhoc-index", -1, r.Adhoc}} {
		if !b.IsNull() {
			out = append(out, b)
		}
	}
	return out
}

// HasData reports whether the tablet has rows to read: it is not a tombstone, and not being deleted.
func (t *Tablet) HasData() bool { return t.State != TabletTombstoned && t.State != TabletDeleted }

// Rows is the number of live rows in the rowsets, without what is only in the WAL; -1 if the superblock does not say.
func (t *Tablet) Rows() int64 {
	var n int64
	for i := range t.RowSets {
		if !t.CountsLive || t.RowSets[i].LiveRows < 0 {
			return -1
		}
		n += t.RowSets[i].LiveRows
	}
	return n
}

// ReadSuperblock reads the superblock of a tablet. With an error the tablet holds what could be parsed.
func ReadSuperblock(ctx context.Context, tree store.Tree, name string, o pbc.Options) (*Tablet, error) {
	t := &Tablet{Object: name}
	notes, err := pbc.Read(ctx, tree, name, o, "superblock", t.Parse)
	if t.Notes = notes; err == nil {
		err = o.Limits.FitSize(int64(len(t.Schema.Columns)), 0, t.At, "superblock.schema")
	}
	return t, err
}

// Parse reads a TabletSuperBlockPB.
func (t *Tablet) Parse(c *wire.Cursor) {
	t.At = c.SpanOf(c.Pos(), c.Left())
	t.State, t.LastDurableMRS = TabletUnknown, -1
	t.Extra.HistoryMaxAge = -1
	var need Required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			t.TableID = r.String("table_id")
			need.Has(1)
		case 2:
			t.ID = r.String("tablet_id")
			need.Has(2)
		case 3:
			t.LastDurableMRS = r.Int("last_durable_mrs_id")
		case 4:
			r.Bytes("start_key")
		case 5:
			r.Bytes("end_key")
		case 6:
			t.addRowSet(c, r)
		case 7:
			t.Table = r.String("table_name")
			need.Has(7)
		case 8:
			t.Schema = message(r, "schema", ParseSchema)
			need.Has(8)
		case 9:
			t.SchemaVersion = r.Uint32("schema_version")
		case 10:
			t.State = TabletState(r.Enum("tablet_data_state", func(v int32) string { return TabletState(v).String() }))
		case 11:
			t.Orphaned = append(t.Orphaned, parseBlockRef(c, r, "orphaned_blocks["+strconv.Itoa(len(t.Orphaned))+"]"))
		case 12:
			id := message(r, "tombstone_last_logged_opid", ParseOpID)
			t.TombstonedAt = &id
		case 13:
			t.Partition = message(r, "partition", ParsePartition)
		case 14:
			t.Partitioning = message(r, "partition_schema", ParsePartitionSchema)
		case 15:
			t.addDataDirs(r)
		case 16:
			t.CountsLive = r.Bool("supports_live_row_count")
		case 17:
			t.Extra.parse(r)
		case 18:
			t.Dimension = r.String("dimension_label")
		case 19:
			t.TxnTable = r.Int32("table_type") == 1
		case 20:
			t.addTxn(r)
		default:
			r.Unknown()
		}
	}
	need.Check(c, "table_id", 1, "tablet_id", 2, "table_name", 7, "schema", 8)
	t.resolvePartitioning(c)
}

// resolvePartitioning finds the columns that the partition schema names, when all fields are read: the schema may come
// after it.
func (t *Tablet) resolvePartitioning(c *wire.Cursor) {
	if c.Err() != nil {
		return
	}
	if why := t.Partitioning.resolve(&t.Schema); why != "" {
		c.Fail(0, c.Pos(), "partition_schema", "%s", why)
	}
}

// message reads a field that is a message.
func message[T any](r *pb.Reader, name string, parse func(*wire.Cursor) T) T {
	m := r.Message(name)
	x := parse(m)
	r.Join(m)
	return x
}

// addRowSet reads an entry of rowsets.
func (t *Tablet) addRowSet(c *wire.Cursor, r *pb.Reader) {
	name := "rowsets[" + strconv.Itoa(len(t.RowSets)) + "]"
	off := c.Pos()
	m := r.Message(name)
	rs, problem := parseRowSet(m)
	r.Join(m)
	if problem != "" {
		c.Fail(off, c.Pos()-off, name, "%s", problem)
	}
	t.RowSets = append(t.RowSets, rs)
}

// addDataDirs reads data_dir_group, a DataDirGroupPB.
func (t *Tablet) addDataDirs(r *pb.Reader) {
	m := r.Message("data_dir_group")
	for r := pb.NewReader(m); r.Next(); {
		if r.Field() == 1 {
			t.DataDirs = append(t.DataDirs, r.String("uuids["+strconv.Itoa(len(t.DataDirs))+"]"))
		} else {
			r.Unknown()
		}
	}
	r.Join(m)
}

// parse reads extra_config, a TableExtraConfigPB. Fields that it does not set stay as they are.
func (x *ExtraConfig) parse(r *pb.Reader) {
	m := r.Message("extra_config")
	for r := pb.NewReader(m); r.Next(); {
		switch r.Field() {
		case 1:
			x.HistoryMaxAge = r.Int32("history_max_age_sec")
		case 2:
			x.Priority, x.PrioritySet = r.Int32("maintenance_priority"), true
		case 3:
			x.DisableCompaction = r.Bool("disable_compaction")
		default:
			r.Unknown()
		}
	}
	r.Join(m)
}

// addTxn reads an entry of txn_metadata.
func (t *Tablet) addTxn(r *pb.Reader) {
	m := r.Message("txn_metadata[" + strconv.Itoa(len(t.Txns)) + "]")
	id, x := parseTxn(m)
	r.Join(m)
	if t.Txns == nil {
		t.Txns = map[int64]Txn{}
	}
	t.Txns[id] = x
}

// Required is the set of a message's required fields that were seen, by number.
type Required uint64

// Has adds a field that was seen; its number is less than 64.
func (q *Required) Has(field int) { *q |= 1 << field }

// Check makes c fail for the first required field that is missing. fields are pairs of a name and a number.
func (q *Required) Check(c *wire.Cursor, fields ...any) {
	for i := 0; i+1 < len(fields); i += 2 {
		if *q>>fields[i+1].(int)&1 == 0 {
			c.Fail(0, c.Pos(), fields[i].(string), "a required field is missing")
		}
	}
}

// parseRowSet reads a RowSetDataPB. problem is the required field that is missing, if one is.
func parseRowSet(c *wire.Cursor) (s RowSet, problem string) {
	c.Spend(384)
	s.LiveRows = -1
	hasID, hasDMS := false, false
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			s.ID, hasID = r.Uint("id"), true
		case 2:
			s.LastDurableDMS, hasDMS = r.Int("last_durable_dms_id"), true
		case 3:
			off := c.Pos()
			m := r.Message("columns[" + strconv.Itoa(len(s.Columns)) + "]")
			b := ColumnBlock{Column: -1}
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 2:
					b.BlockRef = parseBlockRef(m, r, "block")
				case 4:
					b.Column = r.Int32("column_id")
				default:
					r.Unknown()
				}
			}
			r.Join(m)
			if b.IsNull() {
				c.Fail(off, c.Pos()-off, "columns["+strconv.Itoa(len(s.Columns))+"].block",
					"a required field is missing")
			}
			s.Columns = append(s.Columns, b)
		case 4:
			s.Redo = append(s.Redo, parseDeltaBlock(c, r, "redo_deltas["+strconv.Itoa(len(s.Redo))+"]"))
		case 5:
			s.Undo = append(s.Undo, parseDeltaBlock(c, r, "undo_deltas["+strconv.Itoa(len(s.Undo))+"]"))
		case 6:
			s.Bloom = parseBlockRef(c, r, "bloom_block")
		case 7:
			s.Adhoc = parseBlockRef(c, r, "adhoc_index_block")
		case 8:
			s.MinKey = Present(r.Bytes("min_encoded_key"))
		case 9:
			s.MaxKey = Present(r.Bytes("max_encoded_key"))
		case 10:
			s.LiveRows = r.Int("live_row_count")
		default:
			r.Unknown()
		}
	}
	switch {
	case !hasID:
		problem = "a required field is missing: id"
	case !hasDMS:
		problem = "a required field is missing: last_durable_dms_id"
	}
	return s, problem
}

// parseDeltaBlock reads a DeltaDataPB.
func parseDeltaBlock(c *wire.Cursor, r *pb.Reader, name string) (b BlockRef) {
	off := c.Pos()
	m := r.Message(name)
	for r := pb.NewReader(m); r.Next(); {
		if r.Field() == 2 {
			b = parseBlockRef(m, r, "block")
		} else {
			r.Unknown()
		}
	}
	r.Join(m)
	if b.IsNull() {
		c.Fail(off, c.Pos()-off, name+".block", "a required field is missing")
	}
	return b
}

// parseBlockRef reads a BlockIdPB.
func parseBlockRef(c *wire.Cursor, r *pb.Reader, name string) (b BlockRef) {
	off := c.Pos()
	m := r.Message(name)
	for r := pb.NewReader(m); r.Next(); {
		if r.Field() == 1 {
			b.ID = r.Fixed64("id")
		} else {
			r.Unknown()
		}
	}
	r.Join(m)
	at := c.SpanOf(off, c.Pos()-off)
	b.Off, b.Len = at.Off, int32(at.Len)
	return b
}

// ParseOpID reads an OpId.
func ParseOpID(c *wire.Cursor) (o OpID) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			o.Term = r.Int("term")
		case 2:
			o.Index = r.Int("index")
		default:
			r.Unknown()
		}
	}
	return o
}

// parseTxn reads an entry of txn_metadata.
func parseTxn(c *wire.Cursor) (id int64, t Txn) {
	t.CommitTimestamp, t.CommitMVCC = -1, -1
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			id = r.Int("txn_id")
		case 2:
			m := r.Message("metadata")
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 1:
					t.Aborted = r.Bool("aborted")
				case 2:
					t.CommitTimestamp = r.Int("commit_timestamp")
				case 3:
					t.CommitMVCC = r.Int("commit_mvcc_op_timestamp")
				case 4:
					t.Flushed = r.Bool("flushed_committed_mrs")
				default:
					r.Unknown()
				}
			}
			r.Join(m)
		default:
			r.Unknown()
		}
	}
	return id, t
}

// SystemCatalog is the table in which masters keep the metadata of all tables and tablets. Each master has a replica of
// its only tablet, whose id is the same in all clusters.
const (
	SystemCatalog   = "sys.catalog"
	SystemCatalogID = "00000000000000000000000000000000"
)

// MayBeOf reports whether t, whose superblock is lost, may belong to the same table as tb.
func (t *Tablet) MayBeOf(tb *Tablet) bool {
	switch {
	case t.TableID != "":
		return t.TableID == tb.TableID
	case len(t.Schema.Columns) == 0: // nothing says
		return true
	case t.SchemaVersion == tb.SchemaVersion:
		return tb.Schema.Differs(&t.Schema) == ""
	}
	return tb.Schema.Conflicts(&t.Schema) == ""
}

// Unwrapped corrects terms and indexes beyond 31 bits, which some old versions of Kudu wrote as negative 32-bit
// numbers.
func (o OpID) Unwrapped() OpID {
	if o.Term < 0 {
		o.Term += 1 << 32
	}
	if o.Index < -1 {
		o.Index += 1 << 32
	}
	return o
}
