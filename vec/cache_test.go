package vec

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestCache: pages that were used last stay, a page that is too large is not kept, and a nil cache keeps nothing.
func TestCache(t *testing.T) {
	page := func(n int) *Vector {
		v, err := New(arrow.PrimitiveTypes.Int64, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		v.Extend(n)
		return v
	}
	key := func(i int) CacheKey { return CacheKey{Object: "x", Off: int64(i)} }
	c := NewCache(100 << 10)
	for i := range 20 { // 8.5 kB each
		c.Put(key(i), page(1000))
		if c.Get(key(0)) == nil {
			t.Fatalf("page 0, used each time, was evicted after %d others", i)
		}
	}
	have := 0
	for i := range 20 {
		if c.Get(key(i)) != nil {
			have++
		}
	}
	if have < 8 || have > 12 || c.held > c.limit || c.Get(key(19)) == nil {
		t.Errorf("%d pages of %d bytes, the last one %v", have, c.held, c.Get(key(19)))
	}
	if c.Put(key(99), page(10_000)); c.Get(key(99)) != nil {
		t.Error("a page of most of the cache was kept")
	}
	var none *Cache
	if none.Put(key(0), page(1)); none.Get(key(0)) != nil {
		t.Error("a nil cache kept a page")
	}
}
