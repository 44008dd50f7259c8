package vec

import (
	"math/bits"
	"strings"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Slack is how many bytes after the values of a string vector a kernel may overwrite: copying short strings in whole
// words is faster than copying them exactly.
const Slack = 64

// Arena is scratch memory of one worker: stored bytes, decompressed pages, codes. Its slices are valid until Reset. The
// zero value is ready to use.
type Arena struct {
	blocks [][]byte
	block  int // index of the one in use
	used   int
}

// Blocks of an arena start small, as most files have small pages and many readers use one arena per column.
const (
	minBlock = 16 << 10
	maxBlock = 1 << 20
)

// Bytes returns n bytes with undefined content, and Slack more in its capacity for kernels that write past the end.
func (a *Arena) Bytes(n int) []byte {
	need := (n + Slack + 63) &^ 63
	for a.block < len(a.blocks) {
		if b := a.blocks[a.block]; a.used+need <= len(b) {
			out := b[a.used : a.used+n : a.used+need]
			a.used += need
			return out
		}
		a.block++
		a.used = 0
	}
	size := int64(minBlock) // 4 × all blocks so far: few blocks for large needs, little memory for small ones
	for _, b := range a.blocks {
		size += 4 * int64(len(b))
	}
	b := make([]byte, max(need, int(min(size, maxBlock))))
	a.blocks = append(a.blocks, b)
	a.used = need
	return b[:n:need]
}

// Uint32s returns n uint32 with undefined content.
func (a *Arena) Uint32s(n int) []uint32 { return as[uint32](a.Bytes(4*n), n) }

// Reset invalidates all slices. Of many blocks it keeps only one, the largest of usual size, so that memory for an
// outsized page is not held forever.
func (a *Arena) Reset() {
	if len(a.blocks) > 4 {
		keep := a.blocks[0]
		for _, b := range a.blocks {
			if len(b) <= maxBlock && (len(b) > len(keep) || len(keep) > maxBlock) {
				keep = b
			}
		}
		a.blocks[0] = keep
		clear(a.blocks[1:])
		a.blocks = a.blocks[:1]
	}
	a.block, a.used = 0, 0
}

// Pool is an Allocator that keeps released buffers for reuse, in size classes of powers of two. With it even a string
// taken from an array changes after the array's release, so it is opt-in.
type Pool struct {
	mu    sync.Mutex
	free  [48][][]byte
	held  int64
	limit int64
}

// NewPool returns a pool that keeps at most limit bytes of unused buffers.
func NewPool(limit int64) *Pool { return &Pool{limit: limit} }

// Keep sets how many bytes of unused buffers the pool keeps from now on.
func (p *Pool) Keep(limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

func class(n int) int { return bits.Len(uint(max(n, 64) - 1)) }

func (p *Pool) Allocate(size int) []byte {
	c := class(size)
	p.mu.Lock()
	if l := p.free[c]; len(l) > 0 {
		b := l[len(l)-1]
		p.free[c] = l[:len(l)-1]
		p.held -= int64(cap(b))
		p.mu.Unlock()
		return b[:size]
	}
	p.mu.Unlock()
	return memory.DefaultAllocator.Allocate(1 << c)[:size]
}

func (p *Pool) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := p.Allocate(size)
	copy(out, b)
	p.Free(b)
	return out
}

func (p *Pool) Free(b []byte) {
	c := class(cap(b))
	if cap(b) != 1<<c {
		return // not allocated by this pool
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+int64(cap(b)) > p.limit {
		return
	}
	p.free[c] = append(p.free[c], b)
	p.held += int64(cap(b))
}

var _ memory.Allocator = (*Pool)(nil)

func as[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Fresh is an Allocator of Go's memory whose large buffers have undefined content at first, like those of a Pool: no
// time is spent on zeros that decoders overwrite. Released buffers are left to the garbage collector.
type Fresh struct{}

// freshLarge is the size from which the runtime aligns memory to pages, and avoiding zeros pays off.
const freshLarge = 64 << 10

func (Fresh) Allocate(size int) []byte {
	if size < freshLarge {
		return memory.DefaultAllocator.Allocate(size)
	}
	var b strings.Builder // the only part of the standard library that allocates memory without clearing it
	b.Grow(size)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), size)
}

func (f Fresh) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := f.Allocate(size)
	copy(out, b)
	return out
}

// Free leaves the buffer to the garbage collector.
func (Fresh) Free([]byte) {}

var _ memory.Allocator = Fresh{}

// Zeroed clears the memory it allocates: libraries rely on new memory being zero, which a pool's is not. (arrow-go's
// Parquet reader does not set the first offset of a list, its IPC writer the bitmap of an array that is all null.)
type Zeroed struct{ memory.Allocator }

func (z Zeroed) Allocate(n int) []byte {
	b := z.Allocator.Allocate(n)
	clear(b)
	return b
}

func (z Zeroed) Reallocate(n int, b []byte) []byte {
	was := len(b)
	b = z.Allocator.Reallocate(n, b)
	if n > was {
		clear(b[was:])
	}
	return b
}
