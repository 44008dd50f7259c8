// Package budget counts the memory that opening a file takes. A few bytes in a file can declare structures that would
// take the reader very much, so these are counted before they are made.
package budget

import (
	"fmt"
	"math"
	"sync/atomic"

	"stoa/fault"
)

// Memory is how many bytes opening one file, or one place whose files stay open, may take, and how many it has taken.
// It is safe for concurrent use. A nil Memory is unlimited.
type Memory struct {
	limit int64
	taken atomic.Int64
}

// Of returns a budget of limit bytes.
func Of(limit int64) *Memory { return &Memory{limit: limit} }

// Take counts n bytes for field path at at. The error, of class Limit, names the option and the least value that would
// do.
func (m *Memory) Take(n int64, at fault.Span, path string) error {
	if over := m.Over(n); over != "" {
		return fault.Limitf(at, path, "%s", over)
	}
	return nil
}

// Over counts n bytes and returns an error message if they exceed what is left, or "".
func (m *Memory) Over(n int64) string {
	if m == nil || n <= 0 {
		return ""
	}
	taken := m.taken.Add(n)
	if taken < 0 { // past what can be counted
		m.taken.Store(math.MaxInt64)
		taken = math.MaxInt64
	}
	if taken <= m.limit {
		return ""
	}
	return fmt.Sprintf("opening takes %d bytes of memory or more, and may take %d (memory limit)", taken, m.limit)
}

// Return returns what was taken for something that is no longer held.
func (m *Memory) Return(n int64) {
	if m != nil && n > 0 {
		m.taken.Add(-n)
	}
}

// Taken is how many bytes have been taken.
func (m *Memory) Taken() int64 {
	if m == nil {
		return 0
	}
	return m.taken.Load()
}

// Memory that an object, and any other value, of a JSON text is assumed to need.
const (
	perObject = 512
	perValue  = 32
)

// JSON is the memory that a JSON text, and what is made of it, is assumed to need.
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
