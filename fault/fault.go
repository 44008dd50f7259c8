// Package fault holds the words in which stoa reports that something is wrong:
// where (Span), what kind (Class), in which field (Path) and why (Reason).
//
// Every error about the content of a file is an *Error. It prints on one line, always in the same order:
//
//	t/f7.cfile[40110+8]: corrupt: posidx/leaf[3]/entry[12].offset: 918273 is past the end of the file (500000)
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Class says whose fault it is. A Class is itself an error, so that errors.Is(err, fault.Corrupt) asks for it.
type Class uint8

const (
	Corrupt     Class = iota + 1 // the bytes contradict the format
	Unsupported                  // the bytes may be fine; we do not have what they need (the reason names it)
	Invalid                      // the caller's mistake: a wrong option, an unknown column
	Limit                        // the file asks for more than the budget allows
	Bug                          // our own
)

func (c Class) Error() string {
	switch c {
	case Corrupt:
		return "corrupt"
	case Unsupported:
		return "unsupported"
	case Invalid:
		return "invalid"
	case Limit:
		return "limit"
	case Bug:
		return "bug"
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Span is a run of bytes of one physical object (a file, as its Tree names it).
// Off and Len are in bytes; offsets are those of the object, also when the reader sees only a section of it.
type Span struct {
	Object   string
	Off, Len int64
}

// String is object[off+len]; the object alone if the span says nothing but that.
func (s Span) String() string {
	if s.Off == 0 && s.Len == 0 {
		return s.Object
	}
	return fmt.Sprintf("%s[%d+%d]", s.Object, s.Off, s.Len)
}

// End is the offset of the first byte after s.
func (s Span) End() int64 { return s.Off + s.Len }

// Sub is the part of s that begins off bytes into it and is n bytes long. It does not check bounds:
// an error may well point past the end.
func (s Span) Sub(off, n int64) Span { return Span{s.Object, s.Off + off, n} }

// Error is a placed, classed error.
type Error struct {
	Class  Class
	At     Span
	Path   string // the field, from the outermost structure inwards: "posidx/leaf[3]/entry[12].offset"
	Reason string
	Cause  error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.At != (Span{}) {
		b.WriteString(e.At.String())
		b.WriteString(": ")
	}
	b.WriteString(e.Class.Error())
	if e.Path != "" {
		b.WriteString(": ")
		b.WriteString(e.Path)
	}
	if e.Reason != "" {
		b.WriteString(": ")
		b.WriteString(e.Reason)
	}
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is e's class.
func (e *Error) Is(target error) bool { c, ok := target.(Class); return ok && c == e.Class }

// New makes an error of class c about field path of the bytes at.
func New(c Class, at Span, path, format string, args ...any) *Error {
	return &Error{Class: c, At: at, Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Corruptf is New(Corrupt, …).
func Corruptf(at Span, path, format string, args ...any) *Error {
	return New(Corrupt, at, path, format, args...)
}

// Unsupportedf is New(Unsupported, …).
func Unsupportedf(at Span, path, format string, args ...any) *Error {
	return New(Unsupported, at, path, format, args...)
}

// Limitf is New(Limit, …).
func Limitf(at Span, path, format string, args ...any) *Error {
	return New(Limit, at, path, format, args...)
}

// Invalidf returns an error of class Invalid; the caller's mistakes have no place in a file.
func Invalidf(format string, args ...any) *Error {
	return New(Invalid, Span{}, "", format, args...)
}

// Bugf returns an error of class Bug.
func Bugf(format string, args ...any) *Error {
	return New(Bug, Span{}, "", format, args...)
}

// Panicked is the error that a panic p, caught while doing what ("reading"), is reported as: p itself if it is an
// *Error, as that of an allocator which has no other way to say that there is no memory; else a Bug.
func Panicked(p any, what string) *Error {
	if e, ok := p.(*Error); ok {
		return e
	}
	return Bugf("%s panicked: %v", what, p)
}

// Rel is how a decoder that knows no files (packages enc and codec) reports damage:
// off and n are relative to the bytes it was given. Its caller adds the place with Locate.
func Rel(off, n int, path, format string, args ...any) *Error {
	return New(Corrupt, Span{Off: int64(off), Len: int64(n)}, path, format, args...)
}

// Locate gives a relative error (see Rel) its place. at is where the decoder's input lies in the object. exact
// says that the input was that very run of bytes, so the error's offset can be moved there; otherwise the input
// was made from it (decompressed), and the offset is reported in the reason. path is put in front of the error's
// own. An error that has a place already, and one that is not an *Error, only gets the path (and, if not an
// *Error, class Corrupt).
func Locate(err error, at Span, exact bool, path string) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Class: Corrupt, At: at, Path: path, Cause: err}
	}
	out := *e
	out.Path = JoinPath(path, e.Path)
	switch {
	case e.At.Object != "": // already placed
	case exact:
		out.At = at.Sub(e.At.Off, e.At.Len)
	default:
		out.At = at
		out.Reason = fmt.Sprintf("%s (byte %d of the decoded block)", e.Reason, e.At.Off)
	}
	return &out
}

// JoinPath joins two field paths; either may be empty.
func JoinPath(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	case b[0] == '.' || b[0] == '[':
		return a + b
	}
	return a + "/" + b
}
