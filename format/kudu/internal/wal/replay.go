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

// Logged is what a tablet's write-ahead log has and its rowsets have not.
type Logged struct {
	Rows []LoggedRow // rows of MemRowSets that were not flushed; ascending by Key, each key once
	// of flushed rowsets, by RowSet.ID; ascending by Row, then in the order in which they were applied
	Changes map[uint64][]LoggedChange

	// Changes whose rows cannot be known, because keys of their rowset cannot be read, by RowSet.ID. A finding
	// kudu.wal.change.lost mentions each rowset, too.
	Unplaced map[uint64][]UnplacedChange

	Last      meta.OpID // the last operation that is known to be committed; zero: there is none
	LastTime  uint64    // its hybrid time
	LastWrite uint64    // hybrid time of the last that changed rows or the schema; 0: there is none

	Alters []Altered // the changes of the schema that the log still has, in their order
	Ops    int64     // row operations that were not flushed: they are applied from here

	Missing bool // there is no log
	Empty   bool // there is one, and no operation in it
	// Lost says that operations before Last are missing in the log: what it gives need not be the latest.
	Lost     bool
	Findings []region.Finding
}

// LoggedRow is a row that was inserted into a MemRowSet. A key that was deleted and inserted again there is one
// row: the deletion and the insertion are among its changes.
type LoggedRow struct {
	Key  []byte // encoded primary key, as cfile.AppendKey makes it
	Time uint64 // hybrid time of the insertion
	// all cells, those of the key included, as a RowChangeList has them: column id, size (0 NULL, else the
	// length and 1), bytes
	Cells   []byte
	Changes []LoggedChange
}

// LoggedChange is a change of a row: what a value of a delta file holds.
type LoggedChange struct {
	Row  int64  // ordinal in the rowset; 0 for a LoggedRow
	Time uint64 // hybrid time of the operation
	List []byte // RowChangeList: op (1 update, 2 delete, 3 reinsert), cells
}

// UnplacedChange is a row's changes that could not be placed.
type UnplacedChange struct {
	Key     []byte         // encoded primary key
	Changes []LoggedChange // in the order in which they were applied
	Rows    vec.Range      // any of these rows of the rowset may be an old one
	Err     error          // why: class Corrupt
}

// Altered is a change of a tablet's schema.
type Altered struct {
	Time    uint64 // hybrid time of the operation
	Version uint32 // of the schema from then on
	Name    string // of the table from then on; "": it is the one it had, as far as the log tells
	Changes []string
	Known   bool // Changes are all there are: the version before is known
}

// KeyLookup finds the ordinal of an encoded key in a rowset, whether the row is live or not. An error of class
// Corrupt means that it cannot be known; the LostKey that it wraps says among which rows the key would be.
type KeyLookup func(ctx context.Context, rowset uint64, key []byte) (row int64, found bool, err error)

// maxPending is how many bytes of operations may wait for those before them to be committed, beyond which these
// are given up.
const maxPending = 256 << 20

// Replay reads the log of a tablet. Damage does not make it fail: it is in Findings, and what is whole is used.
// The whole history of the log is given, not cut at any time. What it keeps in memory is what was not flushed.
func Replay(ctx context.Context, f *fs.FS, t *meta.Tablet, lookup KeyLookup) (*Logged, error) {
	x := newReplay(t, lookup)
	segments, err := f.LogSegments(ctx, t.ID)
	if err != nil {
		return nil, err
	}
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

// none notes that there is no log.
func (x *Replayer) none(ctx context.Context, f *fs.FS) {
	code, at, why := noLog(ctx, f, x.T)
	if x.Out.Missing = code != ""; x.Out.Missing {
		x.note(code, at, "", why)
	}
}

// noLog says what it means that a tablet has no log; "" if nothing, as a tombstone has none. A server makes the
// log before the superblock: where the directory of logs is there, the log was deleted. A copy may have been
// made without it.
func noLog(ctx context.Context, f *fs.FS, t *meta.Tablet) (code string, at fault.Span, why string) {
	if !t.HasData() {
		return "", at, ""
	}
	what := "the tablet has no write-ahead log"
	if t.ID == meta.SystemCatalogID {
		what = "the master's catalogue has no write-ahead log: names of tables, and which tablets there must " +
			"be, may be missing"
	}
	if f.WALDir == "" {
		return "kudu.wal.missing", fault.Span{Object: t.Object}, what + ": what was not flushed is not here"
	}
	at.Object = path.Join(f.WALDir, fs.WalsDir, t.ID)
	if _, err := f.Tree.Stat(ctx, path.Join(f.WALDir, fs.WalsDir)); err != nil || t.State != meta.TabletReady {
		return "kudu.wal.missing", at, what + ": what was not flushed is not here"
	}
	return "kudu.wal.deleted", at, what + ", though the server's logs are here: what was not flushed is lost"
}

// memRow is a row of the MemRowSets.
type memRow struct {
	LoggedRow
	live bool
	mrs  int64 // where it was inserted last
}

// newRow is a row that is inserted. Those of a transaction wait for its commit.
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

	schema   *meta.Schema // at this point of the log
	version  uint32
	known    map[uint32]*meta.Schema // by version; those of headers, too, which no checksum guards
	unsure   map[uint32]fault.Span   // versions that only a header says, with its place
	wentBack bool                    // an ALTER_SCHEMA was to an older version than the log began with
	name     string                  // that the last ALTER_SCHEMA gave the table; "": there was none
	counter  int64                   // of the auto-incrementing column

	last      meta.OpID // last operation that was received
	sequence  uint64
	codec     cfile.Compression
	unclosed  fault.Span  // end of the last segment, if it was not closed
	damaged   bool        // something of the log was lost
	pending   []pendingOp // ascending by index
	size      int64       // of pending
	dropped   int64       // operations without a commit
	lastDrop  fault.Span
	firstDrop meta.OpID

	rows  map[string]*memRow
	moved map[uint64]map[string][]LoggedChange // changes of flushed rowsets, by rowset and key
	txns  map[int64][]newRow

	bytes    slab   // of keys, cells and changes
	key, tmp []byte // scratch
}

// note keeps a finding, up to a number of each kind.
func (x *Replayer) note(code string, at fault.Span, field, message string) {
	if x.Counts[code]++; x.Counts[code] > codes.MaxAlike {
		return
	}
	f := codes.Codes.Finding(code, at, x.T.ID, message)
	f.Path = field
	x.Out.Findings = append(x.Out.Findings, f)
}

// Fault keeps an error as a finding. A budget that was exceeded is none of damage.
func (x *Replayer) Fault(code string, err error) {
	f := codes.Finding(code, err, "")
	x.note(code, f.At, f.Path, f.Message)
	if n := len(x.Out.Findings); n > 0 && f.Class == fault.Limit {
		x.Out.Findings[n-1].Class = f.Class
	}
}

// segment replays one segment. The first one says with which schema the log begins.
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
			if most := f.Options.Limits.WithDefaults().Opening; x.bytes.kept > most {
				return fault.Limitf(b.At, "batch", "what was not flushed takes %d bytes of memory or more, and may "+
					"take %d (memory limit)", x.bytes.kept, most)
			}
		case pbc.IsTorn(err) && last:
			x.Fault("kudu.wal.torn", err)
			whole = false
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
			fmt.Sprintf("%d entries are declared, there are %d", r.Foot.Entries, entries))
	}
	return nil
}

// open opens a segment, and takes over what its header says; nil if nothing can be read in it. The caller
// closes its source.
func (x *Replayer) open(ctx context.Context, f *fs.FS, info store.Info, first, last bool) (*walReader, error) {
	src, err := f.Tree.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	r, notes, err := Open(ctx, src, info.Name, f.Options.Pbc(), cmp.Or(x.codec, cfile.LZ4))
	for _, n := range notes {
		x.Fault("kudu.wal.footer", n)
	}
	switch {
	case err == nil:
		x.codec = r.Head.Codec
		x.begin(r, first)
	case fault.NotOfFile(err):
		src.Close()
		return nil, err
	case pbc.IsTorn(err) && last:
		src.Close()
		return nil, nil // a segment that was only made: nothing is in it
	default:
		x.Fault("kudu.wal.header", err)
		x.another()
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

// another says that the last segment has no footer, though there is another one.
func (x *Replayer) another() {
	if x.unclosed.Object != "" {
		x.note("kudu.wal.damaged", x.unclosed, "footer",
			"the segment was not closed, or its end is missing, though another one follows")
		x.unclosed, x.damaged = fault.Span{}, true
	}
}

// sequenceOf is the number in a segment's name.
func sequenceOf(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(path.Base(name), "wal-"), 10, 64)
	return n
}

// begin compares the header of a segment with what came before, and takes over its schema.
func (x *Replayer) begin(r *walReader, first bool) {
	x.another()
	at := r.span(0, r.Start)
	number := sequenceOf(r.name)
	if r.Head.TabletID != x.T.ID {
		x.note("kudu.wal.header", at, "header.tablet_id", fmt.Sprintf("the segment is of tablet %q", r.Head.TabletID))
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

// headSchema is the schema with which a segment begins. No checksum guards its header: what the superblock, an
// ALTER_SCHEMA, or an earlier header says of the same version is compared with it, and counts more.
func (x *Replayer) headSchema(r *walReader, first bool, at fault.Span) (*meta.Schema, uint32) {
	s, version := &r.Head.Schema, r.Head.SchemaVersion
	known := x.known[version]
	switch {
	case known != nil:
		if why := known.Differs(s); why != "" {
			x.note("kudu.wal.header", at, "header.schema",
				fmt.Sprintf("%s: not as version %d is reported elsewhere, which is used", why, version))
		}
		return known, version
	case !first && !x.damaged: // only an ALTER_SCHEMA makes another version
		x.note("kudu.wal.header", at, "header.schema_version",
			fmt.Sprintf("%d, but the segment before ends with version %d, which is used", version, x.version))
		return x.schema, x.version
	case version > x.T.SchemaVersion && x.T.Schema.Differs(s) == "":
		return &x.T.Schema, x.T.SchemaVersion
	}
	if why := x.T.Schema.Conflicts(s); why != "" {
		x.note("kudu.wal.header", at, "header.schema",
			fmt.Sprintf("%s: not as in the superblock, and that never changes", why))
	}
	x.known[version], x.unsure[version] = s, at
	return s, version
}

// altered takes note of the schema of an ALTER_SCHEMA, which a checksum guards.
func (x *Replayer) altered(version uint32, s *meta.Schema) {
	if version == x.T.SchemaVersion {
		return // the superblock's
	}
	if at, ok := x.unsure[version]; ok {
		if why := s.Differs(x.known[version]); why != "" {
			x.note("kudu.wal.header", at, "header.schema",
				fmt.Sprintf("%s: not as the ALTER_SCHEMA to version %d has it", why, version))
		}
		delete(x.unsure, version)
		if x.version == version {
			x.schema = s
		}
	}
	x.known[version] = s
}

// newest notes that the log continues with a newer schema than the superblock has, by which the table is read.
func (x *Replayer) newest(at fault.Span) {
	if x.version <= x.T.SchemaVersion {
		return
	}
	if why := x.T.Schema.Differs(x.schema); why != "" {
		x.note("kudu.wal.schema", at, "schema", fmt.Sprintf("the log goes on with version %d of the schema, the "+
			"superblock has version %d, which is used: %s", x.version, x.T.SchemaVersion, why))
	}
}

// entry takes the next entry.
func (x *Replayer) entry(e Entry, at fault.Span) {
	if e.replicate != nil {
		x.received(e.replicate, at)
	} else {
		x.committed(e.commit, at)
	}
}

// perColumn is the memory that a column of a schema which is kept is taken to need.
const perColumn = 512

// received takes an operation. One with the number of an earlier one replaces it and all after it: another
// leader decided so.
func (x *Replayer) received(m *replicateMsg, at fault.Span) {
	if x.last != (meta.OpID{}) && m.id.Index > x.last.Index+1 {
		x.note("kudu.wal.gap", at, "replicate.id", fmt.Sprintf("operation %s follows %s", m.id, x.last))
		x.damaged = true
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

// committed takes the commit of an operation, and applies what is due: operations are applied in the order of
// their numbers, but their commits may come in another.
func (x *Replayer) committed(m *commitMsg, at fault.Span) {
	i, found := slices.BinarySearchFunc(x.pending, m.id.Index,
		func(p pendingOp, index int64) int { return cmp.Compare(p.id.Index, index) })
	if !found || x.pending[i].id.Term != m.id.Term || x.pending[i].op != m.op {
		if x.anyActive(m) {
			x.note("kudu.wal.orphan", at, "commit",
				fmt.Sprintf("operation %s was applied, and is not in the log; %d of its changes were not flushed",
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

// LostKey is damage because of which it is not known whether one of some rows has a key.
type LostKey struct {
	Rows vec.Range
	Why  error
}

// EveryRow is for changes of which not even the rows are known.
var EveryRow = vec.Range{To: math.MaxInt64}

func (e *LostKey) Error() string { return e.Why.Error() }

func (e *LostKey) Unwrap() error { return e.Why }
