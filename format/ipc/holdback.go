package ipc

import (
	"bufio"
	"io"
)

// holdback writes a stream of messages, and holds back the last bytes of each message until the next is written. Most
// readers accept a stream that stops after a message as complete, with or without an end mark. A stream whose writer
// was killed between two batches must not look complete.
type holdback struct {
	w    *bufio.Writer
	kept [8]byte
	n    int // number of bytes in kept
}

func newHoldback(w io.Writer) *holdback { return &holdback{w: bufio.NewWriterSize(w, 64<<10)} }

func (l *holdback) Write(b []byte) (int, error) {
	if len(b) < len(l.kept) { // keep all of b, and as much as fits of the previous bytes
		if out := l.n + len(b) - len(l.kept); out > 0 {
			if _, err := l.w.Write(l.kept[:out]); err != nil {
				return 0, err
			}
			l.n = copy(l.kept[:], l.kept[out:l.n])
		}
		l.n += copy(l.kept[l.n:], b)
		return len(b), nil
	}
	if _, err := l.w.Write(l.kept[:l.n]); err != nil {
		return 0, err
	}
	now := len(b) - len(l.kept)
	if n, err := l.w.Write(b[:now]); err != nil {
		return n, err
	}
	l.n = copy(l.kept[:], b[now:])
	return len(b), nil
}

// end writes the bytes that were held back, followed by rest.
func (l *holdback) end(rest []byte) error {
	if _, err := l.w.Write(l.kept[:l.n]); err != nil {
		return err
	}
	l.n = 0
	if _, err := l.w.Write(rest); err != nil {
		return err
	}
	return l.w.Flush()
}
