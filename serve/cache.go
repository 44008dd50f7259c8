package serve

import "sync"

// cache keeps the most recently used values by name.
type cache[T any] struct {
	most int
	end  func(T) // called for a value that is no longer kept

	mu     sync.Mutex
	names  []string // the most recently used last
	values map[string]T
}

// get returns what is kept under a name. use is called with it before anything can end it.
func (c *cache[T]) get(name string, use func(T)) (v T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok = c.values[name]; ok {
		c.touch(name)
		use(v)
	}
	return v, ok
}

// put keeps a value, in the place of one of the same name.
func (c *cache[T]) put(name string, v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string]T{}
	}
	if old, ok := c.values[name]; ok {
		c.end(old)
	}
	c.values[name] = v
	c.touch(name)
	for len(c.names) > c.most {
		old := c.names[0]
		c.names = c.names[1:]
		c.end(c.values[old])
		delete(c.values, old)
	}
}

func (c *cache[T]) touch(name string) {
	for i, n := range c.names {
		if n == name {
			c.names = append(c.names[:i], c.names[i+1:]...)
			break
		}
	}
	c.names = append(c.names, name)
}

func (c *cache[T]) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.values[name]; ok {
		c.end(v)
		delete(c.values, name)
		for i, n := range c.names {
			if n == name {
				c.names = append(c.names[:i], c.names[i+1:]...)
				break
			}
		}
	}
}

func (c *cache[T]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.values {
		c.end(v)
	}
	c.names, c.values = nil, nil
}
