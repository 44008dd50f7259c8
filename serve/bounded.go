package serve

import (
	"bytes"
	"io"
	"strings"
)

// maxNotes is how many bytes of what a command says on standard error are kept.
const maxNotes = 64 << 10

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

// shown returns a command line as a person would type it.
func shown(args []string) string {
	var words []string
	for _, a := range append([]string{"stoa"}, args...) {
		if a == "--" {
			continue
		}
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?#~`!{}[]") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// linesOf returns what a command said, line by line.
func linesOf(notes *Bounded) (out []string) {
	for l := range strings.Lines(notes.String()) {
		if l = strings.TrimRight(l, "\n"); l != "" {
			out = append(out, l)
		}
	}
	return out
}
