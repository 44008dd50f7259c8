package remote

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"stoa/store"
)

const (
	blockSize    = 64 << 10 // unit of requests and of the cache
	smallObject  = 1 << 20  // objects of up to this many bytes are read whole
	siblingSize  = 256 << 10
	maxSiblings  = 512     // siblings that are looked at when an object is read
	siblingsEach = 16      // of which so many are requested along with it
	maxRun       = 4 << 20 // maximum number of bytes per request
)

// source is an open object.
type source struct {
	o        *object
	name     string
	failures *failures
}

func (s *source) Size() int64  { return s.o.Size }
func (s *source) Close() error { return nil }

// ReadAt reads from the cache, or requests blocks. io.EOF means the end of the object, never that of an answer.
func (s *source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off >= s.o.Size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), s.o.Size-off)]
	s.o.readAhead(ctx, off, int64(len(want)))
	n, err := s.o.readAt(ctx, want, off)
	if err != nil {
		if n > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return n, s.failures.note(ctx, pathError("read", s.name, err))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// run is the data of one request: consecutive blocks of an object.
type run struct {
	o    *object
	off  int64
	buf  []byte
	done chan struct{}

	cached bool  // it is, or was, in the cache on disk
	err    error // valid after done
}

// readAt fills p, which must lie within the object.
func (o *object) readAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		if whole := o.spooled(); whole != nil {
			return whole.ReadAt(ctx, p, off)
		}
		b, err := o.block(ctx, (off+int64(n))/blockSize, (off+int64(len(p))-1)/blockSize)
		if err == errNoRanges {
			if err = o.spool(ctx); err != nil {
				return 0, err
			}
			n = 0
			continue
		}
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b[(off+int64(n))%blockSize:])
	}
	return n, nil
}

// block returns block k, and requests with it any missing blocks up to last.
func (o *object) block(ctx context.Context, k, last int64) ([]byte, error) {
	for try := 0; ; try++ {
		o.mu.Lock()
		r := o.runs[k]
		var mine []*run
		if r == nil {
			first := o.runs == nil
			mine = o.plan(k, last)
			if end := (o.Size - 1) / blockSize; first && o.Size > smallObject {
				mine = append(mine, o.plan(end, end)...) // where most formats start to read
			}
			r = o.runs[k]
		}
		o.mu.Unlock()
		o.startRuns(ctx, mine)
		o.fetchSiblings(ctx)
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if r.err == nil {
			o.root.cache.touch(r)
			b := r.buf[k*blockSize-r.off:]
			return b[:min(len(b), blockSize)], nil
		}
		// another caller's request may have failed because that caller gave up
		if len(mine) > 0 || try > 3 || ctx.Err() != nil {
			return nil, r.err
		}
	}
}

// plan returns runs for the missing blocks from k to last, or of a small object for all blocks. The caller holds mu.
func (o *object) plan(k, last int64) (out []*run) {
	end := (o.Size + blockSize - 1) / blockSize
	if last++; o.Size <= smallObject {
		k, last = 0, end
	}
	if last == end && o.Size%blockSize < blockSize/2 { // metadata at the end probably start before a short last block
		k = min(k, max(end-2, 0))
	}
	if o.runs == nil {
		o.runs = map[int64]*run{}
	}
	for ; k < last; k++ {
		if o.runs[k] != nil {
			continue
		}
		r := &run{o: o, off: k * blockSize, done: make(chan struct{})}
		if x, ok := o.cachedBlock(k); ok {
			r.off, r.cached, r.buf = x.off, true, make([]byte, x.n)
			for b := x.off / blockSize; b*blockSize < x.off+x.n; b++ {
				if o.runs[b] == nil {
					o.runs[b] = r
				}
			}
			out = append(out, r)
			continue
		}
		to := k
		for ; to < last && o.runs[to] == nil && (to-k)*blockSize < maxRun; to++ {
			if _, ok := o.cachedBlock(to); ok {
				break
			}
			o.runs[to] = r
		}
		r.buf = make([]byte, min(to*blockSize, o.Size)-r.off)
		out = append(out, r)
		k = to - 1
	}
	return out
}

// startRuns starts the requests for runs, in parallel.
func (o *object) startRuns(ctx context.Context, runs []*run) {
	for _, r := range runs {
		go func() {
			r.err = o.fetch(r, func() error {
				return o.root.requests.get(ctx, o.root.client, o.Object, o.version, r.buf, r.off)
			})
			if r.err != nil {
				o.forget(r)
				if errors.Is(r.err, store.ErrChanged) {
					o.root.changed(o)
				}
			} else {
				o.root.cache.add(r)
			}
			close(r.done)
		}()
	}
}

// forget drops a run: its blocks are requested again when they are needed.
func (o *object) forget(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := r.off / blockSize; k*blockSize < r.off+int64(len(r.buf)); k++ {
		if o.runs[k] == r {
			delete(o.runs, k)
		}
	}
}

// changed forgets an object that has changed, so that its new stamp is looked up.
func (r *root) changed(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.Key] == o {
		delete(r.objects, o.Key)
		r.entered[o.Key] = true
	}
}

// kind returns what siblings have in common: the extension.
func kind(key string) string { return path.Ext(path.Base(key)) }

// fetchSiblings also requests objects of the same kind in the same directory, the first time that an object is read:
// programs that read one metadata file usually read all. Each object that is read brings some, so that soon all of them
// are under way if all are read, and few are requested in vain if few are. Of large objects it requests the beginning
// and the end, where formats have their metadata.
func (o *object) fetchSiblings(ctx context.Context) {
	o.mu.Lock()
	asked := o.asked
	o.asked = true
	o.mu.Unlock()
	if asked {
		return
	}
	left, n := o.root.cache.max/4, 0
	for _, k := range o.root.siblingsOf(o) {
		k.mu.Lock()
		var runs []*run
		if end := (k.Size - 1) / blockSize; k.Size > 0 && !k.asked && !k.along && len(k.runs) == 0 {
			switch {
			case k.Size <= siblingSize:
				runs = k.plan(0, end)
			case k.Size > smallObject && o.Size > smallObject:
				runs = append(k.plan(0, 0), k.plan(end, end)...)
			}
			k.along = len(runs) > 0
		}
		k.mu.Unlock()
		if len(runs) == 0 {
			continue
		}
		k.startRuns(ctx, runs)
		for _, r := range runs {
			left -= int64(len(r.buf))
		}
		if n++; left < 0 || n == siblingsEach {
			return
		}
	}
}

// siblingsOf returns the objects of the same kind in the directory of o, starting with those after it.
func (r *root) siblingsOf(o *object) (out []*object) {
	dir, like := dirOf(o.Key), kind(o.Key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ofInterest(o.Key) {
		return nil
	}
	all := r.dirs[dir]
	from, _ := slices.BinarySearchFunc(all, path.Base(o.Key), func(c child, base string) int {
		return strings.Compare(c.base, base)
	})
	for i := range all {
		c := all[(from+1+i)%len(all)]
		if c.o != nil && c.o != o && kind(c.base) == like {
			if out = append(out, c.o); len(out) == maxSiblings {
				break
			}
		}
	}
	return out
}

// ofInterest reports whether a key is below an address that was entered.
func (r *root) ofInterest(key string) bool {
	for k := range r.named {
		if k != key && within(key, k) {
			return true
		}
	}
	return false
}

// cachedBlock returns the cached range that contains block k. The caller holds mu.
func (o *object) cachedBlock(k int64) (extent, bool) {
	c := o.root.requests.Cache
	if c == nil {
		return extent{}, false
	}
	if !o.cacheRead {
		o.cacheRead = true
		o.cacheDir = c.dirOf(o.root.addr, o.Object, o.version)
		o.cached = extents(o.cacheDir)
	}
	for _, x := range o.cached {
		if x.off%blockSize == 0 && x.off <= k*blockSize && min((k+1)*blockSize, o.Size) <= x.off+x.n {
			return x, true
		}
	}
	return extent{}, false
}

// fetch fills a run from the cache, or by a request whose data it then caches.
func (o *object) fetch(r *run, get func() error) error {
	c := o.root.requests.Cache
	x := extent{r.off, int64(len(r.buf))}
	if c == nil || o.cacheDir == "" {
		return get()
	}
	if r.cached && c.load(o.cacheDir, x, r.buf) {
		o.root.requests.cacheHit(x.n)
		return nil
	}
	err := get()
	if err == nil {
		c.save(o.cacheDir, x, r.buf)
	}
	return err
}
