package store

import (
	"errors"
	"io/fs"
	"syscall"

	"stoa/fault"
)

// Failing reports whether an error is a store's failure to say what is there. An *fault.Error is about contents that
// were read, and a missing object, or one that is not a file, is no failure.
func Failing(err error) bool {
	var known *fault.Error
	var irregular *Irregular
	return err != nil && !errors.As(err, &known) && !errors.As(err, &irregular) && !NoFile(err) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
