package workcopy

import (
	"errors"
	"strings"

	"stoa/fault"
)

// shown returns an error about a local file of the copy as one about the object that it stands for.
func (c *Copy) shown(err error) error {
	if err == nil || c.dir == "" || !strings.Contains(err.Error(), c.dir) {
		return err
	}
	name := func(s string) string { return strings.ReplaceAll(s, c.dir, c.place.Name()) }
	var e *fault.Error
	if errors.As(err, &e) && e.Error() == err.Error() {
		out := *e
		out.At.Object, out.Reason, out.Cause = name(e.At.Object), name(e.Reason), c.shown(e.Cause)
		return &out
	}
	return &shownError{err, name(err.Error())}
}

type shownError struct {
	err  error
	text string
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }
