package serve

import (
	"bytes"
	"io"
)

// Bounded keeps the first Most bytes that are written to it: what a verb says, of which an answer has only so much.
type Bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom and WriteString know no limit
	Most int
	Over bool   // there were more
	Full func() // called when there are more, and the write fails; nil: the rest is dropped
}

func (b *Bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.Most-b.Len())
	b.kept.Write(p[:n])
	if n == len(p) {
		return n, nil
	}
	if b.Over = true; b.Full != nil {
		b.Full()
		return n, io.ErrShortWrite
	}
	return len(p), nil
}

// Bytes returns what was kept.
func (b *Bounded) Bytes() []byte { return b.kept.Bytes() }

// String returns what was kept.
func (b *Bounded) String() string { return b.kept.String() }

// Len is the number of bytes that were kept.
func (b *Bounded) Len() int { return b.kept.Len() }
