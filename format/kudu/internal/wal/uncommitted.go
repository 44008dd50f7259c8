package wal

import (
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format/kudu/internal/codes"
	"stoa/region"
)

// openOp is an operation that changes rows or the schema, and that nothing in the log says was committed.
type openOp struct {
	time uint64 // hybrid
	rows int64  // row operations
	at   fault.Span
}

const perOpen = 128 // bytes of memory

// uncommitted returns the finding about the operations without a commit that are later than the hybrid time flushed;
// nil if there is none. Operations are committed in their order: those up to a flushed one have been.
func (l *Logged) uncommitted(tablet string, flushed uint64) *region.Finding {
	ops, rows, at := int64(0), int64(0), fault.Span{}
	for _, o := range l.open {
		if o.time > flushed {
			ops, rows, at = ops+1, rows+o.rows, o.at
		}
	}
	if ops == 0 {
		return nil
	}
	f := codes.Codes.Finding("kudu.wal.uncommitted", at, tablet, fmt.Sprintf("%s without a commit (%s) not applied: "+
		"they may never have been committed, though a tablet with one voter would commit them at its next start",
		fault.Count(ops, "operation"), fault.Count(rows, "row operation")))
	return &f
}

// Flushed corrects what the log says of operations without a commit, where the hybrid time of the latest flushed
// operation is known: those up to it were applied. Then the log has lost its end, as Kudu writes commits to the log
// before it flushes operations.
func (l *Logged) Flushed(tablet string, flushed uint64) {
	if len(l.open) == 0 || l.open[0].time > flushed {
		return
	}
	l.Findings = slices.DeleteFunc(l.Findings, func(f region.Finding) bool { return f.Code == "kudu.wal.uncommitted" })
	if f := l.uncommitted(tablet, flushed); f != nil {
		l.Findings = append(l.Findings, *f)
	}
}
