package remote

import (
	"context"
	"slices"
	"time"
)

// Reading ahead: whoever reads an object in order, a column of it or all, waits for an answer with every read, and an
// answer takes as long for a few bytes as for many. So what comes next is asked for before it is wanted: the more of a
// way was taken, the more, and never more than was. Where answers come at once, nothing is.
const (
	mostWays   = 64                   // of one object
	mostGap    = 1 << 20              // that is read over: asking anew for what comes after it takes longer
	leastAhead = 1 << 20              // bytes
	mostAhead  = 16 << 20             // bytes of one way
	aheadRun   = 4 << 20              // bytes of one request, so that several are on their way
	soonEnough = 2 * time.Millisecond // an answer for which nothing is read ahead
)

// way is a reader's through an object.
type way struct {
	next   int64 // where it will go on
	taken  int64 // bytes that were read on it
	asked  int64 // up to here what comes next was asked for
	begins int64
}

// readAhead notes that n bytes from off on are read, and asks for what is likely to be read after them.
func (o *object) readAhead(ctx context.Context, off, n int64) {
	if o.Size <= small || o.spooled() != nil {
		return
	}
	runs := o.follow(off, n)
	for _, r := range runs {
		o.root.ask.aheadBy(int64(len(r.buf)))
		go func() { // it is counted until it is there
			<-r.done
			o.root.ask.aheadBy(-int64(len(r.buf)))
		}()
	}
	o.ask(ctx, runs)
}

// follow finds the way that a read continues, and plans what comes next.
func (o *object) follow(off, n int64) []*run {
	room := o.root.ask.roomAhead(o.root.keep.most)
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.ways, func(w way) bool { return off >= w.begins && off <= w.next+mostGap })
	if i < 0 {
		if len(o.ways) == mostWays {
			o.ways = o.ways[1:]
		}
		o.ways = append(o.ways, way{begins: off, next: off + n, taken: n})
		return nil
	}
	w := o.ways[i]
	o.ways = append(slices.Delete(o.ways, i, i+1), w)
	at := &o.ways[len(o.ways)-1]
	if off+n <= at.next {
		return nil
	}
	at.taken += off + n - max(off, at.next)
	at.next = off + n
	from, to := max(at.asked, at.next), min(at.next+min(max(at.taken, leastAhead), mostAhead), o.Size)
	if room <= 0 || to-from < leastAhead && to < o.Size || from >= to {
		return nil
	}
	to = min(to, from+room)
	at.asked = to
	return o.planAhead(from/blockSize, (to-1)/blockSize)
}

// planAhead makes runs of blocks from to last that are not there. The caller holds mu.
func (o *object) planAhead(from, last int64) (out []*run) {
	const blocks = aheadRun / blockSize
	for ; from <= last; from += blocks {
		out = append(out, o.plan(from, min(from+blocks-1, last))...)
	}
	return out
}

// aheadBy counts bytes that are read ahead.
func (a *asker) aheadBy(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ahead += n
}

// roomAhead is how many bytes may be read ahead now, of what is kept of a store.
func (a *asker) roomAhead(kept int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latency < soonEnough {
		return 0
	}
	return kept/2 - a.ahead
}
