// Package budget counts what opening a file takes of the memory that it may take. What a file declares costs it
// few bytes and may cost the reader very many, so structures are counted before they are made.
package budget

import (
	"fmt"
	"math"
	"sync/atomic"

	"stoa/fault"
)

// Memory is the bytes that opening one file, or one place whose files are kept open together, may take, and those
// that were taken. It is safe for concurrent use. A nil one has no end.
type Memory struct {
	limit int64
	taken atomic.Int64
}

// Of is a budget of so many bytes.
func Of(limit int64) *Memory { return &Memory{limit: limit} }

// Take counts n bytes for field path of the bytes at. An error, of class Limit, names the option and what it must
// be at least.
func (m *Memory) Take(n int64, at fault.Span, path string) error {
	if over := m.Over(n); over != "" {
		return fault.Limitf(at, path, "%s", over)
	}
	return nil
}

// Over counts n bytes and says what is wrong if they are more than is left; "" if nothing is.
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
	return fmt.Sprintf("opening takes %d bytes of memory or more, and may take %d (--memory)", taken, m.limit)
}

// Return gives back what was taken for something that is no longer held.
func (m *Memory) Return(n int64) {
	if m != nil && n > 0 {
		m.taken.Add(-n)
	}
}

// Taken is how many bytes were taken.
func (m *Memory) Taken() int64 {
	if m == nil {
		return 0
	}
	return m.taken.Load()
}

// Memory that an object, and any other value, of a JSON text is taken to need.
const (
	perObject = 512
	perValue  = 32
)

// JSON is the memory that a JSON text, and what is made of it, is taken to need.
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
