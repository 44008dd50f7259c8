package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"stoa/fault"
	"stoa/store"
)

// Options limit the requests of a Tree. The zero value is a good default.
type Options struct {
	MaxRequests int64 // maximum number of requests, including repeated ones; 0: no limit
	Tries       int   // maximum number of attempts at a request; 0: 8
	Keep        int64 // bytes of objects that are cached in memory; 0: 64 MiB
	AtATime     int   // maximum number of concurrent requests; 0: 32
	Cache       *Cache

	// Idle is how long an answer may make no progress before the request is repeated; 0: 30 s.
	Idle time.Duration
	// Wait is the average pause after the first failed attempt. Each following one is twice as long as the previous
	// one, at most 5 s. 0: 50 ms.
	Wait time.Duration
}

func (o Options) withDefaults() Options {
	if o.Tries == 0 {
		o.Tries = 8
	}
	if o.Keep == 0 {
		o.Keep = 64 << 20
	}
	if o.AtATime == 0 {
		o.AtATime = 32
	}
	if o.Idle == 0 {
		o.Idle = 30 * time.Second
	}
	if o.Wait == 0 {
		o.Wait = 50 * time.Millisecond
	}
	return o
}

const (
	longestWait = 5 * time.Second  // between two attempts
	longestAsk  = 30 * time.Second // maximum Retry-After of a store that is respected
)

// Kind is what a request is for.
type Kind int

// The kinds of requests.
const (
	Listing Kind = iota
	Head
	Get
	kindsOfReading

	kinds = kindsOfReading + 2 // see write.go
)

func (k Kind) String() string { return [kinds]string{"list", "head", "get", "put", "delete"}[k] }

// Usage is the number and size of requests to the stores.
type Usage struct {
	Requests [kinds]int64
	Repeated int64                // how many of these followed a failed attempt
	Bytes    int64                // of objects, received
	Sent     int64                // of objects
	Cached   int64                // read from the cache
	Waited   [kinds]time.Duration // until answers were complete; concurrent requests each count
}

// All returns the total number of requests.
func (u Usage) All() (n int64) {
	for _, k := range u.Requests {
		n += k
	}
	return n
}

// requester makes and counts requests, and repeats failed ones.
type requester struct {
	Options
	slots chan struct{}

	mu       sync.Mutex
	used     Usage
	failedAt time.Time // when the last request failed for good

	latency time.Duration // moving average of the time until the answer to a Get begins; 0: not known
	ahead   int64         // bytes that are being read ahead
}

// answered updates the latency.
func (a *requester) answered(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latency == 0 {
		a.latency = took
	}
	a.latency += (took - a.latency) / 4
}

// attempts returns how often a request may be attempted: only once in the ten seconds after one has failed for good, as
// readers make many requests and should not wait for each to fail in turn.
func (a *requester) attempts() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.failedAt) < 10*time.Second {
		return 1
	}
	return a.Tries
}

// ended records whether a request was finally answered.
func (a *requester) ended(answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failedAt = (time.Time{}); !answered {
		a.failedAt = time.Now()
	}
}

func newRequester(o Options) *requester {
	o = o.withDefaults()
	return &requester{Options: o, slots: make(chan struct{}, o.AtATime)}
}

func (a *requester) usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

func (a *requester) received(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Bytes += int64(n)
}

// begin waits for a free slot, and counts a request.
func (a *requester) begin(ctx context.Context, k Kind, again bool) (end func(), err error) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // a slot was free, too
		<-a.slots
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.MaxRequests > 0 && a.used.All() >= a.MaxRequests {
		<-a.slots
		return nil, fault.Limitf(fault.Span{}, "", "it takes more than %d requests (request limit)", a.MaxRequests)
	}
	a.used.Requests[k]++
	if again {
		a.used.Repeated++
	}
	from := time.Now()
	return func() {
		<-a.slots
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used.Waited[k] += time.Since(from)
	}, nil
}

// errTruncated is the error of an answer that is correct but incomplete. The request is repeated.
var errTruncated = errors.New("the answer was truncated")

// try makes a request until it succeeds, fails for good, or has failed too often. An attempt for which do reports
// progress resets the count, so that a large object arrives even over a bad line.
func (a *requester) try(ctx context.Context, k Kind, do func(ctx context.Context) (progress bool, err error)) error {
	from := time.Now()
	for failed := 0; ; {
		end, err := a.begin(ctx, k, failed > 0)
		if err != nil {
			return err
		}
		progress, err := do(ctx)
		end()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		after, again := repeat(err)
		if err == nil || !again {
			a.ended(true)
			return err
		}
		if progress {
			failed = 0
		}
		if failed++; failed >= a.attempts() {
			a.ended(false)
			took := time.Since(from).Round(100 * time.Millisecond)
			return fmt.Errorf("%w (the last of %d attempts in %s)", err, failed, took)
		}
		select {
		case <-time.After(a.pause(failed, after)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause returns how long to wait after a number of failures: a random time, so that clients that failed together do not
// retry together, and at least what the store asks for, within limits.
func (a *requester) pause(failed int, asked time.Duration) time.Duration {
	const maxShift = 10 // more could overflow
	limit := min(a.Wait<<min(failed, maxShift), longestWait)
	return max(rand.N(limit)+1, min(asked, longestAsk))
}

// repeat reports whether a failed request should be repeated, and after which pause the store asks for. Errors that do
// not come from the store are attributed to the connection.
func repeat(err error) (after time.Duration, again bool) {
	var e *Error
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &e):
		return e.After, e.Again
	}
	return 0, !errors.As(err, new(*fault.Error)) && !isMissing(err) && !isDenied(err)
}

// idleReader restarts the timer of a request whenever data arrive.
type idleReader struct {
	io.Reader
	timer *time.Timer
	after time.Duration
}

func (i *idleReader) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if n > 0 {
		i.timer.Reset(i.after)
	}
	return n, err
}

var errStalled = &Error{Again: true, Reason: "timeout: the answer made no progress"}

// watched calls do with a context that is cancelled if there is no progress for Idle.
func (a *requester) watched(ctx context.Context,
	do func(ctx context.Context, alive func(io.Reader) io.Reader) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(a.Idle, func() { cancel(errStalled) })
	defer timer.Stop()
	err := do(inner, func(r io.Reader) io.Reader { return &idleReader{r, timer, a.Idle} })
	if err != nil && ctx.Err() == nil && context.Cause(inner) == error(errStalled) {
		return errStalled
	}
	return err
}

// list lists the keys with a prefix, page by page, up to roughly limit keys. whole reports whether these are all.
func (a *requester) list(ctx context.Context, c Client, prefix string, shallow bool, limit int) (all []Object,
	whole bool,
	err error) {
	for after := ""; ; {
		var page []Object
		var more bool
		err := a.try(ctx, Listing, func(ctx context.Context) (bool, error) {
			return false, a.watched(ctx, func(ctx context.Context, _ func(io.Reader) io.Reader) (err error) {
				page, more, err = c.List(ctx, prefix, after, shallow)
				return err
			})
		})
		if err != nil {
			return nil, false, err
		}
		all = append(all, page...)
		if !more || len(page) == 0 {
			return all, true, nil
		}
		if len(all) >= limit {
			return all, false, nil
		}
		after = page[len(page)-1].Key
	}
}

func (a *requester) head(ctx context.Context, c Client, key, version string) (o Object, err error) {
	err = a.try(ctx, Head, func(ctx context.Context) (bool, error) {
		return false, a.watched(ctx, func(ctx context.Context, _ func(io.Reader) io.Reader) (err error) {
			o, err = c.Head(ctx, key, version)
			return err
		})
	})
	return o, err
}

// get fills p from off on. After a truncated answer it continues where that ended.
func (a *requester) get(ctx context.Context, c Client, o Object, version string, p []byte, off int64) error {
	n := 0
	return a.try(ctx, Get, func(ctx context.Context) (bool, error) {
		had := n
		err := a.watched(ctx, func(ctx context.Context, alive func(io.Reader) io.Reader) error {
			from := time.Now()
			body, err := c.Get(ctx, o, version, off+int64(n), int64(len(p)-n))
			if err != nil {
				return err
			}
			a.answered(time.Since(from))
			defer body.Close()
			if err := sameObject(o, body.Object); err != nil {
				return err
			}
			if body.Off != off+int64(n) {
				return errNoRanges
			}
			k, err := io.ReadFull(alive(body), p[n:])
			n += k
			a.received(k)
			if n == len(p) {
				return nil
			}
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = errTruncated
			}
			return err
		})
		return n > had, err
	})
}

// sameObject returns an error if an answer has a different stamp or size from the object that was requested.
func sameObject(want, got Object) error {
	if want.Stamp != "" && got.Stamp != "" && want.Stamp != got.Stamp ||
		want.Size >= 0 && got.Size >= 0 && want.Size != got.Size {
		return &Error{Kind: store.ErrChanged, Reason: "the object changed"}
	}
	return nil
}

// errNoRanges means that the store sent an object from its beginning, although another range was requested.
var errNoRanges = &Error{Reason: "the server does not support range requests"}

// cacheHit counts bytes that were read from the cache.
func (a *requester) cacheHit(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Cached += n
}
