package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
)

// ticket is what a client gives back to read an endpoint of a statement: the statement, and the part of its rows.
type ticket struct {
	ID    string      `json:"id"` // of the execution, by which it can be cancelled
	Query string      `json:"q"`
	Split *stoa.Split `json:"split,omitempty"` // nil: everything
	// Prepared is the statement with its parameters, if Query has values in their place: it may be executed again.
	Prepared string `json:"p,omitempty"`
}

// signer signs tickets and handles, so that a server opens only those that it made.
type signer struct{ key [32]byte }

func newSigner() *signer {
	s := &signer{}
	rand.Read(s.key[:]) // never fails
	return s
}

func (s *signer) sum(b []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write(b)
	return h.Sum(nil)[:16]
}

func (s *signer) seal(doc any) []byte {
	b, _ := json.Marshal(doc) // strings and numbers only: this cannot fail
	return append(s.sum(b), b...)
}

func (s *signer) open(b []byte, doc any) error {
	if len(b) < 16 || !hmac.Equal(b[:16], s.sum(b[16:])) {
		return fault.Invalidf("the ticket or handle is not of this server, or of an earlier run of it")
	}
	return json.Unmarshal(b[16:], doc)
}

// runs are the executions that are being read, by id, so that they can be cancelled.
type runs struct {
	mu   sync.Mutex
	now  map[string]map[int]context.CancelFunc
	next int
	gone map[string]bool // cancelled ones, whose tickets are refused
	old  []string        // the keys of gone, the oldest first
}

const maxGone = 4096

// begin notes that an execution is read until end is called.
func (r *runs) begin(ctx context.Context, id string) (_ context.Context, end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[id] {
		return nil, nil, context.Canceled
	}
	ctx, cancel := context.WithCancel(ctx)
	if r.now == nil {
		r.now = map[string]map[int]context.CancelFunc{}
	}
	if r.now[id] == nil {
		r.now[id] = map[int]context.CancelFunc{}
	}
	k := r.next
	r.next++
	r.now[id][k] = cancel
	return ctx, func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.now[id], k)
		if len(r.now[id]) == 0 {
			delete(r.now, id)
		}
	}, nil
}

// cancel ends an execution, also what of it has not been asked for yet.
func (r *runs) cancel(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.now[id] {
		c()
	}
	if r.gone == nil {
		r.gone = map[string]bool{}
	}
	if !r.gone[id] {
		r.gone[id] = true
		r.old = append(r.old, id)
	}
	if len(r.old) > maxGone {
		delete(r.gone, r.old[0])
		r.old = r.old[1:]
	}
}

// The limits of reading.
const (
	maxReading = 16               // streams at a time; others wait
	stall      = 90 * time.Second // how long a client may leave a batch unread

	maxSplits  = 64
	maxTarget  = 1 << 40
	scanMemory = 128 << 20
)

// countSchema is the schema of count(*).
var countSchema = arrow.NewSchema([]arrow.Field{{Name: "count", Type: arrow.PrimitiveTypes.Int64}}, nil)

// bound is a statement that can be read: a query and its open table, or a script for the engine.
type bound struct {
	*query
	*stoa.Table // nil: the engine runs script
	script      *script
	spec        stoa.ScanSpec
	schema      *arrow.Schema
}

// Close closes the table.
func (b *bound) Close() {
	if b.Table != nil {
		b.Table.Close()
	}
}

// bind makes a statement ready, which the caller closes: as a query of one table, or else, if there is one, by the
// engine.
func (s *server) bind(ctx context.Context, statement string) (*bound, error) {
	if all := parameters(statement); len(all) > 0 {
		return nil, fault.Invalidf("the statement has %d parameters without values", len(all))
	}
	b, err := s.bindQuery(ctx, statement)
	refused, wrong := errors.Is(err, fault.Unsupported), errors.Is(err, fault.Invalid)
	if s.engine == nil || !refused && !wrong || errors.Is(err, errOpening) {
		return b, err
	}
	script, serr := s.script(ctx, statement)
	if serr != nil {
		return nil, serr
	}
	sc, serr := s.engine.schema(ctx, script)
	if wrong && errors.Is(serr, fault.Invalid) {
		return nil, err // of a query of one table stoa knows better what is wrong
	}
	if serr != nil {
		return nil, serr
	}
	return &bound{script: script, schema: sc, query: &query{limit: -1}}, nil
}

// errOpening marks the error of a table that cannot be opened, whoever reads it.
var errOpening = errors.New("it cannot be opened")

// opening is an error of a table that could not be opened.
type opening struct{ error }

func (o opening) Unwrap() error        { return o.error }
func (o opening) Is(target error) bool { return target == errOpening }

// bindQuery parses a query of one table and opens the table.
func (s *server) bindQuery(ctx context.Context, statement string) (*bound, error) {
	q, err := parse(statement)
	if err != nil {
		return nil, err
	}
	t, err := s.tables.find(ctx, q.table)
	if err != nil {
		return nil, err
	}
	open, err := t.open(ctx)
	if err != nil {
		return nil, opening{err}
	}
	b := &bound{query: q, Table: open, schema: countSchema,
		spec: stoa.ScanSpec{Columns: q.columns, Filter: q.where, Memory: scanMemory, Alloc: memory.DefaultAllocator}}
	if q.limit > 0 {
		b.spec.Limit = q.limit
	}
	if !q.count {
		b.schema, err = open.ScanSchema(b.spec)
	} else {
		_, err = open.ScanSchema(stoa.ScanSpec{Filter: q.where})
	}
	if err != nil {
		open.Close()
		return nil, err
	}
	return b, nil
}

// splits divides a query; nil: it is not divided. rows is how many it returns, -1 if that is not known.
func (b *bound) splits(ctx context.Context, bytes int64) (out []stoa.Split, rows int64, err error) {
	rows = -1
	if b.script != nil {
		return nil, -1, nil
	}
	if b.count {
		return nil, 1, nil
	}
	if b.limit >= 0 {
		return nil, -1, nil
	}
	if b.where == nil {
		if n, err := b.Rows(ctx); err == nil {
			rows = n
		}
	}
	for target := bytes; ; target *= 4 {
		out = nil
		for s, err := range b.Plan(ctx, b.spec, target) {
			if err != nil {
				return nil, -1, err
			}
			if out = append(out, s); len(out) > maxSplits && target < maxTarget {
				break
			}
		}
		if len(out) <= maxSplits || target >= maxTarget {
			return out, rows, nil
		}
	}
}

// errStalled is the end of a stream whose client did not read.
var errStalled = fault.New(fault.Limit, fault.Span{}, "", "no batch was read for %s", stall)

// stream sends the rows of a ticket to out, and closes it and the table. What ends it early, also that run was
// cancelled, is its last chunk, for as long as the client is there: no stream that is cut looks whole.
func (s *server) stream(client, run context.Context, b *bound, t *ticket, out chan<- flight.StreamChunk) {
	defer close(out)
	if err := s.send(run, b, t, out); err != nil {
		select {
		case out <- flight.StreamChunk{Err: grpcError(err)}:
		case <-client.Done():
		}
	}
}

// send sends rows, and closes the table.
func (s *server) send(ctx context.Context, b *bound, t *ticket, out chan<- flight.StreamChunk) (err error) {
	defer b.Close()
	defer func() {
		if p := recover(); p != nil { // a bug, which is the end of this stream and not of all others
			s.log(fmt.Sprintf("a bug: %v\n%s", p, debug.Stack()))
			err = fault.New(fault.Bug, fault.Span{}, "", "%v", p)
		}
	}()
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var stopped error
	read := s.rows
	if b.script != nil {
		read = func(ctx context.Context, b *bound, _ *ticket, each func(arrow.RecordBatch) bool) error {
			return s.engine.rows(ctx, b.script, b.schema, each)
		}
	}
	err = read(ctx, b, t, func(r arrow.RecordBatch) bool {
		r.Retain()
		late := time.NewTimer(stall)
		defer late.Stop()
		select {
		case out <- flight.StreamChunk{Data: r}: // whoever receives it releases it
			return true
		case <-ctx.Done():
			stopped = ctx.Err()
		case <-late.C:
			stopped = errStalled
		}
		r.Release()
		return false
	})
	return errors.Join(stopped, err)
}

// rows reads the rows of a ticket.
func (s *server) rows(ctx context.Context, b *bound, t *ticket, each func(arrow.RecordBatch) bool) error {
	if b.count {
		n, err := b.Count(ctx, stoa.ScanSpec{Filter: b.where})
		if err != nil {
			return err
		}
		if b.limit == 0 {
			return nil
		}
		bld := array.NewRecordBuilder(memory.DefaultAllocator, countSchema)
		defer bld.Release()
		bld.Field(0).(*array.Int64Builder).Append(n)
		r := bld.NewRecordBatch()
		defer r.Release()
		each(r)
		return nil
	}
	if b.limit == 0 {
		return nil
	}
	scan := b.Scan(ctx, b.spec)
	if t.Split != nil {
		scan = b.ScanSplit(ctx, *t.Split, b.spec)
	}
	for r, err := range scan {
		if err != nil {
			return err
		}
		if !each(r) {
			return nil
		}
	}
	return nil
}
