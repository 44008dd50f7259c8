package text

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// input reads a text from start to end through one buffer, without its size. Text that is compressed with gzip is
// decompressed; a byte order mark is skipped.
type input struct {
	name  string
	r     io.Reader
	err   error // the final error of r; io.EOF at the end
	buf   []byte
	at    int    // index in buf of the first unconsumed byte
	off   int64  // offset of buf[0] in the text
	limit int64  // maximum bytes of a record
	most  int64  // maximum fields of a record; 0: any number
	small string // name of the limit that bounds a record, for messages

	deepest int64 // maximum nesting of arrays and objects in a record
	gzip    bool
	chunk   int // minimum bytes to read at once
}

const inputChunk = 256 << 10

// recordPart divides the page limit into the limit of a record: its buffer grows by doubling, and values are copied
// from it.
const recordPart = 8

func newInput(ctx context.Context, src store.Source, t format.Target, limits format.Limits) (*input, error) {
	seq := &sequential{ctx: ctx, src: src, off: t.At.From, end: -1}
	if t.At.Len() > 0 {
		seq.end = t.At.To
	}
	return newInputOf(seq, t, limits, inputChunk)
}

// newInputOf returns an input that reads chunk bytes at once.
func newInputOf(seq *sequential, t format.Target, limits format.Limits, chunk int) (*input, error) {
	limits = limits.WithDefaults()
	in := &input{name: t.Name, r: seq, off: t.At.From, limit: limits.Page / recordPart, small: "the page limit",
		most: limits.Fields, deepest: limits.Depth, chunk: chunk}
	if limits.Opening < limits.Page {
		in.limit, in.small = limits.Opening/recordPart, "the memory limit"
	}
	if err := in.fill(); err != nil && err != io.EOF {
		return nil, err
	}
	if len(in.buf) == 0 && strings.HasSuffix(strings.ToLower(t.Name), ".gz") { // gzip of an empty text is not empty
		return nil, &fault.Error{Class: fault.Corrupt, At: fault.Span{Object: in.name}, Path: "gzip",
			Reason: "expected a gzip stream by the file's name, found an empty file"}
	}
	if bytes.HasPrefix(in.buf, []byte{0x1F, 0x8B, 8}) {
		z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(in.buf), seq))
		if err != nil {
			return nil, in.wrap(err)
		}
		*in = input{name: t.Name, r: z, limit: in.limit, small: in.small, most: in.most, deepest: in.deepest,
			gzip: true, chunk: chunk}
		if err := in.fill(); err != nil && err != io.EOF {
			return nil, err
		}
	}
	if bytes.HasPrefix(in.buf, []byte("\xEF\xBB\xBF")) {
		in.at = 3
	}
	return in, nil
}

// sequential is an io.Reader over a Source.
type sequential struct {
	ctx context.Context
	src store.Source
	off int64
	end int64 // -1: the end of the object
}

func (s *sequential) Read(p []byte) (int, error) {
	if s.end >= 0 {
		if s.off >= s.end {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), s.end-s.off)]
	}
	n, err := store.Uncached(s.src).ReadAt(s.ctx, p, s.off)
	s.off += int64(n)
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

// readError marks errors of the storage, which are not damage.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func (in *input) wrap(err error) error {
	var own *readError
	if errors.As(err, &own) {
		return own.err
	}
	if in.gzip { // rows have already been returned
		err = fmt.Errorf("%w; the only checksum is that of the whole text: any row before may have other values", err)
	}
	return &fault.Error{Class: fault.Corrupt, At: fault.Span{Object: in.name}, Path: "gzip", Cause: err}
}

// fill moves the unconsumed bytes to the front of the buffer and reads more after them; io.EOF at the end of the text.
// A record that exceeds the limit is an error.
func (in *input) fill() error {
	if in.err != nil {
		return in.err
	}
	if in.at > 0 {
		n := copy(in.buf, in.buf[in.at:])
		in.buf = in.buf[:n]
		in.off += int64(in.at)
		in.at = 0
	}
	if int64(len(in.buf)) > in.limit {
		in.err = fault.Limitf(in.span(in.off, int64(len(in.buf))), "record", "the record that begins at byte %d "+
			"of the text is longer than %d bytes, an eighth of %s; a quote may be missing", in.off, in.limit, in.small)
		return in.err
	}
	if free := cap(in.buf) - len(in.buf); free < in.chunk { // the capacity is bounded, so that the limit above applies
		grown := make([]byte, len(in.buf), min(2*int64(cap(in.buf)), in.limit)+int64(in.chunk))
		copy(grown, in.buf)
		in.buf = grown
	}
	n, err := io.ReadFull(in.r, in.buf[len(in.buf):cap(in.buf)])
	in.buf = in.buf[:len(in.buf)+n]
	switch err {
	case nil:
	case io.EOF, io.ErrUnexpectedEOF:
		// ErrUnexpectedEOF may come from ReadFull, or from a truncated gzip stream
		in.err = io.EOF
		if err := in.cut(); err != nil {
			in.err = err
		}
		if n == 0 {
			return in.err
		}
	default:
		in.err = in.wrap(err)
		if n == 0 {
			return in.err
		}
	}
	return nil
}

// cut returns an error if a gzip stream ended too early.
func (in *input) cut() error {
	if !in.gzip {
		return nil
	}
	var b [1]byte
	if n, err := in.r.Read(b[:]); n == 0 && err != io.EOF {
		return in.wrap(err)
	}
	return nil
}

// more reports whether the text continues, with bytes or an error.
func (in *input) more() bool { return len(in.rest()) > 0 || in.fill() != io.EOF }

// rest returns the unconsumed bytes in the buffer.
func (in *input) rest() []byte { return in.buf[in.at:] }

// offset returns the offset in the text of the first unconsumed byte.
func (in *input) offset() int64 { return in.off + int64(in.at) }

// span returns a range of the text; for a compressed text, the whole object.
func (in *input) span(off, n int64) fault.Span {
	if in.gzip {
		return fault.Span{Object: in.name}
	}
	return fault.Span{Object: in.name, Off: off, Len: n}
}

// line consumes a line and returns it without its line end; io.EOF after the last one. A last line without a line end
// counts unless it is empty. whole is the length of the line with its line end.
func (in *input) line() (b []byte, whole int, err error) {
	seen := 0
	for {
		rest := in.rest()
		if i := bytes.IndexByte(rest[seen:], '\n'); i >= 0 {
			end := seen + i
			in.at += end + 1
			return trimCR(rest[:end]), end + 1, nil
		}
		seen = len(rest)
		err := in.fill()
		if err == nil {
			continue
		}
		if err != io.EOF || len(rest) == 0 {
			return nil, 0, err
		}
		in.at += len(rest)
		return trimCR(rest), len(rest), nil
	}
}

func trimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}
