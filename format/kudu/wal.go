package kudu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Logged is what a tablet's write-ahead log has and its rowsets have not.
type Logged struct {
	Rows    []LoggedRow               // rows of MemRowSets that were not flushed; ascending by Key, each key once
	Changes map[uint64][]LoggedChange // of flushed rowsets, by RowSet.ID; ascending by Row, then in the order in which they were applied

	// Changes whose rows cannot be told, because keys of their rowset cannot be read, by RowSet.ID. A finding kudu.wal.change.lost tells
	// of each rowset, too.
	Unplaced map[uint64][]UnplacedChange

	Last      OpID   // the last operation that is known to be committed; zero: there is none
	LastTime  uint64 // its hybrid time
	LastWrite uint64 // hybrid time of the last that changed rows or the schema; 0: there is none

	Missing bool // there is no log
	Empty   bool // there is one, and no operation in it
	// Lost says that operations before Last are missing in the log: what it gives need not be the latest.
	Lost     bool
	Findings []region.Finding
}

// LoggedRow is a row that was inserted into a MemRowSet. A key that was deleted and inserted again there is one row: the deletion
// and the insertion are among its changes.
type LoggedRow struct {
	Key     []byte // encoded primary key, as cfile.AppendKey makes it
	Time    uint64 // hybrid time of the insertion
	Cells   []byte // all cells, those of the key included, as a RowChangeList has them: column id, size (0 NULL, else the length and 1), bytes
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

// KeyLookup finds the ordinal of an encoded key in a rowset, whether the row is live or not. An error of class Corrupt says that it cannot
// be told; a lostKey in it, among which rows it would be.
type KeyLookup func(ctx context.Context, rowset uint64, key []byte) (row int64, found bool, err error)

// recoverySuffix is of the directory to which Kudu moves a log to replay it. If it exists, the log itself is only begun.
const recoverySuffix = ".recovery"

// maxPending is how many bytes of operations may wait for those before them to be committed, beyond which these are given up.
const maxPending = 256 << 20

// Replay reads the log of a tablet. Damage does not make it fail: it is in Findings, and what is whole is used. The whole history
// of the log is given, not cut at any time. What it keeps in memory is what was not flushed.
func (f *FS) Replay(ctx context.Context, t *Tablet, lookup KeyLookup) (*Logged, error) {
	x := newReplay(t, lookup)
	segments, err := f.logSegments(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		x.none(ctx, f)
		return x.out, nil
	}
	for i, s := range segments {
		if err := x.segment(ctx, f, s, i == 0, i == len(segments)-1); err != nil {
			return nil, err
		}
	}
	x.out.Empty = x.last == OpID{} && !x.damaged
	x.drain(true)
	if err := x.finish(ctx); err != nil {
		return nil, err
	}
	return x.out, nil
}

// newReplay begins the replay of a tablet's log.
func newReplay(t *Tablet, lookup KeyLookup) *replay {
	x := &replay{t: t, lookup: lookup, out: &Logged{Changes: map[uint64][]LoggedChange{}}, counts: map[string]int{},
		rows: map[string]*memRow{}, moved: map[uint64]map[string][]LoggedChange{}, txns: map[int64][]newRow{}, durable: map[uint64]int64{},
		schema: &t.Schema, version: t.SchemaVersion, known: map[uint32]*Schema{t.SchemaVersion: &t.Schema}, unsure: map[uint32]fault.Span{}, counter: -1}
	for i := range t.RowSets {
		x.durable[t.RowSets[i].ID] = t.RowSets[i].LastDurableDMS
	}
	return x
}

// none notes that there is no log.
func (x *replay) none(ctx context.Context, f *FS) {
	code, at, why := f.noLog(ctx, x.t)
	if x.out.Missing = code != ""; x.out.Missing {
		x.note(code, at, "", why)
	}
}

// noLog says what it means that a tablet has no log; "" if nothing, as a tombstone has none. A server makes the log before the superblock:
// where the directory of logs is there, the log was deleted. A copy may have been made without it.
func (f *FS) noLog(ctx context.Context, t *Tablet) (code string, at fault.Span, why string) {
	if !t.HasData() {
		return "", at, ""
	}
	what := "the tablet has no write-ahead log"
	if t.ID == systemCatalogID {
		what = "the master's catalogue has no write-ahead log: names of tables, and which tablets there must be, may be missing"
	}
	if f.WALDir == "" {
		return "kudu.wal.missing", fault.Span{Object: t.Object}, what + ": what was not flushed is not here"
	}
	at.Object = path.Join(f.WALDir, walsDir, t.ID)
	if _, err := f.tree.Stat(ctx, path.Join(f.WALDir, walsDir)); err != nil || t.State != TabletReady {
		return "kudu.wal.missing", at, what + ": what was not flushed is not here"
	}
	return "kudu.wal.deleted", at, what + ", though the server's logs are here: what was not flushed is lost"
}

// logSegments are the files of a tablet's log, or of the one that was being replayed when the server stopped.
func (f *FS) logSegments(ctx context.Context, tablet string) ([]store.Info, error) {
	if s, err := f.WALSegments(ctx, tablet+recoverySuffix); err != nil || len(s) > 0 {
		return s, err
	}
	return f.WALSegments(ctx, tablet)
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
	schema     *Schema // of the cells
	mrs        int64
}

// pendingOp is an operation that waits for its commit, or for the operations before it.
type pendingOp struct {
	*replicateMsg
	commit *commitMsg
	at     fault.Span // of the batch
	size   int64
}

// replay is the state of a replay.
type replay struct {
	t      *Tablet
	lookup KeyLookup
	out    *Logged
	counts map[string]int // findings by code

	durable map[uint64]int64 // LastDurableDMS by rowset

	schema  *Schema // at this point of the log
	version uint32
	known   map[uint32]*Schema    // by version; those of headers, too, which no checksum guards
	unsure  map[uint32]fault.Span // versions that only a header tells, with its place
	older   bool                  // an ALTER_SCHEMA was to an older version than the log began with
	counter int64                 // of the auto-incrementing column

	last      OpID // last operation that was received
	sequence  uint64
	codec     cfile.Compression
	unclosed  fault.Span  // end of the last segment, if it was not closed
	damaged   bool        // something of the log was lost
	pending   []pendingOp // ascending by index
	size      int64       // of pending
	dropped   int64       // operations without a commit
	lastDrop  fault.Span
	firstDrop OpID

	rows  map[string]*memRow
	moved map[uint64]map[string][]LoggedChange // changes of flushed rowsets, by rowset and key
	txns  map[int64][]newRow

	bytes    slab   // of keys, cells and changes
	key, tmp []byte // scratch
}

// note keeps a finding, up to a number of each kind.
func (x *replay) note(code string, at fault.Span, field, message string) {
	if x.counts[code]++; x.counts[code] > maxNotes {
		return
	}
	sev := region.Error
	for _, c := range walCodes {
		if c.Code == code {
			sev = c.Severity
		}
	}
	x.out.Findings = append(x.out.Findings, region.Finding{Code: code, Severity: sev, At: at, Path: field, Message: message, Part: x.t.ID, Rows: [2]int64{-1, -1}, Lost: -1})
}

// fault keeps an error as a finding.
func (x *replay) fault(code string, err error) {
	f := findingOf(code, err, "")
	x.note(code, f.At, f.Path, f.Message)
}

// segment replays one segment. The first one tells with which schema the log begins.
func (x *replay) segment(ctx context.Context, f *FS, info store.Info, first, last bool) error {
	r, err := x.open(ctx, f, info, first, last)
	if r == nil {
		return err
	}
	defer r.src.Close()
	var entries int64
	whole := r.head.TabletID != ""
	for {
		b, err := r.next(ctx)
		if err == io.EOF {
			break
		}
		switch {
		case err == nil:
			entries += parseBatch(b.cursor, false, func(e walEntry) { x.entry(e, b.at) })
			if err := b.cursor.Err(); err != nil {
				x.fault("kudu.wal.op.bad", err)
				x.damaged, whole = true, false
			}
		case isTorn(err) && last:
			x.fault("kudu.wal.torn", err)
			whole = false
		case errors.Is(err, fault.Corrupt):
			x.fault("kudu.wal.damaged", err)
			x.damaged, whole = true, false
		default:
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if r.foot != nil && whole && r.foot.Entries != entries {
		x.note("kudu.wal.footer", r.span(r.end, r.size-r.end), "footer.num_entries", fmt.Sprintf("%d entries are declared, there are %d", r.foot.Entries, entries))
	}
	return nil
}

// open opens a segment, and takes over what its header says; nil if nothing can be read in it. The caller closes its source.
func (x *replay) open(ctx context.Context, f *FS, info store.Info, first, last bool) (*walReader, error) {
	src, err := f.tree.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	r, notes, err := openWAL(ctx, src, info.Name, f.o.pbc(), cmp.Or(x.codec, cfile.LZ4))
	for _, n := range notes {
		x.fault("kudu.wal.footer", n)
	}
	switch {
	case err == nil:
		x.codec = r.head.Codec
		x.begin(r, first)
	case !errors.As(err, new(*fault.Error)):
		src.Close()
		return nil, err
	case isTorn(err) && last:
		src.Close()
		return nil, nil // a segment that was only made: nothing is in it
	default:
		x.fault("kudu.wal.header", err)
		x.another()
		x.damaged = true
		if r == nil {
			src.Close()
			return nil, nil
		}
	}
	x.sequence = sequenceOf(info.Name)
	if r.foot == nil && len(notes) == 0 && r.head.TabletID != "" {
		x.unclosed = r.span(r.size, 0)
	}
	return r, nil
}

// another says that the last segment has no footer, though there is another one.
func (x *replay) another() {
	if x.unclosed.Object != "" {
		x.note("kudu.wal.damaged", x.unclosed, "footer", "the segment was not closed, or its end is missing, though another one follows")
		x.unclosed, x.damaged = fault.Span{}, true
	}
}

// sequenceOf is the number in a segment's name.
func sequenceOf(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(path.Base(name), "wal-"), 10, 64)
	return n
}

// begin holds the header of a segment against what came before, and takes over its schema.
func (x *replay) begin(r *walReader, first bool) {
	x.another()
	at := r.span(0, r.start)
	number := sequenceOf(r.name)
	if r.head.TabletID != x.t.ID {
		x.note("kudu.wal.header", at, "header.tablet_id", fmt.Sprintf("the segment is of tablet %q", r.head.TabletID))
	}
	if r.head.Sequence != number {
		x.note("kudu.wal.header", at, "header.sequence_number", fmt.Sprintf("%d, in the file of segment %d", r.head.Sequence, number))
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

// headSchema is the schema with which a segment begins. No checksum guards its header: what the superblock, an ALTER_SCHEMA, or an
// earlier header says of the same version is held against it, and counts more.
func (x *replay) headSchema(r *walReader, first bool, at fault.Span) (*Schema, uint32) {
	s, version := &r.head.Schema, r.head.SchemaVersion
	known := x.known[version]
	switch {
	case known != nil:
		if why := known.differs(s); why != "" {
			x.note("kudu.wal.header", at, "header.schema", fmt.Sprintf("%s: not as version %d is told elsewhere, which is used", why, version))
		}
		return known, version
	case !first && !x.damaged: // only an ALTER_SCHEMA makes another version
		x.note("kudu.wal.header", at, "header.schema_version", fmt.Sprintf("%d, but the segment before ends with version %d, which is used", version, x.version))
		return x.schema, x.version
	case version > x.t.SchemaVersion && x.t.Schema.differs(s) == "":
		return &x.t.Schema, x.t.SchemaVersion
	}
	if why := x.t.Schema.conflicts(s); why != "" {
		x.note("kudu.wal.header", at, "header.schema", fmt.Sprintf("%s: not as in the superblock, and that never changes", why))
	}
	x.known[version], x.unsure[version] = s, at
	return s, version
}

// altered takes note of the schema of an ALTER_SCHEMA, which a checksum guards.
func (x *replay) altered(version uint32, s *Schema) {
	if version == x.t.SchemaVersion {
		return // the superblock's
	}
	if at, ok := x.unsure[version]; ok {
		if why := s.differs(x.known[version]); why != "" {
			x.note("kudu.wal.header", at, "header.schema", fmt.Sprintf("%s: not as the ALTER_SCHEMA to version %d has it", why, version))
		}
		delete(x.unsure, version)
		if x.version == version {
			x.schema = s
		}
	}
	x.known[version] = s
}

// newest notes that the log goes on with a newer schema than the superblock has, by which the table is read.
func (x *replay) newest(at fault.Span) {
	if x.version <= x.t.SchemaVersion {
		return
	}
	if why := x.t.Schema.differs(x.schema); why != "" {
		x.note("kudu.wal.schema", at, "schema", fmt.Sprintf("the log goes on with version %d of the schema, the superblock has version %d, which is used: %s", x.version, x.t.SchemaVersion, why))
	}
}

// entry takes the next entry.
func (x *replay) entry(e walEntry, at fault.Span) {
	if e.replicate != nil {
		x.received(e.replicate, at)
	} else {
		x.committed(e.commit, at)
	}
}

// received takes an operation. One with the number of an earlier one replaces it and all after it: another leader decided so.
func (x *replay) received(m *replicateMsg, at fault.Span) {
	if x.last != (OpID{}) && m.id.Index > x.last.Index+1 {
		x.note("kudu.wal.gap", at, "replicate.id", fmt.Sprintf("operation %s follows %s", m.id, x.last))
		x.damaged = true
	}
	x.last = m.id
	if m.op == opAlterSchema && m.body != nil {
		body := *m.body // apply reads it again
		if a := parseAlter(&body); body.Err() == nil {
			x.altered(a.version, &a.schema)
		}
	}
	i, _ := slices.BinarySearchFunc(x.pending, m.id.Index, func(p pendingOp, index int64) int { return cmp.Compare(p.id.Index, index) })
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

// committed takes the commit of an operation, and applies what is due: operations are applied in the order of their numbers, but
// their commits may come in another.
func (x *replay) committed(m *commitMsg, at fault.Span) {
	i, found := slices.BinarySearchFunc(x.pending, m.id.Index, func(p pendingOp, index int64) int { return cmp.Compare(p.id.Index, index) })
	if !found || x.pending[i].id.Term != m.id.Term || x.pending[i].op != m.op {
		if x.anyActive(m) {
			x.note("kudu.wal.orphan", at, "commit", fmt.Sprintf("operation %s was applied, and is not in the log; %d of its changes were not flushed", m.id, x.countActive(m)))
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

// drain applies operations that have a commit, in the order of their numbers, and gives up those without: all at the end, else
// those before the last commit; if that is not half of them, half of them.
func (x *replay) drain(end bool) {
	keep := len(x.pending)
	for !end && keep > len(x.pending)/2 && x.pending[keep-1].commit == nil {
		keep--
	}
	for i := range x.pending[:keep] {
		p := &x.pending[i]
		if p.commit != nil {
			x.apply(p)
			continue
		}
		x.size -= p.size
		if p.op == opWrite || p.op == opAlterSchema {
			if x.dropped++; x.dropped == 1 {
				x.firstDrop = p.id
			}
			x.lastDrop = p.at
		}
	}
	x.pending = slices.Delete(x.pending, 0, keep)
}

// apply carries a committed operation out.
func (x *replay) apply(p *pendingOp) {
	x.size -= p.size
	if x.out.Last.Index < p.id.Index {
		x.out.Last, x.out.LastTime = p.id, p.time
	}
	if p.op == opWrite || p.op == opAlterSchema || p.op == opParticipant {
		x.out.LastWrite = max(x.out.LastWrite, p.time)
	}
	why := ""
	switch {
	case p.op == opNone || p.op == opConfig:
	case p.op != opWrite && len(p.commit.ops) > 0 && p.commit.ops[0].failed:
	case p.body == nil:
		why = "there is no request"
	case p.op == opWrite:
		why = x.write(p)
	case p.op == opAlterSchema:
		a := parseAlter(p.body)
		if why = said(p.body.Err()); why == "" && a.version > x.version {
			x.schema, x.version = &a.schema, a.version
			x.newest(p.at)
		}
		x.older = x.older || a.version < x.version
	case p.op == opParticipant:
		o := parseParticipant(p.body)
		if why = said(p.body.Err()); why == "" {
			x.endTxn(o)
		}
	default:
		why = "a type that is not known"
	}
	if why != "" {
		x.note("kudu.wal.op.bad", p.at, "replicate", fmt.Sprintf("operation %s (%s): %s", p.id, opName(p.op), why))
	}
}

// said is the text of an error; "" if there is none.
func said(err error) string {
	if err == nil {
		return ""
	}
	return findingOf("", err, "").Message
}

// active reports whether a change that went to a store was not flushed from it.
func (x *replay) active(s memStore) bool {
	switch {
	case s.txn >= 0 && s.mrs >= 0:
		t := x.t.Txns[s.txn]
		return !t.Aborted && !t.Flushed
	case s.mrs >= 0:
		return s.mrs > x.t.LastDurableMRS
	case s.rs >= 0:
		durable, ok := x.durable[uint64(s.rs)]
		// A rowset that is not there was compacted away, with its changes, or was never finished: then the change went to another store, too.
		return ok && s.dms > durable
	}
	return false
}

// target is the store that a change must be applied to; false if there is none.
func (x *replay) target(o opResult) (memStore, bool) {
	if o.failed || o.skip {
		return memStore{}, false
	}
	for _, s := range o.stores {
		if x.active(s) {
			return s, true
		}
	}
	return memStore{}, false
}

func (x *replay) anyActive(m *commitMsg) bool { return x.countActive(m) > 0 }

func (x *replay) countActive(m *commitMsg) (n int) {
	for _, o := range m.ops {
		if _, ok := x.target(o); ok {
			n++
		}
	}
	return n
}

// write applies the row operations of a write request.
func (x *replay) write(p *pendingOp) (why string) {
	if !x.anyActive(p.commit) {
		return ""
	}
	w := parseWrite(p.body)
	if err := p.body.Err(); err != nil {
		return said(err)
	}
	if w.counter < 0 {
		w.counter = x.counter
	}
	d, why := newRowDecoder(&w, x.schema, w.counter)
	if why != "" {
		return why
	}
	if w.counter < 0 && !x.schema.Unique() {
		return "nothing tells where its auto-incrementing column goes on"
	}
	defer func() { x.counter = d.counter }()
	for i := 0; ; i++ {
		op, ok, why := d.next()
		switch {
		case why != "":
			return fmt.Sprintf("row operation %d: %s", i, why)
		case !ok && i == len(p.commit.ops):
			return ""
		case !ok || i == len(p.commit.ops):
			return fmt.Sprintf("its commit has %d results, which are not as many as it has row operations", len(p.commit.ops))
		}
		s, ok := x.target(p.commit.ops[i])
		if !ok {
			continue
		}
		if op.failed != "" {
			x.note("kudu.wal.op.bad", p.at, "write_request", fmt.Sprintf("row operation %d of %s: %s", i, p.id, op.failed))
			continue
		}
		if why := x.row(p, &w, &op, s); why != "" {
			x.note("kudu.wal.change.lost", p.at, "write_request", fmt.Sprintf("row operation %d of %s: %s", i, p.id, why))
		}
	}
}

// row applies one row operation to store s.
func (x *replay) row(p *pendingOp, w *writeRequest, op *rowOp, s memStore) (why string) {
	key, err := x.schema.key(x.key[:0], op.values)
	if err != nil {
		return err.Error()
	}
	x.key = key
	list := x.tmp[:0]
	inserts := false
	switch op.typ {
	case rowInsert, rowInsertIgnore:
		inserts = true
	case rowDelete, rowDeleteIgnore:
		list = append(list, changeDelete)
	case rowUpsert, rowUpsertIgnore:
		m := x.rows[string(key)]
		// A row that is live is updated where it is: one in another MemRowSet was deleted, whatever this log says.
		if inserts = s.mrs >= 0 && (m == nil || !m.live || m.mrs != s.mrs); !inserts {
			list = x.upsertAsUpdate(list, op)
		}
	default:
		list = x.schema.cells(append(list, changeUpdate), op.values, x.schema.keys, op.set)
	}
	if inserts {
		list = x.schema.cells(list, op.values, 0, nil)
	}
	x.tmp = list
	list = x.bytes.keep(list)
	switch {
	case s.mrs < 0 && inserts:
		return "an insertion into a rowset that was flushed"
	case s.mrs < 0:
		rs := uint64(s.rs)
		if x.moved[rs] == nil {
			x.moved[rs] = map[string][]LoggedChange{}
		}
		x.moved[rs][string(key)] = append(x.moved[rs][string(key)], LoggedChange{Time: p.time, List: list})
	case inserts:
		r := newRow{key, list, x.schema, s.mrs}
		if w.txn >= 0 {
			r.key = x.bytes.keep(key)
			x.txns[w.txn] = append(x.txns[w.txn], r)
			return ""
		}
		return x.insert(r, p.time)
	default:
		m := x.rows[string(key)]
		if m == nil || !m.live {
			return fmt.Sprintf("row %s is not there", x.keyText(key))
		}
		m.Changes = append(m.Changes, LoggedChange{Time: p.time, List: list})
		m.live = op.typ != rowDelete && op.typ != rowDeleteIgnore
	}
	return ""
}

// upsertAsUpdate appends the change that an upsert of an existing row is: of the columns that the client set. Columns that cannot be
// changed are left out.
func (x *replay) upsertAsUpdate(dst []byte, op *rowOp) []byte {
	set := slices.Clone(op.set)
	for k := range set {
		set[k] = set[k] && !x.schema.Columns[k].Immutable
	}
	return x.schema.cells(append(dst, changeUpdate), op.values, x.schema.keys, set)
}

// insert makes a row in the MemRowSets, or makes a deleted one live again.
func (x *replay) insert(r newRow, time uint64) (why string) {
	m := x.rows[string(r.key)]
	if m == nil {
		x.rows[string(r.key)] = &memRow{LoggedRow: LoggedRow{Key: x.bytes.keep(r.key), Time: time, Cells: r.cells}, live: true, mrs: r.mrs}
		return ""
	}
	if m.live {
		// Its deletion was lost. The newer row is the right one from now on.
		why = fmt.Sprintf("row %s was there already", x.keyText(r.key))
		m.Changes = append(m.Changes, LoggedChange{Time: time, List: []byte{changeDelete}})
	}
	m.Changes = append(m.Changes, LoggedChange{Time: time, List: append([]byte{changeReinsert}, r.schema.withoutKey(r.cells)...)})
	m.live, m.mrs = true, r.mrs
	return why
}

// endTxn commits the rows of a transaction, or forgets them.
func (x *replay) endTxn(o participantOp) {
	switch o.kind {
	case txnFinalize:
		x.commitTxn(o.txn, o.finalized)
	case txnAbort:
		delete(x.txns, o.txn)
	}
}

func (x *replay) commitTxn(txn int64, time uint64) {
	for _, r := range x.txns[txn] {
		if why := x.insert(r, time); why != "" {
			x.note("kudu.wal.change.lost", fault.Span{}, "", fmt.Sprintf("transaction %d: %s", txn, why))
		}
	}
	delete(x.txns, txn)
}

func (x *replay) keyText(key []byte) string {
	if s, err := x.t.Schema.KeyText(key); err == nil {
		return s
	}
	return fmt.Sprintf("%x", key)
}

// finish settles transactions, finds the rows of flushed rowsets, and sorts.
func (x *replay) finish(ctx context.Context) error {
	for _, txn := range slices.Sorted(maps.Keys(x.txns)) {
		switch t, ok := x.t.Txns[txn]; {
		case ok && t.Aborted:
		case ok && t.CommitTimestamp >= 0:
			x.commitTxn(txn, uint64(t.CommitTimestamp))
		default:
			x.note("kudu.wal.txn.open", fault.Span{}, "", fmt.Sprintf("%d rows of transaction %d, which is neither committed nor aborted, are left out", len(x.txns[txn]), txn))
		}
	}
	if x.older { // a server that restarts begins its log with the newest schema: then the ALTER_SCHEMA to it is there, too
		for _, at := range x.unsure {
			x.note("kudu.wal.header", at, "header.schema_version", "operations that follow make older versions, and none makes this one")
		}
	}
	if x.dropped > 0 {
		x.note("kudu.wal.uncommitted", x.lastDrop, "", fmt.Sprintf("%d operations without a commit are left out", x.dropped))
	}
	x.out.Lost = x.dropped > 0 && x.firstDrop.Index < x.out.Last.Index || slices.ContainsFunc(x.out.Findings, func(f region.Finding) bool { return f.Severity >= region.Error })
	for _, m := range x.rows {
		x.out.Rows = append(x.out.Rows, m.LoggedRow)
	}
	slices.SortFunc(x.out.Rows, func(a, b LoggedRow) int { return bytes.Compare(a.Key, b.Key) })
	for _, rs := range slices.Sorted(maps.Keys(x.moved)) {
		if err := x.place(ctx, rs); err != nil {
			return err
		}
	}
	for _, c := range walCodes {
		if n := x.counts[c.Code]; n > maxNotes {
			f := &x.out.Findings
			*f = append(*f, region.Finding{Code: c.Code, Severity: c.Severity, Part: x.t.ID, Message: fmt.Sprintf("and %d more of this kind", n-maxNotes), Rows: [2]int64{-1, -1}, Lost: -1})
		}
	}
	return nil
}

// place finds the rows of a rowset's changes. Keys are looked up in their order, so that a block is read once.
func (x *replay) place(ctx context.Context, rs uint64) error {
	byKey := x.moved[rs]
	var out []LoggedChange
	var lost []UnplacedChange
	changes := 0
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		row, found, err := x.lookup(ctx, rs, []byte(key))
		switch {
		case err == nil && found:
			for _, c := range byKey[key] {
				c.Row = row
				out = append(out, c)
			}
			continue
		case err == nil:
			err = fault.Corruptf(fault.Span{Object: x.t.Object}, "", "rowset %d has no such row", rs)
		case !errors.Is(err, fault.Corrupt):
			return err
		}
		u := UnplacedChange{Key: []byte(key), Changes: byKey[key], Rows: everyRow, Err: err}
		if among := (*lostKey)(nil); errors.As(err, &among) {
			u.Rows, u.Err = among.rows, among.why
		}
		changes += len(u.Changes)
		lost = append(lost, u)
	}
	if len(lost) > 0 {
		if x.out.Unplaced == nil {
			x.out.Unplaced = map[uint64][]UnplacedChange{}
		}
		x.out.Unplaced[rs] = lost
		e := findingOf("", lost[0].Err, "")
		x.note("kudu.wal.change.lost", e.At, e.Path, fmt.Sprintf("%d changes of %d rows of rowset %d cannot be placed, the first are of row %s: %s", changes, len(lost), rs, x.keyText(lost[0].Key), e.Message))
	}
	slices.SortStableFunc(out, func(a, b LoggedChange) int { return cmp.Compare(a.Row, b.Row) })
	if len(out) > 0 {
		x.out.Changes[rs] = out
	}
	return nil
}
