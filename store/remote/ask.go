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

// Options say how much a Tree may ask. The zero value is right for most.
type Options struct {
	MaxRequests int64 // requests at most, repeated ones counted; 0: any number
	Tries       int   // how often a request is made that fails; 0: 8
	Keep        int64 // bytes of objects that are kept in memory; 0: 64 MiB
	AtATime     int   // requests at a time; 0: 32
	Cache       *Cache

	// Idle is how long an answer may stop before the request is made anew; 0: 30 s.
	Idle time.Duration
	// Wait is how long the first pause between two tries is on average; the others are twice as long as the one before,
	// 5 s at most. 0: 50 ms.
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
	longestWait = 5 * time.Second  // between two tries
	longestAsk  = 30 * time.Second // that a store may ask us to wait
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

// Usage is what was asked of the stores.
type Usage struct {
	Requests [kinds]int64
	Repeated int64                // of these, because one failed before
	Bytes    int64                // of objects, received
	Sent     int64                // of objects
	Cached   int64                // that the cache had
	Waited   [kinds]time.Duration // until answers were complete, those of several requests at a time added up
}

// All is the number of all requests.
func (u Usage) All() (n int64) {
	for _, k := range u.Requests {
		n += k
	}
	return n
}

// asker makes requests, repeats them, and counts.
type asker struct {
	Options
	slots chan struct{}

	mu     sync.Mutex
	used   Usage
	gaveUp time.Time // when a request had failed too often

	latency time.Duration // of a Get until its answer begins, on average, recent ones counting more; 0: not known
	ahead   int64         // bytes that are being read before anybody asked for them
}

// answered notes how long an answer let us wait.
func (a *asker) answered(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latency == 0 {
		a.latency = took
	}
	a.latency += (took - a.latency) / 4
}

// patience is how often a request is made: only once for a while after one failed to the end, as whoever reads asks for
// many things, and should not wait for each.
func (a *asker) patience() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.gaveUp) < 10*time.Second {
		return 1
	}
	return a.Tries
}

// ended notes whether a request came to an answer.
func (a *asker) ended(answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gaveUp = (time.Time{}); !answered {
		a.gaveUp = time.Now()
	}
}

func newAsker(o Options) *asker {
	o = o.withDefaults()
	return &asker{Options: o, slots: make(chan struct{}, o.AtATime)}
}

func (a *asker) usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

func (a *asker) received(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Bytes += int64(n)
}

// begin waits for a free place, and counts a request.
func (a *asker) begin(ctx context.Context, k Kind, again bool) (end func(), err error) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
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

// errCut is why an attempt is made again that was not answered wrongly, but not to its end.
var errCut = errors.New("the answer ended before its end")

// try makes a request until it succeeds, fails for good, or has failed too often. Progress that one makes (do says so)
// gives it its tries back: a long object over a bad line comes in the end.
func (a *asker) try(ctx context.Context, k Kind, do func(ctx context.Context) (progress bool, err error)) error {
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
		if failed++; failed >= a.patience() {
			a.ended(false)
			took := time.Since(from).Round(100 * time.Millisecond)
			return fmt.Errorf("%w (the last of %d tries in %s)", err, failed, took)
		}
		select {
		case <-time.After(a.pause(failed, after)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause is how long to wait after so many failures: a random time, so that those who failed together do not come back
// together.
func (a *asker) pause(failed int, asked time.Duration) time.Duration {
	most := min(a.Wait<<failed, longestWait)
	return max(rand.N(most)+1, min(asked, longestAsk))
}

// repeat reports whether a request that failed should be made again. What the client does not know is the line's fault.
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

// idle ends a request that makes no progress for too long.
type idle struct {
	io.Reader
	timer *time.Timer
	after time.Duration
}

func (i *idle) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if n > 0 {
		i.timer.Reset(i.after)
	}
	return n, err
}

var errStalled = &Error{Again: true, Reason: "no answer for too long"}

// watched calls do with a context that ends when nothing happens for too long.
func (a *asker) watched(ctx context.Context,
	do func(ctx context.Context, alive func(io.Reader) io.Reader) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(a.Idle, func() { cancel(errStalled) })
	defer timer.Stop()
	err := do(inner, func(r io.Reader) io.Reader { return &idle{r, timer, a.Idle} })
	if err != nil && ctx.Err() == nil && context.Cause(inner) == error(errStalled) {
		return errStalled
	}
	return err
}

// list asks for all pages of a prefix, up to about most keys; whole: there were no more.
func (a *asker) list(ctx context.Context, c Client, prefix string, shallow bool, most int) (all []Object, whole bool,
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
		if len(all) >= most {
			return all, false, nil
		}
		after = page[len(page)-1].Key
	}
}

func (a *asker) head(ctx context.Context, c Client, key, version string) (o Object, err error) {
	err = a.try(ctx, Head, func(ctx context.Context) (bool, error) {
		return false, a.watched(ctx, func(ctx context.Context, _ func(io.Reader) io.Reader) (err error) {
			o, err = c.Head(ctx, key, version)
			return err
		})
	})
	return o, err
}

// get fills p from off on. An answer that is cut off is continued where it ended.
func (a *asker) get(ctx context.Context, c Client, o Object, version string, p []byte, off int64) error {
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
			if err := same(o, body.Object); err != nil {
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
				err = errCut
			}
			return err
		})
		return n > had, err
	})
}

// same is an error if an answer is about another object than the one that was asked for, as far as it says.
func same(want, got Object) error {
	if want.Stamp != "" && got.Stamp != "" && want.Stamp != got.Stamp ||
		want.Size >= 0 && got.Size >= 0 && want.Size != got.Size {
		return &Error{Kind: store.ErrChanged, Reason: "the object changed"}
	}
	return nil
}

// errNoRanges says that a store gave an object from its beginning although something else was asked for.
var errNoRanges = &Error{Reason: "the server knows no ranges"}

// found counts bytes that the cache had.
func (a *asker) found(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Cached += n
}
