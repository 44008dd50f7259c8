package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"stoa/fault"
)

// Options limit the requests of a Tree. The zero value is a good default.
type Options struct {
	MaxRequests int64 // maximum number of requests, including repeated ones; 0: no limit
	Tries       int   // maximum number of attempts at a request; 0: 8
	Keep        int64 // bytes of objects that are cached in memory; 0: 256 MiB
	AtATime     int   // maximum number of concurrent requests; 0: 32
	Cache       *Cache

	// Idle is how long an answer may make no progress, of 16 KiB or to its end, before the request is repeated; 0:
	// 30 s.
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
		o.Keep = 256 << 20
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

	mu      sync.Mutex
	used    Usage
	streaks [kinds]streak

	latency time.Duration // moving average of the time until the answer to a Get begins; 0: not known
	rate    float64       // moving average of the bytes a second of one answer to a Get; 0: not known
	held    int64         // bytes of ranges that will be read soon
	ahead   map[*stream]bool
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

func (a *requester) streak(k Kind) streak {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streaks[k]
}

// attempts returns how often a request may be attempted: only once after one has failed for good.
func (a *requester) attempts(k Kind) int {
	if a.streak(k).recent() {
		return 1
	}
	return a.Tries
}

func (a *requester) ended(k Kind, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streaks[k] = a.streaks[k].ended(err)
}

func (a *requester) watched(ctx context.Context,
	do func(ctx context.Context, alive func(io.Reader) io.Reader) error) error {
	return watched(ctx, a.Idle, do)
}

func newRequester(o Options) *requester {
	o = o.withDefaults()
	return &requester{Options: o, slots: make(chan struct{}, o.AtATime), ahead: map[*stream]bool{}}
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
		if err := a.streak(k).givenUp(); err != nil {
			return err
		}
		end, err := a.begin(ctx, k, failed > 0)
		if err != nil {
			return err
		}
		progress, err := do(ctx)
		end()
		if err != nil && ctx.Err() != nil { // what was answered meanwhile is done
			return ctx.Err()
		}
		after, again := repeat(err)
		if err == nil || !again {
			a.ended(k, nil)
			return err
		}
		if progress {
			failed = 0
		}
		if failed++; failed >= a.attempts(k) {
			took := time.Since(from).Round(100 * time.Millisecond)
			err = fmt.Errorf("%w (the last of %d attempts in %s)", err, failed, took)
			a.ended(k, err)
			return err
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

// step is how many bytes of an answer are read at a time.
const step = 256 << 10

// get fills p from off on, and tells arrived how many more bytes are there; arrived may be nil. After a truncated
// answer it continues where that ended.
func (a *requester) get(ctx context.Context, c Client, o Object, version string, p []byte, off int64,
	arrived func(n int)) error {
	n := 0
	err := a.try(ctx, Get, func(ctx context.Context) (bool, error) {
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
			begun, had := time.Now(), n
			defer func() { a.arrival(n-had, time.Since(begun)) }()
			for r := alive(body); n < len(p) && err == nil; {
				var k int
				k, err = io.ReadFull(r, p[n:min(n+step, len(p))])
				n += k
				if a.received(k); arrived != nil {
					arrived(k)
				}
			}
			if n == len(p) {
				return nil
			}
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = errTruncated
			}
			return err
		})
		return n-had >= leastProgress, err
	})
	return gone(err)
}

// errNoRanges means that the store sent an object from its beginning, although another range was requested.
var errNoRanges = &Error{Reason: "the server does not support range requests"}

// cacheHit counts bytes that were read from the cache.
func (a *requester) cacheHit(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Cached += n
}

// Read-ahead: a sequential read of an object, or of a column in it, waits for an answer at each call, and latency is
// the same for few bytes as for many. So the bytes after those that were read are requested in advance: as many as the
// stream has read so far, within limits. All streams share what the cache holds, as data that are dropped before they
// are read have to be requested twice. Where latency is low there is no read-ahead.
//
// Several workers that read one column take turns: each reads a few megabytes, then continues after those of the
// others. They are one stream, which is requested in advance once for all of them.
const (
	maxStreams       = 64                   // streams per object
	minReadAhead     = 1 << 20              // bytes
	maxReadAhead     = 32 << 20             // bytes per stream
	minShare         = 256 << 10            // bytes of the cache per stream below which nothing is read ahead
	readAheadRequest = 8 << 20              // bytes per request, so that several run in parallel
	fastAnswer       = 2 * time.Millisecond // latency below which nothing is read ahead
	idleStream       = 5 * time.Second      // after which a stream no longer counts
)

// A stream may skip as many bytes as arrive while another request would wait for its answer, within these limits.
const (
	minGap = 64 << 10
	maxGap = 1 << 20
)

// stream is a sequential read of an object. Several can be in progress, one per column. All fields but begin and end
// are guarded by requester.mu.
type stream struct {
	begin, end int64
	passage
	read      int64     // bytes that it has read
	requested int64     // offset up to which data were requested in advance
	used      time.Time // when it was last read
	held      []*run    // requested in advance and not read yet
}

// reaches reports whether a read at an offset continues the stream, or is one of another worker further ahead.
func (w *stream) reaches(off, gap int64) bool { return off <= w.next+gap || off < w.requested }

// readAhead records that n bytes from off on are read, and requests what is likely to be read next.
func (o *object) readAhead(ctx context.Context, off, n int64) {
	if o.Size > smallObject && o.spooled() == nil {
		o.startRuns(ctx, o.follow(off, n))
	}
}

// follow finds the stream that a read continues, and returns the runs to read ahead.
func (o *object) follow(off, n int64) []*run {
	a := o.root.requests
	gap := a.gap()
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.foreseen, func(f *foreseen) bool { return f.whole(off, n) }) {
		return nil
	}
	i, end := o.streamAt(off, gap)
	if i < 0 {
		o.addStream(&stream{begin: off, end: end, passage: passage{next: off + n}, read: n})
		return nil
	}
	w := o.streams[i]
	o.streams = append(slices.Delete(o.streams, i, i+1), w)
	from, to := a.advance(w, off, n, gap, o.root.cache.max)
	var mine []*run
	if from < to {
		mine = o.planAhead(from/blockSize, (to-1)/blockSize)
		a.holdRuns(w, mine)
	}
	o.join(w, gap)
	return mine
}

// streamAt returns the stream that a read continues, or -1 and where a new one ends. The caller holds mu.
func (o *object) streamAt(off, gap int64) (i int, end int64) {
	a := o.root.requests
	a.mu.Lock()
	defer a.mu.Unlock()
	end = o.Size
	for i, w := range o.streams {
		if off < w.begin || off >= w.end {
			continue
		}
		if w.reaches(off, gap) {
			return i, w.end
		}
		end = min(end, w.end)
	}
	return -1, end
}

// join makes one stream of w and those that it has reached. The caller holds mu.
func (o *object) join(w *stream, gap int64) {
	a := o.root.requests
	a.mu.Lock()
	defer a.mu.Unlock()
	o.streams = slices.DeleteFunc(o.streams, func(x *stream) bool {
		if x == w || x.end != w.end || x.begin < w.begin || !w.reaches(x.begin, gap) {
			return false
		}
		w.pass(x.begin, x.next, gap)
		w.behind = append(w.behind, x.behind...)
		w.read += x.read
		w.requested = max(w.requested, x.requested)
		w.held = append(w.held, x.held...)
		delete(a.ahead, x)
		return true
	})
}

// addStream adds a stream. The caller holds mu.
func (o *object) addStream(w *stream) {
	if len(o.streams) == maxStreams {
		o.root.requests.endStream(o.streams[0])
		o.streams = o.streams[1:]
	}
	o.streams = append(o.streams, w)
}

// planAhead returns runs for the blocks from from to last that were not requested yet. The caller holds mu.
func (o *object) planAhead(from, last int64) (out []*run) {
	const blocks = readAheadRequest / blockSize
	for ; from <= last; from += blocks {
		out = append(out, o.planRuns(from, min(from+blocks-1, last), readAheadRequest)...)
	}
	return out
}

// advance records a read of a stream, and returns the range to request in advance; kept is the size of the cache.
func (a *requester) advance(w *stream, off, n, gap, kept int64) (from, to int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	front := w.next
	w.read += max(off+n-max(off, w.next), 0)
	w.pass(off, off+n, gap)
	w.used = time.Now()
	w.release(func(r *run) bool { return w.isRead(r.off, r.off+int64(len(r.buf))) })
	if w.next >= w.end && len(w.behind) == 0 {
		a.end(w)
		return 0, 0
	}
	if a.latency < fastAnswer || w.next == front {
		return 0, 0
	}
	a.ahead[w] = true
	for s := range a.ahead {
		if w.used.Sub(s.used) > idleStream {
			a.end(s)
		}
	}
	share := (budgetOf(kept) - a.held) / int64(len(a.ahead))
	if share < minShare {
		return 0, 0
	}
	window := min(max(w.read, minReadAhead), maxReadAhead, share-w.abandon(share/2))
	from, to = max(w.requested, w.next), min(w.next+window, w.end)
	if to-from < window/2 && to < w.end {
		return 0, 0
	}
	w.requested = max(w.requested, to)
	return from, to
}

// endStream forgets a stream.
func (a *requester) endStream(w *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(w)
}

// end is endStream. The caller holds mu.
func (a *requester) end(w *stream) {
	delete(a.ahead, w)
	w.requested, w.behind = 0, nil
	w.release(func(*run) bool { return true })
}

// holdRuns keeps what a stream requested in advance until it has been read.
func (a *requester) holdRuns(w *stream, runs []*run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range runs {
		r.held.Add(1)
	}
	w.held = append(w.held, runs...)
}

// release lets the cache drop runs.
func (w *stream) release(over func(*run) bool) {
	w.held = slices.DeleteFunc(w.held, func(r *run) bool {
		if !over(r) {
			return false
		}
		r.held.Add(-1)
		return true
	})
}

// budgetOf returns how many bytes of a cache may have been requested in advance.
func budgetOf(kept int64) int64 { return kept / 4 * 3 }

// gap returns how many bytes are requested and not used rather than that another request is made.
func (a *requester) gap() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rate == 0 {
		return maxGap
	}
	return min(max(int64(a.latency.Seconds()*a.rate), minGap), maxGap)
}

// arrival updates the rate at which the bytes of an answer arrive.
func (a *requester) arrival(n int, took time.Duration) {
	if n < minGap || took <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	rate := float64(n) / took.Seconds()
	if a.rate == 0 {
		a.rate = rate
	}
	a.rate += (rate - a.rate) / 4
}
