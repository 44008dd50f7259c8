package kudu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"stoa/fault"
	"stoa/region"
)

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
