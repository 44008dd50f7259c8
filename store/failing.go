package store

import (
	"errors"
	"io/fs"
	"syscall"

	"stoa/fault"
)

// Failing reports whether an error is that of a store: it could not say what is there. An *fault.Error is about
// what was read, and what is not there, or no object, is known to be that.
func Failing(err error) bool {
	var known *fault.Error
	var odd *Odd
	return err != nil && !errors.As(err, &known) && !errors.As(err, &odd) && !NoFile(err) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
