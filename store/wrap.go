package store

import (
	"container/list"
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Counter is a Tree that records every read, to show what was not read.
type Counter struct {
	Tree
	mu    sync.Mutex
	reads []Read
	opens map[string]int
}

// Read is one ReadAt.
type Read struct {
	Name string
	Off  int64
	Len  int // requested
	Got  int // read
}

// NewCounter returns a Counter over t.
func NewCounter(t Tree) *Counter { return &Counter{Tree: t, opens: map[string]int{}} }

// Unwrap returns the underlying tree.
func (c *Counter) Unwrap() Tree { return c.Tree }

// Reads returns every read so far, ordered by start.
func (c *Counter) Reads() []Read {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Read(nil), c.reads...)
}

// Opens returns how often name was opened.
func (c *Counter) Opens(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opens[name]
}

// Reset forgets all reads and opens.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads, c.opens = nil, map[string]int{}
}

func (c *Counter) Open(ctx context.Context, name string) (Source, error) {
	s, err := c.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.opens[name]++
	c.mu.Unlock()
	return &countedSource{s, c, name}, nil
}

type countedSource struct {
	Source
	c    *Counter
	name string
}

func (s *countedSource) Unsized() bool { return Unsized(s.Source) }

func (s *countedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	s.c.mu.Lock()
	k := len(s.c.reads)
	s.c.reads = append(s.c.reads, Read{Name: s.name, Off: off, Len: len(p)})
	s.c.mu.Unlock()
	n, err := s.Source.ReadAt(ctx, p, off)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if k < len(s.c.reads) { // not reset since
		s.c.reads[k].Got = n
	}
	return n, err
}

const (
	cacheBlock  = 64 << 10
	cacheBypass = 1 << 20 // larger reads are not metadata, and would only evict metadata
)

// Cache is a Tree for metadata: it keeps each object open and its most recently used blocks in memory, so that footers
// and indexes are read only once. Close closes the objects.
type Cache struct {
	tree  Tree
	limit int64

	mu     sync.Mutex
	open   map[string]*cachedSource
	old    []*cachedSource // forgotten, and perhaps still read
	blocks map[blockKey]*list.Element
	order  *list.List // of *cachedBlock, most recent first
	held   int64
}

type blockKey struct {
	src *cachedSource
	n   int64
}

type cachedBlock struct {
	key blockKey
	b   []byte
}

// NewCache returns a cache of at most limit bytes of t's objects.
func NewCache(t Tree, limit int64) *Cache {
	return &Cache{tree: t, limit: limit, open: map[string]*cachedSource{}, blocks: map[blockKey]*list.Element{},
		order: list.New()}
}

// Unwrap returns the underlying tree.
func (c *Cache) Unwrap() Tree { return c.tree }

func (c *Cache) Stat(ctx context.Context, name string) (Info, error) { return c.tree.Stat(ctx, name) }
func (c *Cache) List(ctx context.Context, dir string) iter.Seq2[Info, error] {
	return c.tree.List(ctx, dir)
}

func (c *Cache) Open(ctx context.Context, name string) (Source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.open[name]; ok {
		return s, nil
	}
	s, err := c.tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	cs := &cachedSource{s, c}
	c.open[name] = cs
	return cs, nil
}

// Close closes every object that was opened.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first error
	for _, s := range slices.AppendSeq(c.old, maps.Values(c.open)) {
		if err := s.src.Close(); err != nil && first == nil {
			first = err
		}
	}
	c.old = nil
	c.open, c.blocks, c.held = map[string]*cachedSource{}, map[blockKey]*list.Element{}, 0
	c.order.Init()
	return first
}

// Forget makes t open the object anew the next time, if t is a Cache: somebody else may have replaced it.
func Forget(t Tree, name string) {
	c, ok := t.(*Cache)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.open[name]; s != nil {
		c.old = append(c.old, s)
		delete(c.open, name)
	}
}

// Uncached returns src without the cache through which it may be read: for data, which would only evict metadata.
func Uncached(src Source) Source {
	if s, ok := src.(*cachedSource); ok {
		return s.src
	}
	return src
}

type cachedSource struct {
	src Source
	c   *Cache
}

func (s *cachedSource) Size() int64  { return s.src.Size() }
func (s *cachedSource) Close() error { return nil } // the cache closes it

func (s *cachedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if len(p) > cacheBypass {
		return s.src.ReadAt(ctx, p, off)
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		b, err := s.block(ctx, at/cacheBlock)
		if from := at % cacheBlock; from < int64(len(b)) {
			done += copy(p[done:], b[from:])
		} else if err == nil {
			err = io.EOF
		}
		if err != nil && done < len(p) {
			return done, err
		}
	}
	return done, nil
}

// block returns the object's n-th block; the last one is short and may come with io.EOF.
func (s *cachedSource) block(ctx context.Context, n int64) ([]byte, error) {
	key := blockKey{s, n}
	s.c.mu.Lock()
	if e, ok := s.c.blocks[key]; ok {
		s.c.order.MoveToFront(e)
		b := e.Value.(*cachedBlock).b
		s.c.mu.Unlock()
		return b, nil
	}
	s.c.mu.Unlock()
	size := int64(cacheBlock)
	if !Unsized(s.src) { // of small objects, no more memory than they have bytes
		if left := s.src.Size() - n*cacheBlock; left > 0 && left < size {
			size = left
		}
	}
	b := make([]byte, size)
	k, err := s.src.ReadAt(ctx, b, n*cacheBlock)
	if err != nil && err != io.EOF {
		return nil, err
	}
	b = b[:k]
	if k > 0 {
		s.c.keep(key, b)
	}
	return b, err
}

func (c *Cache) keep(key blockKey, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.blocks[key]; ok {
		return
	}
	c.blocks[key] = c.order.PushFront(&cachedBlock{key, b})
	c.held += int64(cap(b))
	for c.held > c.limit && c.order.Len() > 1 {
		e := c.order.Back()
		oldest := c.order.Remove(e).(*cachedBlock)
		delete(c.blocks, oldest.key)
		c.held -= int64(cap(oldest.b))
	}
}

// Spool returns a Source for a stream that can be read only once (standard input): the data read are kept in memory
// and, beyond maxMemory, in scratch. Sequential reading consumes no more of the stream than was requested; Size reads
// all of it.
func Spool(r io.Reader, maxMemory int64, scratch func() (Scratch, error)) *Spooled {
	return &Spooled{r: r, max: maxMemory, scratch: scratch}
}

// Unsized reports whether asking for the size of s means reading all of it, as with a stream: code that needs only the
// beginning should not ask. A Source reports this by a method Unsized() bool.
func Unsized(s Source) bool {
	u, ok := s.(interface{ Unsized() bool })
	return ok && u.Unsized()
}

// Spooled is the Source that Spool returns.
type Spooled struct {
	r       io.Reader
	max     int64
	scratch func() (Scratch, error)

	mu   sync.Mutex
	head []byte
	rest Scratch
	size int64 // read so far
	end  error // io.EOF, or why reading ended
}

// fill reads until at least size bytes are available. The caller holds mu.
func (s *Spooled) fill(size int64) {
	buf := make([]byte, 64<<10)
	for s.size < size && s.end == nil {
		n, err := s.r.Read(buf[:min(int64(len(buf)), size-s.size)])
		if werr := s.keep(buf[:n]); werr != nil {
			err = werr
		}
		if err != nil {
			s.end = err
		}
	}
}

func (s *Spooled) keep(b []byte) error {
	s.size += int64(len(b))
	if k := min(int64(len(b)), s.max-int64(len(s.head))); k > 0 {
		s.head = append(s.head, b[:k]...)
		b = b[k:]
	}
	if len(b) == 0 {
		return nil
	}
	if s.rest == nil {
		var err error
		if s.rest, err = s.scratch(); err != nil {
			return err
		}
	}
	_, err := s.rest.Write(b)
	return err
}

func (s *Spooled) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fill(off + int64(len(p)))
	n := 0
	if off < int64(len(s.head)) {
		n = copy(p, s.head[off:])
	}
	if n < len(p) && s.rest != nil && off+int64(n) < s.size {
		k, err := s.rest.ReadAt(p[n:min(int64(len(p)), s.size-off)], off+int64(n)-int64(len(s.head)))
		n += k
		if err != nil && err != io.EOF {
			return n, err
		}
	}
	if n < len(p) {
		if s.end != nil {
			return n, s.end
		}
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Unsized returns true: see the function of that name.
func (s *Spooled) Unsized() bool { return true }

// Size reads the stream to its end.
func (s *Spooled) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.end == nil {
		s.fill(s.size + 1<<20)
	}
	return s.size
}

// Close removes the data that were kept.
func (s *Spooled) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = nil
	if s.rest != nil {
		err := s.rest.Close()
		s.rest = nil
		return err
	}
	return nil
}
