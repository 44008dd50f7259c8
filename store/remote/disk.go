package remote

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/store"
)

// Cache keeps, in a directory of this machine, what was read of objects, by their address and stamp: an object that
// changes has another stamp, so what is found is of the version that was listed. Several processes may use a directory:
// files in it appear whole, are never changed, and have checksums; whoever misses one asks the store.
type Cache struct {
	dir  string
	most int64

	mu   sync.Mutex
	held int64 // bytes, as far as this process knows; -1: it has not looked yet
}

// OpenCache makes a cache in a directory, which it makes if it is not there. It keeps at most so many bytes, and drops
// what was not read for the longest time.
func OpenCache(dir string, most int64) (*Cache, error) {
	if most <= 0 {
		return nil, fmt.Errorf("a cache of %d bytes keeps nothing", most)
	}
	c := &Cache{dir: filepath.Join(dir, "stoa-cache-1"), most: most, held: -1}
	return c, os.MkdirAll(c.dir, 0o700)
}

// extent is a part of an object that the cache has.
type extent struct{ off, n int64 }

// place is the directory of an object's parts; "": it has no stamp by which it is known.
func (c *Cache) place(addr string, o Object, version string) string {
	if c == nil || o.Stamp == "" || strings.HasPrefix(o.Stamp, "W/") {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", addr, o.Key, version, o.Stamp, o.Size))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:16]))
}

// extents are the parts of an object that are there, by where they begin.
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
			x.off >= 0 && x.n > 0 && x.n <= mostExtent {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b extent) int { return cmp.Compare(a.off, b.off) })
	return out
}

const mostExtent = 64 << 20

func (x extent) name() string { return fmt.Sprintf("%d-%d", x.off, x.n) }

// load fills p with a part, and reports whether it was whole.
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
	_ = os.Chtimes(name, now, now) // it was read
	return true
}

var table = crc32.MakeTable(crc32.Castagnoli)

// save keeps a part. A cache that cannot be written is none: nothing else depends on it.
func (c *Cache) save(place string, x extent, p []byte) {
	if x.n > mostExtent || x.n > c.most/4 || os.MkdirAll(place, 0o700) != nil {
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

// grow counts what is kept, and drops what is too much.
func (c *Cache) grow(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held += n; c.held-n >= 0 && c.held <= c.most {
		return
	}
	type kept struct {
		name string
		size int64
		used time.Time
	}
	var all []kept
	c.held = 0
	_ = filepath.WalkDir(c.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if st, err := d.Info(); err == nil {
				all = append(all, kept{name, st.Size(), st.ModTime()})
				c.held += st.Size()
			}
		}
		return nil
	})
	if c.held <= c.most {
		return
	}
	slices.SortFunc(all, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, k := range all {
		if c.held <= c.most-c.most/10 {
			return
		}
		if os.Remove(k.name) == nil {
			c.held -= k.size
			_ = os.Remove(filepath.Dir(k.name)) // fails unless it is empty
		}
	}
}
