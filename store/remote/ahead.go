package remote

import (
	"context"
	"slices"
	"time"
)

// Read-ahead: a sequential read of an object, or of a column in it, waits for an answer at each call, and latency is
// the same for few bytes as for many. So the bytes after those that were read are requested in advance: as many as the
// stream has read so far, within limits. Where latency is low there is no read-ahead.
const (
	maxStreams       = 64                   // streams per object
	maxGap           = 1 << 20              // bytes that a stream may skip, because another request would take longer
	minReadAhead     = 1 << 20              // bytes
	maxReadAhead     = 16 << 20             // bytes per stream
	readAheadRequest = 4 << 20              // bytes per request, so that several run in parallel
	fastAnswer       = 2 * time.Millisecond // latency below which nothing is read ahead
)

// stream is a sequential read of an object. Several can be in progress, one per column.
type stream struct {
	next      int64 // offset at which it continues
	read      int64 // bytes that it has read
	requested int64 // offset up to which data were requested in advance
	begin     int64
}

// readAhead records that n bytes from off on are read, and requests what is likely to be read next.
func (o *object) readAhead(ctx context.Context, off, n int64) {
	if o.Size <= smallObject || o.spooled() != nil {
		return
	}
	runs := o.follow(off, n)
	for _, r := range runs {
		o.root.requests.addAhead(int64(len(r.buf)))
		go func() { // counted until the data have arrived
			<-r.done
			o.root.requests.addAhead(-int64(len(r.buf)))
		}()
	}
	o.startRuns(ctx, runs)
}

// follow finds the stream that a read continues, and returns the runs to read ahead.
func (o *object) follow(off, n int64) []*run {
	room := o.root.requests.maxAhead(o.root.cache.max)
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.streams, func(w stream) bool { return off >= w.begin && off <= w.next+maxGap })
	if i < 0 {
		if len(o.streams) == maxStreams {
			o.streams = o.streams[1:]
		}
		o.streams = append(o.streams, stream{begin: off, next: off + n, read: n})
		return nil
	}
	w := o.streams[i]
	o.streams = append(slices.Delete(o.streams, i, i+1), w)
	at := &o.streams[len(o.streams)-1]
	if off+n <= at.next {
		return nil
	}
	at.read += off + n - max(off, at.next)
	at.next = off + n
	from, to := max(at.requested, at.next), min(at.next+min(max(at.read, minReadAhead), maxReadAhead), o.Size)
	if room <= 0 || to-from < minReadAhead && to < o.Size || from >= to {
		return nil
	}
	to = min(to, from+room)
	at.requested = to
	return o.planAhead(from/blockSize, (to-1)/blockSize)
}

// planAhead returns runs for the blocks from from to last that were not requested yet. The caller holds mu.
func (o *object) planAhead(from, last int64) (out []*run) {
	const blocks = readAheadRequest / blockSize
	for ; from <= last; from += blocks {
		out = append(out, o.plan(from, min(from+blocks-1, last))...)
	}
	return out
}

// addAhead adds n to the number of bytes that are being read ahead.
func (a *requester) addAhead(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ahead += n
}

// maxAhead returns how many bytes may be read ahead now; kept is the size of the cache.
func (a *requester) maxAhead(kept int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latency < fastAnswer {
		return 0
	}
	return kept/2 - a.ahead
}
