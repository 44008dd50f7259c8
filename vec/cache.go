package vec

import "sync"

// Cache keeps decoded pages for later readers, up to a number of bytes. It evicts by the clock algorithm: first pages
// that have not been requested since the hand last passed them. The vectors it returns are shared and must be neither
// changed nor released. It is safe for concurrent use; a nil Cache keeps nothing.
type Cache struct {
	mu    sync.Mutex
	limit int64
	held  int64
	have  map[CacheKey]*kept
	clock []*kept
	hand  int
}

// CacheKey identifies the page and column of a vector.
type CacheKey struct {
	Object string
	Off    int64 // of the page's bytes
	Sub    int64 // which page, if a block has several
	Column int
}

type kept struct {
	key   CacheKey
	v     *Vector
	size  int64
	asked bool // requested since the hand last passed
}

// NewCache returns a cache of limit bytes.
func NewCache(limit int64) *Cache { return &Cache{limit: limit, have: map[CacheKey]*kept{}} }

// Get returns the vector stored under a key, or nil.
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
	e.asked = true
	return e.v
}

// Put stores v, which must not be a pool's, as nobody releases it. A vector larger than an eighth of the limit is not
// stored.
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
	for c.held+size > c.limit {
		c.drop()
	}
	e := &kept{key: k, v: v, size: size}
	c.have[k] = e
	c.clock = append(c.clock, e)
	c.held += size
}

// drop moves the hand to the next page that has not been requested, and evicts it. There is at least one page.
func (c *Cache) drop() {
	for {
		c.hand %= len(c.clock)
		e := c.clock[c.hand]
		if !e.asked {
			last := len(c.clock) - 1
			c.clock[c.hand], c.clock[last] = c.clock[last], nil
			c.clock = c.clock[:last]
			delete(c.have, e.key)
			c.held -= e.size
			return
		}
		e.asked = false
		c.hand++
	}
}
