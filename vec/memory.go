package vec

import (
	"math/bits"
	"strings"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Arena is scratch memory of one worker: stored bytes, decompressed pages, codes. What it gave is good until Reset.
// The zero value is ready.
type Arena struct {
	blocks [][]byte
	block  int // the one in use
	used   int
}

// Blocks of an arena begin small, as most files have small pages and many readers take one arena a column.
const (
	minBlock = 16 << 10
	maxBlock = 1 << 20
)

// Bytes gives n bytes with unset content, and 64 more in its capacity for kernels that write too much.
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
	size := int64(minBlock) // what the blocks so far are together, four times: few blocks for much, little for little
	for _, b := range a.blocks {
		size += 4 * int64(len(b))
	}
	b := make([]byte, max(need, int(min(size, maxBlock))))
	a.blocks = append(a.blocks, b)
	a.used = need
	return b[:n:need]
}

// Uint32s gives n uint32 with unset content.
func (a *Arena) Uint32s(n int) []uint32 { return as[uint32](a.Bytes(4*n), n) }

// Reset takes everything back. Of many blocks one is kept, the largest that is no larger than usual, so that an
// outsized page does not hold memory for ever.
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

// Pool is an Allocator that keeps released buffers for the next use, in classes of powers of two.
// With it even a string taken from an array shows other bytes after the array's release; so it is opt-in.
type Pool struct {
	mu    sync.Mutex
	free  [48][][]byte
	held  int64
	limit int64
}

// NewPool makes a pool that keeps at most limit bytes of unused buffers.
func NewPool(limit int64) *Pool { return &Pool{limit: limit} }

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
		return // not ours
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

// Fresh is an Allocator of Go's memory whose large buffers hold anything at first, as those of a Pool do:
// nothing is spent on zeros that decoders overwrite. Released buffers are the garbage collector's.
type Fresh struct{}

// freshLarge is from where on the runtime aligns memory to pages, and zeros are worth avoiding.
const freshLarge = 64 << 10

func (Fresh) Allocate(size int) []byte {
	if size < freshLarge {
		return memory.DefaultAllocator.Allocate(size)
	}
	var b strings.Builder // the one part of the standard library that takes memory without clearing it
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

// Free leaves it to the garbage collector.
func (Fresh) Free([]byte) {}

var _ memory.Allocator = Fresh{}

// Zeroed clears what it allocates: libraries count on new memory being zero, and a pool's is not. (arrow-go's
// Parquet reader leaves the first offset of a list unset, its IPC writer the bitmap of an array that is all
// null.)
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
