package main

// #include <stdlib.h>
// #include "stoa.h"
// void stoa_pin(struct ArrowArray *a, uintptr_t pins);
import "C"

import (
	"context"
	"iter"
	"runtime"
	"runtime/cgo"
	"sync"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"stoa"
	"stoa/region"
)

// scan is one scan of a table. A goroutine reads: pulling from an iterator inside a call from C ends the process as
// soon as another thread of the host calls ("coro: OS thread locking must match").
type scan struct {
	table  *table
	done   func() // releases the reference to the table
	schema *arrow.Schema
	run    func(context.Context, stoa.ScanSpec) iter.Seq2[arrow.RecordBatch, error]
	spec   stoa.ScanSpec

	start   sync.Once
	batches chan arrow.RecordBatch // closed at the end
	ready   arrow.RecordBatch      // what wait took from batches
	over    bool                   // wait saw the end

	mu     sync.Mutex
	stop   context.CancelFunc // nil: not begun
	ended  bool
	gone   bool // cancelled before it began
	err    error
	losses []region.Loss
	rows   int64
}

// ahead is the number of finished batches that are kept for the host.
const ahead = 2

// begin makes the scan's context and registers it with the table, so that the table can end the scan.
func (s *scan) begin(parent context.Context) context.Context {
	ctx, stop := context.WithCancel(parent)
	s.mu.Lock()
	s.stop = stop
	if s.gone {
		stop()
	}
	s.mu.Unlock()
	s.table.mu.Lock()
	s.table.scans[s] = true
	s.table.mu.Unlock()
	return ctx
}

func (s *scan) end() {
	s.cancel()
	s.table.mu.Lock()
	delete(s.table.scans, s)
	s.table.mu.Unlock()
}

func (s *scan) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	if s.stop != nil {
		s.stop()
	}
}

// close drops the remaining batches. The goroutine releases the table when it ends.
func (s *scan) close() {
	s.cancel()
	began := true
	s.start.Do(func() { began = false })
	if !began {
		s.done()
		return
	}
	if s.ready != nil {
		s.ready.Release()
		s.ready = nil
	}
	go func() {
		for b := range s.batches {
			b.Release()
		}
	}()
}

// read is the goroutine.
func (s *scan) read(ctx context.Context) {
	err := s.send(ctx)
	s.mu.Lock()
	s.err, s.ended = err, true
	s.mu.Unlock()
	close(s.batches)
	s.end()
	s.done()
}

func (s *scan) send(ctx context.Context) (err error) {
	defer guard(&err)
	s.spec.Lost = func(l region.Loss) {
		s.mu.Lock()
		s.losses = region.Keep(s.losses, l)
		s.mu.Unlock()
	}
	for b, err := range s.run(ctx, s.spec) {
		if err != nil {
			return err
		}
		b.Retain()
		select {
		case s.batches <- b:
			s.mu.Lock()
			s.rows += b.NumRows()
			s.mu.Unlock()
		case <-ctx.Done():
			b.Release()
			return ctx.Err()
		}
	}
	return nil
}

// started starts reading, once.
func (s *scan) started() {
	s.start.Do(func() { go s.read(s.begin(context.Background())) })
}

// next returns the next batch; nil at the end.
func (s *scan) next() (arrow.RecordBatch, error) {
	s.started()
	b := s.ready
	s.ready = nil
	if b == nil && !s.over {
		b = <-s.batches
	}
	if b != nil {
		return b, nil
	}
	s.over = true
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, s.err
}

// wait waits at most d, and reports whether next would not block.
func (s *scan) wait(d time.Duration) bool {
	s.started()
	if s.ready != nil || s.over {
		return true
	}
	take := func(b arrow.RecordBatch, ok bool) bool {
		s.ready, s.over = b, !ok
		return true
	}
	select {
	case b, ok := <-s.batches:
		return take(b, ok)
	default:
	}
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case b, ok := <-s.batches:
		return take(b, ok)
	case <-timer.C:
		return false
	}
}

//export goScan
func goScan(h C.stoa_t, spec *C.char, out *C.stoa_t, fail **C.char) C.int {
	n, err := newScan(uint64(h), spec)
	if err == nil {
		*out = C.stoa_t(n)
	}
	return answer(err, fail)
}

func newScan(h uint64, text *C.char) (n uint64, err error) {
	defer guard(&err)
	t, done, err := held[*table](h)
	if err != nil {
		return 0, err
	}
	s := &scan{table: t, done: done, batches: make(chan arrow.RecordBatch, ahead)}
	var r scanRequest
	if err = ask(text, &r); err == nil {
		if s.spec, err = r.spec(); err == nil {
			if t.alone(&r) {
				s.spec.Parallel = 1
			}
			s.schema, s.run, err = t.batches(&r, s.spec)
		}
	}
	if err != nil {
		done()
		return 0, err
	}
	return newHandle(s), nil
}

//export goWait
func goWait(h C.stoa_t, milliseconds C.int64_t) C.int {
	s, done, err := held[*scan](uint64(h))
	if err != nil {
		return -1
	}
	defer done()
	if s.wait(time.Duration(milliseconds) * time.Millisecond) {
		return 1
	}
	return 0
}

// streamError sets out to the text of an error for a stream's host; it returns 0 if there is none.
func streamError(err error, out **C.char) C.int {
	if err == nil {
		return 0
	}
	*out = C.CString(docOfError(err).Message)
	return 1
}

//export goStreamSchema
func goStreamSchema(h C.stoa_t, out *C.struct_ArrowSchema, fail **C.char) C.int {
	s, done, err := held[*scan](uint64(h))
	if err == nil {
		defer done()
		err = exportSchema(s.schema, out)
	}
	return streamError(err, fail)
}

// exportSchema exports a schema to the host; a type that Arrow's C interface lacks is an error.
func exportSchema(sc *arrow.Schema, out *C.struct_ArrowSchema) (err error) {
	defer guard(&err)
	cdata.ExportArrowSchema(sc, (*cdata.CArrowSchema)(unsafe.Pointer(out)))
	return nil
}

//export goStreamNext
func goStreamNext(h C.stoa_t, out *C.struct_ArrowArray, fail **C.char) C.int {
	return streamError(exportNext(uint64(h), out), fail)
}

func exportNext(h uint64, out *C.struct_ArrowArray) (err error) {
	defer guard(&err)
	s, done, err := held[*scan](h)
	if err != nil {
		return err
	}
	defer done()
	b, err := s.next()
	if err != nil {
		return err
	}
	if b == nil {
		*out = C.struct_ArrowArray{} // the end
		return nil
	}
	defer b.Release()
	given := exportBatch(b, (*cdata.CArrowArray)(unsafe.Pointer(out)))
	defer given.Release()
	pins := &runtime.Pinner{}
	pin(pins, given)
	C.stoa_pin(out, C.uintptr_t(cgo.NewHandle(pins)))
	return nil
}

// pin pins the buffers of an array. For buffers in C memory, which are most, this does nothing. Texts and dictionaries
// may be in Go memory, whose address C may keep only while it is pinned.
func pin(p *runtime.Pinner, d arrow.ArrayData) {
	for _, b := range d.Buffers() {
		if b != nil && b.Len() > 0 {
			p.Pin(address(b.Bytes()))
		}
	}
	for _, c := range d.Children() {
		pin(p, c)
	}
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		pin(p, dict)
	}
}

//export goUnpin
func goUnpin(h C.uintptr_t) {
	c := cgo.Handle(h)
	c.Value().(*runtime.Pinner).Unpin()
	c.Delete()
}

type scanReport struct {
	Rows     int64     `json:"rows"`
	Ended    bool      `json:"ended"`
	Error    *errorDoc `json:"error"`
	Losses   []lossDoc `json:"losses"`
	Findings any       `json:"findings"`
}

//export goScanReport
func goScanReport(h C.stoa_t, out, fail **C.char) C.int {
	r, err := reportOf(uint64(h))
	return give(out, r, err, fail)
}

func reportOf(h uint64) (r scanReport, err error) {
	defer guard(&err)
	s, done, err := held[*scan](h)
	if err != nil {
		return r, err
	}
	defer done()
	s.mu.Lock()
	r = scanReport{s.rows, s.ended, docOfError(s.err), docsOfLosses(s.losses), nil}
	s.mu.Unlock()
	r.Findings = docsOfFindings(s.table.findings())
	return r, nil
}
