package remote

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"stoa/internal/sorted"
	"stoa/store"
)

const (
	blockSize    = 64 << 10 // unit of requests and of the cache
	smallObject  = 1 << 20  // objects of up to this many bytes are read whole
	siblingSize  = 256 << 10
	maxSiblings  = 512     // siblings that are looked at when an object is read
	siblingsEach = 16      // of which so many are requested along with it
	fewSiblings  = 64      // or all, if they are so few, and together a small object
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
		if errors.Is(err, store.ErrChanged) { // of which nobody need be told who does not read it
			s.o.root.changed(s.o)
		}
		return n, s.failures.noteRead(ctx, pathError("read", s.name, err))
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

	mu      sync.Mutex
	arrived int           // bytes of buf, while the request is under way
	more    chan struct{} // closed when more have arrived; nil: nobody waits

	held atomic.Int32 // by how many ranges that will be read soon
}

// progress says that n more bytes of buf have arrived.
func (r *run) progress(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.arrived += n; r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// wait waits until the first n bytes of buf have arrived, or the request has failed.
func (r *run) wait(ctx context.Context, n int) error {
	for {
		r.mu.Lock()
		if r.arrived >= n {
			r.mu.Unlock()
			return nil
		}
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		select {
		case <-r.done:
			return r.err
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
		from := int(k*blockSize - r.off)
		to := min(from+blockSize, len(r.buf))
		err := r.wait(ctx, to)
		if err == nil {
			o.root.cache.touch(r)
			return r.buf[from:to], nil
		}
		// another caller's request may have failed because that caller gave up
		if len(mine) > 0 || try > 3 || ctx.Err() != nil {
			return nil, err
		}
	}
}

// plan returns runs for the missing blocks from k to last, or of a small object for all blocks. The caller holds mu.
func (o *object) plan(k, last int64) (out []*run) { return o.planRuns(k, last, maxRun) }

// planRuns is plan with a maximum number of bytes per request.
func (o *object) planRuns(k, last, most int64) (out []*run) {
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
		for ; to < last && o.runs[to] == nil && (to-k)*blockSize < most; to++ {
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
				return o.root.requests.get(ctx, o.root.client, o.Object, o.version, r.buf, r.off, r.progress)
			})
			if r.err != nil {
				o.forget(r)
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
	for _, k := range o.root.firstOf(o) {
		left -= k.along1(ctx, o)
	}
	if o.root.unlike(o) {
		return
	}
	all := o.root.siblingsOf(o)
	most := siblingsEach
	if few(all) {
		most = fewSiblings
	}
	for _, k := range all {
		if got := k.along1(ctx, o); got > 0 {
			left -= got
			n++
		}
		if left < 0 || n == most {
			break
		}
	}
	o.root.sent(o, n)
}

// guess counts the objects of one kind in one directory that were requested because others were read, and those of them
// that were read, too.
type guess struct{ sent, used int }

func (r *root) guess(o *object) *guess {
	key := dirOf(o.Key) + "/" + kind(o.Key)
	if r.guesses[key] == nil {
		r.guesses[key] = &guess{}
	}
	return r.guesses[key]
}

// unlike counts that o is read, and reports whether most of what was requested along with others like it was not.
func (r *root) unlike(o *object) bool {
	o.mu.Lock()
	along := o.along
	o.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guess(o)
	if along {
		g.used++
	}
	return g.sent >= siblingsEach && 4*g.used < g.sent
}

func (r *root) sent(o *object, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guess(o).sent += n
}

// along1 requests an object, of a large one the beginning and the end, because o is read. It returns how many bytes it
// requests.
func (k *object) along1(ctx context.Context, o *object) (bytes int64) {
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
	k.startRuns(ctx, runs)
	for _, r := range runs {
		bytes += int64(len(r.buf))
	}
	return bytes
}

// few reports whether objects are so few and small that they are requested together.
func few(all []*object) bool {
	bytes := int64(0)
	for _, o := range all {
		bytes += o.Size
	}
	return len(all) <= fewSiblings && bytes <= smallObject
}

// firstOf returns what is requested when the first object of a place is read, because most verbs read it: everything,
// if that is little, else small objects that are alone of their kind in their directory, such as descriptions of it.
func (r *root) firstOf(o *object) (out []*object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.deep, func(d string) bool { return within(o.Key, d) })
	if i < 0 || r.begun[r.deep[i]] || !r.ofInterest(o.Key) {
		return nil
	}
	place := r.deep[i]
	r.begun[place] = true
	for key, x := range r.objects {
		if within(key, place) && x != o {
			out = append(out, x)
		}
	}
	if few(out) {
		return out
	}
	out = out[:0]
	for dir, all := range r.dirs {
		if dir != place && !within(dir, place) {
			continue
		}
		kinds := map[string]int{}
		for _, c := range all {
			kinds[kind(c.base)]++
		}
		for _, c := range all {
			if c.o != nil && c.o != o && c.o.Size <= blockSize && kinds[kind(c.base)] == 1 {
				out = append(out, c.o)
			}
		}
	}
	sorted.By(out, func(a, b *object) int { return strings.Compare(a.Key, b.Key) })
	return out[:min(len(out), siblingsEach)]
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
		r.progress(len(r.buf))
		o.root.requests.cacheHit(x.n)
		return nil
	}
	err := get()
	if err == nil {
		c.save(o.cacheDir, x, r.buf)
	}
	return err
}

const (
	maxJoined   = 64 << 20 // maximum number of bytes of a request for ranges that will be read soon
	minForeseen = 8 << 20  // bytes below which read-ahead needs as few requests
)

// foreseen are ranges of an object that will be read soon.
type foreseen struct {
	ranges []store.Range
	bytes  int64
	runs   []*run
}

// whole reports whether a range is among those that will be read soon.
func (f *foreseen) whole(off, n int64) bool {
	return slices.ContainsFunc(f.ranges, func(r store.Range) bool { return off >= r.Off && off+n <= r.Off+r.Len })
}

// Foresee requests ranges that will be read soon, neighbours together, if there is room for all of them. Otherwise they
// are read ahead as streams, each no further than its end.
func (s *source) Foresee(ctx context.Context, ranges []store.Range) (done func()) {
	o, a := s.o, s.o.root.requests
	if o.Size <= smallObject || o.spooled() != nil {
		return nil
	}
	f := &foreseen{ranges: joined(ranges, o.Size, a.gap())}
	for _, r := range f.ranges {
		f.bytes += r.Len
	}
	switch a.hold(f.bytes, budgetOf(o.root.cache.max)) {
	case wait:
		return nil
	case tooMuch:
		o.asStreams(ranges)
		return nil
	}
	o.root.cache.shrink(f.bytes)
	o.startRuns(ctx, o.planForeseen(f))
	return func() { o.endForeseen(f) }
}

// joined returns ranges within an object in order, with those joined whose distance is at most gap.
func joined(ranges []store.Range, size, gap int64) (out []store.Range) {
	inOrder := slices.Clone(ranges)
	sorted.By(inOrder, func(a, b store.Range) int { return cmp.Compare(a.Off, b.Off) })
	for _, r := range inOrder {
		if r.Off < 0 || r.Len <= 0 || r.Off >= size {
			continue // damaged metadata
		}
		r.Len = min(r.Len, size-r.Off)
		if n := len(out); n > 0 && r.Off <= out[n-1].Off+out[n-1].Len+gap {
			out[n-1].Len = max(out[n-1].Len, r.Off+r.Len-out[n-1].Off)
			continue
		}
		out = append(out, r)
	}
	return out
}

// planForeseen returns the runs to request.
func (o *object) planForeseen(f *foreseen) (mine []*run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range f.ranges {
		first, last := r.Off/blockSize, (r.Off+r.Len-1)/blockSize
		// a block that ranges share is requested twice, so that no range keeps the other's data in memory
		if was := o.runs[first]; was != nil && was.held.Load() > 0 && last > first {
			delete(o.runs, first)
		}
		mine = append(mine, o.planRuns(first, last, maxJoined)...)
		for k := first; k <= last; k++ {
			if x := o.runs[k]; x != nil && (len(f.runs) == 0 || f.runs[len(f.runs)-1] != x) {
				x.held.Add(1)
				f.runs = append(f.runs, x)
			}
		}
	}
	o.foreseen = append(o.foreseen, f)
	return mine
}

// endForeseen drops what was requested.
func (o *object) endForeseen(f *foreseen) {
	o.mu.Lock()
	o.foreseen = slices.DeleteFunc(o.foreseen, func(x *foreseen) bool { return x == f })
	o.mu.Unlock()
	for _, r := range f.runs {
		if r.held.Add(-1) == 0 && len(r.buf) > smallObject {
			o.root.cache.drop(r)
		}
	}
	a := o.root.requests
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= f.bytes
}

// asStreams has reads of the ranges read ahead from their beginning on.
func (o *object) asStreams(ranges []store.Range) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range joined(ranges, o.Size, -1) {
		o.addStream(&stream{begin: r.Off, end: r.Off + r.Len, passage: passage{next: r.Off}, read: maxReadAhead})
	}
}

// room says what becomes of ranges that will be read soon.
type room int

const (
	enough  room = iota
	wait         // later
	tooMuch      // never
)

// hold takes room for n bytes.
func (a *requester) hold(n, budget int64) room {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.latency < fastAnswer || n < minForeseen:
		return wait
	case n > budget/2:
		return tooMuch
	case a.held+n > budget:
		return wait
	}
	a.held += n
	return enough
}
