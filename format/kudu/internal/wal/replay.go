package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Logged are the rows and changes that are in a tablet's write-ahead log and not in its rowsets.
type Logged struct {
	Rows []LoggedRow // rows of MemRowSets that were not flushed; ascending by Key, each key once
	// Changes of flushed rowsets, by RowSet.ID; ascending by Row, then in the order in which they were applied.
	Changes map[uint64][]LoggedChange

	// Unplaced are changes whose rows are unknown, because keys of their rowset cannot be read, by RowSet.ID. A finding
	// kudu.wal.change.lost also names each rowset.
	Unplaced map[uint64][]UnplacedChange

	First     meta.OpID // the first operation of the log; a tablet's first has the index 1
	Last      meta.OpID // the last committed operation; zero: there is none
	LastTime  uint64    // its hybrid time
	LastWrite uint64    // hybrid time of the last one that changed rows or the schema; 0: there is none

	Alters []Altered // the changes of the schema that the log still has, in their order
	Ops    int64     // row operations that were not flushed: they are applied from here

	Schema  *meta.Schema // with which the log ends, and its version
	Version uint32
	Table   string // the name that the last change of the schema gave the table; "": there was none

	// Operations that the log holds and nothing says were committed are not applied: they may never have been. Open is
	// the last of them, OpenFrom the hybrid time of the first; zero: there are none.
	Open     meta.OpID
	OpenFrom uint64
	open     []openOp
	Torn     *Torn     // the batch within which the log ends; nil: it does not
	Received meta.OpID // the last operation, committed or not

	Later   bool // the log is of a later state of the tablet than the superblock, and is not used
	Missing bool // there is no log
	Empty   bool // there is a log without operations
	// Lost is true if operations before Last are missing from the log: rows may be out of date.
	Lost     bool
	Findings []region.Finding
}

// LoggedRow is a row that was inserted into a MemRowSet. A key that was deleted and inserted again there is one
// row: the deletion and the insertion are among its changes.
type LoggedRow struct {
	Key  []byte // encoded primary key, as cfile.AppendKey makes it
	Time uint64 // hybrid time of the insertion
	// Cells are those of all columns, the key included, as in a RowChangeList: varint column id, varint size (0: NULL,
	// else the length plus 1), bytes.
	Cells   []byte
	Changes []LoggedChange
}

// LoggedChange is a change of a row, as a delta file has it.
type LoggedChange struct {
	Row  int64  // ordinal in the rowset; 0 for a LoggedRow
	Time uint64 // hybrid time of the operation
	List []byte // RowChangeList: op (1 update, 2 delete, 3 reinsert), cells
}

// UnplacedChange is a row's changes that could not be placed.
type UnplacedChange struct {
	Key     []byte         // encoded primary key
	Changes []LoggedChange // in the order in which they were applied
	Rows    vec.Range      // the row is one of these: any of them may be out of date
	Err     error          // why: class Corrupt
}

// Altered is a change of a tablet's schema.
type Altered struct {
	Time    uint64 // hybrid time of the operation
	Version uint32 // of the schema from then on
	Name    string // of the table from then on; "": it is the one it had, as far as the log says
	Changes []string
	Known   bool // Changes are all there are: the version before is known
}

// KeyLookup finds the ordinal of an encoded key in a rowset, whether the row is live or not. If keys are damaged, the
// error is Corrupt, and wraps a LostKey with the rows that may have the key, if these can be narrowed down.
type KeyLookup func(ctx context.Context, rowset uint64, key []byte) (row int64, found bool, err error)

// maxPending is the size, in bytes, of operations that wait for earlier ones to be committed, beyond which these are
// dropped.
const maxPending = 256 << 20

// Replay reads the log of a tablet. Damage is not an error: it is in Findings, and intact operations are used. The
// result has all rows and changes, whatever their time, and is all that is kept in memory; the error is Limit if that
// is too much.
func Replay(ctx context.Context, f *fs.FS, t *meta.Tablet, lookup KeyLookup) (*Logged, error) {
	return Count(ctx, f, t, lookup, math.MaxUint64)
}

// Count is Replay, but Ops are only the operations before the hybrid time until.
func Count(ctx context.Context, f *fs.FS, t *meta.Tablet, lookup KeyLookup, until uint64) (*Logged, error) {
	segments, err := f.LogSegments(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	x := newReplay(t, lookup)
	x.until = until
	return x.replay(ctx, f, segments)
}

// replay reads the log, which consists of the segments.
func (x *Replayer) replay(ctx context.Context, f *fs.FS, segments []store.Info) (*Logged, error) {
	if len(segments) == 0 {
		x.none(ctx, f)
		return x.Out, nil
	}
	for i, s := range segments {
		if err := x.segment(ctx, f, s, i == 0, i == len(segments)-1); err != nil {
			return nil, err
		}
	}
	x.Out.Empty = x.last == meta.OpID{} && !x.damaged
	x.drain(true)
	if err := x.finish(ctx); err != nil {
		return nil, err
	}
	x.Out.Schema, x.Out.Version, x.Out.Table = x.schema, x.version, x.name
	return x.Out, nil
}

// newReplay begins the replay of a tablet's log.
func newReplay(t *meta.Tablet, lookup KeyLookup) *Replayer {
	x := &Replayer{T: t, lookup: lookup, Out: &Logged{Changes: map[uint64][]LoggedChange{}}, Counts: map[string]int{},
		rows: map[string]*memRow{}, moved: map[uint64]map[string][]LoggedChange{}, txns: map[int64][]newRow{},
		durable: map[uint64]int64{},
		schema:  &t.Schema, version: t.SchemaVersion, known: map[uint32]*meta.Schema{t.SchemaVersion: &t.Schema},
		unsure: map[uint32]fault.Span{}, counter: -1}
	for i := range t.RowSets {
		x.durable[t.RowSets[i].ID] = t.RowSets[i].LastDurableDMS
	}
	return x
}

// memRow is a row of the MemRowSets.
type memRow struct {
	LoggedRow
	live bool
	mrs  int64 // MemRowSet of the last insertion
}

// newRow is a row to insert. Rows of a transaction wait for its commit.
type newRow struct {
	key, cells []byte
	schema     *meta.Schema // of the cells
	mrs        int64
}

// pendingOp is an operation that waits for its commit, or for the operations before it.
type pendingOp struct {
	*replicateMsg
	commit *commitMsg
	at     fault.Span // of the batch
	size   int64
}

// Replayer is the state of a replay.
type Replayer struct {
	T      *meta.Tablet
	lookup KeyLookup
	Out    *Logged
	Counts map[string]int // findings by code

	durable map[uint64]int64 // LastDurableDMS by rowset
	memRows vec.Range        // the MemRowSets that commits name
	until   uint64           // operations from this hybrid time on do not count in Out.Ops

	schema   *meta.Schema // at this point of the log
	version  uint32
	known    map[uint32]*meta.Schema // by version; also those of headers, which have no checksums
	unsure   map[uint32]fault.Span   // versions that only a header has, with its span
	wentBack bool                    // an ALTER_SCHEMA was to an older version than the one before
	name     string                  // the table's name by the last ALTER_SCHEMA; "": there was none
	counter  int64                   // of the auto-incrementing column

	last      meta.OpID // last operation that was received
	sequence  uint64
	codec     cfile.Compression
	unclosed  fault.Span  // end of the last segment, if it was not closed
	damaged   bool        // part of the log is lost
	pending   []pendingOp // ascending by index
	size      int64       // of pending
	dropped   int64       // operations without a commit
	firstDrop meta.OpID

	rows  map[string]*memRow
	moved map[uint64]map[string][]LoggedChange // changes of flushed rowsets, by rowset and key
	txns  map[int64][]newRow

	bytes    slab   // of keys, cells and changes
	key, tmp []byte // scratch
}

// note adds a finding, up to codes.MaxAlike with the same code; more are only counted.
func (x *Replayer) note(code string, at fault.Span, field, message string) {
	if x.Counts[code]++; x.Counts[code] > codes.MaxAlike {
		return
	}
	f := codes.Codes.Finding(code, at, x.T.ID, message)
	f.Path = field
	x.Out.Findings = append(x.Out.Findings, f)
}

// Fault adds an error as a finding. An exceeded budget keeps its class, Limit, as it is not damage.
func (x *Replayer) Fault(code string, err error) {
	f := codes.Finding(code, err, "")
	x.note(code, f.At, f.Path, f.Message)
	if n := len(x.Out.Findings); n > 0 && f.Class == fault.Limit {
		x.Out.Findings[n-1].Class = f.Class
	}
}

// segment replays one segment. first, last: its position in the log.
func (x *Replayer) segment(ctx context.Context, f *fs.FS, info store.Info, first, last bool) error {
	r, err := x.open(ctx, f, info, first, last)
	if r == nil {
		return err
	}
	defer r.src.Close()
	var entries int64
	whole := r.Head.TabletID != ""
	for {
		b, err := r.Next(ctx)
		if err == io.EOF {
			break
		}
		switch {
		case err == nil:
			entries += ParseBatch(b.cursor, false, func(e Entry) { x.entry(e, b.At) })
			if err := b.cursor.Err(); err != nil {
				x.Fault("kudu.wal.op.bad", err)
				x.damaged, whole = true, false
			}
			if limit := f.Options.Limits.WithDefaults().Opening; x.bytes.kept > limit {
				return fault.Limitf(b.At, "batch", "rows and changes that were not flushed take %d bytes or more, "+
					"which exceeds the memory limit (%d)", x.bytes.kept, limit)
			}
		case pbc.IsTorn(err) && last:
			f := codes.Finding("kudu.wal.torn", err, "")
			if whole = false; x.Out.Torn == nil {
				torn, err := r.torn(ctx, f.At.Off)
				if err != nil {
					return err
				}
				x.Out.Torn = &torn
			}
			what := "the log ends within a batch, whose operations are not applied: "
			if x.Out.Torn.Commit {
				what = "the log ends within the commit of an operation: "
			}
			x.note(f.Code, f.At, f.Path, what+f.Message)
		case errors.Is(err, fault.Corrupt):
			x.Fault("kudu.wal.damaged", err)
			x.damaged, whole = true, false
		default:
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if r.Foot != nil && whole && r.Foot.Entries != entries {
		x.note("kudu.wal.footer", r.span(r.end, r.size-r.end), "footer.num_entries",
			fmt.Sprintf("expected %d entries, found %d", r.Foot.Entries, entries))
	}
	return nil
}

// open opens a segment, and checks and adopts its header; nil if nothing in it can be read. The caller closes its
// source.
func (x *Replayer) open(ctx context.Context, f *fs.FS, info store.Info, first, last bool) (*Reader, error) {
	src, err := f.Tree.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	r, notes, err := Open(ctx, src, info.Name, f.Options.Pbc(), cmp.Or(x.codec, cfile.LZ4))
	for _, n := range notes {
		x.Fault("kudu.wal.footer", n)
	}
	switch {
	case err == nil && x.foreign(r):
		x.checkClosed()
		x.note("kudu.wal.header", r.span(0, r.Start), "header.tablet_id",
			fmt.Sprintf("the segment is of another tablet, %s, and is not read", r.Head.TabletID))
		x.damaged, x.sequence = true, sequenceOf(info.Name)
		src.Close()
		return nil, nil
	case err == nil:
		x.codec = r.Head.Codec
		x.begin(r, first)
	case fault.NotOfFile(err):
		src.Close()
		return nil, err
	case pbc.IsTorn(err) && last:
		src.Close()
		return nil, nil // preallocated, but not begun
	default:
		x.Fault("kudu.wal.header", err)
		x.checkClosed()
		x.damaged = true
		if r == nil {
			src.Close()
			return nil, nil
		}
	}
	x.sequence = sequenceOf(info.Name)
	if r.Foot == nil && len(notes) == 0 && r.Head.TabletID != "" {
		x.unclosed = r.span(r.size, 0)
	}
	return r, nil
}

// foreign reports whether a segment is of another tablet. A header has no checksum: an id that differs in a few
// characters is a damaged one, while the ids of two tablets, which are random, have about two in common.
func (x *Replayer) foreign(r *Reader) bool {
	id, same := r.Head.TabletID, 0
	for i := range min(len(id), len(x.T.ID)) {
		if id[i] == x.T.ID[i] {
			same++
		}
	}
	return fs.IsUUID(id) && same < len(id)/2
}

// checkClosed notes that the previous segment has no footer, although another one follows it.
func (x *Replayer) checkClosed() {
	if x.unclosed.Object != "" {
		x.note("kudu.wal.damaged", x.unclosed, "footer",
			"the segment was not closed, or its end is missing, although another one follows")
		x.unclosed, x.damaged = fault.Span{}, true
	}
}

// sequenceOf is the number in a segment's name.
func sequenceOf(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(path.Base(name), "wal-"), 10, 64)
	return n
}

// begin compares the header of a segment with the segments before, and adopts its schema.
func (x *Replayer) begin(r *Reader, first bool) {
	x.checkClosed()
	at := r.span(0, r.Start)
	number := sequenceOf(r.name)
	if r.Head.TabletID != x.T.ID {
		x.note("kudu.wal.header", at, "header.tablet_id",
			fmt.Sprintf("the segment belongs to tablet %q", r.Head.TabletID))
	}
	if r.Head.Sequence != number {
		x.note("kudu.wal.header", at, "header.sequence_number",
			fmt.Sprintf("%d, in the file of segment %d", r.Head.Sequence, number))
	}
	if !first && number > x.sequence+1 {
		x.note("kudu.wal.segment.missing", at, "", fmt.Sprintf("segments %d to %d are missing", x.sequence+1, number-1))
		x.damaged = true
	}
	if s, version := x.headSchema(r, first, at); first || version > x.version {
		x.schema, x.version = s, version
		x.newest(at)
	}
}

// headSchema is the schema with which a segment begins. Its header has no checksum, so the same version in the
// superblock, an ALTER_SCHEMA or an earlier header takes precedence, and a difference is noted.
func (x *Replayer) headSchema(r *Reader, first bool, at fault.Span) (*meta.Schema, uint32) {
	s, version := &r.Head.Schema, r.Head.SchemaVersion
	known := x.known[version]
	switch {
	case known != nil:
		if why := known.Differs(s); why != "" {
			x.note("kudu.wal.header", at, "header.schema",
				fmt.Sprintf("%s: version %d is another one elsewhere, which is used", why, version))
		}
		return known, version
	case !first && !x.damaged: // only an ALTER_SCHEMA changes the version
		x.note("kudu.wal.header", at, "header.schema_version",
			fmt.Sprintf("%d, but the previous segment ends with version %d, which is used", version, x.version))
		return x.schema, x.version
	case version > x.T.SchemaVersion && x.T.Schema.Differs(s) == "":
		return &x.T.Schema, x.T.SchemaVersion
	}
	if why := x.T.Schema.Conflicts(s); why != "" {
		x.note("kudu.wal.header", at, "header.schema",
			fmt.Sprintf("%s: the superblock differs, and this never changes", why))
	}
	x.known[version], x.unsure[version] = s, at
	return s, version
}

// altered records the schema of an ALTER_SCHEMA, which its batch's checksum covers, and compares it with headers.
func (x *Replayer) altered(version uint32, s *meta.Schema) {
	if version == x.T.SchemaVersion {
		return // the superblock's
	}
	if at, ok := x.unsure[version]; ok {
		if why := s.Differs(x.known[version]); why != "" {
			x.note("kudu.wal.header", at, "header.schema",
				fmt.Sprintf("%s: the ALTER_SCHEMA to version %d differs", why, version))
		}
		delete(x.unsure, version)
		if x.version == version {
			x.schema = s
		}
	}
	x.known[version] = s
}

// newest notes that the log continues with a newer schema than the superblock's, with which the table is read. A tablet
// that is made of its log alone has no superblock: it is read with the schema with which the log ends.
func (x *Replayer) newest(at fault.Span) {
	if x.version <= x.T.SchemaVersion || x.T.Rebuilt {
		return
	}
	if why := x.T.Schema.Differs(x.schema); why != "" {
		x.note("kudu.wal.schema", at, "schema", fmt.Sprintf("the log continues with version %d of the schema, the "+
			"superblock has version %d, which is used: %s", x.version, x.T.SchemaVersion, why))
	}
}

// entry processes the next entry.
func (x *Replayer) entry(e Entry, at fault.Span) {
	if e.replicate != nil {
		x.received(e.replicate, at)
	} else {
		x.committed(e.commit, at)
	}
}

// perColumn is the memory that a column of a kept schema is assumed to need, in bytes.
const perColumn = 512

// received processes a REPLICATE. One with the index of an earlier operation replaces that and all after it, as a new
// leader overwrites operations that were not committed.
func (x *Replayer) received(m *replicateMsg, at fault.Span) {
	if x.last != (meta.OpID{}) && m.id.Index > x.last.Index+1 {
		x.note("kudu.wal.gap", at, "replicate.id", fmt.Sprintf("operation %s follows %s", m.id, x.last))
		x.damaged = true
	}
	if x.last == (meta.OpID{}) {
		x.Out.First = m.id
	}
	x.last = m.id
	if m.op == OpAlterSchema && m.body != nil {
		body := *m.body // apply reads it again
		if a := ParseAlter(&body); body.Err() == nil {
			x.altered(a.version, &a.schema)
			x.bytes.kept += perColumn * int64(len(a.schema.Columns))
		}
	}
	i, _ := slices.BinarySearchFunc(x.pending, m.id.Index,
		func(p pendingOp, index int64) int { return cmp.Compare(p.id.Index, index) })
	for _, p := range x.pending[i:] {
		x.size -= p.size
	}
	p := pendingOp{replicateMsg: m, at: at, size: 256}
	if m.body != nil {
		p.size += int64(m.body.Left())
	}
	x.pending = append(x.pending[:i], p)
	if x.size += p.size; x.size > maxPending {
		x.drain(false)
	}
}

// committed processes a COMMIT, and applies what has become due: operations are applied in the order of their indexes,
// but their commits may be in another order.
func (x *Replayer) committed(m *commitMsg, at fault.Span) {
	x.named(m)
	i, found := slices.BinarySearchFunc(x.pending, m.id.Index,
		func(p pendingOp, index int64) int { return cmp.Compare(p.id.Index, index) })
	if !found || x.pending[i].id.Term != m.id.Term || x.pending[i].op != m.op {
		if x.anyActive(m) {
			x.note("kudu.wal.orphan", at, "commit",
				fmt.Sprintf("operation %s was applied, but is not in the log; %d of its changes were not flushed",
					m.id, x.countActive(m)))
		}
		return
	}
	x.pending[i].commit = m
	n := 0
	for ; n < len(x.pending) && x.pending[n].commit != nil; n++ {
		x.apply(&x.pending[n])
	}
	x.pending = slices.Delete(x.pending, 0, n)
}

// LostKey is an error of a KeyLookup: because of damage, Why, it is unknown whether one of Rows has the key.
type LostKey struct {
	Rows vec.Range
	Why  error
}

// EveryRow is the range of changes that may be of any row.
var EveryRow = vec.Range{To: math.MaxInt64}

func (e *LostKey) Error() string { return e.Why.Error() }

func (e *LostKey) Unwrap() error { return e.Why }
