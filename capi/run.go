package main

// #include "stoa.h"
import "C"

import (
	"bytes"
	"context"
	"strings"
	"time"
	"unsafe"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

// run is a verb of the command in this process.
type run struct {
	stop   context.CancelFunc
	chunks chan []byte // output; closed at its end
	rest   []byte      // rest of the last chunk
	over   chan struct{}
	status int
	err    error
	notes  tail
}

// tail keeps the first 64 KiB written to standard error.
type tail struct{ bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	if room := 64<<10 - t.Len(); room > 0 {
		t.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (r *run) cancel() { r.stop() }

func (r *run) close() {
	r.stop()
	r.drain()
}

// drain discards output that nobody reads.
func (r *run) drain() {
	go func() {
		for range r.chunks {
		}
	}()
}

type chunkWriter struct {
	ctx context.Context
	to  chan []byte
}

func (c chunkWriter) Write(b []byte) (int, error) {
	select {
	case c.to <- bytes.Clone(b):
		return len(b), nil
	case <-c.ctx.Done():
		return 0, c.ctx.Err()
	}
}

type runRequest struct {
	Args        []string          `json:"args"`
	Input       string            `json:"input"`
	Environment map[string]string `json:"environment"` // as in openRequest
}

//export goRun
func goRun(request *C.char, out *C.stoa_t, fail **C.char) C.int {
	var q runRequest
	err := ask(request, &q)
	if err == nil && len(q.Args) == 0 {
		err = fault.Invalidf("request: expected args, found none")
	}
	if err != nil {
		return answer(err, fail)
	}
	surround(q.Environment)
	ctx, stop := context.WithCancel(context.Background())
	r := &run{stop: stop, chunks: make(chan []byte, 4), over: make(chan struct{})}
	go r.do(ctx, q)
	*out = C.stoa_t(newHandle(r))
	return C.STOA_OK
}

func (r *run) do(ctx context.Context, q runRequest) {
	defer close(r.over)
	defer close(r.chunks)
	var err error
	r.status, err = func() (status int, err error) {
		status = 1
		defer guard(&err)
		return verbs.Run(stoa.Session(ctx), q.Args, strings.NewReader(q.Input), chunkWriter{ctx, r.chunks}, &r.notes)
	}()
	r.err = err
}

//export goRead
func goRead(h C.stoa_t, buffer *C.char, size, milliseconds C.int64_t) C.int64_t {
	r, done, err := held[*run](uint64(h))
	if err != nil || size < 0 {
		return -2
	}
	defer done()
	if len(r.rest) == 0 {
		var late <-chan time.Time
		if milliseconds >= 0 {
			timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case b, ok := <-r.chunks:
			if !ok {
				return 0
			}
			r.rest = b
		case <-late:
			return -1
		}
	}
	n := copy(unsafe.Slice((*byte)(unsafe.Pointer(buffer)), int(size)), r.rest)
	r.rest = r.rest[n:]
	return C.int64_t(n)
}

type runReport struct {
	Status   int       `json:"status"`
	Messages string    `json:"messages"`
	Error    *errorDoc `json:"error"`
}

//export goRunReport
func goRunReport(h C.stoa_t, out, fail **C.char) C.int {
	r, done, err := held[*run](uint64(h))
	if err != nil {
		return answer(err, fail)
	}
	defer done()
	r.drain()
	<-r.over
	d := runReport{r.status, strings.ToValidUTF8(r.notes.String(), "\uFFFD"), nil}
	if !verbs.Said(r.err) {
		d.Error = docOfError(r.err)
	}
	return give(out, d, nil, fail)
}
