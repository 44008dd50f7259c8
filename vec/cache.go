package vec

import (
	linked "container/list"
	"sync"
)

// Cache keeps decoded pages for who comes again, the ones used last up to a number of bytes. What it gives is shared and must not
// be changed, nor released. It is safe for concurrent use; a nil Cache keeps nothing.
type Cache struct {
	mu    sync.Mutex
	limit int64
	held  int64
	have  map[CacheKey]*linked.Element
	used  *linked.List // of kept, the latest first
}

// CacheKey says what page of which column a vector is.
type CacheKey struct {
	Object string
	Off    int64 // of the page's bytes
	Sub    int64 // of a block that is several pages: which
	Column int
}

type kept struct {
	key  CacheKey
	v    *Vector
	size int64
}

// NewCache makes a cache for limit bytes.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, have: map[CacheKey]*linked.Element{}, used: linked.New()}
}

// Get is the vector kept under a key, or nil.
func (c *Cache) Get(k CacheKey) *Vector {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.have[k]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(kept).v
}

// Put keeps v, which is not a pool's: nobody releases it. One that is larger than an eighth of the limit is not kept.
func (c *Cache) Put(k CacheKey, v *Vector) {
	const overhead = 512 // of the vector itself, and of its buffers
	size := v.Size() + overhead
	if c == nil || size > c.limit/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have[k] != nil {
		return
	}
	c.have[k] = c.used.PushFront(kept{k, v, size})
	for c.held += size; c.held > c.limit; {
		e := c.used.Back()
		x := c.used.Remove(e).(kept)
		delete(c.have, x.key)
		c.held -= x.size
	}
}
