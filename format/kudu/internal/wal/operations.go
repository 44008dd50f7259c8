package wal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/vec"
)

// drain applies pending operations that have a commit, in the order of their indexes, and drops those without. At the
// end of the log that is all of them; else those up to the last that has a commit, but at least half.
func (x *Replayer) drain(end bool) {
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
		if p.op == OpWrite || p.op == OpAlterSchema {
			if x.dropped++; x.dropped == 1 {
				x.firstDrop, x.Out.OpenFrom = p.id, p.time
			}
			x.Out.Open = p.id
			x.Out.open = append(x.Out.open, openOp{p.time, x.rowOps(p), p.at})
			x.bytes.kept += perOpen
		}
	}
	x.pending = slices.Delete(x.pending, 0, keep)
}

// apply applies a committed operation.
func (x *Replayer) apply(p *pendingOp) {
	x.size -= p.size
	if x.Out.Last.Index < p.id.Index {
		x.Out.Last, x.Out.LastTime = p.id, p.time
	}
	if p.op == OpWrite || p.op == OpAlterSchema || p.op == OpParticipant {
		x.Out.LastWrite = max(x.Out.LastWrite, p.time)
	}
	why := ""
	switch {
	case p.op == OpNone || p.op == opConfig:
	case p.op != OpWrite && len(p.commit.ops) > 0 && p.commit.ops[0].failed:
	case p.body == nil:
		why = "its request is missing"
	case p.op == OpWrite:
		why = x.write(p)
	case p.op == OpAlterSchema:
		a := ParseAlter(p.body)
		if why = errorText(p.body.Err()); why == "" {
			x.keepAlter(p.time, &a)
		}
		if why == "" && a.version > x.version {
			x.schema, x.version = &a.schema, a.version
			x.newest(p.at)
		}
		x.wentBack = x.wentBack || a.version < x.version
	case p.op == OpParticipant:
		o := parseParticipant(p.body)
		if why = errorText(p.body.Err()); why == "" {
			x.endTxn(o)
		}
	default:
		why = "its type is unknown"
	}
	if why != "" {
		x.note("kudu.wal.op.bad", p.at, "replicate", fmt.Sprintf("operation %s (%s): %s", p.id, opName(p.op), why))
	}
}

// keepAlter keeps a change of the schema, with what it changed if the version before is known.
func (x *Replayer) keepAlter(time uint64, a *alterSchema) {
	out := Altered{Time: time, Version: a.version}
	if a.name != cmp.Or(x.name, x.T.Table) { // each has the name; what it was before the first is not known
		out.Name = a.name
	}
	x.name = cmp.Or(a.name, x.name)
	before := x.known[a.version-1]
	if x.version == a.version-1 {
		before = x.schema
	}
	if out.Known = before != nil; out.Known {
		out.Changes = before.Changes(&a.schema)
	}
	x.Out.Alters = append(x.Out.Alters, out)
}

// errorText is the message of an error, without its place; "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return codes.Finding("", err, "").Message
}

// named records which MemRowSets a commit names.
func (x *Replayer) named(m *commitMsg) {
	for _, o := range m.ops {
		for _, s := range o.stores {
			switch {
			case s.mrs < 0 || s.txn >= 0:
			case x.memRows == vec.Range{}:
				x.memRows = vec.Range{From: s.mrs, To: s.mrs + 1}
			default:
				x.memRows = vec.Range{From: min(x.memRows.From, s.mrs), To: max(x.memRows.To, s.mrs+1)}
			}
		}
	}
}

// later says why the log is of a later state of the tablet than its superblock, as when they are of copies of a server
// that were made at different times; "" if it is not. Operations between are lost then, and later ones change rows that
// the superblock does not have. MemRowSets are numbered, and are flushed one after the other: while one is flushed,
// changes go to the next one, so the log has those of at most two that the superblock does not know as flushed.
func (x *Replayer) later() string {
	flushed := x.T.LastDurableMRS
	switch {
	case x.T.Rebuilt || x.memRows == vec.Range{}:
		return ""
	case flushed < 0 && len(x.T.RowSets) > 0: // no superblock of Kudu: rowsets come of flushed MemRowSets
		return ""
	case x.memRows.From > flushed+1 && x.Out.First.Index > 1:
		return fmt.Sprintf("the log begins with changes in MemRowSet %d, and by the superblock those up to %d were "+
			"flushed", x.memRows.From, flushed)
	case x.memRows.To-1 > flushed+2:
		return fmt.Sprintf("the log has changes in MemRowSet %d, and by the superblock only those up to %d were "+
			"flushed", x.memRows.To-1, flushed)
	}
	return ""
}

// active reports whether changes in a memory store have not been flushed.
func (x *Replayer) active(s memStore) bool {
	switch {
	case s.txn >= 0 && s.mrs >= 0:
		t := x.T.Txns[s.txn]
		return !t.Aborted && !t.Flushed
	case s.mrs >= 0:
		return s.mrs > x.T.LastDurableMRS
	case s.rs >= 0:
		durable, ok := x.durable[uint64(s.rs)]
		// A rowset that is not there was compacted, with its changes, or never finished: then the change also went to
		// another store.
		return ok && s.dms > durable
	}
	return false
}

// target is the store that a change has to be applied to; false if it failed, was skipped or has been flushed.
func (x *Replayer) target(o opResult) (memStore, bool) {
	if o.failed || o.skip {
		return memStore{}, false
	}
	if x.T.Rebuilt && len(o.stores) > 0 { // one MemRowSet has all rows
		return memStore{mrs: 0, rs: -1, dms: -1, txn: o.stores[0].txn}, true
	}
	for _, s := range o.stores {
		if x.active(s) {
			return s, true
		}
	}
	return memStore{}, false
}

func (x *Replayer) anyActive(m *commitMsg) bool { return x.countActive(m) > 0 }

func (x *Replayer) countActive(m *commitMsg) (n int) {
	for _, o := range m.ops {
		if _, ok := x.target(o); ok {
			n++
		}
	}
	return n
}

// rowOps counts the row operations of a write that is not applied, as far as they can be parsed.
func (x *Replayer) rowOps(p *pendingOp) (n int64) {
	if p.op != OpWrite || p.body == nil {
		return 0
	}
	w := parseWrite(p.body)
	d, why := newRowDecoder(&w, x.schema, 0)
	for ok := why == "" && p.body.Err() == nil; ok; n++ {
		if _, ok, _ = d.next(); !ok {
			break
		}
	}
	return n
}

// write applies the row operations of a write request.
func (x *Replayer) write(p *pendingOp) (why string) {
	if !x.anyActive(p.commit) {
		return ""
	}
	w := parseWrite(p.body)
	if err := p.body.Err(); err != nil {
		return errorText(err)
	}
	if w.counter < 0 {
		w.counter = x.counter
	}
	d, why := newRowDecoder(&w, x.schema, w.counter)
	if why != "" {
		return why
	}
	if w.counter < 0 && !x.schema.Unique() {
		return "the next value of its auto-incrementing column is unknown"
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
			return fmt.Sprintf("its commit has %d results, another number than it has row operations",
				len(p.commit.ops))
		}
		s, ok := x.target(p.commit.ops[i])
		if !ok {
			continue
		}
		if op.failed != "" {
			x.note("kudu.wal.op.bad", p.at, "write_request",
				fmt.Sprintf("row operation %d of %s: %s", i, p.id, op.failed))
			continue
		}
		if p.time < x.until {
			x.Out.Ops++
		}
		if why := x.row(p, &w, &op, s); why != "" {
			x.note("kudu.wal.change.lost", p.at, "write_request",
				fmt.Sprintf("row operation %d of %s: %s", i, p.id, why))
		}
	}
}

// row applies one row operation to store s.
func (x *Replayer) row(p *pendingOp, w *writeRequest, op *rowOp, s memStore) (why string) {
	key, err := x.schema.Key(x.key[:0], op.values)
	if err != nil {
		return err.Error()
	}
	x.key = key
	list := x.tmp[:0]
	inserts := false
	switch op.typ {
	case RowInsert, RowInsertIgnore:
		inserts = true
	case RowDelete, RowDeleteIgnore:
		list = append(list, ChangeDelete)
	case RowUpsert, RowUpsertIgnore:
		m := x.rows[string(key)]
		// A live row is updated where it is. One in another MemRowSet must have been deleted, even if the log lacks
		// that.
		if inserts = s.mrs >= 0 && (m == nil || !m.live || m.mrs != s.mrs); !inserts {
			list = x.upsertAsUpdate(list, op)
		}
	default:
		list = x.schema.Cells(append(list, changeUpdate), op.values, x.schema.NumKeys, op.set)
	}
	if inserts {
		list = x.schema.Cells(list, op.values, 0, nil)
	}
	x.tmp = list
	list = x.bytes.keep(list)
	switch {
	case s.mrs < 0 && inserts:
		return "it inserts into a flushed rowset"
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
			return fmt.Sprintf("row %s does not exist", x.keyText(key))
		}
		m.Changes = append(m.Changes, LoggedChange{Time: p.time, List: list})
		m.live = op.typ != RowDelete && op.typ != RowDeleteIgnore
	}
	return ""
}

// upsertAsUpdate appends the update that an upsert of an existing row amounts to: of the columns that the client set,
// without immutable ones.
func (x *Replayer) upsertAsUpdate(dst []byte, op *rowOp) []byte {
	set := slices.Clone(op.set)
	for k := range set {
		set[k] = set[k] && !x.schema.Columns[k].Immutable
	}
	return x.schema.Cells(append(dst, changeUpdate), op.values, x.schema.NumKeys, set)
}

// insert adds a row to the MemRowSets, or reinserts a deleted one. why says that the row was live.
func (x *Replayer) insert(r newRow, time uint64) (why string) {
	m := x.rows[string(r.key)]
	if m == nil {
		x.rows[string(r.key)] = &memRow{LoggedRow: LoggedRow{Key: x.bytes.keep(r.key), Time: time, Cells: r.cells},
			live: true, mrs: r.mrs}
		return ""
	}
	if m.live {
		// Its deletion was lost. The newer row replaces it.
		why = fmt.Sprintf("row %s exists already", x.keyText(r.key))
		m.Changes = append(m.Changes, LoggedChange{Time: time, List: []byte{ChangeDelete}})
	}
	m.Changes = append(m.Changes, LoggedChange{Time: time,
		List: append([]byte{ChangeReinsert}, r.schema.WithoutKey(r.cells)...)})
	m.live, m.mrs = true, r.mrs
	return why
}

// endTxn inserts the rows of a transaction, or drops them.
func (x *Replayer) endTxn(o participantOp) {
	switch o.kind {
	case TxnFinalize:
		x.commitTxn(o.txn, o.finalized)
	case TxnAbort:
		delete(x.txns, o.txn)
	}
}

func (x *Replayer) commitTxn(txn int64, time uint64) {
	for _, r := range x.txns[txn] {
		if why := x.insert(r, time); why != "" {
			x.note("kudu.wal.change.lost", fault.Span{}, "", fmt.Sprintf("transaction %d: %s", txn, why))
		}
	}
	delete(x.txns, txn)
}

func (x *Replayer) keyText(key []byte) string {
	if s, err := x.T.Schema.KeyText(key); err == nil {
		return s
	}
	return fmt.Sprintf("%x", key)
}

// finish ends transactions, finds the rows that changes of flushed rowsets belong to, and sorts the result.
func (x *Replayer) finish(ctx context.Context) error {
	for _, txn := range slices.Sorted(maps.Keys(x.txns)) {
		switch t, ok := x.T.Txns[txn]; {
		case ok && t.Aborted:
		case ok && t.CommitTimestamp >= 0:
			x.commitTxn(txn, uint64(t.CommitTimestamp))
		default:
			x.note("kudu.wal.txn.open", fault.Span{}, "",
				fmt.Sprintf("%s of transaction %d, which is neither committed nor aborted, are left out",
					fault.Count(len(x.txns[txn]), "row"), txn))
		}
	}
	// a server that restarts begins a segment with the newest schema, but then the ALTER_SCHEMA to it follows
	if x.wentBack {
		for _, at := range x.unsure {
			x.note("kudu.wal.header", at, "header.schema_version",
				"later operations alter the schema to older versions, and none to this one")
		}
	}
	if f := x.Out.uncommitted(x.T.ID, 0); f != nil {
		x.Counts[f.Code]++
		x.Out.Findings = append(x.Out.Findings, *f)
	}
	x.Out.Received = x.last
	if why := x.later(); why != "" {
		x.note("kudu.wal.gap", fault.Span{Object: x.T.Object}, "", why+": the rows are those of the superblock")
		x.Out.Later = true
		clear(x.rows)
		clear(x.moved)
		x.schema, x.version, x.name = &x.T.Schema, x.T.SchemaVersion, ""
		x.Out.Last, x.Out.LastTime, x.Out.LastWrite, x.Out.Alters, x.Out.Ops = meta.OpID{}, 0, 0, nil, 0
	}
	x.Out.Lost = x.dropped > 0 && x.firstDrop.Index < x.Out.Last.Index ||
		slices.ContainsFunc(x.Out.Findings, func(f region.Finding) bool { return f.Severity >= region.Error })
	for _, m := range x.rows {
		x.Out.Rows = append(x.Out.Rows, m.LoggedRow)
	}
	sorted.By(x.Out.Rows, func(a, b LoggedRow) int { return bytes.Compare(a.Key, b.Key) })
	for _, rs := range slices.Sorted(maps.Keys(x.moved)) {
		if x.lookup == nil {
			break
		}
		if err := x.place(ctx, rs); err != nil {
			return err
		}
	}
	for _, c := range codes.OfLogs {
		if n := x.Counts[c.Code]; n > codes.MaxAlike {
			f := &x.Out.Findings
			*f = append(*f, codes.Codes.Finding(c.Code, fault.Span{}, x.T.ID,
				fmt.Sprintf("and %d more of this kind", n-codes.MaxAlike)))
		}
	}
	return nil
}

// place finds the rows of a rowset's changes. Keys are looked up in ascending order, so that each block is read once.
func (x *Replayer) place(ctx context.Context, rs uint64) error {
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
			err = fault.Corruptf(fault.Span{Object: x.T.Object}, "", "rowset %d has no such row", rs)
		case !errors.Is(err, fault.Corrupt):
			return err
		}
		u := UnplacedChange{Key: []byte(key), Changes: byKey[key], Rows: EveryRow, Err: err}
		if among := (*LostKey)(nil); errors.As(err, &among) {
			u.Rows, u.Err = among.Rows, among.Why
		}
		changes += len(u.Changes)
		lost = append(lost, u)
	}
	if len(lost) > 0 {
		if x.Out.Unplaced == nil {
			x.Out.Unplaced = map[uint64][]UnplacedChange{}
		}
		x.Out.Unplaced[rs] = lost
		e := codes.Finding("", lost[0].Err, "")
		x.note("kudu.wal.change.lost", e.At, e.Path,
			fmt.Sprintf("%s of %s of rowset %d cannot be placed, the first are of row %s: %s",
				fault.Count(changes, "change"),
				fault.Count(len(lost), "row"), rs, x.keyText(lost[0].Key), e.Message))
	}
	sorted.StablyBy(out, func(a, b LoggedChange) int { return cmp.Compare(a.Row, b.Row) })
	if len(out) > 0 {
		x.Out.Changes[rs] = out
	}
	return nil
}
