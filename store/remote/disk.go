package remote

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"stoa/internal/sorted"
	"stoa/store"
)

// Cache caches data of objects in a local directory, by their address and stamp. An object that changes gets another
// stamp, so data are always of the version that was listed. Several processes may share a directory: files appear in it
// complete, never change, and have checksums.
type Cache struct {
	dir string
	max int64

	mu     sync.Mutex
	size   int64 // bytes, as far as this process knows; -1: not counted yet
	saving sync.WaitGroup
	closed bool
}

// Close waits until nothing is written to the directory any more. What arrives afterwards, because it was read ahead,
// is not cached.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.saving.Wait()
}

// begin reports whether something may be saved; then saving.Done must be called.
func (c *Cache) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.saving.Add(1)
	}
	return !c.closed
}

// OpenCache opens a cache in a directory, which is created if it is missing. The cache holds at most limit bytes and
// drops the least recently used data.
func OpenCache(dir string, limit int64) (*Cache, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("cache size: expected a number of bytes above 0, found %d", limit)
	}
	c := &Cache{dir: filepath.Join(dir, "stoa-cache-1"), max: limit, size: -1}
	return c, os.MkdirAll(c.dir, 0o700)
}

// extent is a range of an object that is cached.
type extent struct{ off, n int64 }

// Strong reports whether a stamp differs whenever the content does: a weak ETag, and the time of the last change, which
// has seconds, may not.
func Strong(stamp string) bool {
	_, err := http.ParseTime(stamp)
	return stamp != "" && !strings.HasPrefix(stamp, "W/") && err != nil
}

// dirOf returns the directory for an object's data; "": the object has no strong stamp and is not cached.
func (c *Cache) dirOf(addr string, o Object, version string) string {
	if c == nil || !Strong(o.Stamp) {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", addr, o.Key, version, o.Stamp, o.Size))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:16]))
}

// extents returns the cached ranges of an object, sorted by offset.
func extents(place string) (out []extent) {
	if place == "" {
		return nil
	}
	entries, err := os.ReadDir(place)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		var x extent
		if n, err := fmt.Sscanf(e.Name(), "%d-%d", &x.off, &x.n); n == 2 && err == nil && e.Name() == x.name() &&
			x.off >= 0 && x.n > 0 && x.n <= maxExtent {
			out = append(out, x)
		}
	}
	sorted.By(out, func(a, b extent) int { return cmp.Compare(a.off, b.off) })
	return out
}

const maxExtent = 64 << 20

func (x extent) name() string { return fmt.Sprintf("%d-%d", x.off, x.n) }

// load fills p with a cached range, and reports whether it was intact.
func (c *Cache) load(place string, x extent, p []byte) bool {
	name := filepath.Join(place, x.name())
	b, err := os.ReadFile(name)
	if err != nil || int64(len(b)) != x.n+4 || int64(len(p)) != x.n {
		return false
	}
	if crc32.Checksum(b[:x.n], table) != binary.LittleEndian.Uint32(b[x.n:]) {
		_ = os.Remove(name)
		return false
	}
	copy(p, b)
	now := time.Now()
	_ = os.Chtimes(name, now, now) // records its last use
	return true
}

var table = crc32.MakeTable(crc32.Castagnoli)

// save caches a range. Errors are ignored: nothing depends on the cache.
func (c *Cache) save(place string, x extent, p []byte) {
	if x.n > maxExtent || x.n > c.max/4 || !c.begin() {
		return
	}
	defer c.saving.Done()
	if os.MkdirAll(place, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(c.dir, store.TempPrefix+"*")
	if err != nil {
		return
	}
	_, err = f.Write(p)
	if err == nil {
		_, err = f.Write(binary.LittleEndian.AppendUint32(nil, crc32.Checksum(p, table)))
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(place, x.name()))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return
	}
	c.grow(x.n)
}

// grow counts n more bytes, and drops the least recently used ones beyond the limit.
func (c *Cache) grow(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += n; c.size-n >= 0 && c.size <= c.max {
		return
	}
	type kept struct {
		name string
		size int64
		used time.Time
	}
	var all []kept
	c.size = 0
	_ = filepath.WalkDir(c.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if st, err := d.Info(); err == nil {
				all = append(all, kept{name, st.Size(), st.ModTime()})
				c.size += st.Size()
			}
		}
		return nil
	})
	if c.size <= c.max {
		return
	}
	sorted.By(all, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if c.size <= c.max-c.max/10 {
			return
		}
		if os.Remove(k.name) == nil {
			c.size -= k.size
			_ = os.Remove(filepath.Dir(k.name)) // fails unless it is empty
		}
	}
}
