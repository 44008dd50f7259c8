package vec

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Recycled is the Allocator of a scan that is given none. It keeps the large buffers of released batches for the next
// ones, up to a limit. Vectors take the bytes of their values from Fresh instead, so that a string or a slice of bytes
// that was taken from an array stays valid for as long as it is used. It is safe for concurrent use.
type Recycled struct {
	mu    sync.Mutex
	free  map[int][][]byte // by capacity
	held  int64
	limit int64
}

// NewRecycled returns an allocator that keeps at most limit bytes of unused buffers.
func NewRecycled(limit int64) *Recycled { return &Recycled{limit: limit} }

// roomy rounds the size of a large buffer up by less than an eighth, so that sizes of about the same are the same.
func roomy(n int) int {
	step := 1 << (bits.Len(uint(n)) - 4)
	return (n + step - 1) &^ (step - 1)
}

func (r *Recycled) Allocate(size int) []byte {
	if size < leastRecycled {
		return memory.DefaultAllocator.Allocate(size)
	}
	room := roomy(size)
	r.mu.Lock()
	l := r.free[room]
	if len(l) == 0 {
		r.mu.Unlock()
		return Fresh{}.Allocate(room)[:size:room]
	}
	b := l[len(l)-1]
	r.free[room] = l[:len(l)-1]
	r.held -= int64(room)
	r.mu.Unlock()
	return b[:size]
}

func (r *Recycled) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := r.Allocate(size)
	copy(out, b)
	r.Free(b)
	return out
}

func (r *Recycled) Free(b []byte) {
	room := cap(b)
	if room < leastRecycled || room != roomy(room) {
		return // not allocated here
	}
	b = b[:room]
	poison(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+int64(room) > r.limit {
		return
	}
	if r.free == nil {
		r.free = map[int][][]byte{}
	}
	r.free[room] = append(r.free[room], b)
	r.held += int64(room)
}

var _ memory.Allocator = (*Recycled)(nil)
