// Package budget counts the memory needed to open a file. A few bytes in a file can declare structures that would need
// a great deal of memory, so these are counted before they are built.
package budget

import (
	"fmt"
	"math"
	"sync/atomic"

	"stoa/fault"
)

// Memory is the memory limit in bytes for opening one file, or one place whose files stay open, and the amount used so
// far. It is safe for concurrent use. A nil Memory is unlimited.
type Memory struct {
	limit int64
	taken atomic.Int64
}

// Of returns a budget of limit bytes.
func Of(limit int64) *Memory { return &Memory{limit: limit} }

// Take counts n bytes for field path at at. The error, of class Limit, names the option and the minimum value that
// would suffice.
func (m *Memory) Take(n int64, at fault.Span, path string) error {
	if over := m.Over(n); over != "" {
		return fault.Limitf(at, path, "%s", over)
	}
	return nil
}

// Over counts n bytes and returns an error message if they exceed the rest of the budget, or "".
func (m *Memory) Over(n int64) string {
	if m == nil || n <= 0 {
		return ""
	}
	taken := m.taken.Add(n)
	if taken < 0 { // more than an int64 can count
		m.taken.Store(math.MaxInt64)
		taken = math.MaxInt64
	}
	if taken <= m.limit {
		return ""
	}
	return fmt.Sprintf("opening takes %d bytes of memory or more, and may take %d (memory limit)", taken, m.limit)
}

// Return gives bytes back when the structure they were counted for is no longer held.
func (m *Memory) Return(n int64) {
	if m != nil && n > 0 {
		m.taken.Add(-n)
	}
}

// Taken returns the number of bytes counted so far.
func (m *Memory) Taken() int64 {
	if m == nil {
		return 0
	}
	return m.taken.Load()
}

// Estimated memory of an object, and of any other value, in a JSON text.
const (
	perObject = 512
	perValue  = 32
)

// JSON estimates the memory of a JSON text and of the values parsed from it.
func JSON(text []byte) int64 {
	n := 2 * int64(len(text))
	for _, c := range text {
		switch c {
		case '{', '[':
			n += perObject
		case ',':
			n += perValue
		}
	}
	return n
}
