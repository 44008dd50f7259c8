package reading

import (
	"errors"
	"fmt"

	"stoa/fault"
	"stoa/region"
)

// Told is what was reported of a table besides its rows, so that a later run, which does not read it, reports the same.
type Told struct {
	Files    int              `json:"files"`
	Bytes    int64            `json:"bytes"`
	Findings []region.Finding `json:"findings,omitempty"`
	Aside    []region.Finding `json:"aside,omitempty"`
	Losses   []toldLoss       `json:"losses,omitempty"`
}

// toldLoss is a loss whose error can be written.
type toldLoss struct {
	region.Loss
	Err   *fault.Error // instead of the loss's: where it is
	Cause string
}

// Tell returns what is reported of a table.
func Tell(files int, bytes int64, findings, aside []region.Finding, losses []region.Loss) *Told {
	t := &Told{Files: files, Bytes: bytes, Findings: findings, Aside: aside}
	for _, l := range losses {
		x := toldLoss{Loss: l, Cause: fmt.Sprint(l.Err)}
		if e := new(fault.Error); errors.As(l.Err, &e) {
			x.Err = &fault.Error{Class: e.Class, At: e.At, Path: e.Path, Reason: e.Reason}
		}
		t.Losses = append(t.Losses, x)
	}
	return t
}

// Lost returns the losses that were told.
func (t *Told) Lost() (out []region.Loss) {
	if t == nil {
		return nil
	}
	for _, x := range t.Losses {
		x.Loss.Err = &toldError{x.Err, x.Cause}
		out = append(out, x.Loss)
	}
	return out
}

// toldError is an error as it was printed, with its place, if it has one.
type toldError struct {
	place *fault.Error
	text  string
}

func (e *toldError) Error() string { return e.text }

func (e *toldError) Unwrap() error {
	if e.place == nil {
		return nil
	}
	return e.place
}
