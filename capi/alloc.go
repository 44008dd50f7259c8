package main

// #include <stdlib.h>
import "C"

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// cPool allocates C memory, which consumers of Arrow's C data interface may keep: pointers to Go memory must not be
// stored in C. It keeps released buffers for the next batch, as fresh memory costs more than decoding into it.
// The initial content of buffers is undefined.
type cPool struct {
	mu   sync.Mutex
	free [steps * 48][]unsafe.Pointer
	kept int64
	used int64
}

const (
	alignment = 64
	steps     = 4       // size classes between two powers of two
	largest   = 1 << 46 // bytes of a buffer: more than any machine has
)

var pool = &cPool{}

// sizeClass returns the size class of buffers of n bytes, and their size: powers of two and three sizes between each
// two.
func sizeClass(n int) (class, size int) {
	n = max(n, 256)
	top := bits.Len(uint(n-1)) - 1 // 2^top < n <= 2^(top+1)
	step := 1 << top / steps
	part := (n - 1<<top + step - 1) / step // 1..steps
	return top*steps + part - 1, 1<<top + part*step
}

// Allocate returns a buffer; its capacity is the size of its class. An allocator can only panic, so it panics with an
// error, which becomes that of the call or the scan (fault.Panicked). Lack of memory is of class Limit, a
// negative size is our bug, of class Bug.
func (p *cPool) Allocate(n int) []byte {
	if n < 0 || n > largest {
		panic(fault.Bugf("memory: expected a size from 0 to %d bytes, found %d", largest, n))
	}
	class, size := sizeClass(n)
	p.mu.Lock()
	p.used += int64(size)
	if l := p.free[class]; len(l) > 0 {
		b := l[len(l)-1]
		p.free[class] = l[:len(l)-1]
		p.kept -= int64(size)
		p.mu.Unlock()
		return unsafe.Slice((*byte)(b), size)[:n]
	}
	p.mu.Unlock()
	b := C.aligned_alloc(alignment, C.size_t(size))
	if b == nil {
		p.mu.Lock()
		p.used -= int64(size)
		p.mu.Unlock()
		panic(fault.Limitf(fault.Span{}, "", "memory: the system did not give %d bytes", size))
	}
	return unsafe.Slice((*byte)(b), size)[:n]
}

func (p *cPool) Reallocate(n int, b []byte) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	out := p.Allocate(n)
	copy(out, b)
	p.Free(b)
	return out
}

func (p *cPool) Free(b []byte) {
	if cap(b) == 0 {
		return
	}
	class, size := sizeClass(cap(b))
	at := unsafe.Pointer(unsafe.SliceData(b))
	p.mu.Lock()
	p.used -= int64(size)
	if p.kept+int64(size) <= maxKept {
		p.free[class] = append(p.free[class], at)
		p.kept += int64(size)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	C.free(at)
}

// trim returns kept buffers to C.
func (p *cPool) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.free {
		for _, b := range p.free[class] {
			C.free(b)
		}
		p.free[class] = nil
	}
	p.kept = 0
}

var _ memory.Allocator = (*cPool)(nil)
