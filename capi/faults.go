package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime/debug"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// The classes of stoa.h.
const (
	classOK = iota
	classCorrupt
	classUnsupported
	classInvalid
	classLimit
	classBug
	classChanged
	classNotFound
	classIO
	classCancelled
	classUnproven
	classForked
)

var classNames = []string{"ok", "corrupt", "unsupported", "invalid", "limit", "bug", "changed", "not-found", "io",
	"cancelled", "unproven", "forked"}

// classOf returns the class of an error. What the caller can do about it decides, so a changed file takes precedence.
func classOf(err error) int {
	var e *fault.Error
	switch {
	case err == nil:
		return classOK
	case errors.Is(err, store.ErrChanged):
		return classChanged
	case errors.Is(err, context.Canceled):
		return classCancelled
	case stoa.IsUnproven(err):
		return classUnproven
	case errors.Is(err, stoa.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return classNotFound
	case errors.As(err, &e):
		return int(e.Class)
	case errors.Is(err, fault.Invalid), verbs.WrongUse(err):
		return classInvalid
	}
	for _, c := range []fault.Class{fault.Corrupt, fault.Unsupported, fault.Limit, fault.Bug} {
		if errors.Is(err, c) {
			return int(c)
		}
	}
	return classIO
}

// errorDoc is an error as passed to hosts.
type errorDoc struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	Object  string `json:"object,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Length  *int64 `json:"length,omitempty"`
	Path    string `json:"path,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func docOfError(err error) *errorDoc {
	if err == nil {
		return nil
	}
	d := &errorDoc{Class: classNames[classOf(err)], Message: verbs.Line(err)}
	var e *fault.Error
	if errors.As(err, &e) {
		d.Object, d.Path, d.Reason = e.At.Object, e.Path, e.Reason
		if e.At != (fault.Span{}) {
			d.Offset, d.Length = &e.At.Off, &e.At.Len
		}
	}
	var p *fs.PathError
	if d.Object == "" && errors.As(err, &p) {
		d.Object = p.Path
	}
	return d
}

// lossDoc is a loss, with the names of the command's manifest.
type lossDoc struct {
	Part   string    `json:"part"`
	Group  int       `json:"group"`
	Name   string    `json:"name,omitempty"`
	Column string    `json:"column,omitempty"`
	Stored string    `json:"stored,omitempty"`
	From   *int64    `json:"from"`
	To     *int64    `json:"to"`
	Exact  bool      `json:"exact"`
	Error  *errorDoc `json:"error,omitempty"`
}

func docsOfLosses(losses []region.Loss) []lossDoc {
	out := []lossDoc{}
	for _, l := range losses {
		out = append(out, lossDoc{Part: l.Part, Group: l.Group, Name: l.Name, Column: l.Column, Stored: l.Stored,
			From: known(l.Rows[0]), To: known(l.Rows[1]), Exact: l.Exact, Error: docOfError(l.Err)})
	}
	return out
}

func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// guard converts a panic to an error: a bug of ours must not end the host's process.
func guard(err *error) {
	switch p := recover().(type) {
	case nil:
	case *fault.Error: // of an allocator: see cPool
		*err = p
	default:
		*err = fault.Bugf("%v\n%s", p, debug.Stack())
	}
}

// document encodes a result for the host.
func document(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fault.Bugf("a document of type %T: %v", v, err)
	}
	return string(b), nil
}
