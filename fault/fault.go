// Package fault has the types with which stoa reports that something is wrong: where (Span), what kind (Class), in
// which field (Path) and why (Reason).
//
// Every error about the content of a file is an *Error. It prints on one line, always in the same order:
//
//	t/f7.cfile[40110+8]: corrupt: posidx/leaf[3]/entry[12].offset: 918273 is past the end of the file (500000)
package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Class says whose fault an error is. A Class is itself an error, so errors.Is(err, fault.Corrupt) tests for it.
type Class uint8

const (
	Corrupt     Class = iota + 1 // the bytes contradict the format
	Unsupported                  // the bytes may be intact, but stoa lacks support for them (the reason says for what)
	Invalid                      // the caller's mistake: a wrong option, an unknown column
	Limit                        // the file asks for more than the budget allows
	Bug                          // a bug of stoa
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

// Span is a run of bytes of one physical object (a file, by its name in its Tree). Off and Len are in bytes. Offsets
// count from the beginning of the object even if the reader sees only a section of it.
type Span struct {
	Object   string
	Off, Len int64
}

// String returns object[off+len], or the object alone for a span without offset and length.
func (s Span) String() string {
	if s.Off == 0 && s.Len == 0 {
		return s.Object
	}
	return fmt.Sprintf("%s[%d+%d]", s.Object, s.Off, s.Len)
}

// End returns the offset of the first byte after s.
func (s Span) End() int64 { return s.Off + s.Len }

// Sub returns the part of s that begins off bytes into it and is n bytes long. It does not check bounds, because an
// error may well point past the end.
func (s Span) Sub(off, n int64) Span { return Span{s.Object, s.Off + off, n} }

// Error is an error with a place and a class.
type Error struct {
	Class  Class
	At     Span
	Path   string // the field, from the outermost structure in: "posidx/leaf[3]/entry[12].offset"
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

// New returns an error of class c about field path in the bytes at.
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

// Invalidf returns an error of class Invalid. It has no place, because the caller's mistakes are not in a file.
func Invalidf(format string, args ...any) *Error {
	return New(Invalid, Span{}, "", format, args...)
}

// Bugf returns an error of class Bug.
func Bugf(format string, args ...any) *Error {
	return New(Bug, Span{}, "", format, args...)
}

// Panicked converts a panic p, caught while doing what ("reading"), to an error: p itself if it is an *Error, as from
// an allocator that has no other way to report that memory ran out; otherwise an error of class Bug.
func Panicked(p any, what string) *Error {
	if e, ok := p.(*Error); ok {
		return e
	}
	return Bugf("%s panicked: %v", what, p)
}

// Rel returns the error of a decoder that does not know about files (packages enc and codec): off and n are relative to
// the bytes it was given. Its caller adds the place with Locate.
func Rel(off, n int, path, format string, args ...any) *Error {
	return New(Corrupt, Span{Off: int64(off), Len: int64(n)}, path, format, args...)
}

// Locate gives a relative error (see Rel) its place. at is where the decoder's input lies in the object. exact says
// that the input was these very bytes, so that the error's offset can be translated; otherwise the input was derived
// from them (decompressed), and the offset is reported in the reason. path is prepended to the error's own. An error
// that already has a place, and one that is not an *Error, only gets the path (and, if it is not an *Error, class
// Corrupt).
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

// Count returns a number and its noun, for messages.
func Count[N int | int32 | int64 | uint32 | uint64](n N, noun string) string {
	return count(int64(n), noun)
}

func count(n int64, noun string) string {
	if noun = strconv.FormatInt(n, 10) + " " + noun; n != 1 {
		noun += "s"
	}
	return noun
}
