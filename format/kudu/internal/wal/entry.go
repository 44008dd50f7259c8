package wal

import (
	"fmt"
	"strconv"

	"stoa/format/kudu/internal/meta"
	"stoa/internal/pb"
	"stoa/wire"
)

// OperationType, in the messages of a log: an operation is logged when it is received (ReplicateMsg), and again when it
// was applied (CommitMsg).
const (
	OpNone        = 1
	OpWrite       = 3
	OpAlterSchema = 4
	opConfig      = 5
	OpParticipant = 6
)

func opName(v int32) string {
	switch v {
	case OpNone:
		return "NO_OP"
	case OpWrite:
		return "WRITE_OP"
	case OpAlterSchema:
		return "ALTER_SCHEMA_OP"
	case opConfig:
		return "CHANGE_CONFIG_OP"
	case OpParticipant:
		return "PARTICIPANT_OP"
	}
	return fmt.Sprintf("op %d", v)
}

// Entry is a LogEntryPB: one of the two is set.
type Entry struct {
	replicate *replicateMsg
	commit    *commitMsg
}

// replicateMsg is a ReplicateMsg.
type replicateMsg struct {
	id   meta.OpID
	time uint64
	op   int32
	body *wire.Cursor // the request that belongs to op; nil: there is none
}

// commitMsg is a CommitMsg.
type commitMsg struct {
	id  meta.OpID
	op  int32
	ops []opResult // of each row operation
}

// opResult is an OperationResultPB.
type opResult struct {
	skip, failed bool
	stores       []memStore // where the change went; two during a flush or a compaction
}

// memStore is a MemStoreTargetPB, with -1 for unset fields: a MemRowSet (mrs; and txn, if it is a transaction's), or a
// DeltaMemStore (rs, dms).
type memStore struct{ mrs, rs, dms, txn int64 }

// ParseBatch reads a LogEntryBatchPB, calls yield for each entry and returns how many there are. deep: parse the
// requests, too, for the trace or to check them.
func ParseBatch(c *wire.Cursor, deep bool, yield func(Entry)) (entries int64) {
	for r := pb.NewReader(c); r.Next(); {
		if r.Field() != 1 {
			r.Unknown()
			continue
		}
		m := r.Message("entry[" + strconv.FormatInt(entries, 10) + "]")
		e := parseLogEntry(m, deep)
		r.Join(m)
		entries++
		if c.Err() == nil {
			yield(e)
		}
	}
	return entries
}

// parseLogEntry reads a LogEntryPB.
func parseLogEntry(c *wire.Cursor, deep bool) (e Entry) {
	typ := int32(0)
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			typ = r.Enum("type", func(v int32) string {
				return map[int32]string{1: "REPLICATE", 2: "COMMIT"}[v]
			})
		case 2:
			m := r.Message("replicate")
			e.replicate = parseReplicate(m, deep)
			r.Join(m)
		case 3:
			m := r.Message("commit")
			e.commit = parseCommit(m)
			r.Join(m)
		default:
			r.Unknown()
		}
	}
	switch {
	case c.Err() != nil:
	case typ == 1 && e.replicate != nil:
		e.commit = nil
	case typ == 2 && e.commit != nil:
		e.replicate = nil
	default:
		c.Fail(0, c.Pos(), "type", "an entry of type %d without its message", typ)
	}
	return e
}

// parseReplicate reads a ReplicateMsg.
func parseReplicate(c *wire.Cursor, deep bool) *replicateMsg {
	m := &replicateMsg{}
	var need meta.Required
	bodies := map[int]*wire.Cursor(nil)
	body := func(r *pb.Reader, name string, parse func(*wire.Cursor)) {
		b := r.Message(name)
		if deep {
			parse(b)
			r.Join(b)
		}
		if bodies == nil {
			bodies = make(map[int]*wire.Cursor, 1)
		}
		bodies[r.Field()] = b
	}
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			s := r.Message("id")
			m.id = meta.ParseOpID(s).Unwrapped()
			r.Join(s)
			need.Has(1)
		case 2:
			m.time = r.Fixed64("timestamp")
			need.Has(2)
		case 4:
			m.op = r.Enum("op_type", opName)
			need.Has(4)
		case 5:
			body(r, "write_request", func(c *wire.Cursor) { parseWrite(c) })
		case 6:
			body(r, "alter_schema_request", func(c *wire.Cursor) { ParseAlter(c) })
		case 9:
			body(r, "participant_request", func(c *wire.Cursor) { parseParticipant(c) })
		default:
			r.Unknown()
		}
	}
	need.Check(c, "id", 1, "timestamp", 2, "op_type", 4)
	m.body = bodies[map[int32]int{OpWrite: 5, OpAlterSchema: 6, OpParticipant: 9}[m.op]]
	return m
}

// parseCommit reads a CommitMsg.
func parseCommit(c *wire.Cursor) *commitMsg {
	m := &commitMsg{}
	var need meta.Required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			m.op = r.Enum("op_type", opName)
			need.Has(1)
		case 2:
			s := r.Message("commited_op_id")
			m.id = meta.ParseOpID(s).Unwrapped()
			r.Join(s)
			need.Has(2)
		case 3:
			s := r.Message("result")
			for r := pb.NewReader(s); r.Next(); {
				if r.Field() != 1 {
					r.Unknown()
					continue
				}
				x := r.Message("ops[" + strconv.Itoa(len(m.ops)) + "]")
				m.ops = append(m.ops, parseOpResult(x))
				r.Join(x)
			}
			r.Join(s)
		default:
			r.Unknown()
		}
	}
	need.Check(c, "op_type", 1, "commited_op_id", 2)
	return m
}

// parseOpResult reads an OperationResultPB.
func parseOpResult(c *wire.Cursor) (o opResult) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			o.skip = r.Bool("skip_on_replay")
		case 2:
			r.Bytes("failed_status")
			o.failed = true
		case 3:
			m := r.Message("mutated_stores[" + strconv.Itoa(len(o.stores)) + "]")
			s := memStore{-1, -1, -1, -1}
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 1:
					s.mrs = r.Int("mrs_id")
				case 2:
					s.rs = r.Int("rs_id")
				case 3:
					s.dms = r.Int("dms_id")
				case 4:
					s.txn = r.Int("rs_txn_id")
				default:
					r.Unknown()
				}
			}
			r.Join(m)
			o.stores = append(o.stores, s)
		default:
			r.Unknown()
		}
	}
	return o
}

// writeRequest is a WriteRequestPB.
type writeRequest struct {
	schema         meta.Schema // as the client saw it: without ids
	rows, indirect []byte      // see rowDecoder
	txn            int64       // -1: none
	counter        int64       // of the auto-incrementing column, before the first row; -1: not stored
}

// parseWrite reads a WriteRequestPB.
func parseWrite(c *wire.Cursor) (w writeRequest) {
	w.txn, w.counter = -1, -1
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 2:
			m := r.Message("schema")
			w.schema = meta.ParseSchema(m)
			r.Join(m)
		case 3:
			m := r.Message("row_operations")
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 2:
					w.rows = r.Bytes("rows")
				case 3:
					w.indirect = r.Bytes("indirect_data")
				default:
					r.Unknown()
				}
			}
			r.Join(m)
		case 7:
			w.txn = r.Int("txn_id")
		case 8:
			m := r.Message("auto_incrementing_column")
			w.counter = 0
			for r := pb.NewReader(m); r.Next(); {
				if r.Field() == 1 {
					w.counter = r.Int("auto_incrementing_counter")
				} else {
					r.Unknown()
				}
			}
			r.Join(m)
		default:
			r.Unknown()
		}
	}
	return w
}

// alterSchema is an AlterSchemaRequestPB.
type alterSchema struct {
	schema  meta.Schema
	version uint32
	name    string // the table's new name; "": unchanged
}

// ParseAlter reads an AlterSchemaRequestPB.
func ParseAlter(c *wire.Cursor) (a alterSchema) {
	var need meta.Required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 2:
			m := r.Message("schema")
			a.schema = meta.ParseSchema(m)
			r.Join(m)
			need.Has(2)
		case 3:
			a.version = r.Uint32("schema_version")
			need.Has(3)
		case 4:
			a.name = r.String("new_table_name")
		default:
			r.Unknown()
		}
	}
	need.Check(c, "schema", 2, "schema_version", 3)
	return a
}

// ParticipantOpPB.ParticipantOpType, of the operations that end a transaction.
const (
	TxnFinalize = 3
	TxnAbort    = 4
)

// participantOp is a ParticipantOpPB.
type participantOp struct {
	kind      int32
	txn       int64
	finalized uint64 // hybrid time of the commit
}

// parseParticipant reads a ParticipantRequestPB.
func parseParticipant(c *wire.Cursor) (p participantOp) {
	p.txn = -1
	for r := pb.NewReader(c); r.Next(); {
		if r.Field() != 2 {
			r.Unknown()
			continue
		}
		m := r.Message("op")
		for r := pb.NewReader(m); r.Next(); {
			switch r.Field() {
			case 1:
				p.kind = r.Int32("type")
			case 2:
				p.txn = r.Int("txn_id")
			case 3:
				p.finalized = r.Uint("finalized_commit_timestamp")
			default:
				r.Unknown()
			}
		}
		r.Join(m)
	}
	return p
}
