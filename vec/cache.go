package vec

import "sync"

// Cache keeps decoded pages for later readers, up to a number of bytes, and evicts by the clock algorithm: first those
// that nobody has asked for since the hand passed last. What it returns is shared and must not be changed, nor
// released. It is safe for concurrent use; a nil Cache keeps nothing.
type Cache struct {
	mu    sync.Mutex
	limit int64
	held  int64
	have  map[CacheKey]*kept
	clock []*kept
	hand  int
}

// CacheKey says what page of which column a vector is.
type CacheKey struct {
	Object string
	Off    int64 // of the page's bytes
	Sub    int64 // of a block that is several pages: which
	Column int
}

type kept struct {
	key   CacheKey
	v     *Vector
	size  int64
	asked bool // since the hand passed
}

// NewCache makes a cache for limit bytes.
func NewCache(limit int64) *Cache { return &Cache{limit: limit, have: map[CacheKey]*kept{}} }

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
	e.asked = true
	return e.v
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
	for c.held+size > c.limit {
		c.drop()
	}
	e := &kept{key: k, v: v, size: size}
	c.have[k] = e
	c.clock = append(c.clock, e)
	c.held += size
}

// drop moves the hand to the next page that nobody asked for, and forgets it. There is at least one page.
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
