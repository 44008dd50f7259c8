package store

import (
	"errors"
	"io/fs"
	"syscall"

	"stoa/fault"
)

// Failing reports whether an error means that a store failed to answer. An *fault.Error is about contents that were
// read, so it is not such a failure; neither is a missing object, or one that is not a file.
func Failing(err error) bool {
	var known *fault.Error
	var irregular *Irregular
	return err != nil && !errors.As(err, &known) && !errors.As(err, &irregular) && !NoFile(err) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
