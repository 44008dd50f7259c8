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
	blockSize = 64 << 10 // what is read is rounded to this
	small     = 1 << 20  // objects of at most so many bytes are read whole
	kinSize   = 256 << 10
	mostKin   = 512     // objects that are asked for because one like them was
	runSize   = 4 << 20 // bytes of one request at most
)

// source is an object that is open.
type source struct {
	o    *object
	name string
}

func (s *source) Size() int64  { return s.o.Size }
func (s *source) Close() error { return nil }

// ReadAt gives what was read before, or reads it, in blocks. io.EOF is the end of the object, and never that of an
// answer.
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
		return n, at("read", s.name, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// run is what one request gives: several blocks of an object.
type run struct {
	o    *object
	off  int64
	buf  []byte
	done chan struct{}

	stored bool  // the cache has it, or had it
	err    error // after done
}

// readAt fills p, which lies in the object.
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

// block gives block k; what is not there up to the last one is asked for with it.
func (o *object) block(ctx context.Context, k, last int64) ([]byte, error) {
	for try := 0; ; try++ {
		o.mu.Lock()
		r := o.runs[k]
		var mine []*run
		if r == nil {
			first := o.runs == nil
			mine = o.plan(k, last)
			if end := (o.Size - 1) / blockSize; first && o.Size > small {
				mine = append(mine, o.plan(end, end)...) // where most formats begin to read
			}
			r = o.runs[k]
		}
		o.mu.Unlock()
		o.ask(ctx, mine)
		if len(mine) > 0 {
			o.askKin(ctx, k == 0)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if r.err == nil {
			o.root.keep.touch(r)
			b := r.buf[k*blockSize-r.off:]
			return b[:min(len(b), blockSize)], nil
		}
		// who asked for it may have had other reasons to give up
		if len(mine) > 0 || try > 3 || ctx.Err() != nil {
			return nil, r.err
		}
	}
}

// plan makes the runs for blocks k to last that are not there: as much as the object is to be read at a time. The
// caller holds mu.
func (o *object) plan(k, last int64) (out []*run) {
	end := (o.Size + blockSize - 1) / blockSize
	if last++; o.Size <= small {
		k, last = 0, end
	}
	if last == end && o.Size%blockSize < blockSize/2 { // what stands at the end begins before it
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
		if x, ok := o.storedAt(k); ok {
			r.off, r.stored, r.buf = x.off, true, make([]byte, x.n)
			for b := x.off / blockSize; b*blockSize < x.off+x.n; b++ {
				if o.runs[b] == nil {
					o.runs[b] = r
				}
			}
			out = append(out, r)
			continue
		}
		to := k
		for ; to < last && o.runs[to] == nil && (to-k)*blockSize < runSize; to++ {
			if _, ok := o.storedAt(to); ok {
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

// ask has runs read, side by side.
func (o *object) ask(ctx context.Context, runs []*run) {
	for _, r := range runs {
		go func() {
			r.err = o.fetch(r, func() error {
				return o.root.ask.get(ctx, o.root.client, o.Object, o.version, r.buf, r.off)
			})
			if r.err != nil {
				o.forget(r)
				if errors.Is(r.err, store.ErrChanged) {
					o.root.changed(o)
				}
			} else {
				o.root.keep.add(r)
			}
			close(r.done)
		}()
	}
}

// forget has the blocks of a run asked for anew when somebody wants them.
func (o *object) forget(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := r.off / blockSize; k*blockSize < r.off+int64(len(r.buf)); k++ {
		if o.runs[k] == r {
			delete(o.runs, k)
		}
	}
}

// changed forgets an object that is not what it was, so that whoever asks for its stamp hears of it.
func (r *root) changed(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.Key] == o {
		delete(r.objects, o.Key)
		r.entered[o.Key] = true
	}
}

// kind is what objects that are read together have in common.
func kind(key string) string { return path.Ext(path.Base(key)) }

// askKin has the objects of the same kind in the same directory read, too: who reads one file of metadata reads them
// all. Of large ones, that is their beginning or their end, where formats keep what they need first.
func (o *object) askKin(ctx context.Context, head bool) {
	o.mu.Lock()
	asked := o.kin
	o.kin = true
	o.mu.Unlock()
	if asked {
		return
	}
	var left int64 = o.root.keep.most / 4
	for _, k := range o.root.kinOf(o) {
		k.mu.Lock()
		var runs []*run
		if end := (k.Size - 1) / blockSize; k.Size > 0 && !k.kin && len(k.runs) == 0 {
			switch {
			case k.Size <= kinSize:
				runs = k.plan(0, end)
			case k.Size > small && o.Size > small:
				runs = append(k.plan(0, 0), k.plan(end, end)...)
			}
			k.kin = k.kin || len(runs) > 0
		}
		k.mu.Unlock()
		k.ask(ctx, runs)
		for _, r := range runs {
			left -= int64(len(r.buf))
		}
		if left < 0 {
			return
		}
	}
}

// kinOf are the objects like o in its directory, those first that come after it.
func (r *root) kinOf(o *object) (out []*object) {
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
			if out = append(out, c.o); len(out) == mostKin {
				break
			}
		}
	}
	return out
}

// ofInterest reports whether a key lies below an address that was entered.
func (r *root) ofInterest(key string) bool {
	for k := range r.named {
		if k != key && within(key, k) {
			return true
		}
	}
	return false
}

// storedAt is the part that the cache has with block k. The caller holds mu.
func (o *object) storedAt(k int64) (extent, bool) {
	c := o.root.ask.Cache
	if c == nil {
		return extent{}, false
	}
	if !o.looked {
		o.looked = true
		o.place = c.place(o.root.addr, o.Object, o.version)
		o.stored = extents(o.place)
	}
	for _, x := range o.stored {
		if x.off%blockSize == 0 && x.off <= k*blockSize && min((k+1)*blockSize, o.Size) <= x.off+x.n {
			return x, true
		}
	}
	return extent{}, false
}

// fetch fills a run: from the cache, or by asking the store, and then the cache keeps it.
func (o *object) fetch(r *run, get func() error) error {
	c := o.root.ask.Cache
	x := extent{r.off, int64(len(r.buf))}
	if c == nil || o.place == "" {
		return get()
	}
	if r.stored && c.load(o.place, x, r.buf) {
		o.root.ask.found(x.n)
		return nil
	}
	err := get()
	if err == nil {
		c.save(o.place, x, r.buf)
	}
	return err
}
